//! `/status`: how the gate is doing, worst first.

mod cache;
mod json;
mod survey;
mod text;
mod troubles;

use super::answer::Answer;
use crate::control::Gate;
use survey::Survey;

/// The status now.
pub(super) fn answer(gate: &Gate) -> Answer {
    let survey = Survey::of(gate);
    Answer::ok(text::text(&survey), json::json(&survey))
}
