//! What became of a request, for a terminal of 80 columns.

use std::fmt::Write as _;

use tidegate_waf::inspection::{Change, Effect, Hit, MatchedRule, Mode};

use super::super::exclusion::{Line, Proposal};
use super::super::shown;
use super::super::subject::Subject;
use super::super::trial::{Decision, How, Outcome, Rules, Score, Stop, Unseen};
use super::{Told, Tried};
use crate::config::reader::Owner;

/// Columns of a terminal.
const COLUMNS: usize = 80;
/// Columns of topics and of rules' ids.
const TOPIC: usize = 10;
/// Values of one rule that are shown; the rest is counted.
const HITS_MAX: usize = 4;

/// All of it.
pub(super) fn tell(tried: &Tried<'_>, told: Told) -> String {
    let mut page = Page::default();
    page.title(&tried.subject.title());
    remarks(&mut page, tried.subject);
    let site = tried.rules.site(tried.place);
    let owner = Owner::Route(tried.place.site, tried.place.route);
    page.placed("site", &site.name, tried.stands(Owner::Site(tried.place.site)));
    page.placed("route", &site.routes[tried.place.route].name, tried.stands(owner));
    let mode = match tried.outcome.mode {
        Mode::Off => "off",
        Mode::Detect => "detect",
        Mode::Block => "block",
    };
    page.topic("mode", mode);
    page.topic("verdict", &verdict(&tried.outcome.decision));
    scores(&mut page, &tried.outcome);
    let rules: Vec<&MatchedRule> = tried
        .outcome
        .rules
        .iter()
        .filter(|rule| told == Told::All || rule.logged.log || rule.effect != Effect::Noted)
        .collect();
    if rules.is_empty() {
        page.topic("rules", "none matched");
    }
    for matched in rules {
        rule(&mut page, matched);
    }
    if let Some(proposal) = &tried.proposal {
        exclusions(&mut page, tried, proposal);
    }
    page.out
}

/// Why no rule looks at the request.
pub(super) fn unseen(subject: &Subject, rules: &Rules, unseen: &Unseen) -> String {
    let mut page = Page::default();
    page.title(&subject.title());
    remarks(&mut page, subject);
    match unseen {
        Unseen::Answered(words) => {
            page.topic("verdict", &format!("no rule is asked: the gate itself answers {words}"));
        }
        Unseen::Off(place) => {
            let site = rules.site(*place);
            page.topic("site", &site.name);
            page.topic("route", &site.routes[place.route].name);
            page.topic("verdict", "no rule is asked: the firewall is off here");
        }
    }
    page.out
}

fn remarks(page: &mut Page, subject: &Subject) {
    for remark in &subject.remarks {
        page.topic("note", remark);
    }
}

/// What is done with the request, in words.
fn verdict(decision: &Decision) -> String {
    match decision {
        Decision::Pass => "it passes".into(),
        Decision::Challenged => {
            "challenged for its score: a browser without a pass has to prove some work".into()
        }
        Decision::Would(rule, phase) => {
            format!(
                "it passes; in mode `block`, rule {rule} would stop it in phase {}",
                phase.number()
            )
        }
        Decision::Stopped(Stop { how, rule }, phase) => {
            let how = match how {
                How::Deny(status) => format!("denied with {status}"),
                How::Drop => "its connection is closed without an answer".into(),
                How::Redirect(status, to) => format!("redirected ({status}) to {}", shown(to)),
            };
            let by = match rule {
                0 => "by a limit".into(),
                rule => format!("by rule {rule}"),
            };
            format!("{how}, in phase {}, {by}", phase.number())
        }
    }
}

fn scores(page: &mut Page, outcome: &Outcome) {
    let text = |score: Score, way: &str| {
        let from = score.from.map_or(String::new(), |from| format!(" (denied from {from} on)"));
        score.score.map(|score| format!("{score} {way}{from}"))
    };
    let told = [text(outcome.inbound, "inbound"), text(outcome.outbound, "outbound")];
    let told: Vec<String> = told.into_iter().flatten().collect();
    if !told.is_empty() {
        page.topic("score", &told.join(", "));
    }
}

fn rule(page: &mut Page, matched: &MatchedRule) {
    let meta = &matched.rule;
    page.gap();
    let message = match matched.message.as_slice() {
        b"" => "(it says nothing)".into(),
        message => shown(message),
    };
    page.topic(&meta.id.to_string(), &escaped(&message, usize::MAX));
    let severity = meta.severity.map_or(String::new(), |severity| format!(", {}", severity.name()));
    let file = meta.place.file.rsplit('/').next().unwrap_or_default();
    let place = format!("phase {}{severity}, {file}:{}", matched.phase.number(), meta.place.line);
    page.more(&place);
    match matched.effect {
        Effect::Noted => {}
        Effect::Decided => page.more("stops the request"),
        Effect::WouldDecide => page.more("would stop the request in mode `block`"),
    }
    let Some(traced) = &matched.traced else { return };
    for hit in traced.hits.iter().take(HITS_MAX) {
        value(page, hit);
    }
    if let Some(more @ 1..) = traced.hits.len().checked_sub(HITS_MAX) {
        page.more(&format!("and {more} more"));
    }
    changes(page, &traced.changes);
}

/// A value that matched: as it came, and as the rule saw it.
fn value(page: &mut Page, hit: &Hit) {
    let link = if hit.link > 0 { format!("link {}: ", hit.link) } else { String::new() };
    let variable = escaped(&shown(&hit.variable), COLUMNS - TOPIC);
    page.more(&format!("{link}{variable}"));
    page.line(TOPIC + 2, &quoted(&hit.value));
    if hit.transformed != hit.value {
        let steps: Vec<&str> =
            hit.transformations.iter().copied().filter(|step| *step != "none").collect();
        page.wrapped(TOPIC + 2, &format!("after {}:", steps.join(", ")));
        page.line(TOPIC + 2, &quoted(&hit.transformed));
    }
}

