//! A backtracking matcher for what no automaton can do, within a number of steps.
//!
//! It follows PCRE: alternatives in order, greedy or not, look-around, back-references, atomic groups,
//! conditionals, calls. A pattern that needs it can take exponential time on a hostile content; here
//! every byte looked at and every alternative tried counts as a step, memory is bounded too, and a
//! search that exceeds either ends as "unknown". Nothing is recursive, so the stack is safe.
//!
//! The step limit is exact, which is why this is not `fancy-regex`: there a limit counts backtracks
//! only, and a look-ahead that scans the rest of the content costs one of them.

use super::{
    ByteSet, Fault,
    syntax::{
        Assert, Condition, Direction, Expects, Greed, Irregular, LINE_ENDINGS, Node, Repeat, WORD,
    },
};

/// Most instructions of a program. Counted repetitions are written out.
const PROGRAM_LENGTH_MAX: usize = 1 << 16;
/// Longest look-behind, in bytes.
const BEHIND_BYTES_MAX: usize = 255;
/// Most undecided choices and undone assignments at a time: 4 MiB or so.
const STACK_LENGTH_MAX: usize = 1 << 17;
/// Most slots saved by calls of groups: 2 MiB.
const SAVED_LENGTH_MAX: usize = 1 << 18;
/// What of the stack is kept from one search to the next.
const STACK_LENGTH_KEPT: usize = 1 << 12;

/// An instruction.
#[derive(Clone, Debug)]
enum Step {
    /// One byte of a set.
    Byte(ByteSet),
    /// As many bytes of a set as there are (at least `min`), giving back one at a time.
    Run {
        set: ByteSet,
        min: u32,
        greed: Greed,
    },
    Assert(Assert),
    /// Try `first`; when it fails, `second`.
    Split {
        first: u32,
        second: u32,
    },
    Jump(u32),
    /// Writes the place to a slot.
    Save(u32),
    /// Goes on only where a slot says.
    At(u32),
    /// Goes back to the place in a slot.
    Return(u32),
    /// Goes back by some bytes.
    Back(u32),
    /// Jumps when nothing was consumed since the slot was written.
    Unmoved {
        slot: u32,
        to: u32,
    },
    /// Writes the stack's height to a slot.
    Mark(u32),
    /// Forgets the choices made since the mark, keeping what was captured.
    Commit(u32),
    /// Forgets the choices made since the mark and undoes what was captured.
    Abandon(u32),
    /// The text of the first of these groups that is set.
    BackReference {
        groups: Box<[u32]>,
        case_insensitive: bool,
    },
    /// Jumps when none of these groups is set.
    Unset {
        groups: Box<[u32]>,
        to: u32,
    },
    /// Continues at a group, and comes back at its end.
    Call(u32),
    /// The end of a group: back, if it was called.
    Called(u32),
    /// A group is set, from the place in a slot to here.
    Close {
        group: u32,
        opened: u32,
    },
    Keep,
    Fail,
    Match,
}

/// A pattern for backtracking.
#[derive(Debug)]
pub(super) struct Program {
    steps: Vec<Step>,
    /// Where each group begins.
    entries: Vec<u32>,
    /// Two for each group (0 is the whole match), then those that only the program uses.
    slots: usize,
    /// What a match can begin with, unless it can be empty.
    first: Option<ByteSet>,
}

/// What a search writes to; reused.
#[derive(Debug, Default)]
pub(super) struct Memory {
    slots: Vec<usize>,
    stack: Vec<Choice>,
    calls: Vec<Frame>,
    /// Slots as they were at each call, one after the other.
    saved: Vec<usize>,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Match,
    NoMatch,
    OutOfSteps,
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    /// Go on at a step and a place, within this call.
    Resume { step: u32, place: usize, call: u32, calls: u32 },
    /// Go on at a step, from `high` down to `low` (greedy) or from `low` up to `high`.
    Range { step: u32, low: usize, high: usize, greed: Greed, call: u32, calls: u32 },
    /// A slot had this value before.
    Restore { slot: u32, value: usize },
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
struct Frame {
    group: u32,
    back: u32,
    /// The call around it; itself for none.
    outer: u32,
}

/// A slot that was not written.
const UNSET: usize = usize::MAX;
/// No call.
const TOP: u32 = u32::MAX;

impl Program {
    /// Writes a tree out.
    pub(super) fn new(node: &Node, groups: u32) -> Result<Self, Fault> {
        let groups = groups as usize + 1;
        let mut writer = Writer { steps: Vec::new(), entries: vec![0; groups], slots: groups * 2 };
        writer.push(Step::Save(0))?;
        writer.entries[0] = 1;
        writer.node(node)?;
        writer.push(Step::Called(0))?;
        writer.push(Step::Save(1))?;
        writer.push(Step::Match)?;
        let (first, nullable) = node.first();
        let Writer { steps, entries, slots } = writer;
        Ok(Self { steps, entries, slots, first: (!nullable).then_some(first) })
    }

