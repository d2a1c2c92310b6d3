//! Escaping: no byte that a client sends can end a line, a quote or a JSON string.
//!
//! Most text is plain, so each function first looks over the whole of it without branching (which
//! the compiler turns into vector instructions) and then copies it in one piece.

use super::number::hex;

/// The longest text that one field of a line takes over; what is longer is cut there.
pub(super) const TEXT_BYTES_MAX: usize = 8192;

/// Whether every byte is printable ASCII other than the quote and the backslash.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "without branches the loop becomes vectors")]
fn is_plain(text: &[u8]) -> bool {
    let special = |byte: u8| !(0x20..=0x7e).contains(&byte) | (byte == b'"') | (byte == b'\\');
    !text.iter().fold(false, |found, byte| found | special(*byte))
}

#[inline]
fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(TEXT_BYTES_MAX)]
}

/// Text in a line of plain text, as Apache writes it: quotes and backslashes get a backslash,
/// control bytes their letter in C or `\xhh`, and so does everything beyond ASCII.
#[inline]
pub(super) fn text(out: &mut Vec<u8>, text: &[u8]) {
    let text = cut(text);
    if is_plain(text) {
        out.extend_from_slice(text);
    } else {
        text_special(out, text);
    }
}

#[cold]
fn text_special(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0b => out.extend_from_slice(b"\\v"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0x20..=0x7e => out.push(byte),
            _ => {
                let [high, low] = hex(byte);
                out.extend_from_slice(&[b'\\', b'x', high, low]);
            }
        }
    }
}

/// The inside of a JSON string (RFC 8259, section 7). Bytes that are no UTF-8 become U+FFFD;
/// characters that could end a line or turn a terminal's text around are written as `\uXXXX`.
#[inline]
pub(super) fn json(out: &mut Vec<u8>, text: &[u8]) {
    let text = cut(text);
    if is_plain(text) {
        out.extend_from_slice(text);
    } else {
        json_special(out, text);
    }
}

#[cold]
fn json_special(out: &mut Vec<u8>, text: &[u8]) {
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                char if is_treacherous(char) => {
                    // All of these lie in the basic plane: four digits.
                    let [_, _, high, low] = u32::from(char).to_be_bytes();
                    out.extend_from_slice(b"\\u");
                    out.extend_from_slice([hex(high), hex(low)].as_flattened());
                }
                char => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Controls (C0, DEL and C1), line and paragraph separators, and marks of direction.
const fn is_treacherous(char: char) -> bool {
    matches!(
        char,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_text(input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        text(&mut out, input);
        out
    }

    fn in_json(input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        json(&mut out, input);
        out
    }

    #[test]
    fn text_is_escaped_as_apache_does() {
        let check = |input: &[u8], expected: &str| {
            assert_eq!(in_text(input), expected.as_bytes(), "{input:?}");
        };
        check(b"", "");
        check(b"Mozilla/5.0 (X11; Linux)", "Mozilla/5.0 (X11; Linux)");
        check(b"a\"b\\c", r#"a\"b\\c"#);
        check(b"a\r\n127.0.0.1 - - forged", r"a\r\n127.0.0.1 - - forged");
        check(b"\x00\x08\t\x0b\x1b[31m\x7f", r"\x00\b\t\v\x1b[31m\x7f");
        check("é".as_bytes(), r"\xc3\xa9");
        check(b"\xff\xfe", r"\xff\xfe");
    }

    #[test]
    fn json_is_escaped_for_readers_and_terminals() {
        let check = |input: &[u8], expected: &str| {
            assert_eq!(in_json(input), expected.as_bytes(), "{input:?}");
        };
        check(b"", "");
        check(b"/a/b?c=d", "/a/b?c=d");
        check(b"a\"b\\c", r#"a\"b\\c"#);
        check(b"\"}\n{\"forged\":\"", r#"\"}\n{\"forged\":\""#);
        check(b"\x00\x08\t\x1b[31m\x7f", r"\u0000\u0008\t\u001b[31m\u007f");
        check("zażółć 水 🌊".as_bytes(), "zażółć 水 🌊");
        check("a\u{2028}b\u{202e}c\u{9b}".as_bytes(), r"a\u2028b\u202ec\u009b");
        check(b"a\xffb\xc3", "a\u{fffd}b\u{fffd}");
        check(b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}");
    }

    /// All bytes, alone, in pairs with all others, and at every place around a long plain text.
    #[test]
    fn nothing_gets_out_of_its_place() {
        let harmless = |out: &[u8]| {
            let mut bytes = out.iter();
            while let Some(byte) = bytes.next() {
                assert!(*byte >= 0x20 && *byte != 0x7f && *byte != b'"', "{out:?}");
                if *byte == b'\\' {
                    assert!(bytes.next().is_some(), "{out:?} ends in a backslash");
                }
            }
        };
        for first in 0..=255 {
            for second in 0..=255 {
                let input = [first, second];
                harmless(&in_text(&input));
                let json = in_json(&input);
                harmless(&json);
                assert!(std::str::from_utf8(&json).is_ok(), "{input:?}");
            }
            for length in 0..70 {
                let mut input = vec![b'a'; length];
                input.push(first);
                input.resize(80, b'z');
                harmless(&in_text(&input));
                harmless(&in_json(&input));
            }
        }
    }

    #[test]
    fn text_has_a_limit() {
        assert_eq!(in_text(&[b'a'; TEXT_BYTES_MAX + 1]).len(), TEXT_BYTES_MAX);
        let mut long = vec![b'a'; TEXT_BYTES_MAX - 1];
        long.extend("é".bytes());
        assert!(in_json(&long).ends_with("a\u{fffd}".as_bytes()), "cut within a character");
    }
}
