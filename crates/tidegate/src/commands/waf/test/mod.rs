//! `tidegate waf test`: which rules a request matches, on what, and what it comes to.

mod json;
pub(super) mod story;

use std::process::ExitCode;

use tidegate_waf::inspection::{Inspector, Trace};

use super::exclusion::{Proposal, Search};
use super::subject::Subject;
use super::trial::{Outcome, Place, Rules};
use super::{STOPPED, load, refuse};
use crate::cli;
use crate::commands::terminal;
use crate::config::Loaded;
use crate::config::reader::{Origins, Owner};
use crate::config::source::Sources;

/// All that can be told.
struct Tried<'a> {
    subject: &'a Subject,
    rules: &'a Rules,
    place: Place,
    outcome: Outcome,
    proposal: Option<Proposal>,
    sources: &'a Sources,
    origins: &'a Origins,
}

/// Which rules are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Those that log or decide.
    Logged,
    /// All that matched.
    All,
}

pub(super) fn run(arguments: &cli::WafTest) -> ExitCode {
    let subject = match Subject::of(arguments) {
        Ok(subject) => subject,
        Err(complaint) => return refuse(&complaint),
    };
    let Loaded { settings, warnings, origins, .. } = match load(&arguments.config) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let rules = Rules::new(settings);
    let (place, policy) = match rules.find(&subject) {
        Ok(found) => found,
        Err(unseen) => {
            terminal::print(&if arguments.json {
                json::unseen(&subject, &rules, &unseen)
            } else {
                story::unseen(&subject, &rules, &unseen)
            });
            return ExitCode::SUCCESS;
        }
    };
    let mut inspector = Inspector::new();
    let outcome = rules.run(&subject, policy, Trace::All, &mut inspector);
    let stopped = outcome.decision.rule().is_some();
    let proposal = stopped.then(|| {
        let (rules, subject, inspector) = (&rules, &subject, &mut inspector);
        Search { rules, policy, subject, inspector }.narrowest()
    });
    let tried = Tried {
        subject: &subject,
        rules: &rules,
        place,
        outcome,
        proposal: proposal.flatten(),
        sources: &warnings.sources,
        origins: &origins,
    };
    let told = if arguments.all { Told::All } else { Told::Logged };
    terminal::print(&if arguments.json {
        json::tell(&tried, told)
    } else {
        story::tell(&tried, told)
    });
    if stopped { ExitCode::from(STOPPED) } else { ExitCode::SUCCESS }
}

impl Tried<'_> {
    /// Where a site or route stands in the files; nothing for what is there without having been
    /// written.
    fn stands(&self, owner: Owner) -> Option<String> {
        self.origins.owner(owner).map(|span| self.sources.file_line(span))
    }

    /// Where exclusions for this request belong: its route, or its site where no route is written.
    fn owner(&self) -> Owner {
        let route = Owner::Route(self.place.site, self.place.route);
        match self.origins.owner(route) {
            Some(_) => route,
            None => Owner::Site(self.place.site),
        }
    }
}
