//! SecLang as text: lexer, directives, rules, and every mistake with its place.
