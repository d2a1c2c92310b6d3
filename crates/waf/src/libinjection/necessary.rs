//! What a value must contain to be an attack at all: conditions so cheap that they can be tested for
//! many values at once, before anything else is.

/// One byte at least must be marked here for a value to be SQL injection, see [`sqli_possible`].
pub static NOT_IN_A_WORD: [bool; 256] = marked(WORD);

/// One byte at least must be marked here for a value without `--` to be SQL injection, see
/// [`sqli_possible`].
pub static NOT_IN_FIGURES: [bool; 256] = marked(FIGURES);

/// One byte at least must be marked here for a value to be cross-site scripting, see [`xss_possible`].
pub static OPENS_MARKUP: [bool; 256] = {
    let mut table = [false; 256];
    table[b'<' as usize] = true;
    table[b'=' as usize] = true;
    table
};

/// Whether `input` may be SQL injection; whatever [`sqli`](super::sqli) finds, this finds possible.
///
/// Two kinds of values are impossible.
///
/// A value of letters, digits, underscores and bytes above 0x7f but 0xa0 is at most two numbers (or
/// `0x` or `0b` and a number) and a word: a number ends before a letter unless it is `0x`, `0b` or an
/// exponent, digits follow one only after `0b`, and the first letter after it begins a word that
/// nothing ends. There is no quote or comment, so there is one reading. Of the fingerprints that this
/// can make, only a number with `UNION` behind it is listed, and that is not meant as SQL unless a
/// third token was folded away.
///
/// A value of digits, white space and of ``. , : ; ? ! + - = < > ~ ^ % / \ [ ] { }`` has neither
/// words but those in brackets, nor quotes, nor parentheses, nor `/*`; if there is no `--` in it, it has
/// no comments. Its tokens are numbers, names, operators, commas, colons, semicolons and such as occur
/// in no fingerprint; folding renames none of them into anything else, and no listed fingerprint is
/// made of these alone.
pub fn sqli_possible(input: &[u8]) -> bool {
    let (mut seen, mut last) = (0, 0);
    for &byte in input {
        seen |= !SETS[usize::from(byte)];
        if byte == b'-' && last == b'-' {
            seen |= FIGURES;
        }
        if seen & (WORD | FIGURES) == WORD | FIGURES {
            return true;
        }
        last = byte;
    }
    false
}

/// Whether `input` may be cross-site scripting; whatever [`xss`](super::xss()) finds, this finds
/// possible.
///
/// Script needs a tag, a comment or a document type, all of which open with `<`, or an attribute with
/// a value, and before a value stands `=`. The value that a reading in quotes begins with has no name,
/// so it is judged by nothing.
pub fn xss_possible(input: &[u8]) -> bool {
    memchr::memchr2(b'<', b'=', input).is_some()
}

const WORD: u8 = 1;
const FIGURES: u8 = 2;

/// The sets of bytes that each byte belongs to.
static SETS: [u8; 256] = sets();

const fn sets() -> [u8; 256] {
    let mut sets = [0; 256];
    let mut byte = 0;
    loop {
        sets[byte as usize] = match byte {
            b'0'..=b'9' => WORD | FIGURES,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80..=0x9f | 0xa1.. => WORD,
            0..=b' '
            | 0x7f
            | 0xa0
            | b'.'
            | b','
            | b':'
            | b';'
            | b'?'
            | b'!'
            | b'+'
            | b'-'
            | b'='
            | b'<'
            | b'>'
            | b'~'
            | b'^'
            | b'%'
            | b'/'
            | b'\\'
            | b'['
            | b']'
            | b'{'
            | b'}' => FIGURES,
            _ => 0,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    sets
}

const fn marked(set: u8) -> [bool; 256] {
    let sets = sets();
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = sets[byte] & set == 0;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::libinjection::fingerprints::Fingerprint;
    use crate::libinjection::token::Kind;
    use crate::libinjection::{sqli, xss};

    /// All sequences of one to five of `kinds`.
    fn sequences(kinds: &[Kind]) -> Vec<Vec<Kind>> {
        let mut all = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..5 {
            let to = all.len();
            for at in from..to {
                for &kind in kinds {
                    all.push([&all[at][..], &[kind]].concat());
                }
            }
            from = to;
        }
        all
    }

    #[test]
    fn figures_make_no_listed_fingerprint() {
        use Kind::{Bareword, Colon, Comma, Number, Operator, Semicolon};
        let all = sequences(&[Number, Bareword, Operator, Comma, Colon, Semicolon]);
        assert_eq!(all.len(), 1 + 6 + 36 + 216 + 1296 + 7776);
        for kinds in all {
            assert!(!Fingerprint::new(kinds.iter().copied()).is_listed(), "{kinds:?}");
        }
    }

    #[test]
    fn a_word_makes_but_one_listed_fingerprint() {
        use Kind::{
            Bareword, Collate, Expression, Function, Group, Keyword, Logic, Number, Operator,
            SqlType, Statement, Union, Variable,
        };
        let words = [
            Bareword, Collate, Expression, Function, Group, Keyword, Logic, Number, Operator,
            SqlType, Statement, Union, Variable,
        ];
        for word in words {
            for numbers in [&[][..], &[Number], &[Bareword], &[Number, Number], &[Bareword, Number]]
            {
                let kinds = [numbers, &[word]].concat();
                let listed = Fingerprint::new(kinds.iter().copied()).is_listed();
                assert_eq!(listed, kinds == [Number, Union], "{kinds:?}");
            }
        }
    }

    #[test]
    fn what_is_found_is_possible() {
        let check = |input: &str, sqli_expected, xss_expected| {
            let input = input.as_bytes();
            assert_eq!(sqli_possible(input), sqli_expected, "{}", input.escape_ascii());
            assert_eq!(xss_possible(input), xss_expected, "{}", input.escape_ascii());
            assert!(sqli(input).is_none() || sqli_expected, "{}", input.escape_ascii());
            assert!(xss(input).is_none() || xss_expected, "{}", input.escape_ascii());
        };
        for word in [
            "",
            "1union",
            "0b2union",
            "0x1and",
            "a_b",
            "deadbeef",
            "na\u{ef}ve",
            "1e5union",
            "00x0b",
        ] {
            check(word, false, false);
        }
        for figures in
            ["1.5", "2024-01-15", "10:30", "[1, 2, [3]]", "-1/2", "\\1", "{}", "1-", "1 - -1"]
        {
            check(figures, false, false);
        }
        for figures in ["<1>", "=1", "1 < 2"] {
            check(figures, false, true);
        }
        for both in [
            "1--", "1 union", "a b", "a.b", "'", "\"", "1/*", "1#", "@1", "(1)", "$", "1|", "&",
            "`",
        ] {
            check(both, true, false);
        }
        check("a=b", true, true);
    }

    #[test]
    fn the_tables_say_the_same() {
        for byte in 0..=u8::MAX {
            assert_eq!(sqli_possible(&[byte, b'a']), NOT_IN_A_WORD[usize::from(byte)], "{byte}");
            assert_eq!(sqli_possible(&[byte, b'.']), NOT_IN_FIGURES[usize::from(byte)], "{byte}");
            assert_eq!(xss_possible(&[byte]), OPENS_MARKUP[usize::from(byte)], "{byte}");
        }
    }
}
