//! Patterns: PCRE as rules write it, compiled to linear-time automata, and what each needs to match.
