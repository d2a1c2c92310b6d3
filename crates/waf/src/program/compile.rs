//! From a rule set as read to a program.
//!
//! Removals and updates are applied first, wherever they stand, as ModSecurity 3 does. Then rules
//! are laid out phase by phase, so that patterns of one half get neighbouring numbers.

mod actions;
mod draft;
mod operators;
mod settings;
mod targets;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::gate::Groups;
use super::{
    ChainTable, LaneKey, Policy, Program, RuleMeta, SelectorPattern, Settings, TargetSet, TxSlot,
    TxSlots,
};
use crate::inspection::{Half, Mode};
use crate::operator::geo::Database;
use crate::operator::phrases::Phrases;
use crate::pattern::{Asked, Caches, Match, Options, Pattern, PatternId, Prefilter, Requirement};
use crate::seclang::{
    self, Code, Diagnostic, Directive, Document, Entry, FileError, Files, Location, Note,
};
use crate::variable::{Phase, Variable};
use draft::Drafts;

/// A program and what is worth saying about its rule set.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub program: Program,
    /// Remarks, in the order of their places.
    pub notes: Vec<Note>,
}

/// How many programs were made: search caches are told apart by it.
static PROGRAMS: AtomicU64 = AtomicU64::new(1);

/// Compiles a rule set. `files` gives the data files that rules name. All mistakes are reported at
/// once.
pub fn compile(document: &Document, files: &dyn Files) -> Result<Compiled, Vec<Diagnostic>> {
    let mut compiler = Compiler::new(files);
    let drafts = Drafts::of(document, &mut compiler);
    let rules: Arc<[Arc<RuleMeta>]> = drafts.metas().into();
    let mut phases: [Vec<super::Rule>; 5] = Default::default();
    for phase in Phase::ALL {
        let half = Half::of(phase);
        for draft in drafts.of_phase(phase) {
            let rule = compiler.rule(&drafts, &rules, draft, half);
            phases[phase.index()].push(rule);
        }
    }
    if !compiler.diagnostics.is_empty() {
        compiler.diagnostics.sort_by(|a, b| a.location.cmp(&b.location));
        return Err(compiler.diagnostics);
    }
    compiler.notes.sort_by(|a, b| a.location.cmp(&b.location));
    compiler.settle_selectors();
    let [request, response] = compiler.requirements;
    let prefilters = [Prefilter::new(request), Prefilter::new(response)];
    let asked = asked_behind(&phases, compiler.chains.chains.len(), &prefilters);
    let mut groups = Groups::default();
    let gates = phases.each_ref().map(|rules| rules.iter().map(|it| groups.gate(it)).collect());
    let program = Program {
        identity: PROGRAMS.fetch_add(1, Ordering::Relaxed),
        settings: compiler.settings,
        phases,
        gates,
        groups: groups.lanes(),
        sets: compiler.sets.all,
        lanes: compiler.lanes,
        changes: compiler.chains.changes(),
        chains: compiler.chains.chains,
        selectors: compiler.selectors,
        prefilters,
        asked,
        tx_all: (0..u16::MAX).map(TxSlot).take(compiler.tx_slots.len()).collect(),
        tx_slots: compiler.tx_slots,
        used: compiler.used,
        rules,
    };
    Ok(Compiled { program, notes: compiler.notes })
}

/// What rules of each half ask of contents behind each chain of transformations.
fn asked_behind(
    phases: &[Vec<super::Rule>; 5],
    chains: usize,
    prefilters: &[Prefilter; 2],
) -> [Vec<Asked>; 2] {
    let mut patterns = [Half::Request, Half::Response].map(|_| vec![HashSet::new(); chains]);
    for (phase, rules) in Phase::ALL.into_iter().zip(phases) {
        let of_half = &mut patterns[Half::of(phase) as usize];
        for link in rules.iter().flat_map(|rule| std::iter::once(rule).chain(&rule.links)) {
            let Some(pattern) = link.test.prefiltered() else { continue };
            for chain in std::iter::once(&link.chain).chain(&link.steps) {
                of_half[usize::from(chain.0)].insert(pattern);
            }
        }
    }
    let mut halves = patterns.into_iter().zip(prefilters).map(|(chains, prefilter)| {
        let asking = |patterns: HashSet<PatternId>| prefilter.asking(|id| patterns.contains(&id));
        chains.into_iter().map(asking).collect()
    });
    [halves.next().unwrap_or_default(), halves.next().unwrap_or_default()]
}

