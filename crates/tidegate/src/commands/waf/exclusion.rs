//! The narrowest exclusion that lets a request pass.
//!
//! For each rule that stops the request, or adds to the score that does, exclusions are tried from the
//! narrowest on, and each is proven by running the request again: with it, the rule is silent. Those
//! that turn out not to be needed are left out in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_waf::inspection::{Effect, Inspector, MatchedRule, Trace};
use tidegate_waf::program::{Policy, compile_policy};

use super::subject::Subject;
use super::trial::{Decision, Outcome, Rules};
use crate::config::options::Exclusion;

/// How often further rules may come to light once others are silent.
const ROUNDS_MAX: usize = 8;
/// Variables of one rule that are excluded one by one; beyond, their collection is.
const MEMBERS_MAX: usize = 8;
/// From how many rules on a tag that they have in common is worth telling.
const TAGGED_MIN: usize = 2;
/// A tag that more than one in so many rules of the rule set has says nothing.
const TAGGED_SHARE_MIN: usize = 5;

/// Variables that cannot be kept from a rule in a useful way: rules write them.
const WRITTEN_BY_RULES: &[&str] =
    &["TX", "MATCHED_VAR", "MATCHED_VARS", "MATCHED_VARS_NAMES", "MATCHED_VAR_NAME", "RULE", "ENV"];

/// One line of `exclude`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Line {
    /// As `exclude` takes it: `942100 ARGS:comment`.
    pub(super) text: String,
    /// What the rule says.
    pub(super) message: String,
}

/// What lets a request pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    /// The lines, by rule.
    pub(super) lines: Vec<Line>,
    /// Fewer lines that do the same, by tag and variable.
    pub(super) tagged: Option<Vec<Line>>,
}

/// Tries exclusions on a request.
pub(super) struct Search<'a> {
    pub(super) rules: &'a Rules,
    pub(super) policy: &'a Arc<Policy>,
    pub(super) subject: &'a Subject,
    pub(super) inspector: &'a mut Inspector,
}