/// What a rule wrote: how each variable was before the first and after the last of its matches.
fn changes(page: &mut Page, changes: &[Change]) {
    let mut told: Vec<Change> = Vec::new();
    for change in changes {
        match told.iter_mut().find(|known| known.name == change.name) {
            Some(known) => known.after.clone_from(&change.after),
            None => told.push(change.clone()),
        }
    }
    for Change { name, before, after } in &told {
        let name = escaped(&shown(name), COLUMNS);
        let (before, after) = (before.as_deref().unwrap_or(b"0"), after.as_deref());
        let line = match (number(before), after, after.and_then(number)) {
            (_, None, _) => format!("tx.{name} removed"),
            (Some(before), _, Some(after)) if before != after => {
                format!("{:+} tx.{name} = {after}", after - before)
            }
            (_, Some(after), _) => {
                format!(
                    "tx.{name} = {}",
                    fitted(after, COLUMNS.saturating_sub(TOPIC + name.len() + 6))
                )
            }
        };
        page.line(TOPIC, &line);
    }
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn exclusions(page: &mut Page, tried: &Tried<'_>, proposal: &Proposal) {
    page.gap();
    page.wrapped(0, "If this is a false positive, the narrowest exclusion that lets it pass is:");
    page.gap();
    page.out.push_str(&toml(tried, &proposal.lines));
    if let Some(tagged) = &proposal.tagged {
        page.gap();
        page.wrapped(0, "Shorter and wider, by tags:");
        page.gap();
        page.out.push_str(&toml(tried, tagged));
    }
}

/// Exclusions, ready to be pasted.
fn toml(tried: &Tried<'_>, lines: &[Line]) -> String {
    let owner = tried.owner();
    let section = match owner {
        Owner::Route(..) => "site.route.waf",
        _ => "site.waf",
    };
    let place = tried.stands(owner).map_or(String::new(), |place| format!("  # of {place}"));
    let mut text = format!("[{section}]{place}\nexclude = [\n");
    for line in lines {
        text.push_str(&entry(line));
    }
    text.push_str("]\n");
    text
}

/// An entry of `exclude` with what the rule says behind it, as far as there is room.
pub(in crate::commands::waf) fn entry(line: &Line) -> String {
    let entry = format!("    {:?},", line.text);
    let room = COLUMNS.saturating_sub(entry.chars().count() + 4);
    let message = escaped(&line.message, room);
    if room < 20 || message.is_empty() {
        format!("{entry}\n")
    } else {
        format!("{entry}  # {message}\n")
    }
}

/// A value in quotes, as long as a line is.
fn quoted(value: &[u8]) -> String {
    fitted(value, COLUMNS - TOPIC - 4)
}

fn fitted(value: &[u8], columns: usize) -> String {
    let text = escaped(&shown(value), columns.max(8));
    format!("\"{text}\"")
}

/// Text without control characters, cut to so many columns.
pub(in crate::commands::waf) fn escaped(text: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut width = 0;
    for character in text.chars() {
        let mut piece = String::new();
        let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || turns {
            let _ = write!(piece, "{}", character.escape_default());
        } else {
            piece.push(character);
        }
        let added = piece.chars().count();
        if width + added > columns.saturating_sub(2) && columns != usize::MAX {
            out.push_str("..");
            break;
        }
        width += added;
        out.push_str(&piece);
    }
    out
}

/// A page of text.
#[derive(Default)]
struct Page {
    out: String,
}

impl Page {
    fn title(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}\n", escaped(text, usize::MAX));
    }

    /// A topic and what is said of it, wrapped.
    fn topic(&mut self, topic: &str, said: &str) {
        let start = self.out.len();
        self.wrapped(TOPIC, said);
        let topic = format!("{topic:<TOPIC$}");
        self.out.replace_range(start..start + TOPIC, &topic[..TOPIC]);
    }

    /// A topic with where it stands at the right.
    fn placed(&mut self, topic: &str, said: &str, place: Option<String>) {
        let place = place.unwrap_or_else(|| "not written, but there".into());
        let _ = writeln!(self.out, "{topic:<TOPIC$}{said:<36}  {place}");
    }

    fn more(&mut self, said: &str) {
        self.wrapped(TOPIC, said);
    }

    fn line(&mut self, indent: usize, said: &str) {
        let _ = writeln!(self.out, "{:indent$}{said}", "");
    }

    fn gap(&mut self) {
        self.out.push('\n');
    }

    /// Words in lines of the terminal's width; a word that is longer has a line of its own.
    fn wrapped(&mut self, indent: usize, said: &str) {
        let mut line = String::new();
        for word in said.split(' ') {
            let width = line.chars().count() + word.chars().count();
            if !line.is_empty() && indent + width + 1 > COLUMNS {
                self.line(indent, &line);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(indent, &line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_fits_the_terminal_and_controls_nothing() {
        let check = |text: &str, columns: usize, expected: &str| {
            assert_eq!(escaped(text, columns), expected, "{text:?}");
        };
        check("plain", 80, "plain");
        check("a\x1b[31mred\n", 80, "a\\u{1b}[31mred\\n");
        check("0123456789", 8, "012345..");
        let mut page = Page::default();
        page.topic("verdict", &"word ".repeat(40));
        assert!(page.out.lines().all(|line| line.len() <= COLUMNS), "{}", page.out);
        assert!(page.out.starts_with("verdict   word"), "{}", page.out);
    }
}
