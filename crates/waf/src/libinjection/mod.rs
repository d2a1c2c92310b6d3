//! SQL injection and cross-site scripting found by tokens, as libinjection finds them.
