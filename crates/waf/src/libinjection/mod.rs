//! SQL injection and cross-site scripting found by tokens, as libinjection finds them.
//!
//! [`sqli`] reads a value as a piece of SQL, in up to three ways: as it stands, as if it continued a
//! text in single quotes, and as if it continued one in double quotes. Each reading is cut into
//! tokens ([`tokenizer`]), adjacent tokens that say nothing new are folded together ([`folding`]) and
//! the kinds of the first five that remain are a [`Fingerprint`], which is looked up among those of
//! known attacks ([`fingerprints`], [`verdict`]).
//!
//! [`xss`] reads a value as a piece of HTML, in up to five ways: as text, inside a tag, and inside an
//! attribute's value in each kind of quotes ([`html`]); what runs script in some browser gives it
//! away ([`xss`](mod@xss)).
//!
//! The reference is libinjection 4.0.0 as it behaves on x86-64, where a C `char` is signed: verdicts
//! and fingerprints agree with it on every input, its oddities included, because rule sets are tuned
//! to them. Those that older firewalls carry differ in three points. 3.9.2 (in `mod_security2` 2.9.7)
//! and 3.10 (in libmodsecurity 3.0.9) take `1.e` for a name, where 4.0 skips it as MySQL does; they take
//! every attribute `on...` for a handler, where 4.0 asks for the name of an event; and 3.10 of 2023 (in
//! libmodsecurity 3.0.13) knows fewer events. Words, fingerprints and events are data, in
//! `data/libinjection`.
//!
//! Two things hold here and not there. Nothing is allocated. And every input takes time in
//! proportion to its length: a dotted run of words is measured once, not from each of its words again.
//!
//! Left to others: decoding. A value comes as the transformations of a rule leave it.

mod fingerprints;
mod folding;
mod html;
mod necessary;
#[cfg(test)]
mod tests;
mod token;
mod tokenizer;
mod verdict;
mod words;
mod xss;

pub use self::fingerprints::Fingerprint;
pub use self::necessary::{
    NOT_IN_A_WORD, NOT_IN_FIGURES, OPENS_MARKUP, sqli_possible, xss_possible,
};
pub use self::verdict::sqli;
pub use self::xss::{Script, xss};
