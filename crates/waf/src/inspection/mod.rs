//! One transaction's way through the five phases.
