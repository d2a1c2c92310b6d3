//! Patterns and the prefilter over them: the prefilter leaves out nothing that matches, whatever the
//! patterns and the content, and a match has its groups where it says.
//!
//! An input is patterns, a line each, an empty line, and a content.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_waf::pattern::{
    Caches, CandidateSet, Captures, Makeup, Match, Options, Pattern, PatternId, Prefilter, Scratch,
};

/// Patterns of one input; more are slow and find nothing else.
const PATTERNS_MAX: usize = 8;
/// What backtracking may take, so that an input takes little time.
const STEPS_MAX: u32 = 10_000;

fuzz_target!(|input: &[u8]| {
    let split = input.windows(2).position(|pair| pair == b"\n\n").unwrap_or(input.len());
    let content = input.get(split + 2..).unwrap_or_default();
    let options =
        Options { steps_max: STEPS_MAX, automaton_bytes_max: 1 << 20, ..Options::default() };
    let patterns: Vec<Pattern> = input[..split]
        .split(|&byte| byte == b'\n')
        .take(PATTERNS_MAX)
        .filter_map(|source| Pattern::compile(source, &options).ok())
        .map(|(pattern, _)| pattern)
        .collect();
    let numbered = || (0..).map(PatternId).zip(&patterns);
    let requirements = numbered().map(|(id, it)| (id, it.requirement().clone())).collect();
    let prefilter = Prefilter::new(requirements);
    let (mut scratch, mut caches) = (Scratch::default(), Caches::new());
    let mut candidates = CandidateSet::new(prefilter.patterns());
    // The same question of few patterns, which is answered another way.
    let question = prefilter.question(prefilter.asking(|_| true));
    let mut among = candidates.clone();
    let makeup = Makeup::of(content);
    let mut captures = Captures::default();
    // Twice: the second time finds what the first one kept.
    for _ in 0..2 {
        candidates.clear();
        prefilter.candidates(content, &mut scratch, &mut candidates);
        prefilter.candidates_among(&question, content, makeup, &mut scratch, &mut among);
        for (id, pattern) in numbered() {
            let is_met = pattern.requirement().is_met_by(content);
            let found = pattern.is_match(&mut caches, id, content);
            if found == Match::Yes {
                assert!(is_met, "pattern {} matches what it cannot", id.0);
            }
            if is_met {
                assert!(candidates.contains(id), "pattern {} is no candidate", id.0);
                assert!(among.contains(id), "pattern {} is no candidate among few", id.0);
            }
            let groups = pattern.captures(&mut caches, id, content, 0, &mut captures);
            // Both may run out of steps, and not after the same.
            if found != Match::LimitsExceeded && groups != Match::LimitsExceeded {
                assert_eq!(found, groups, "pattern {} with and without groups", id.0);
            }
            if groups == Match::Yes {
                assert!(captures.group(0).is_some_and(|whole| whole.end <= content.len()));
            }
        }
    }
});
