//! Whether a value is SQL injection.
//!
//! A listed fingerprint accuses; the shortest ones are too common in plain text and need more
//! evidence, which is asked for here.

use memchr::{memchr, memmem};

use super::fingerprints::Fingerprint;
use super::folding::{Folded, fold};
use super::necessary::sqli_possible;
use super::token::{Kind, Mark, Token};
use super::tokenizer::{Dialect, Tokenizer};

/// What gives `input` away as SQL injection, if anything does.
pub fn sqli(input: &[u8]) -> Option<Fingerprint> {
    if !sqli_possible(input) {
        return None;
    }
    as_either(input, None)
        .or_else(|| {
            memchr(b'\'', input)?;
            as_either(input, Some(b'\''))
        })
        .or_else(|| {
            memchr(b'"', input)?;
            read(input, Some(b'"'), Dialect::MySql).0
        })
}

/// Reads `input` as standard SQL, and if it has comments that MySQL sees otherwise, as MySQL's.
fn as_either(input: &[u8], before: Option<u8>) -> Option<Fingerprint> {
    match read(input, before, Dialect::Ansi) {
        (None, true) => read(input, before, Dialect::MySql).0,
        (verdict, _) => verdict,
    }
}

/// Reads `input` as what follows the quote `before`: its fingerprint if that is an attack's, and
/// whether MySQL may see comments elsewhere.
fn read(input: &[u8], before: Option<u8>, dialect: Dialect) -> (Option<Fingerprint>, bool) {
    let mut tokenizer = Tokenizer::new(input, before, dialect);
    let folded = fold(&mut tokenizer);
    let fingerprint = fingerprint(&folded);
    let accused = fingerprint == Fingerprint::EVIL
        || fingerprint.is_listed()
            && is_meant(input, fingerprint, folded.tokens(), tokenizer.count());
    (accused.then_some(fingerprint), tokenizer.is_contested())
}

fn fingerprint(folded: &Folded<'_>) -> Fingerprint {
    let tokens = folded.tokens();
    if tokens.iter().any(|token| token.kind == Kind::Evil) {
        return Fingerprint::EVIL;
    }
    let last = tokens.len().saturating_sub(1);
    Fingerprint::new(tokens.iter().enumerate().map(|(at, token)| {
        // MySQL takes an empty name that is never closed as a comment.
        let comments =
            at == last && at > 1 && token.kind == Kind::Bareword && token.text.is_empty();
        match (comments, token.open, token.close) {
            (true, Mark::Quote(b'`'), Mark::None) => Kind::Comment,
            _ => token.kind,
        }
    }))
}

/// Whether a listed fingerprint is likely to be meant as SQL. `count` tokens were read for it.
fn is_meant(input: &[u8], fingerprint: Fingerprint, tokens: &[Token<'_>], count: usize) -> bool {
    let kinds = fingerprint.as_bytes();
    // SQL Server keeps whatever mentions sp_password out of its log.
    if kinds.len() > 1 && kinds.ends_with(b"c") && memmem::find(input, b"sp_password").is_some() {
        return true;
    }
    match (kinds, tokens) {
        ([_, _], [first, second]) => are_two_meant(input, first, second, count),
        ([_, _, _], [first, second, third]) => match kinds {
            // A text that began before the value and one that goes on behind it, in the same quotes.
            b"sos" | b"s&s" => {
                first.open == Mark::None && third.close == Mark::None && first.close == third.open
            }
            // «sexy and 17» is plain text.
            b"s&n" | b"n&1" | b"1&1" | b"1&v" | b"1&s" => count != 3,
            _ if second.kind == Kind::Keyword => {
                second.text.len() > 4 && second.text[..4].eq_ignore_ascii_case(b"INTO")
            }
            _ => true,
        },
        _ => true,
    }
}

fn are_two_meant(input: &[u8], first: &Token<'_>, second: &Token<'_>, count: usize) -> bool {
    let mark = second.text.first().copied();
    match (first.kind, second.kind) {
        // «1 union» is plain text, unless something was folded away.
        (_, Kind::Union) => count != 2,
        _ if mark == Some(b'#') => false,
        (Kind::Bareword, Kind::Comment) => mark == Some(b'/'),
        (Kind::Number, Kind::Comment) if mark == Some(b'/') => true,
        // «1234-ABCdefGHI--» is an identifier, «1234--» is not. What follows the number is looked up as
        // if the number began the value. White space of 0x80 and more counts, a C char being signed.
        (Kind::Number, Kind::Comment) => {
            count > 2
                || matches!(
                    input.get(first.text.len()..),
                    Some([0..=b' ' | 0x80.., ..] | [b'-', b'-', ..])
                )
        }
        // Two dashes are common in plain text; at the end of a value they are not.
        _ => !(mark == Some(b'-') && second.text.len() > 2),
    }
}
