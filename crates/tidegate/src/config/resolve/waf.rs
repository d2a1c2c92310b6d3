//! `[waf]` and `waf` of sites and routes: one program for all, and the policies over it.
//!
//! The rule set is one text that includes the files which the options name. It is compiled when the
//! first route is inspected, or when `[waf]` is written, and not again as long as neither the text nor
//! a file that it reads has changed.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_proxy::settings::{Challenge, ChallengeKey, Inspect, Process, Waf};
use tidegate_waf::inspection::Mode;
use tidegate_waf::program::{Policy, compile_policy};
use tidegate_waf::seclang;
use tidegate_waf::seclang::setting::LimitAction;
use tidegate_waf::{Builtin, CoreRuleSet, Sources};

use super::super::diagnostic::{Diagnostic, code};
use super::super::options::{ExcludedRules, Exclusion, inspect, waf};
use super::super::reader::{Located, Reading, Scope};
use super::super::rules::{self, Compiled, Names, RULE_SET};
use super::super::source::Span;
use super::{process, tls};
use crate::outside;

/// The WAF while sites are resolved.
pub(super) struct Firewall<'n> {
    scope: Scope<'n>,
    program: Found,
    policies: HashMap<(Mode, String), Arc<Policy>>,
    /// Where the text of a rule file that was reported about lies among the sources.
    files: HashMap<Arc<str>, Option<u32>>,
}

/// The program, as far as somebody has asked for it.
enum Found {
    NotYet,
    /// Its mistakes have been told.
    Wrong,
    Right(Compiled),
}

impl<'n> Firewall<'n> {
    pub(super) fn new(scope: Scope<'n>, reading: &mut Reading<'_>) -> Self {
        let mut firewall =
            Self { scope, program: Found::NotYet, policies: HashMap::new(), files: HashMap::new() };
        if scope.is_written() {
            firewall.program(reading);
        }
        firewall
    }

    /// What all inspections share.
    pub(super) fn settings(&self, process: &Process, reading: &mut Reading<'_>) -> Waf {
        let scope = &self.scope;
        let threads = scope.find(&waf::POOL_THREADS, reading).map(|found| found.value);
        let memory = scope.read(&waf::BODY_MEMORY_MAX, reading).value;
        Waf {
            pool_threads: threads.unwrap_or_else(|| (process.workers / 2).max(1)),
            pool_queue_max: scope.read(&waf::POOL_QUEUE, reading).value,
            pool_from_bytes: scope.read(&waf::POOL_FROM, reading).value,
            body_memory_bytes_max: usize::try_from(memory).unwrap_or(usize::MAX),
            rule_times: scope.read(&waf::RULE_TIMES, reading).value,
        }
    }

    /// Whom rules may ask, and for how long.
    pub(super) fn outside(&self, reading: &mut Reading<'_>) -> outside::Settings {
        let scope = &self.scope;
        outside::Settings {
            lookup_timeout: scope.read(&waf::LOOKUP_TIMEOUT, reading).value,
            answers_max: scope.read(&waf::LOOKUPS_KEPT, reading).value,
            program_timeout: scope.read(&waf::PROGRAM_TIMEOUT, reading).value,
        }
    }

    /// What the rules say of how long records are kept (`SecCollectionTimeout`), in seconds.
    pub(super) fn collection_timeout_s(&self) -> u64 {
        match &self.program {
            Found::Right(compiled) => compiled.program.settings().collection_timeout_s,
            Found::NotYet | Found::Wrong => {
                tidegate_waf::program::Settings::default().collection_timeout_s
            }
        }
    }

