//! URL encoding: `urlDecode`, `urlDecodeUni` and `urlEncode`.

use super::{Outcome, best_fit, hex, rewrite::Rewrite, scan};

/// Which escapes a decoder knows beside `%41` and `+`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// None.
    Standard,
    /// IIS's `%u0041`.
    Unicode,
}

/// Decodes `%41` and `+`; what is no valid escape stays as it is.
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    decode_with(Escapes::Standard, input, output)
}

/// Decodes `%41`, `+` and `%u0041`; what is no valid escape stays as it is.
///
/// A `%u` escape becomes one byte: its best fit in ASCII, or else its lower byte. A rule set may name
/// another code page with `SecUnicodeMapFile`; the one that the recommended configuration names,
/// 20127, is always used.
pub(super) fn decode_unicode(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    decode_with(Escapes::Unicode, input, output)
}

#[inline]
fn decode_with(escapes: Escapes, input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let mut rewrite = Rewrite::new(input, output);
    let mut at = 0;
    while let Some(start) = scan::next_of(input, at, b'%', b'+') {
        let (byte, length) = if input[start] == b'+' {
            (b' ', 1)
        } else if let Some(byte) = hex::pair(input, start + 1) {
            (byte, 3)
        } else if escapes == Escapes::Unicode
            && let Some(byte) = unicode_escape(input, start + 1)
        {
            (byte, 6)
        } else {
            at = start + 1;
            continue;
        };
        at = start + length;
        rewrite.replace(start, at, &[byte]);
    }
    rewrite.finish()
}

/// What `u0041` at `at` stands for.
fn unicode_escape(input: &[u8], at: usize) -> Option<u8> {
    if !matches!(input.get(at), Some(b'u' | b'U')) {
        return None;
    }
    let high = hex::pair(input, at + 1)?;
    let low = hex::pair(input, at + 3)?;
    Some(best_fit::ascii(u16::from_be_bytes([high, low])))
}

/// Encodes every byte but letters, digits and `*` as `%41`, with lower-case digits, and the space as
/// `+`.
pub(super) fn encode(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let mut rewrite = Rewrite::new(input, output);
    for (at, &byte) in input.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' => {}
            b' ' => rewrite.replace(at, at + 1, b"+"),
            _ => {
                let [high, low] = hex::digits(byte);
                rewrite.replace(at, at + 1, &[b'%', high, low]);
            }
        }
    }
    rewrite.finish()
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{UrlDecode, UrlDecodeUni, UrlEncode};
    use super::super::tests::check;

    #[test]
    fn decodes_what_is_an_escape() {
        for decoder in [UrlDecode, UrlDecodeUni] {
            check(decoder, b"", b"");
            check(decoder, b"plain text", b"plain text");
            check(decoder, b"a+b%20c%2Bd", b"a b c+d");
            check(decoder, b"%41%4a%4A%00%ff", b"AJJ\0\xff");
        }
    }

    #[test]
    fn leaves_what_is_no_escape() {
        for decoder in [UrlDecode, UrlDecodeUni] {
            check(decoder, b"100%", b"100%");
            check(decoder, b"%4", b"%4");
            check(decoder, b"%zz%4g", b"%zz%4g");
            check(decoder, b"%%41", b"%A");
            check(decoder, b"%4%41", b"%4A");
            check(decoder, b"%u%41", b"%uA");
            check(decoder, b"%u004", b"%u004");
            check(decoder, b"%u00g1+", b"%u00g1 ");
        }
    }

    #[test]
    fn decodes_once_only() {
        check(UrlDecode, b"%2541", b"%41");
        check(UrlDecodeUni, b"%25u0041", b"%u0041");
    }

    #[test]
    fn unicode_escapes_fit_ascii_as_best_they_can() {
        check(UrlDecode, b"%u0041", b"%u0041");
        check(UrlDecodeUni, b"%u0041%U0041", b"AA");
        check(UrlDecodeUni, b"%uff1cscript%uFF1E", b"<script>");
        check(UrlDecodeUni, b"%u2018 or %u02b9", b"' or '");
        check(UrlDecodeUni, b"%u00e4%u0142", b"al");
        check(UrlDecodeUni, b"%u0441", b"A");
    }

    #[test]
    fn encodes_all_but_letters_digits_and_the_star() {
        check(UrlEncode, b"", b"");
        check(UrlEncode, b"azAZ09*", b"azAZ09*");
        check(UrlEncode, b"a b+/.-_~\0\xff", b"a+b%2b%2f%2e%2d%5f%7e%00%ff");
    }
}