    /// Searches from `from` on, trying starts in order.
    pub(super) fn search(
        &self,
        memory: &mut Memory,
        content: &[u8],
        from: usize,
        steps_max: u32,
    ) -> Outcome {
        // A start that fails undoes what it wrote, so this is enough for all of them.
        memory.slots.clear();
        memory.slots.resize(self.slots, UNSET);
        memory.stack.clear();
        memory.calls.clear();
        memory.saved.clear();
        let mut search = Search { program: self, memory, content, from, steps: steps_max };
        let mut outcome = Outcome::NoMatch;
        for start in from..=content.len() {
            if let Some(first) = &self.first
                && !content.get(start).is_some_and(|&byte| first.contains(byte))
            {
                continue;
            }
            outcome = search.at(start);
            if outcome != Outcome::NoMatch {
                break;
            }
        }
        if memory.stack.capacity() > STACK_LENGTH_KEPT {
            memory.stack = Vec::new();
            memory.saved = Vec::new();
        }
        outcome
    }
}

impl Memory {
    /// Where a group lies after a match.
    pub(super) fn group(&self, group: usize) -> Option<std::ops::Range<usize>> {
        let &start = self.slots.get(group * 2)?;
        let &end = self.slots.get(group * 2 + 1)?;
        // \K in a look-around can put the start behind the end; PCRE's callers see an empty match.
        (start != UNSET && end != UNSET).then(|| start.min(end)..end)
    }
}

/// One search under way.
struct Search<'a> {
    program: &'a Program,
    memory: &'a mut Memory,
    content: &'a [u8],
    from: usize,
    steps: u32,
}

/// What a step leads to.
enum Next {
    Step(u32, usize),
    Fail,
}

