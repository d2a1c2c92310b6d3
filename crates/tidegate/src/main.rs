//! The program: its command line, its configuration and the wiring of the gate.

#![forbid(unsafe_code)]

fn main() {}
