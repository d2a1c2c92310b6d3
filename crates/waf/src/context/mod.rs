//! Context: what rules remember between requests, shared by all workers.
