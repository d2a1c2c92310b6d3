//! Numbers and the three words.

/// Whether a byte can be part of a number or word.
pub(super) fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// The value of a number or word as an argument, or none if it is neither.
pub(super) fn value(text: &[u8]) -> Option<&[u8]> {
    match text {
        b"true" | b"false" => Some(text),
        b"null" => Some(&[]),
        number => is_number(number).then_some(number),
    }
}

/// RFC 8259 section 6.
fn is_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let Some(rest) = digits(text) else { return false };
    if text[0] == b'0' && text.len() - rest.len() > 1 {
        return false;
    }
    let rest = match rest.strip_prefix(b".") {
        Some(fraction) => match digits(fraction) {
            Some(rest) => rest,
            None => return false,
        },
        None => rest,
    };
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            digits(exponent).is_some_and(<[u8]>::is_empty)
        }
        _ => false,
    }
}

/// What follows the digits, of which there must be one.
fn digits(text: &[u8]) -> Option<&[u8]> {
    let len = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    (len > 0).then(|| &text[len..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words() {
        for good in [
            "0",
            "-0",
            "7",
            "10",
            "-12.50",
            "0.1",
            "1e5",
            "1E+5",
            "1.5e-10",
            "123456789012345678901",
        ] {
            assert_eq!(value(good.as_bytes()), Some(good.as_bytes()), "{good}");
        }
        assert_eq!(value(b"true"), Some(&b"true"[..]));
        assert_eq!(value(b"false"), Some(&b"false"[..]));
        assert_eq!(value(b"null"), Some(&b""[..]));
        for bad in [
            "", "-", "+1", "01", "-01", ".5", "1.", "1.e5", "1e", "1e+", "1e5.5", "--1", "0x10",
            "NaN", "Infinity", "True", "nul", "nulll", "1a",
        ] {
            assert_eq!(value(bad.as_bytes()), None, "{bad}");
        }
    }
}
