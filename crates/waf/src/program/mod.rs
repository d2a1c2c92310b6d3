//! A rule set compiled into a program.
