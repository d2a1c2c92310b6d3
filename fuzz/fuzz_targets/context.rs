//! Context: any sequence of operations does what plain maps do.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_waf::context::{Context, Settings};

#[path = "../../crates/waf/tests/context/model.rs"]
mod model;
#[path = "../../crates/waf/tests/context/steps.rs"]
#[allow(dead_code, reason = "tests draw from seeds")]
mod steps;

use model::Model;
use steps::{FromBytes, TIMEOUT_S};

fuzz_target!(|input: &[u8]| {
    // The first byte says whether marks of removed variables are kept, and for how long.
    let Some((first, input)) = input.split_first() else { return };
    let removed_kept_s = u32::from(first % 4) * 7;
    let settings = Settings { timeout_s: TIMEOUT_S, removed_kept_s, ..Settings::default() };
    let context = Context::in_memory(&settings);
    steps::run(&context, &mut Model::new(TIMEOUT_S), &mut FromBytes(input), usize::MAX);
});
