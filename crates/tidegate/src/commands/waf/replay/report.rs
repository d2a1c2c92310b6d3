//! What is told of a replay.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::super::test::story::{entry, escaped};
use super::super::trial::{Place, Rules};
use super::changes::{Changes, Group, Kind};
use crate::config::reader::{Origins, Owner};
use crate::config::render::plural;
use crate::config::source::Sources;

/// Columns of a terminal.
const COLUMNS: usize = 80;
/// Groups that are told; the rest is counted.
const GROUPS_SHOWN_MAX: usize = 100;

/// All there is to tell.
pub(super) struct Page<'a> {
    pub(super) changes: &'a Changes,
    pub(super) new: &'a Rules,
    pub(super) sources: &'a Sources,
    pub(super) origins: &'a Origins,
}

impl Page<'_> {
    /// For a person.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let changes = self.changes;
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "{}: {}",
            requests(changes.requests),
            match changes.total() {
                0 => "no verdict differs".to_owned(),
                1 => "1 verdict differs".to_owned(),
                total => format!("{total} verdicts differ"),
            }
        );
        for (count, what) in
            [(changes.unseen, "looked at by no rule"), (changes.unreadable, "not readable")]
        {
            if count > 0 {
                let _ = write!(out, "; {count} {what}");
            }
        }
        out.push('\n');
        for (place, complaint) in &changes.complaints {
            let _ = writeln!(out, "  {place}: {complaint}");
        }
        let groups = self.groups();
        for (kind, group) in groups.iter().take(GROUPS_SHOWN_MAX) {
            self::group(&mut out, kind, group);
        }
        if let Some(more @ 1..) = groups.len().checked_sub(GROUPS_SHOWN_MAX) {
            let _ = writeln!(out, "\nand {more} more ways in which verdicts differ");
        }
        if !changes.exclusions.is_empty() {
            out.push_str(
                "\nFor requests that should not be stopped, the narrowest exclusions that let them\n\
                 pass, each proven on its requests:\n",
            );
            for (place, lines) in &changes.exclusions {
                let (section, stands) = self.section(*place);
                let _ = writeln!(out, "\n[{section}]  # {stands}\nexclude = [");
                for line in lines {
                    out.push_str(&entry(line));
                }
                out.push_str("]\n");
            }
        }
        out
    }

    /// For machines.
    pub(super) fn json(&self) -> String {
        let changes = self.changes;
        let groups: Vec<Value> = self
            .groups()
            .iter()
            .map(|(kind, group)| {
                json!({
                    "before": kind.before,
                    "after": kind.after,
                    "rules": kind.rules,
                    "messages": group.messages.values().collect::<Vec<_>>(),
                    "requests": group.count,
                    "examples": group.examples.iter().map(|(id, title)| json!({
                        "id": id,
                        "request": title,
                    })).collect::<Vec<_>>(),
                })
            })
            .collect();
        let exclusions: Vec<Value> = changes
            .exclusions
            .iter()
            .map(|(place, lines)| {
                let site = self.new.site(*place);
                json!({
                    "site": site.name,
                    "route": site.routes[place.route].name,
                    "exclude": lines.iter().map(|line| &line.text).collect::<Vec<_>>(),
                })
            })
            .collect();
        let page = json!({
            "requests": changes.requests,
            "differ": changes.total(),
            "unseen": changes.unseen,
            "unreadable": changes.unreadable,
            "changes": groups,
            "exclusions": exclusions,
        });
        format!("{page:#}\n")
    }

    /// The groups, the largest first.
    fn groups(&self) -> Vec<(&Kind, &Group)> {
        let mut groups: Vec<_> = self.changes.groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        groups
    }

    /// The section that exclusions for a place belong to, and where that stands.
    fn section(&self, place: Place) -> (&'static str, String) {
        let site = self.new.site(place);
        let route = Owner::Route(place.site, place.route);
        let stands = |owner| self.origins.owner(owner).map(|span| self.sources.file_line(span));
        if let Some(stands) = stands(route) {
            let name = &site.routes[place.route].name;
            return ("site.route.waf", format!("of {stands}: {} {name}", site.name));
        }
        let stands = stands(Owner::Site(place.site)).unwrap_or_default();
        ("site.waf", format!("of {stands}: {}", site.name))
    }
}

fn requests(count: u64) -> String {
    plural(usize::try_from(count).unwrap_or(usize::MAX), "request")
}

/// A group: what has become of its requests, by which rules, and which they are.
fn group(out: &mut String, kind: &Kind, group: &Group) {
    let what = format!("{} -> {}", kind.before, kind.after);
    let count = requests(group.count);
    let room = COLUMNS.saturating_sub(count.chars().count() + 1);
    let _ = writeln!(out, "\n{what:<room$} {count}");
    if kind.rules.is_empty() {
        out.push_str("  no rule in particular\n");
    }
    for id in &kind.rules {
        let message = group.messages.get(id).map_or("", String::as_str);
        let _ = writeln!(out, "{}", escaped(&format!("  {id} {message}"), COLUMNS).trim_end());
    }
    for (id, title) in &group.examples {
        let _ = writeln!(out, "{}", escaped(&format!("  e.g. {id} {title}"), COLUMNS));
    }
}