    /// How a route is inspected; `levels` are the route's, its site's and wider scopes.
    pub(super) fn inspect(
        &mut self,
        levels: &[Scope<'_>],
        reading: &mut Reading<'_>,
    ) -> Option<Inspect> {
        let whole = self.scope;
        let site = levels.get(1).map_or(whole, |site| site.child(&inspect::SECTION));
        let site = if levels.len() > 1 { site.under(&whole) } else { site };
        let scope = levels.first()?.child(&inspect::SECTION).under(&site);
        let written = scope.levels().iter().any(Scope::is_written);
        let mode = scope.find(&inspect::MODE, reading);
        let actions = self.actions(&scope, reading);
        let busy = scope.read(&inspect::BUSY, reading).value;
        let mode = match mode {
            Some(mode) => mode.value,
            None if written => Mode::Detect,
            None => Mode::Off,
        };
        if mode == Mode::Off {
            return None;
        }
        let challenge = self.challenge(&scope, mode, reading);
        let policy = self.policy(mode, actions, scope.place(), reading)?;
        Some(Inspect::new(policy, busy).with_challenge(challenge))
    }

    /// Which requests of a route are challenged.
    fn challenge(
        &self,
        scope: &Scope<'_>,
        mode: Mode,
        reading: &mut Reading<'_>,
    ) -> Option<Challenge> {
        let from = scope.find(&inspect::CHALLENGE_FROM, reading);
        let pressure = scope.find(&inspect::CHALLENGE_PRESSURE, reading);
        let bits = scope.read(&inspect::CHALLENGE_BITS, reading);
        let lifetime = scope.read(&inspect::CHALLENGE_LIFETIME, reading);
        if let Some(from) = &from {
            // The Core Rule Set's own default.
            let denied = scope.find(&inspect::INBOUND_THRESHOLD, reading).map_or(5, |it| it.value);
            if let (true, Some(span)) = (from.value >= denied, from.span) {
                let message = format!("a score of {denied} is denied, so none is challenged");
                reading.report(
                    Diagnostic::new(&code::NO_EFFECT, span, message)
                        .hint("let `inbound_threshold` be higher"),
                );
            }
        }
        if from.is_none() && pressure.is_none() {
            // What `[waf]` says may be for other routes.
            let whole = [
                self.scope.read(&inspect::CHALLENGE_BITS, reading).span,
                self.scope.read(&inspect::CHALLENGE_LIFETIME, reading).span,
            ];
            let written = [
                (inspect::CHALLENGE_BITS.key, bits.span),
                (inspect::CHALLENGE_LIFETIME.key, lifetime.span),
            ];
            for (key, span) in written.into_iter().filter(|(_, span)| !whole.contains(span)) {
                let Some(span) = span else { continue };
                let message = format!("`{key}` is a challenge's, and nobody is challenged");
                reading.report(
                    Diagnostic::new(&code::NO_EFFECT, span, message)
                        .hint("say when with `challenge_from` or `challenge_pressure`"),
                );
            }
            return None;
        }
        if mode != Mode::Block {
            return None;
        }
        Some(Challenge {
            score_from: from.map(|found| found.value),
            pressure_from: pressure.map(|found| found.value),
            bits: bits.value,
            lifetime: lifetime.value,
            key: self.challenge_key(reading)?,
        })
    }

    /// The key of all challenges.
    fn challenge_key(&self, reading: &mut Reading<'_>) -> Option<ChallengeKey> {
        if let Some(secret) = self.scope.find(&waf::CHALLENGE_SECRET, reading) {
            process::check_readable(&secret, reading);
            return Some(ChallengeKey::of_secret(secret.value.secret.reveal()));
        }
        let drawn = ChallengeKey::of_process();
        if drawn.is_none() {
            let message = "no key can be drawn for challenges: the system gives no random bytes";
            let hint = "add `challenge_secret`";
            reading
                .report(Diagnostic::new(&code::WAF_RULES, self.scope.place(), message).hint(hint));
        }
        drawn
    }

    /// What inspections under these options begin with. Exclusions of `[waf]` are in the program.
    fn actions(&mut self, scope: &Scope<'_>, reading: &mut Reading<'_>) -> String {
        let mut actions = Vec::new();
        let mut set = |name: &str, value: u32| actions.push(format!("setvar:tx.{name}={value}"));
        let paranoia = scope.find(&inspect::PARANOIA, reading).map(|found| found.value);
        let detection = scope.find(&inspect::DETECTION_PARANOIA, reading).map(|found| found.value);
        // Names of version 4 and of version 3 of the Core Rule Set.
        if let Some(level) = paranoia {
            set("blocking_paranoia_level", level.into());
            set("paranoia_level", level.into());
        }
        if paranoia.is_some() || detection.is_some() {
            // A level that blocks and does not detect is a mistake to the Core Rule Set.
            let level = detection.unwrap_or(1).max(paranoia.unwrap_or(1));
            set("detection_paranoia_level", level.into());
            set("executing_paranoia_level", level.into());
        }
        if let Some(found) = scope.find(&inspect::INBOUND_THRESHOLD, reading) {
            set("inbound_anomaly_score_threshold", found.value);
        }
        if let Some(found) = scope.find(&inspect::OUTBOUND_THRESHOLD, reading) {
            set("outbound_anomaly_score_threshold", found.value);
        }
        let mut exclusions = Vec::new();
        // The last level is `[waf]`.
        let levels = scope.levels();
        for level in levels.iter().take(levels.len().saturating_sub(1)).rev() {
            let own = Scope::new(level.section, level.owner, level.written_node(), level.span);
            exclusions
                .extend(own.find(&inspect::EXCLUDE, reading).into_iter().flat_map(|it| it.value));
        }
        if !exclusions.is_empty()
            && let Some(compiled) = self.program(reading)
        {
            for exclusion in &exclusions {
                check_exclusion(exclusion, &compiled.names, reading);
                actions.push(exclusion.value.action());
            }
        }
        actions.join(",")
    }

    fn policy(
        &mut self,
        mode: Mode,
        actions: String,
        place: Span,
        reading: &mut Reading<'_>,
    ) -> Option<Arc<Policy>> {
        let program = self.program(reading)?.program;
        let key = (mode, actions);
        if let Some(policy) = self.policies.get(&key) {
            return Some(Arc::clone(policy));
        }
        match compile_policy(&program, mode, &key.1, RULE_SET) {
            Ok(policy) => {
                let policy = Arc::new(policy);
                self.policies.insert(key, Arc::clone(&policy));
                Some(policy)
            }
            Err(mistakes) => {
                for mistake in mistakes {
                    let diagnostic = Diagnostic::new(&code::WAF_RULES, place, mistake.message);
                    reading.report(diagnostic.hint_if(mistake.hint));
                }
                None
            }
        }
    }

    /// The program, compiled when first asked for.
    fn program(&mut self, reading: &mut Reading<'_>) -> Option<Compiled> {
        if matches!(self.program, Found::NotYet) {
            self.program = self.compile(reading).map_or(Found::Wrong, Found::Right);
        }
        match &self.program {
            Found::Right(compiled) => Some(compiled.clone()),
            Found::NotYet | Found::Wrong => None,
        }
    }

    fn compile(&mut self, reading: &mut Reading<'_>) -> Option<Compiled> {
        let errors = reading.diagnostics.list.len();
        let text = self.text(reading);
        if reading.diagnostics.list[errors..].iter().any(|found| found.code == &code::WAF_CRS) {
            return None;
        }
        match rules::program(&text) {
            Ok(found) => {
                for note in found.notes.iter() {
                    if let Some(place) = self.place(&note.location, reading) {
                        reading.report(Diagnostic::new(&code::WAF_NOTE, place, &note.message));
                    }
                }
                let exclusions = self.scope.find(&inspect::EXCLUDE, reading);
                for exclusion in exclusions.iter().flat_map(|list| &list.value) {
                    check_exclusion(exclusion, &found.names, reading);
                }
                Some(found)
            }
            Err(mistakes) => {
                for mistake in mistakes {
                    let place = self.place(&mistake.location, reading);
                    let place = place.unwrap_or_else(|| self.scope.place());
                    let diagnostic = Diagnostic::new(&code::WAF_RULES, place, mistake.message);
                    reading.report(diagnostic.hint_if(mistake.hint));
                }
                None
            }
        }
    }

    /// The rule set as one text.
    fn text(&self, reading: &mut Reading<'_>) -> String {
        let scope = &self.scope;
        let paths = |list: Option<Located<Vec<Located<String>>>>, reading: &Reading<'_>| {
            let list = list.map(|list| list.value).unwrap_or_default();
            list.iter().map(|path| tls::path(path, reading).display().to_string()).collect()
        };
        let before = scope.find(&waf::RULES_BEFORE, reading);
        let before = paths(before, reading);
        let after = scope.find(&waf::RULES, reading);
        let after = paths(after, reading);
        let builtin = scope.read(&waf::BUILTIN, reading).value;
        let builtin = if builtin { Builtin::WithoutCore } else { Builtin::Off };
        let core = self.core(reading);
        let mut text = Sources { core, builtin, before, after }.text();
        self.limits(&mut text, reading);
        let exclusions = scope.find(&inspect::EXCLUDE, reading);
        for exclusion in exclusions.into_iter().flat_map(|list| list.value) {
            text.push_str(&exclusion.value.directive());
        }
        text
    }