impl Search<'_> {
    /// Tries to match at one start.
    fn at(&mut self, start: usize) -> Outcome {
        let (mut step, mut place, mut call) = (0u32, start, TOP);
        loop {
            if !self.spend(1) {
                return Outcome::OutOfSteps;
            }
            let next = match &self.program.steps[step as usize] {
                Step::Match => return Outcome::Match,
                Step::Call(group) => {
                    let calls = self.memory.calls.len();
                    if calls * self.program.slots > SAVED_LENGTH_MAX
                        || !self.spend(self.program.slots)
                    {
                        return Outcome::OutOfSteps;
                    }
                    self.memory.calls.push(Frame { group: *group, back: step + 1, outer: call });
                    self.memory.saved.truncate(calls * self.program.slots);
                    self.memory.saved.extend_from_slice(&self.memory.slots);
                    call = index(calls);
                    Next::Step(self.program.entries[*group as usize], place)
                }
                Step::Called(group) => match self.memory.calls.get(call as usize) {
                    Some(&frame) if frame.group == *group => {
                        if !self.spend(self.program.slots) {
                            return Outcome::OutOfSteps;
                        }
                        // What was captured during a call is forgotten at its end.
                        for slot in 0..self.program.slots {
                            let at = call as usize * self.program.slots + slot;
                            self.write(index(slot), self.memory.saved[at]);
                        }
                        call = frame.outer;
                        Next::Step(frame.back, place)
                    }
                    _ => Next::Step(step + 1, place),
                },
                other => self.step(other, step, place, call),
            };
            if self.memory.stack.len() > STACK_LENGTH_MAX {
                return Outcome::OutOfSteps;
            }
            match next {
                Next::Step(to, at) => (step, place) = (to, at),
                Next::Fail => match self.resume() {
                    Resumed::At(to, at, within) => (step, place, call) = (to, at, within),
                    Resumed::Nowhere => return Outcome::NoMatch,
                    Resumed::OutOfSteps => return Outcome::OutOfSteps,
                },
            }
        }
    }

    fn step(&mut self, instruction: &Step, step: u32, place: usize, call: u32) -> Next {
        let go_if = |yes| if yes { Next::Step(step + 1, place) } else { Next::Fail };
        match instruction {
            Step::Byte(set) => match self.content.get(place) {
                Some(&byte) if set.contains(byte) => Next::Step(step + 1, place + 1),
                _ => Next::Fail,
            },
            Step::Run { set, min, greed } => self.run(set, *min, *greed, step, place, call),
            Step::Assert(assert) => go_if(holds(*assert, self.content, place, self.from)),
            Step::Split { first, second } => {
                self.choose(*second, place, call);
                Next::Step(*first, place)
            }
            Step::Jump(to) => Next::Step(*to, place),
            Step::Save(slot) => {
                self.write(*slot, place);
                Next::Step(step + 1, place)
            }
            Step::At(slot) => go_if(self.memory.slots[*slot as usize] == place),
            Step::Return(slot) => Next::Step(step + 1, self.memory.slots[*slot as usize]),
            Step::Back(bytes) => match place.checked_sub(*bytes as usize) {
                Some(place) => Next::Step(step + 1, place),
                None => Next::Fail,
            },
            Step::Unmoved { slot, to } => {
                let unmoved = self.memory.slots[*slot as usize] == place;
                Next::Step(if unmoved { *to } else { step + 1 }, place)
            }
            Step::Mark(slot) => {
                self.write(*slot, self.memory.stack.len());
                Next::Step(step + 1, place)
            }
            Step::Commit(slot) => {
                let height = self.memory.slots[*slot as usize];
                self.forget_choices(height);
                go_if(true)
            }
            Step::Abandon(slot) => {
                let height = self.memory.slots[*slot as usize];
                self.undo(height);
                go_if(true)
            }
            Step::BackReference { groups, case_insensitive } => {
                let Some(group) =
                    groups.iter().find_map(|&group| self.memory.group(group as usize))
                else {
                    return Next::Fail;
                };
                let text = &self.content[group];
                let there = self.content.get(place..place + text.len());
                let same = there.is_some_and(|there| match case_insensitive {
                    true => there.eq_ignore_ascii_case(text),
                    false => there == text,
                });
                let length = text.len();
                if same && self.spend(length / 4) {
                    Next::Step(step + 1, place + length)
                } else {
                    Next::Fail
                }
            }
            Step::Unset { groups, to } => {
                let set = groups.iter().any(|&group| self.memory.group(group as usize).is_some());
                Next::Step(if set { step + 1 } else { *to }, place)
            }
            Step::Close { group, opened } => {
                self.write(group * 2, self.memory.slots[*opened as usize]);
                self.write(group * 2 + 1, place);
                Next::Step(step + 1, place)
            }
            Step::Keep => {
                self.write(0, place);
                Next::Step(step + 1, place)
            }
            // The last three change the call, and are in the loop.
            Step::Fail | Step::Match | Step::Call(_) | Step::Called(_) => Next::Fail,
        }
    }

    fn run(
        &mut self,
        set: &ByteSet,
        min: u32,
        greed: Greed,
        step: u32,
        place: usize,
        call: u32,
    ) -> Next {
        let rest = &self.content[place..];
        let most = rest.iter().position(|&byte| !set.contains(byte)).unwrap_or(rest.len());
        if most < min as usize {
            return Next::Fail;
        }
        // Looking at a run's bytes is cheaper than steps are.
        if !self.spend(most / 4) {
            return Next::Fail;
        }
        let (low, high) = (place + min as usize, place + most);
        let (now, low, high) = match greed {
            Greed::Most => (high, low, high.wrapping_sub(1)),
            Greed::Fewest => (low, low + 1, high),
        };
        if low <= high && most > min as usize {
            let calls = index(self.memory.calls.len());
            self.memory.stack.push(Choice::Range { step: step + 1, low, high, greed, call, calls });
        }
        Next::Step(step + 1, now)
    }

    fn choose(&mut self, step: u32, place: usize, call: u32) {
        let calls = index(self.memory.calls.len());
        self.memory.stack.push(Choice::Resume { step, place, call, calls });
    }

    /// Writes a slot so that going back undoes it.
    fn write(&mut self, slot: u32, value: usize) {
        let old = std::mem::replace(&mut self.memory.slots[slot as usize], value);
        if old != value {
            self.memory.stack.push(Choice::Restore { slot, value: old });
        }
    }

    /// Goes back to the last choice.
    fn resume(&mut self) -> Resumed {
        while let Some(choice) = self.memory.stack.pop() {
            if !self.spend(1) {
                return Resumed::OutOfSteps;
            }
            match choice {
                Choice::Restore { slot, value } => self.memory.slots[slot as usize] = value,
                Choice::Resume { step, place, call, calls } => {
                    self.memory.calls.truncate(calls as usize);
                    return Resumed::At(step, place, call);
                }
                Choice::Range { step, low, high, greed, call, calls } => {
                    self.memory.calls.truncate(calls as usize);
                    let place = if greed == Greed::Most { high } else { low };
                    if low < high {
                        let (low, high) = match greed {
                            Greed::Most => (low, high - 1),
                            Greed::Fewest => (low + 1, high),
                        };
                        self.memory.stack.push(Choice::Range {
                            step,
                            low,
                            high,
                            greed,
                            call,
                            calls,
                        });
                    }
                    return Resumed::At(step, place, call);
                }
            }
        }
        // Steps can run out within an instruction, which then fails.
        if self.steps == 0 { Resumed::OutOfSteps } else { Resumed::Nowhere }
    }

    /// Drops the choices above a height and keeps the assignments, which going back further undoes.
    fn forget_choices(&mut self, height: usize) {
        let stack = &mut self.memory.stack;
        let mut kept = height;
        for at in height..stack.len() {
            if matches!(stack[at], Choice::Restore { .. }) {
                stack.swap(kept, at);
                kept += 1;
            }
        }
        let dropped = stack.len().saturating_sub(kept);
        stack.truncate(kept);
        self.spend(dropped);
    }

    /// Drops the choices above a height and undoes the assignments.
    fn undo(&mut self, height: usize) {
        while self.memory.stack.len() > height {
            if let Some(Choice::Restore { slot, value }) = self.memory.stack.pop() {
                self.memory.slots[slot as usize] = value;
            }
        }
    }

    /// Counts steps. When none are left the next instruction ends the search.
    fn spend(&mut self, steps: usize) -> bool {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.is_some()
    }
}