/// Compiles what a site or route begins its transactions with: a list of actions as a `SecAction` has
/// it, such as `setvar:tx.blocking_paranoia_level=2,ctl:ruleRemoveById=942100`.
pub fn compile_policy(
    program: &Arc<Program>,
    mode: Mode,
    actions: &str,
    name: &str,
) -> Result<Policy, Vec<Diagnostic>> {
    let mut compiler = Compiler::new(&NoFiles);
    compiler.scope = Scope::Policy;
    compiler.tx_slots = program.tx_slots.clone();
    let mut acts = Vec::new();
    if !actions.is_empty() {
        let text = format!("SecAction \"id:1,phase:1,pass,nolog,{actions}\"");
        let entry = Entry::Text { path: name, text: text.as_bytes() };
        let (document, _) = seclang::parse(&NoFiles, entry)?;
        for directive in &document.directives {
            if let Directive::Rule(rule) = &directive.value {
                for link in &rule.links {
                    acts.extend(compiler.acts(&program.rules, &link.actions));
                }
            }
        }
    }
    if compiler.diagnostics.is_empty() {
        let program = Arc::clone(program);
        Ok(Policy { program, mode, opening: acts.into(), actions: actions.into() })
    } else {
        Err(compiler.diagnostics)
    }
}

/// A policy names no files.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _path: &str) -> Result<Vec<u8>, FileError> {
        Err(FileError::Missing)
    }

    fn glob(&self, _pattern: &str) -> Result<Vec<String>, FileError> {
        Err(FileError::Missing)
    }
}

/// What is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    RuleSet,
    /// Actions for a program that stands: nothing may be numbered that it does not know.
    Policy,
}

/// What is being put together.
struct Compiler<'a> {
    files: &'a dyn Files,
    scope: Scope,
    settings: Settings,
    sets: Sets,
    lanes: Vec<LaneKey>,
    lanes_known: HashMap<LaneKey, super::LaneId>,
    chains: ChainTable,
    selectors: Vec<SelectorPattern>,
    selectors_known: HashMap<Box<[u8]>, super::SelectorId>,
    /// Equal sources in the same half are one pattern.
    patterns: Numbered<Pattern>,
    /// Data files and phrase lists, read and built once.
    phrases: Numbered<Phrases>,
    patterns_next: u32,
    /// `SecPcreMatchLimit`, as far as it has been read.
    pattern_steps_max: u32,
    /// The database of `SecGeoLookupDb`.
    geo: Option<Arc<Database>>,
    requirements: [Vec<(PatternId, Requirement)>; 2],
    tx_slots: TxSlots,
    used: [bool; Variable::COUNT],
    diagnostics: Vec<Diagnostic>,
    notes: Vec<Note>,
}

/// What was made from a source for one half, with its number.
type Numbered<T> = HashMap<(Half, Box<[u8]>), (PatternId, Arc<T>)>;

#[derive(Default)]
struct Sets {
    all: Vec<TargetSet>,
    known: HashMap<TargetSet, super::SetId>,
}

impl<'a> Compiler<'a> {
    fn new(files: &'a dyn Files) -> Self {
        Self {
            files,
            scope: Scope::RuleSet,
            settings: Settings::default(),
            sets: Sets::default(),
            lanes: Vec::new(),
            lanes_known: HashMap::new(),
            chains: ChainTable::default(),
            selectors: Vec::new(),
            selectors_known: HashMap::new(),
            patterns: HashMap::new(),
            phrases: HashMap::new(),
            patterns_next: 0,
            pattern_steps_max: Options::default().steps_max,
            geo: None,
            requirements: [Vec::new(), Vec::new()],
            tx_slots: TxSlots::new(),
            used: [false; Variable::COUNT],
            diagnostics: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn refuse(&mut self, location: &Location, code: Code, message: String, hint: Option<String>) {
        self.diagnostics.push(Diagnostic { location: location.clone(), code, message, hint });
    }

    fn note(&mut self, location: &Location, message: String) {
        self.notes.push(Note { location: location.clone(), message });
    }

    /// Once all names are known: which of them each selector picks.
    fn settle_selectors(&mut self) {
        let mut caches = Caches::new();
        for selector in &mut self.selectors {
            let SelectorPattern { id, pattern, slots } = selector;
            *slots = (0..u16::MAX)
                .map(TxSlot)
                .take(self.tx_slots.len())
                .filter(|&slot| {
                    pattern.is_match(&mut caches, *id, self.tx_slots.name(slot)) == Match::Yes
                })
                .collect();
        }
    }

    fn next_pattern(&mut self) -> PatternId {
        let id = PatternId(self.patterns_next);
        self.patterns_next += 1;
        id
    }
}
