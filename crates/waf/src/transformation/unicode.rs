//! UTF-8 made plain: `utf8toUnicode`.

use super::{Outcome, hex, rewrite::Rewrite, scan::first};

/// Writes each character beyond ASCII as `%u` and at least four lower-case hexadecimal digits.
///
/// ModSecurity's habits are kept: a lead byte whose character is not complete goes, unless it is
/// beyond any character's (0xF5 and above), and other stray bytes stay; behind a character in a
/// longer form than needed, and behind half of a surrogate pair, the lead byte follows; NUL goes,
/// unless it is the last byte (in version 2, then too).
pub(super) fn encode(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let mut rewrite = Rewrite::new(input, output);
    let mut at = 0;
    while let Some(found) = first(&input[at..], |byte| byte >= 0x80 || byte == 0) {
        at += found;
        // Text beyond ASCII comes in words.
        while let Some(&lead) = input.get(at).filter(|&&byte| byte >= 0x80 || byte == 0) {
            at = if lead == 0 {
                nul(input, at, &mut rewrite)
            } else {
                beyond_ascii(input, at, lead, &mut rewrite)
            };
        }
    }
    rewrite.finish()
}

/// Takes the NUL at `at` away if it is not the last byte; returns where to go on.
fn nul(input: &[u8], at: usize, rewrite: &mut Rewrite<'_>) -> usize {
    if at + 1 < input.len() {
        rewrite.replace(at, at + 1, b"");
    }
    at + 1
}

/// Writes the character that begins at `at` with `lead`; returns where to go on.
fn beyond_ascii(input: &[u8], at: usize, lead: u8, rewrite: &mut Rewrite<'_>) -> usize {
    let (length, bits) = match lead {
        0xc0..0xe0 => (2, lead & 0x1f),
        0xe0..0xf0 => (3, lead & 0x0f),
        0xf0..0xf8 => (4, lead & 0x07),
        _ => return at + 1,
    };
    let code = input
        .get(at + 1..at + length)
        .filter(|following| following.iter().all(|&byte| byte & 0xc0 == 0x80))
        .map(|following| {
            following.iter().fold(u32::from(bits), |code, &byte| code << 6 | u32::from(byte & 0x3f))
        });
    let beyond_any = lead >= 0xf5;
    let Some(code) = code else {
        if !beyond_any {
            rewrite.replace(at, at + 1, b"");
        }
        return at + 1;
    };
    let shortest = match code {
        0..0x80 => 1,
        0x80..0x800 => 2,
        0x800..0x1_0000 => 3,
        _ => 4,
    };
    let suspicions = usize::from(shortest < length) + usize::from(matches!(code, 0xd800..=0xdfff));
    if suspicions == 0 && length < 4 {
        // Nearly all text beyond ASCII.
        let [_, _, high, low] = code.to_be_bytes();
        let ([a, b], [c, d]) = (hex::digits(high), hex::digits(low));
        rewrite.replace(at, at + length, &[b'%', b'u', a, b, c, d]);
        return at + length;
    }
    // One lead byte may come before the escape and two may follow it.
    let mut text = [lead; 1 + ESCAPE_BYTES_MAX + 2];
    let start = usize::from(beyond_any);
    let end = start + escape(code, &mut text[start..]) + suspicions;
    rewrite.replace(at, at + length, &text[..end]);
    at + length
}

/// The `%u` and up to six digits: the bits of four bytes can be more than a character has.
const ESCAPE_BYTES_MAX: usize = 8;

/// Writes `%u` and the digits of `code`, at least four; returns how many bytes that are.
fn escape(code: u32, text: &mut [u8]) -> usize {
    let digits = match code {
        0..0x1_0000 => 4,
        0x1_0000..0x10_0000 => 5,
        _ => 6,
    };
    text[0] = b'%';
    text[1] = b'u';
    for (place, digit) in text[2..2 + digits].iter_mut().rev().enumerate() {
        *digit = hex::LOWER_DIGITS[(code >> (4 * place)) as usize & 15];
    }
    2 + digits
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::Utf8toUnicode;
    use super::super::tests::check;

    #[test]
    fn characters_beyond_ascii_become_escapes() {
        check(Utf8toUnicode, b"", b"");
        check(Utf8toUnicode, b"plain text\x7f", b"plain text\x7f");
        check(Utf8toUnicode, "aé".as_bytes(), b"a%u00e9");
        check(Utf8toUnicode, "＜b＞".as_bytes(), b"%uff1cb%uff1e");
        check(Utf8toUnicode, "日本".as_bytes(), b"%u65e5%u672c");
        check(Utf8toUnicode, "😀\u{10fffd}".as_bytes(), b"%u1f600%u10fffd");
    }

    #[test]
    fn incomplete_characters_lose_their_lead() {
        check(Utf8toUnicode, b"a\xc3", b"a");
        check(Utf8toUnicode, b"a\xc3b\xe2\x82c", b"ab\x82c");
        check(Utf8toUnicode, b"\xf0\x9f\x98", b"\x9f\x98");
        check(Utf8toUnicode, b"\xc3\xc3\xa9", b"%u00e9");
    }

    #[test]
    fn stray_bytes_stay() {
        check(Utf8toUnicode, b"\x80a\xbf", b"\x80a\xbf");
        check(Utf8toUnicode, b"\xf8\x88\xff", b"\xf8\x88\xff");
        check(Utf8toUnicode, b"\xf5a", b"\xf5a");
        check(Utf8toUnicode, b"\xf5\x80\x80\x80", b"\xf5%u140000");
    }

    #[test]
    fn suspicious_characters_keep_their_lead() {
        check(Utf8toUnicode, b"\xc0\xbc", b"%u003c\xc0");
        check(Utf8toUnicode, b"\xe0\x80\xbc", b"%u003c\xe0");
        check(Utf8toUnicode, b"\xf0\x80\x80\xbc", b"%u003c\xf0");
        check(Utf8toUnicode, b"\xed\xa0\x80", b"%ud800\xed");
        check(Utf8toUnicode, b"\xf0\x8d\xa0\x80", b"%ud800\xf0\xf0");
    }

    #[test]
    fn nul_goes_unless_it_is_last() {
        check(Utf8toUnicode, b"a\0b\0\0", b"ab\0");
        check(Utf8toUnicode, b"a\0", b"a\0");
    }
}
