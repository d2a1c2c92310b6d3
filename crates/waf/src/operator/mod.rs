//! Operators other than patterns: each a pure question about one value.
