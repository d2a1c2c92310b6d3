//! The threads that run requests.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use tidegate_waf::inspection::{Inspector, Trace};
use tidegate_waf::program::Policy;

use super::super::exclusion::{Line, Search};
use super::super::record;
use super::super::subject::Subject;
use super::super::trial::{Decision, Outcome, Place, Rules};
use super::Sides;
use super::changes::{Change, Changes};

/// Lines that are handed over at once.
const BATCH_LINES: usize = 32;
/// Batches that wait for a thread, for each thread.
const BATCHES_MAX: usize = 4;

/// Lines with where they stand.
type Batch = Vec<(String, Vec<u8>)>;

/// Each thread holds it while it waits for its next batch.
#[expect(clippy::disallowed_types, reason = "a command of its own, not the gate")]
type Queue = Arc<std::sync::Mutex<Receiver<Batch>>>;

/// The threads, from the side of the reader.
pub(super) struct Crew<'scope> {
    batches: SyncSender<Batch>,
    batch: Batch,
    taken: u64,
    threads: Vec<ScopedJoinHandle<'scope, Changes>>,
}

impl<'scope> Crew<'scope> {
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        sides: &'env Sides,
        threads: usize,
    ) -> Self {
        let (batches, queue) = sync_channel(threads * BATCHES_MAX);
        #[expect(clippy::disallowed_types, reason = "a command of its own, not the gate")]
        let queue: Queue = Arc::new(std::sync::Mutex::new(queue));
        let start = |_| {
            let queue = Arc::clone(&queue);
            scope.spawn(move || Runner::new(sides).run(&queue))
        };
        let threads = (0..threads).map(start).collect();
        Self { batches, batch: Vec::new(), taken: 0, threads }
    }

    /// Takes a line, and waits if all threads have enough.
    pub(super) fn take(&mut self, place: String, line: Vec<u8>) {
        self.taken += 1;
        self.batch.push((place, line));
        if self.batch.len() == BATCH_LINES {
            self.hand_over();
        }
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    fn hand_over(&mut self) {
        // Threads end only when there is nothing more to come, or with a panic that is told then.
        let _ = self.batches.send(std::mem::take(&mut self.batch));
    }

    /// Waits for the threads and joins what they have found.
    pub(super) fn finish(mut self) -> Changes {
        self.hand_over();
        drop(self.batches);
        let mut all = Changes::default();
        for thread in self.threads {
            match thread.join() {
                Ok(changes) => all.join(changes),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    }
}

/// One thread's side.
struct Runner<'a> {
    sides: &'a Sides,
    old: Inspector,
    new: Inspector,
    /// The exclusions found so far for each place, and its policy with them.
    known: HashMap<Place, (Vec<Line>, Arc<Policy>)>,
    changes: Changes,
}

impl<'a> Runner<'a> {
    fn new(sides: &'a Sides) -> Self {
        Self {
            sides,
            old: Inspector::new(),
            new: Inspector::new(),
            known: HashMap::new(),
            changes: Changes::default(),
        }
    }

    fn run(mut self, queue: &Queue) -> Changes {
        loop {
            let batch = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(batch) = batch else { return self.changes };
            for (place, line) in batch {
                match record::read(&line) {
                    Ok(subject) => self.compare(&subject),
                    Err(complaint) => self.changes.unreadable(place, complaint),
                }
            }
        }
    }

    fn compare(&mut self, subject: &Subject) {
        let sides = self.sides;
        let old = judge(&sides.old, subject, Trace::Logged, &mut self.old);
        let new = judge(&sides.new, subject, Trace::Logged, &mut self.new);
        let of = |judged: &Option<Outcome>| {
            judged.as_ref().map_or(Decision::Pass, |outcome| outcome.decision.clone())
        };
        let (before, after) = (of(&old), of(&new));
        self.changes.count(old.is_some() || new.is_some());
        if (before.word(), before.status()) == (after.word(), after.status()) {
            return;
        }
        let traced = match after.rule() {
            Some(_) => judge(&sides.new, subject, Trace::All, &mut self.new),
            None => judge(&sides.old, subject, Trace::All, &mut self.old),
        };
        let was_stopped = matches!(before, Decision::Stopped(..) | Decision::Challenged);
        let is_worse = after.rule().is_some() && !was_stopped;
        self.changes.add(&Change { before, after, subject, traced: traced.as_ref() });
        if is_worse && !self.is_known(subject) {
            self.search(subject);
        }
    }

    /// Whether the exclusions found so far let a request pass.
    fn is_known(&mut self, subject: &Subject) -> bool {
        let rules = &self.sides.new;
        let Ok((place, _)) = rules.find(subject) else { return false };
        let Some((_, policy)) = self.known.get(&place) else { return false };
        let outcome = rules.run(subject, policy, Trace::Logged, &mut self.new);
        outcome.decision.rule().is_none()
    }

    /// Finds what lets a request pass, and adds it to what is known.
    fn search(&mut self, subject: &Subject) {
        let rules = &self.sides.new;
        let Ok((place, policy)) = rules.find(subject) else { return };
        let mut search = Search { rules, policy, subject, inspector: &mut self.new };
        let Some(proposal) = search.narrowest() else { return };
        let known = self.known.get(&place).map_or(&[][..], |(lines, _)| lines);
        let mut lines = known.to_vec();
        lines.extend(proposal.lines.iter().filter(|line| !known.contains(line)).cloned());
        self.changes.mended(place, &proposal.lines);
        if let Some(policy) = search.policy_with(&lines) {
            self.known.insert(place, (lines, policy));
        }
    }
}

/// What rules make of a request; nothing if none look at it.
fn judge(
    rules: &Rules,
    subject: &Subject,
    trace: Trace,
    inspector: &mut Inspector,
) -> Option<Outcome> {
    let (_, policy) = rules.find(subject).ok()?;
    Some(rules.run(subject, policy, trace, inspector))
}