impl Search<'_> {
    /// What lets the request pass; nothing if no exclusion does, as with a limit.
    pub(super) fn narrowest(&mut self) -> Option<Proposal> {
        let mut lines: Vec<Line> = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let outcome = self.run(&lines)?;
            if outcome.decision.rule().is_none() {
                self.prune(&mut lines);
                let tagged = self.tagged(&lines);
                return Some(Proposal { lines, tagged });
            }
            let before = lines.len();
            for rule in contributors(&outcome) {
                let found = self.silence(rule, &lines);
                lines.extend(found.into_iter().flatten());
            }
            if lines.len() == before {
                return None;
            }
        }
        None
    }

    /// Runs the request with these exclusions; nothing if they are none.
    fn run(&mut self, lines: &[Line]) -> Option<Outcome> {
        let policy = self.policy_with(lines)?;
        Some(self.rules.run(self.subject, &policy, Trace::All, self.inspector))
    }

    /// The policy with exclusions; nothing if they are none.
    pub(super) fn policy_with(&self, lines: &[Line]) -> Option<Arc<Policy>> {
        if lines.is_empty() {
            return Some(Arc::clone(self.policy));
        }
        let mut actions = self.policy.actions().to_owned();
        for line in lines {
            let action = Exclusion::of(&line.text)?.action();
            if !actions.is_empty() {
                actions.push(',');
            }
            actions.push_str(&action);
        }
        let mode = self.policy.mode();
        compile_policy(self.policy.program(), mode, &actions, "exclude").ok().map(Arc::new)
    }

    /// Whether the request passes with these exclusions.
    fn passes(&mut self, lines: &[Line]) -> bool {
        self.run(lines).is_some_and(|outcome| outcome.decision.rule().is_none())
    }

    /// The narrowest exclusions with which a rule is silent.
    fn silence(&mut self, rule: &MatchedRule, lines: &[Line]) -> Option<Vec<Line>> {
        let id = rule.rule.id;
        let line = |text: String| Line { text, message: message(rule) };
        ladder(rule).into_iter().find_map(|step| {
            let step: Vec<Line> = step.into_iter().map(&line).collect();
            let all: Vec<Line> = lines.iter().chain(&step).cloned().collect();
            let silent = self.run(&all)?.rules.iter().all(|matched| matched.rule.id != id);
            silent.then_some(step)
        })
    }

    /// Leaves out what is not needed, the last found first.
    fn prune(&mut self, lines: &mut Vec<Line>) {
        for at in (0..lines.len()).rev() {
            let line = lines.remove(at);
            if !self.passes(lines) {
                lines.insert(at, line);
            }
        }
    }

    /// Fewer lines that do the same: where rules over one variable have a tag in common that is not
    /// everybody's, one line names the tag.
    fn tagged(&mut self, lines: &[Line]) -> Option<Vec<Line>> {
        let mut targets: BTreeMap<&str, Vec<(u64, &Line)>> = BTreeMap::new();
        for line in lines {
            let (rule, target) = line.text.split_once(' ')?;
            targets.entry(target).or_default().push((rule.parse().ok()?, line));
        }
        let mut tagged = Vec::new();
        for (target, mut left) in targets {
            while let Some((tag, ids)) = self.tag(&left.iter().map(|(id, _)| *id).collect()) {
                let message = format!("{} rules", ids.len());
                tagged.push(Line { text: format!("tag:{tag} {target}"), message });
                left.retain(|(id, _)| !ids.contains(id));
            }
            tagged.extend(left.into_iter().map(|(_, line)| line.clone()));
        }
        let shorter = tagged.len() < lines.len() && self.passes(&tagged);
        shorter.then_some(tagged)
    }

    /// The tag that most of these rules have in common, and which of them: at least
    /// [`TAGGED_MIN`], and few others of the rule set.
    fn tag(&self, ids: &BTreeSet<u64>) -> Option<(String, BTreeSet<u64>)> {
        let all = self.policy.program().rules();
        let mut tags: BTreeMap<&str, (BTreeSet<u64>, usize)> = BTreeMap::new();
        for rule in all {
            for tag in &rule.tags {
                let (meant, count) = tags.entry(tag).or_default();
                *count += 1;
                if ids.contains(&rule.id) {
                    meant.insert(rule.id);
                }
            }
        }
        let useful = tags.into_iter().filter(|(tag, (meant, count))| {
            let known = Exclusion::of(&format!("tag:{tag}")).is_some();
            meant.len() >= TAGGED_MIN && count * TAGGED_SHARE_MIN <= all.len() && known
        });
        // Of tags that say the same, those of attacks are the ones that people know.
        let best = useful.max_by_key(|(tag, (meant, count))| {
            (meant.len(), tag.starts_with("attack-"), std::cmp::Reverse(*count))
        });
        best.map(|(tag, (meant, _))| (tag.to_owned(), meant))
    }
}

/// What a rule says of itself.
pub(super) fn message(rule: &MatchedRule) -> String {
    let message = &rule.rule.message;
    if message.contains("%{") {
        String::from_utf8_lossy(&rule.message).into_owned()
    } else {
        message.clone()
    }
}

/// The rules without which the request would pass: the one that decides, or, where that one only
/// looks at a score or the score asks for a challenge, those that wrote to `TX`.
pub(super) fn contributors(outcome: &Outcome) -> Vec<&MatchedRule> {
    let stops = |rule: &&MatchedRule| rule.effect != Effect::Noted;
    let decider = outcome.rules.iter().find(stops);
    match decider {
        None if outcome.decision != Decision::Challenged => return Vec::new(),
        Some(decider) if !variables(decider).is_empty() => return vec![decider],
        None | Some(_) => {}
    }
    let writes = |rule: &&MatchedRule| {
        let changes = rule.traced.as_ref().is_some_and(|traced| !traced.changes.is_empty());
        rule.rule.id != 0 && changes && rule.logged.log && !variables(rule).is_empty()
    };
    let found: Vec<&MatchedRule> = outcome.rules.iter().filter(writes).collect();
    if found.is_empty() { decider.into_iter().collect() } else { found }
}