enum Resumed {
    At(u32, usize, u32),
    Nowhere,
    OutOfSteps,
}

/// Whether a place is what an assertion says.
fn holds(assert: Assert, content: &[u8], place: usize, from: usize) -> bool {
    let before = place.checked_sub(1).map(|before| content[before]);
    let after = content.get(place).copied();
    let word = |byte: Option<u8>| byte.is_some_and(|byte| WORD.contains(byte));
    match assert {
        Assert::Start => before.is_none(),
        Assert::End => after.is_none(),
        Assert::EndOrLastLineFeed => content[place..].is_empty() || content[place..] == *b"\n",
        Assert::LineStart => before.is_none() || before == Some(b'\n') && after.is_some(),
        Assert::LineEnd => after.is_none_or(|byte| byte == b'\n'),
        Assert::WordBoundary => word(before) != word(after),
        Assert::NotWordBoundary => word(before) == word(after),
        Assert::WordStart => !word(before) && word(after),
        Assert::WordEnd => word(before) && !word(after),
        Assert::SearchStart => place == from,
    }
}

/// Writes a tree out as steps.
struct Writer {
    steps: Vec<Step>,
    entries: Vec<u32>,
    slots: usize,
}

impl Writer {
    fn here(&self) -> u32 {
        index(self.steps.len())
    }

    fn push(&mut self, step: Step) -> Result<u32, Fault> {
        if self.steps.len() == PROGRAM_LENGTH_MAX {
            return Err(Fault::new(0, "the pattern is too large, written out")
                .hint("use smaller numbers in {n,m}"));
        }
        self.steps.push(step);
        Ok(self.here() - 1)
    }

    fn slot(&mut self) -> u32 {
        self.slots += 1;
        index(self.slots - 1)
    }

    /// Lets an earlier step that jumps, jump here.
    fn land(&mut self, from: u32) {
        let here = self.here();
        match &mut self.steps[from as usize] {
            Step::Split { second, .. } => *second = here,
            Step::Jump(to) | Step::Unset { to, .. } | Step::Unmoved { to, .. } => *to = here,
            _ => {}
        }
    }

    /// A split whose first way is the next step; its second lands later.
    fn split(&mut self) -> Result<u32, Fault> {
        let first = self.here() + 1;
        self.push(Step::Split { first, second: 0 })
    }

