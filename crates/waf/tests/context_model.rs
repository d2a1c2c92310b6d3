//! Seeded sequences of operations: the store does what a plain map in a map does.

#[path = "context/model.rs"]
mod model;
#[path = "context/steps.rs"]
mod steps;

use tidegate_waf::context::{Context, Settings};

use model::Model;
use steps::{Seeded, TIMEOUT_S};

#[test]
fn a_store_does_what_plain_maps_do() {
    for seed in 1..=150_u64 {
        let settings = Settings { timeout_s: TIMEOUT_S, ..Settings::default() };
        let context = Context::in_memory(&settings);
        let mut model = Model::new(TIMEOUT_S);
        println!("seed {seed}");
        steps::run(&context, &mut model, &mut Seeded(seed * 0x9e37_79b9), 400);
    }
}

#[test]
fn marks_of_removed_variables_are_not_seen() {
    for seed in 1..=80_u64 {
        let settings = Settings { timeout_s: TIMEOUT_S, removed_kept_s: 7, ..Settings::default() };
        let context = Context::in_memory(&settings);
        let mut model = Model::new(TIMEOUT_S);
        println!("seed {seed}");
        steps::run(&context, &mut model, &mut Seeded(seed * 0x85eb_ca6b), 400);
    }
}