/// The variables on which a rule matched, as exclusions name them: for each link of its chain, those
/// with a member first, for they take the least away.
fn variables(rule: &MatchedRule) -> Vec<BTreeSet<&[u8]>> {
    let hits = rule.traced.as_ref().map_or(&[][..], |traced| &traced.hits);
    let mut links: BTreeMap<usize, BTreeSet<&[u8]>> = BTreeMap::new();
    for hit in hits {
        if !WRITTEN_BY_RULES.contains(&parts(&hit.variable).0.as_str()) {
            links.entry(hit.link).or_default().insert(&hit.variable);
        }
    }
    let mut links: Vec<_> = links.into_values().collect();
    links.sort_by_key(|variables| variables.iter().any(|it| parts(it).1.is_none()));
    links
}

/// A variable's name and its member.
fn parts(variable: &[u8]) -> (String, Option<&[u8]>) {
    let colon = variable.iter().position(|byte| *byte == b':');
    let name = &variable[..colon.unwrap_or(variable.len())];
    (String::from_utf8_lossy(name).into_owned(), colon.map(|at| &variable[at + 1..]))
}

/// Exclusions for a rule, from the narrowest on; each step is a list of lines that belong together.
fn ladder(rule: &MatchedRule) -> Vec<Vec<String>> {
    let id = rule.rule.id;
    let links = variables(rule);
    let exact = links.iter().filter_map(|variables| {
        let lines = variables.iter().map(|variable| member(id, variable));
        let lines: Option<BTreeSet<String>> = lines.collect();
        lines.filter(|lines| lines.len() <= MEMBERS_MAX)
    });
    let whole = links.iter().filter_map(|variables| {
        let lines = variables.iter().map(|variable| {
            let line = format!("{id} {}", parts(variable).0);
            Exclusion::of(&line).map(|_| line)
        });
        lines.collect::<Option<BTreeSet<String>>>()
    });
    let steps = exact.chain(whole).map(|lines| lines.into_iter().collect());
    steps.chain([vec![id.to_string()]]).collect()
}

/// The exclusion of one variable: by its name if that can be written, else by a pattern for it. The
/// numbers of a JSON array's elements are left open: the next request has others.
fn member(id: u64, variable: &[u8]) -> Option<String> {
    let (name, member) = parts(variable);
    let Some(member) = member else {
        let line = format!("{id} {name}");
        return Exclusion::of(&line).map(|_| line);
    };
    let plain = std::str::from_utf8(member).ok().map(|member| format!("{id} {name}:{member}"));
    let is_element = |part: &[u8]| {
        part.strip_prefix(b"array_")
            .is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit))
    };
    let open = member.split(|byte| *byte == b'.').any(is_element);
    if let Some(plain) =
        plain.filter(|plain| !open && !member.starts_with(b"/") && Exclusion::of(plain).is_some())
    {
        return Some(plain);
    }
    let mut pattern = format!("{id} {name}:/^");
    for (at, part) in member.split(|byte| *byte == b'.').enumerate() {
        if at > 0 {
            pattern.push_str("[.]");
        }
        if is_element(part) {
            pattern.push_str("array_[0-9]+");
            continue;
        }
        for byte in part {
            match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-' => {
                    pattern.push(char::from(*byte));
                }
                _ => pattern.push('.'),
            }
        }
    }
    pattern.push_str("$/");
    Exclusion::of(&pattern).map(|_| pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_named_as_narrowly_as_can_be_written() {
        let check = |variable: &str, expected: &str| {
            assert_eq!(member(1, variable.as_bytes()).as_deref(), Some(expected), "{variable}");
        };
        check("ARGS:comment", "1 ARGS:comment");
        check("REQUEST_URI", "1 REQUEST_URI");
        check("ARGS:a[b]", "1 ARGS:a[b]");
        check("ARGS:a b", "1 ARGS:/^a.b$/");
        check("ARGS:it's", "1 ARGS:/^it.s$/");
        check("ARGS:json.items.array_12.note", "1 ARGS:/^json[.]items[.]array_[0-9]+[.]note$/");
        check("REQUEST_HEADERS:User-Agent", "1 REQUEST_HEADERS:User-Agent");
    }
}
