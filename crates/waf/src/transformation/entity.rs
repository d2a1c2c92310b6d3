//! HTML's character references: `htmlEntityDecode`.

use super::{Outcome, rewrite::Rewrite, scan};

/// The names that are decoded, in any mixture of cases, and their bytes; the no-break space is that
/// of Latin-1.
const NAMES: [(&[u8], u8); 5] =
    [(b"quot", b'"'), (b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"nbsp", 0xa0)];
const NAME_BYTES_MAX: usize = 4;

/// Decodes numeric references to the lower byte of the character, and [`NAMES`]; the semicolon may
/// be missing. Other names stay as they are.
///
/// The releases of version 3 differ: some took no more than two hexadecimal or three decimal digits,
/// so that leading zeros hid a character (CVE-2025-27110), and took a name that only begins like one
/// of those for it. Here it is as in version 2: any number of digits, whole names.
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let mut rewrite = Rewrite::new(input, output);
    let mut at = 0;
    while let Some(start) = scan::next(input, at, b'&') {
        at = start + 1;
        let after = &input[at..];
        let reference = match after {
            [b'#', b'x' | b'X', digits @ ..] => number(digits, 16).map(|(n, byte)| (2 + n, byte)),
            [b'#', digits @ ..] => number(digits, 10).map(|(n, byte)| (1 + n, byte)),
            _ => name(after),
        };
        if let Some((length, byte)) = reference {
            let semicolon = usize::from(after.get(length) == Some(&b';'));
            at += length + semicolon;
            rewrite.replace(start, at, &[byte]);
        }
    }
    rewrite.finish()
}

/// How many digits of the base there are, and the lower byte of their value; none if there is none.
///
/// A value beyond 63 bits counts as the greatest of 63, as in C's `strtol`.
fn number(digits: &[u8], base: u32) -> Option<(usize, u8)> {
    let mut length = 0;
    let mut value = 0_i64;
    while let Some(digit) = digits.get(length).and_then(|&byte| char::from(byte).to_digit(base)) {
        value = value.saturating_mul(i64::from(base)).saturating_add(i64::from(digit));
        length += 1;
    }
    let [.., byte] = value.to_be_bytes();
    (length > 0).then_some((length, byte))
}

/// The length of the name and its byte, if all letters and digits up to the next other byte are one
/// of [`NAMES`].
fn name(after: &[u8]) -> Option<(usize, u8)> {
    let length = after
        .iter()
        .take(NAME_BYTES_MAX + 1)
        .take_while(|byte| byte.is_ascii_alphanumeric())
        .count();
    NAMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(&after[..length]))
        .map(|&(name, byte)| (name.len(), byte))
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::HtmlEntityDecode;
    use super::super::tests::check;

    #[test]
    fn decodes_numbers_with_and_without_semicolon() {
        check(HtmlEntityDecode, b"", b"");
        check(HtmlEntityDecode, b"&#65;&#66&#x43;&#X44", b"ABCD");
        check(HtmlEntityDecode, b"&#0;&#x00", b"\0\0");
        check(HtmlEntityDecode, b"&#65a&#x41;b", b"AaAb");
    }

    #[test]
    fn decodes_numbers_of_any_length_to_their_lower_byte() {
        check(HtmlEntityDecode, b"&#0000000060;&#x000000003c;", b"<<");
        check(HtmlEntityDecode, b"&#316;&#x13c;", b"<<");
        check(HtmlEntityDecode, b"&#99999999999999999999;&#x1000000000000000000;", b"\xff\xff");
    }

    #[test]
    fn decodes_five_names() {
        check(HtmlEntityDecode, b"&quot;&AMP;&lt;&Gt;&nbsp;", b"\"&<>\xa0");
        check(HtmlEntityDecode, b"&lt&gt|&amp", b"<>|&");
        check(HtmlEntityDecode, b"&lta;&quote;&eacute;", b"&lta;&quote;&eacute;");
    }

    #[test]
    fn leaves_what_is_no_reference() {
        check(HtmlEntityDecode, b"a & b && c &", b"a & b && c &");
        check(HtmlEntityDecode, b"&#;&#x;&#xg;&;&#", b"&#;&#x;&#xg;&;&#");
        check(HtmlEntityDecode, b"&#&#65;&#x&lt;", b"&#A&#x<");
    }

    #[test]
    fn decodes_once_only() {
        check(HtmlEntityDecode, b"&amp;lt;", b"&lt;");
    }
}
