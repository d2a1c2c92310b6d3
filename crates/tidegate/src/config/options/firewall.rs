//! Options of the WAF: its rules for all, and how each site or route uses them.

use std::time::Duration;

use tidegate_proxy::settings::Busy;
use tidegate_waf::inspection::Mode;
use tidegate_waf::seclang::setting::LimitAction;

use super::super::diagnostic::code;
use super::super::parse;
use super::super::reader::Text;
use super::kind::{
    Choice, Count, DAY, Fault, Flag, GB, KB, List, MB, MINUTE, Parsed, Percent, SecretText, Size,
    Time, count, list, parsed_text, percent, size, time,
};
use super::{Optional, Reach, Section, Setting, Shape, optional, section, setting};

/// Rules that are not used, or not on some variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exclusion {
    pub(crate) rules: ExcludedRules,
    /// The variables, as `ARGS:password`; all if there is none.
    pub(crate) target: Option<String>,
}

/// Which rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExcludedRules {
    /// One, or those from the first to the last.
    Ids(u64, u64),
    /// Those with this tag.
    Tag(String),
}

impl Exclusion {
    /// Reads one as `exclude` does; `None` if it is none.
    pub(crate) fn of(text: &str) -> Option<Self> {
        exclusion(&Text::plain(text)).ok()
    }
}

fn exclusion(text: &Text) -> Result<Exclusion, Fault> {
    let fault = |message: String| {
        Fault::new(&code::WAF_EXCLUSION, message).hint(
            "write it like `942100`, `942100-942199` or `tag:attack-sqli`, with or without variables \
             behind it: `942100 ARGS:password`",
        )
    };
    let mut words = text.value.split_whitespace();
    let (Some(rules), target, None) = (words.next(), words.next(), words.next()) else {
        return Err(fault(format!("{} is not an exclusion", text.shown())));
    };
    let rules = if let Some(tag) = rules.strip_prefix("tag:") {
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ':');
        if tag.is_empty() || !tag.chars().all(known) {
            return Err(fault(format!("`{}` is not a tag", tag.escape_debug())));
        }
        ExcludedRules::Tag(tag.to_owned())
    } else {
        let (first, last) = rules.split_once('-').unwrap_or((rules, rules));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last && first > 0 => ExcludedRules::Ids(first, last),
            _ => {
                let shown = rules.escape_debug();
                return Err(fault(format!("`{shown}` is neither a rule's id nor a range of them")));
            }
        }
    };
    if let Some(target) = target {
        let (name, member) = target.split_once(':').unwrap_or((target, "-"));
        let is_name = name.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '0'..='9'));
        let odd = |c: char| c.is_control() || matches!(c, '"' | '\'' | ',' | ';' | '|' | '\\');
        if name.is_empty() || !is_name || member.is_empty() || member.contains(odd) {
            let shown = target.escape_debug();
            return Err(fault(format!("`{shown}` is not a variable, or a member of a collection")));
        }
    }
    Ok(Exclusion { rules, target: target.map(str::to_owned) })
}

fn path(text: &Text) -> Result<String, Fault> {
    if text.value.is_empty() || text.value.contains(|c: char| c.is_control() || c == '"') {
        return Err(Fault::new(&code::INVALID_VALUE, "this is not a path that rules can name"));
    }
    Ok(text.value.clone())
}

