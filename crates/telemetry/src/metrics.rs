//! Metrics: counted per worker without locks, summed when read.

mod labels;

pub use labels::{Label, Labels};