    fn node(&mut self, node: &Node) -> Result<(), Fault> {
        match node {
            Node::Empty => {}
            Node::Fail => {
                self.push(Step::Fail)?;
            }
            Node::Byte(set) => {
                self.push(Step::Byte(*set))?;
            }
            Node::Assert(assert) => {
                self.push(Step::Assert(*assert))?;
            }
            Node::Concat(nodes) => {
                for node in nodes {
                    self.node(node)?;
                }
            }
            Node::Alternate(nodes) => {
                let mut ends = Vec::new();
                for (at, node) in nodes.iter().enumerate() {
                    if at + 1 == nodes.len() {
                        self.node(node)?;
                    } else {
                        let split = self.split()?;
                        self.node(node)?;
                        ends.push(self.push(Step::Jump(0))?);
                        self.land(split);
                    }
                }
                for end in ends {
                    self.land(end);
                }
            }
            Node::Repeat(repeat) => self.repeat(repeat)?,
            Node::Capture(group, node) => {
                let here = self.here();
                let entry = &mut self.entries[*group as usize];
                // A group written out several times is called where it comes first.
                if *entry == 0 {
                    *entry = here;
                }
                // The start is set together with the end, so that a reference inside the group sees
                // what it matched before.
                let opened = self.slot();
                self.push(Step::Save(opened))?;
                self.node(node)?;
                self.push(Step::Called(*group))?;
                self.push(Step::Close { group: *group, opened })?;
            }
            Node::Irregular(irregular, offset) => self.irregular(irregular, *offset)?,
        }
        Ok(())
    }

    fn repeat(&mut self, repeat: &Repeat) -> Result<(), Fault> {
        let Repeat { node, min, max, greed } = repeat;
        if let (Node::Byte(set), None) = (node, max) {
            self.push(Step::Run { set: *set, min: *min, greed: *greed })?;
            return Ok(());
        }
        if *max == Some(0) {
            // Passed over, but its groups can be called.
            let over = self.push(Step::Jump(0))?;
            self.node(node)?;
            self.land(over);
            return Ok(());
        }
        let nullable = node.first().1;
        let slot = self.slot();
        // The last repetition that has to be and those after it are one loop, since PCRE ends a loop
        // with the first repetition that consumes nothing, be it the first of all.
        let before = if max.is_none() { min.saturating_sub(1) } else { *min };
        for _ in 0..before {
            self.node(node)?;
        }
        match max {
            None => {
                let start = self.here();
                let entry = if *min == 0 { Some(self.choice(*greed)?) } else { None };
                if nullable {
                    self.push(Step::Save(slot))?;
                }
                self.node(node)?;
                let unmoved =
                    if nullable { Some(self.push(Step::Unmoved { slot, to: 0 })?) } else { None };
                if let Some(entry) = entry {
                    self.push(Step::Jump(start))?;
                    self.leave(entry, *greed);
                } else {
                    let out = self.here() + 1;
                    self.push(match greed {
                        Greed::Most => Step::Split { first: start, second: out },
                        Greed::Fewest => Step::Split { first: out, second: start },
                    })?;
                }
                if let Some(unmoved) = unmoved {
                    self.land(unmoved);
                }
            }
            Some(max) => {
                let mut splits = Vec::new();
                for _ in *min..*max {
                    splits.push(self.choice(*greed)?);
                    self.node(node)?;
                }
                for split in splits {
                    self.leave(split, *greed);
                }
            }
        }
        Ok(())
    }

    /// Whether to repeat once more; the way out is set by `leave`.
    fn choice(&mut self, greed: Greed) -> Result<u32, Fault> {
        let next = self.here() + 1;
        self.push(match greed {
            Greed::Most => Step::Split { first: next, second: 0 },
            Greed::Fewest => Step::Split { first: 0, second: next },
        })
    }

    fn leave(&mut self, split: u32, greed: Greed) {
        let here = self.here();
        if let Step::Split { first, second } = &mut self.steps[split as usize] {
            *(if greed == Greed::Most { second } else { first }) = here;
        }
    }