    /// Options that stand for directives; those that are not written leave it to the rule files.
    fn limits(&self, text: &mut String, reading: &mut Reading<'_>) {
        let scope = &self.scope;
        let mut directive = |name: &str, value: Option<u64>| {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{name} {value}");
            }
        };
        let request = scope.find(&waf::REQUEST_BODY_MAX, reading).map(|found| found.value);
        directive("SecRequestBodyLimit", request);
        let fields = scope.find(&waf::REQUEST_FIELDS_MAX, reading).map(|found| found.value);
        directive("SecRequestBodyNoFilesLimit", fields);
        let response = scope.find(&waf::RESPONSE_BODY_MAX, reading).map(|found| found.value);
        directive("SecResponseBodyLimit", response);
        let depth = scope.find(&waf::JSON_DEPTH_MAX, reading).map(|found| found.value.into());
        directive("SecRequestBodyJsonDepthLimit", depth);
        let arguments = scope.find(&waf::ARGUMENTS_MAX, reading).map(|found| found.value.into());
        directive("SecArgumentsLimit", arguments);
        if let Some(over) = scope.find(&waf::REQUEST_BODY_OVER, reading) {
            text.push_str(match over.value {
                LimitAction::Reject => "SecRequestBodyLimitAction Reject\n",
                LimitAction::ProcessPartial => "SecRequestBodyLimitAction ProcessPartial\n",
            });
        }
    }

    /// The Core Rule Set, if it is named and there.
    fn core(&self, reading: &mut Reading<'_>) -> Option<CoreRuleSet> {
        let scope = &self.scope;
        let plugins = scope.find(&waf::PLUGINS, reading);
        let early = scope.read(&waf::EARLY_BLOCKING, reading);
        let methods = scope.find(&waf::ALLOWED_METHODS, reading);
        let Some(crs) = scope.find(&waf::CRS, reading) else {
            let of_crs = [
                (waf::PLUGINS.key, plugins.and_then(|found| found.span)),
                (waf::EARLY_BLOCKING.key, early.span),
                (waf::ALLOWED_METHODS.key, methods.and_then(|found| found.span)),
            ];
            for (key, span) in of_crs {
                if let Some(span) = span {
                    let message = format!("`{key}` is the Core Rule Set's, and there is none");
                    reading.report(
                        Diagnostic::new(&code::NO_EFFECT, span, message)
                            .hint("name its folder with `crs`"),
                    );
                }
            }
            return None;
        };
        let folder = tls::path(&crs, reading);
        let Some(rules) = rules_of(&folder) else {
            let place = crs.span.unwrap_or(scope.place());
            let message = format!("`{}` does not hold the Core Rule Set", folder.display());
            reading.report(Diagnostic::new(&code::WAF_CRS, place, message).hint(
                "name the folder that has `rules` in it; Debian's package `modsecurity-crs` puts \
                     it at /usr/share/modsecurity-crs",
            ));
            return None;
        };
        let plugins = match plugins {
            Some(plugins) => Some(tls::path(&plugins, reading)),
            None => Some(folder.join("plugins")).filter(|folder| folder.is_dir()),
        };
        let mut variables = Vec::new();
        if early.value {
            variables.push(("early_blocking".to_owned(), "1".to_owned()));
        }
        if let Some(methods) = methods {
            let names: Vec<_> = methods.value.iter().map(|method| &*method.value.text).collect();
            variables.push(("allowed_methods".to_owned(), names.join(" ")));
        }
        Some(CoreRuleSet {
            rules: rules.join("*.conf").display().to_string(),
            plugins: plugins.map(|folder| folder.display().to_string()),
            variables,
        })
    }

    /// A place in a rule file, with its text among the sources; `None` for what stands in none.
    fn place(&mut self, location: &seclang::Location, reading: &mut Reading<'_>) -> Option<Span> {
        if &*location.file == RULE_SET {
            return None;
        }
        let sources = &mut reading.diagnostics.sources;
        let file = *self.files.entry(Arc::clone(&location.file)).or_insert_with(|| {
            let path = Path::new(&*location.file);
            let text = std::fs::read(path).ok()?;
            Some(sources.add(path, String::from_utf8_lossy(&text).into_owned()))
        });
        let file = file?;
        let source = sources.of(Span::new(file, &(0..0)));
        let line = (location.line as usize).max(1);
        let start = source.start(line) + (location.column as usize).saturating_sub(1);
        let end = source.start(line) + source.line(line).len();
        let word = source.text.get(start..end).unwrap_or_default();
        let length = word.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(word.len());
        Some(Span::new(file, &(start..start + length.max(1))))
    }
}