section! {
    /// How the requests of a site or a route are inspected; a bare value is the mode. What a route
    /// does not say, its site does, and then `[waf]`; exclusions add up.
    inspect = Section::new("waf", "site.waf", Shape::Inline)
        .example("waf = { mode = \"block\", paranoia = 2, exclude = [\"942100 ARGS:password\"] }")
        .shorthand("mode");

    /// What is done about requests that rules match.
    MODE: Optional<Choice<Mode>> = optional(
        "mode",
        Choice(&[
            ("off", Mode::Off, "no rule is asked"),
            ("detect", Mode::Detect, "matches are logged, and nothing is stopped"),
            ("block", Mode::Block, "what rules deny is denied"),
        ]),
        "`detect` where something else is said about the WAF, `off` where nothing is",
        "\"block\"",
    )
    .reaches(Reach::Waf);

    /// The paranoia level of the Core Rule Set: how much suspicion it takes for a rule to count.
    PARANOIA: Optional<Count<u8>> =
        optional("paranoia", count(1, 4), "1", "2").reaches(Reach::Waf);

    /// The paranoia level up to which rules are asked and logged without counting.
    DETECTION_PARANOIA: Optional<Count<u8>> =
        optional("detection_paranoia", count(1, 4), "as `paranoia`", "3").reaches(Reach::Waf);

    /// The score from which the Core Rule Set denies a request. A critical rule counts 5.
    INBOUND_THRESHOLD: Optional<Count<u32>> =
        optional("inbound_threshold", count(1, 100_000), "5", "10").reaches(Reach::Waf);

    /// The score from which the Core Rule Set denies a response.
    OUTBOUND_THRESHOLD: Optional<Count<u32>> =
        optional("outbound_threshold", count(1, 100_000), "4", "8").reaches(Reach::Waf);

    /// Rules that are not used: by id, by range of ids, or by tag; with a variable behind them, only
    /// that variable is kept from them. Those of `[waf]`, of the site and of the route add up.
    EXCLUDE: Optional<List<Parsed<Exclusion>>> = optional(
        "exclude",
        list("a list of exclusions", parsed_text("an exclusion", exclusion)),
        "all rules are used",
        "[\"942100\", \"920300-920399\", \"tag:attack-sqli ARGS:query\"]",
    )
    .reaches(Reach::Waf);

    /// The score from which a client without a pass is challenged in mode `block`, below
    /// `inbound_threshold`: its browser does some work, keeps a pass, and loads the page again.
    CHALLENGE_FROM: Optional<Count<u32>> =
        optional("challenge_from", count(1, 100_000), "no score is challenged", "5").reaches(Reach::Waf);

    /// The share of `connections_max` from which every client without a pass is challenged in mode
    /// `block`.
    CHALLENGE_PRESSURE: Optional<Percent> =
        optional("challenge_pressure", percent(1, 100), "however many are there, nobody is", "\"80%\"")
            .reaches(Reach::Waf);

    /// The work of a challenge: leading zero bits of a hash. One more doubles it; 16 take a browser
    /// a fraction of a second.
    CHALLENGE_BITS: Setting<Count<u8>> =
        setting("challenge_bits", count(8, 24), "16").reaches(Reach::Waf);

    /// How long a pass lasts.
    CHALLENGE_LIFETIME: Setting<Time> =
        setting("challenge_lifetime", time(MINUTE, DAY), "\"1h\"").reaches(Reach::Waf);

    /// What is done with a request whose inspection is the pool's, when the pool has no room.
    BUSY: Setting<Choice<Busy>> = setting(
        "busy",
        Choice(&[
            ("wait", Busy::Wait, "it waits for room, up to 10 seconds"),
            ("pass", Busy::Pass, "it passes, and its record says that it was not inspected"),
            ("refuse", Busy::Refuse, "it is answered with 503; in mode `detect`, it passes"),
        ]),
        "\"wait\"",
    )
    .reaches(Reach::Waf);
}