    fn irregular(&mut self, irregular: &Irregular, offset: usize) -> Result<(), Fault> {
        match irregular {
            Irregular::Atomic(node) => self.atomic(|writer| writer.node(node)),
            Irregular::LineEnding => self.atomic(|writer| {
                let split = writer.split()?;
                writer.push(Step::Byte(ByteSet::of(b"\r")))?;
                writer.push(Step::Byte(ByteSet::of(b"\n")))?;
                let end = writer.push(Step::Jump(0))?;
                writer.land(split);
                writer.push(Step::Byte(LINE_ENDINGS))?;
                writer.land(end);
                Ok(())
            }),
            Irregular::Around { direction, expects, node } => {
                let (mark, place) = (self.slot(), self.slot());
                self.push(Step::Save(place))?;
                self.push(Step::Mark(mark))?;
                match expects {
                    Expects::Presence => {
                        self.looked(*direction, node, place, offset)?;
                        self.push(Step::Commit(mark))?;
                        self.push(Step::Return(place))?;
                    }
                    Expects::Absence => {
                        let split = self.split()?;
                        self.looked(*direction, node, place, offset)?;
                        self.push(Step::Abandon(mark))?;
                        self.push(Step::Fail)?;
                        self.land(split);
                    }
                }
                Ok(())
            }
            Irregular::BackReference { groups, case_insensitive } => {
                let groups = groups.clone().into_boxed_slice();
                let case_insensitive = *case_insensitive;
                self.push(Step::BackReference { groups, case_insensitive }).map(drop)
            }
            Irregular::Conditional { condition, yes, no } => {
                self.conditional(condition, yes, no, offset)
            }
            Irregular::Call(group) => self.push(Step::Call(*group)).map(drop),
            Irregular::Keep => self.push(Step::Keep).map(drop),
        }
    }

    fn atomic(
        &mut self,
        content: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mark = self.slot();
        self.push(Step::Mark(mark))?;
        content(self)?;
        self.push(Step::Commit(mark)).map(drop)
    }

    /// What a look-around looks for; behind, it has to end at `place`.
    fn looked(
        &mut self,
        direction: Direction,
        node: &Node,
        place: u32,
        offset: usize,
    ) -> Result<(), Fault> {
        if direction == Direction::Ahead {
            return self.node(node);
        }
        let (min, max) = node.length();
        let Some(max) = max.filter(|&max| max <= BEHIND_BYTES_MAX) else {
            return Err(Fault::new(
                offset,
                format!(
                    "look-behind of more than {BEHIND_BYTES_MAX} bytes, or of no certain length"
                ),
            )
            .hint("look-behind needs a text of limited length"));
        };
        let mut ways = Vec::new();
        for bytes in min..=max {
            let split = if bytes < max { Some(self.split()?) } else { None };
            self.push(Step::Back(index(bytes)))?;
            if let Some(split) = split {
                ways.push(self.push(Step::Jump(0))?);
                self.land(split);
            }
        }
        for way in ways {
            self.land(way);
        }
        self.node(node)?;
        self.push(Step::At(place)).map(drop)
    }

    fn conditional(
        &mut self,
        condition: &Condition,
        yes: &Node,
        no: &Node,
        offset: usize,
    ) -> Result<(), Fault> {
        match condition {
            Condition::Define => {
                // Passed over, reached by calls only.
                let over = self.push(Step::Jump(0))?;
                self.node(yes)?;
                self.land(over);
                Ok(())
            }
            Condition::Group(groups) => {
                let groups = groups.clone().into_boxed_slice();
                let unset = self.push(Step::Unset { groups, to: 0 })?;
                self.node(yes)?;
                let end = self.push(Step::Jump(0))?;
                self.land(unset);
                self.node(no)?;
                self.land(end);
                Ok(())
            }
            Condition::Around { direction, expects, node } => {
                let (mark, place) = (self.slot(), self.slot());
                // Outside of the mark, so that abandoning does not undo it.
                self.push(Step::Save(place))?;
                self.push(Step::Mark(mark))?;
                let split = self.split()?;
                self.looked(*direction, node, place, offset)?;
                // Presence keeps what was captured, absence has nothing to keep.
                let (found, branches) = match expects {
                    Expects::Presence => (Step::Commit(mark), (yes, no)),
                    Expects::Absence => (Step::Abandon(mark), (no, yes)),
                };
                self.push(found)?;
                self.push(Step::Return(place))?;
                self.node(branches.0)?;
                let end = self.push(Step::Jump(0))?;
                self.land(split);
                self.node(branches.1)?;
                self.land(end);
                Ok(())
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "programs, slots and stacks are bounded far below 2^32"
)]
fn index(value: usize) -> u32 {
    value as u32
}