/// The folder with the rules, in each of the layouts that the Core Rule Set comes in.
fn rules_of(folder: &Path) -> Option<PathBuf> {
    let candidates = [
        folder.join("rules"),
        folder.join("rules/@owasp_crs"),
        folder.join("@owasp_crs"),
        folder.into(),
    ];
    candidates.into_iter().find(|rules| rules.join("REQUEST-901-INITIALIZATION.conf").is_file())
}

/// Tells of an exclusion that leaves nothing out.
fn check_exclusion(found: &Located<Exclusion>, names: &Names, reading: &mut Reading<'_>) {
    let Some(span) = found.span else { return };
    let is_known = match &found.value.rules {
        ExcludedRules::Ids(first, last) => names.ids.range(first..=last).next().is_some(),
        ExcludedRules::Tag(tag) => names.tags.contains(tag.as_bytes()),
    };
    if !is_known {
        let message = match &found.value.rules {
            ExcludedRules::Ids(first, last) if first == last => "no rule has this id",
            ExcludedRules::Ids(..) => "no rule has an id in this range",
            ExcludedRules::Tag(_) => "no rule has this tag",
        };
        reading.report(Diagnostic::new(&code::NO_EFFECT, span, message));
    }
}

impl Exclusion {
    /// As a directive, for the program.
    fn directive(&self) -> String {
        match (&self.rules, &self.target) {
            (ExcludedRules::Ids(first, last), None) => {
                format!("SecRuleRemoveById {}\n", ids(*first, *last))
            }
            (ExcludedRules::Tag(tag), None) => format!("SecRuleRemoveByTag \"{}\"\n", pattern(tag)),
            (ExcludedRules::Ids(first, last), Some(target)) => {
                format!("SecRuleUpdateTargetById {} \"!{target}\"\n", ids(*first, *last))
            }
            (ExcludedRules::Tag(tag), Some(target)) => {
                format!("SecRuleUpdateTargetByTag \"{}\" \"!{target}\"\n", pattern(tag))
            }
        }
    }

    /// As an action, for a policy.
    pub(crate) fn action(&self) -> String {
        match (&self.rules, &self.target) {
            (ExcludedRules::Ids(first, last), None) => {
                format!("ctl:ruleRemoveById={}", ids(*first, *last))
            }
            (ExcludedRules::Tag(tag), None) => format!("ctl:ruleRemoveByTag={}", pattern(tag)),
            (ExcludedRules::Ids(first, last), Some(target)) => {
                format!("ctl:ruleRemoveTargetById={};{target}", ids(*first, *last))
            }
            (ExcludedRules::Tag(tag), Some(target)) => {
                format!("ctl:ruleRemoveTargetByTag={};{target}", pattern(tag))
            }
        }
    }
}

fn ids(first: u64, last: u64) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// A pattern that matches this tag and no other.
fn pattern(tag: &str) -> String {
    format!("^{}$", tag.replace('.', "[.]"))
}