section! {
    /// The web application firewall: which rules there are, what they may look at, and how they are
    /// used where no site or route says otherwise. docs/waf.md shows the way.
    waf = Section::new("waf", "[waf]", Shape::One)
        .example("[waf]\nmode = \"detect\"\ncrs = \"/usr/share/modsecurity-crs\"\nparanoia = 1")
        .borrows(&[(&inspect::SECTION, Reach::Waf)]);

    /// The folder of the OWASP Core Rule Set, as it is released, as Debian installs it, or as the Go
    /// module has it.
    CRS: Optional<Parsed<String>> = optional(
        "crs",
        parsed_text("the path of a folder", path),
        "the built-in rules are used",
        "\"/usr/share/modsecurity-crs\"",
    );

    /// The folder of the Core Rule Set's plugins.
    PLUGINS: Optional<Parsed<String>> = optional(
        "plugins",
        parsed_text("the path of a folder", path),
        "the folder `plugins` beside the rules, if there is one",
        "\"/etc/tidegate/crs-plugins\"",
    );

    /// Whether the built-in rules are used where there is no Core Rule Set.
    BUILTIN: Setting<Flag> = setting("builtin", Flag, "true");

    /// Rule files of your own in front of the Core Rule Set: what has to be there first, such as a
    /// `crs-setup.conf`.
    RULES_BEFORE: Optional<List<Parsed<String>>> = optional(
        "rules_before",
        list("a list of paths or patterns", parsed_text("a path or a pattern", path)),
        "none",
        "[\"/etc/tidegate/before.conf\"]",
    );

    /// Rule files of your own behind all others.
    RULES: Optional<List<Parsed<String>>> = optional(
        "rules",
        list("a list of paths or patterns", parsed_text("a path or a pattern", path)),
        "none",
        "[\"/etc/tidegate/rules/*.conf\"]",
    );

    /// Whether the Core Rule Set decides after phase 1 already what the head alone has earned.
    EARLY_BLOCKING: Setting<Flag> = setting("early_blocking", Flag, "false");

    /// The methods that the Core Rule Set lets pass.
    ALLOWED_METHODS: Optional<List<Parsed<tidegate_proxy::settings::MethodName>>> = optional(
        "allowed_methods",
        list("a list of methods", parsed_text("a method", parse::field::method)),
        "GET, HEAD, POST and OPTIONS",
        "[\"GET\", \"HEAD\", \"POST\", \"PUT\", \"DELETE\"]",
    );

    /// What passes of challenges are signed with. Gates that share it take each other's passes, and
    /// passes outlive restarts.
    CHALLENGE_SECRET: Optional<SecretText> = optional(
        "challenge_secret",
        SecretText { bytes_min: 32 },
        "each run of the gate draws its own",
        "\"${CHALLENGE_SECRET}\"",
    );

    /// Bytes of a request body that rules look at.
    REQUEST_BODY_MAX: Optional<Size> = optional(
        "request_body_max",
        size(KB, GB),
        "as the rules say: 12.5MB, unless a rule file says otherwise",
        "\"32MB\"",
    );

    /// What is done with a request whose body is larger.
    REQUEST_BODY_OVER: Optional<Choice<LimitAction>> = optional(
        "request_body_over",
        Choice(&[
            ("refuse", LimitAction::Reject, "it is answered with 413; in mode `detect`, only its beginning is looked at"),
            ("partial", LimitAction::ProcessPartial, "its beginning is looked at"),
        ]),
        "as the rules say: `refuse`, unless a rule file says otherwise",
        "\"partial\"",
    );

    /// Bytes of a request body without its files that rules look at.
    REQUEST_FIELDS_MAX: Optional<Size> = optional(
        "request_fields_max",
        size(KB, GB),
        "as the rules say: 128KB, unless a rule file says otherwise",
        "\"1MB\"",
    );

    /// Bytes of a response body that rules look at, and that are held back for it.
    RESPONSE_BODY_MAX: Optional<Size> = optional(
        "response_body_max",
        size(KB, 64 * MB),
        "as the rules say: 512KB, unless a rule file says otherwise",
        "\"1MB\"",
    );

    /// How deep a JSON body may be nested.
    JSON_DEPTH_MAX: Optional<Count<u32>> = optional(
        "json_depth_max",
        count(1, 100_000),
        "as the rules say: 512, unless a rule file says otherwise",
        "100",
    );

    /// Arguments that a request may have.
    ARGUMENTS_MAX: Optional<Count<u32>> = optional(
        "arguments_max",
        count(1, 1_000_000),
        "as the rules say: 1000, unless a rule file says otherwise",
        "2000",
    );

    /// Bytes of a request body that stay in memory while rules look at it; the rest goes to a file
    /// without a name in the directory for temporary files.
    BODY_MEMORY_MAX: Setting<Size> = setting("body_memory_max", size(0, GB), "\"128KB\"");

    /// Threads for inspections that would hold a worker up.
    POOL_THREADS: Optional<Count<usize>> =
        optional("pool_threads", count(1, 256), "one for every two workers", "2");

    /// Inspections that may wait for these threads.
    POOL_QUEUE: Setting<Count<usize>> = setting("pool_queue", count(1, 100_000), "256");

    /// How long an inspection waits for a block list in DNS (`@rbl`). No answer is no match.
    LOOKUP_TIMEOUT: Setting<Time> =
        setting("lookup_timeout", time(Duration::from_millis(10), Duration::from_secs(30)), "\"1s\"");

    /// Answers of block lists that are kept, each for as long as DNS says, up to ten minutes.
    LOOKUPS_KEPT: Setting<Count<usize>> = setting("lookups_kept", count(0, 10_000_000), "10_000");

    /// How long a program that judges an uploaded file (`@inspectFile`) may take. No word is no match.
    PROGRAM_TIMEOUT: Setting<Time> =
        setting("program_timeout", time(Duration::from_millis(10), Duration::from_mins(5)), "\"10s\"");

    /// Bytes of head and body from which an inspection goes to these threads at once. A smaller one
    /// goes there if it turns out to take more than about a millisecond.
    POOL_FROM: Setting<Size> = setting("pool_from", size(0, GB), "\"16KB\"");

    /// One in so many inspections is measured rule by rule, for the slowest rules in `tidegate status`
    /// and in the metrics. It takes about 25 nanoseconds longer for each rule; the others
    /// take no longer. 0 measures none.
    RULE_TIMES: Setting<Count<u32>> = setting("rule_times", count(0, 1_000_000_000), "1000");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusions_are_read() {
        let check = |text: &str, expected: Option<(ExcludedRules, Option<&str>)>| {
            let found = exclusion(&Text::plain(text)).ok();
            let expected = expected
                .map(|(rules, target)| Exclusion { rules, target: target.map(str::to_owned) });
            assert_eq!(found, expected, "{text}");
        };
        let tag = |tag: &str| ExcludedRules::Tag(tag.to_owned());
        check("942100", Some((ExcludedRules::Ids(942_100, 942_100), None)));
        check("942100-942199", Some((ExcludedRules::Ids(942_100, 942_199), None)));
        check("tag:attack-sqli", Some((tag("attack-sqli"), None)));
        check("tag:paranoia-level/2 ARGS", Some((tag("paranoia-level/2"), Some("ARGS"))));
        check(
            " 942100  REQUEST_COOKIES:/^s_/ ",
            Some((ExcludedRules::Ids(942_100, 942_100), Some("REQUEST_COOKIES:/^s_/"))),
        );
        for wrong in [
            "",
            "0",
            "9-1",
            "1-2-3",
            "x",
            "tag:",
            "tag:a,b",
            "1 args",
            "1 ARGS:",
            "1 ARGS:a,b",
            "1 ARGS:a'b",
            "1 ARGS:a b",
            "1 !ARGS",
        ] {
            check(wrong, None);
        }
    }
}
