//! Backslash escapes: `cssDecode`, `escapeSeqDecode` and `jsDecode`.
//!
//! Each escape becomes at most one byte and always fewer than it had, so a value that holds one that
//! counts is always changed.

use super::{
    Outcome, hex,
    rewrite::Rewrite,
    scan::{self, is_space},
};

/// What an escape stands for: how many bytes it has, the backslash too, and the byte it becomes, if
/// it becomes any.
struct Escape {
    length: usize,
    byte: Option<u8>,
}

impl Escape {
    fn of(length: usize, byte: u8) -> Self {
        Self { length, byte: Some(byte) }
    }

    fn vanishing(length: usize) -> Self {
        Self { length, byte: None }
    }
}

/// Decodes the escapes of CSS 2 (section 4.1.3), each to one byte: the lower one of the character,
/// full-width forms as their ASCII counterparts.
///
/// A backslash before a line feed vanishes with it, one at the end or before any other character
/// vanishes alone.
pub(super) fn decode_css(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    decode(input, output, |after| Some(css_escape(after)))
}

/// Decodes the escapes of ANSI C. A backslash before any other character vanishes; one at the end
/// stays.
pub(super) fn decode_ansi_c(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    decode(input, output, ansi_c_escape)
}

/// Decodes JavaScript's escapes, `\uXXXX` to the lower byte of the character, full-width forms as
/// their ASCII counterparts. A backslash before any other character vanishes; one at the end stays.
pub(super) fn decode_js(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    decode(input, output, js_escape)
}

/// Replaces each backslash and what belongs to it as `escape` says, which gets what follows the
/// backslash; none leaves it as it is.
#[inline]
fn decode(input: &[u8], output: &mut Vec<u8>, escape: impl Fn(&[u8]) -> Option<Escape>) -> Outcome {
    let mut rewrite = Rewrite::new(input, output);
    let mut at = 0;
    while let Some(start) = scan::next(input, at, b'\\') {
        let Some(Escape { length, byte }) = escape(&input[start + 1..]) else {
            at = start + 1;
            continue;
        };
        at = start + length;
        match byte {
            Some(byte) => rewrite.replace(start, at, &[byte]),
            None => rewrite.replace(start, at, b""),
        }
    }
    rewrite.finish()
}

/// The most hexadecimal digits of a CSS escape.
const CSS_DIGITS_MAX: usize = 6;

fn css_escape(after: &[u8]) -> Escape {
    let digits = after.iter().take(CSS_DIGITS_MAX).map_while(|&byte| hex::digit(byte));
    let (count, code) =
        digits.fold((0, 0_u32), |(count, code), digit| (count + 1, code << 4 | u32::from(digit)));
    if count > 0 {
        // One white space ends the escape and belongs to it.
        let space = usize::from(after.get(count).is_some_and(|&byte| is_space(byte)));
        return Escape::of(1 + count + space, narrowed(code));
    }
    match after {
        [] => Escape::vanishing(1),
        [b'\n', ..] => Escape::vanishing(2),
        [byte, ..] => Escape::of(2, *byte),
    }
}

/// The lower byte of the character `code`, of its ASCII counterpart if it is a full-width form.
fn narrowed(code: u32) -> u8 {
    let [_, _, _, low] = code.to_be_bytes();
    match code {
        0xff01..=0xff5e => low + 0x20,
        _ => low,
    }
}

fn ansi_c_escape(after: &[u8]) -> Option<Escape> {
    let &first = after.first()?;
    Some(match first {
        b'x' | b'X' if let Some(byte) = hex::pair(after, 1) => Escape::of(4, byte),
        b'0'..=b'7' => {
            let (count, code) = octal(after);
            let [_, byte] = code.to_be_bytes();
            Escape::of(1 + count, byte)
        }
        _ => Escape::of(2, control(first)),
    })
}

fn js_escape(after: &[u8]) -> Option<Escape> {
    let &first = after.first()?;
    Some(match first {
        b'u' if let (Some(high), Some(low)) = (hex::pair(after, 1), hex::pair(after, 3)) => {
            Escape::of(6, narrowed(u32::from_be_bytes([0, 0, high, low])))
        }
        b'x' if let Some(byte) = hex::pair(after, 1) => Escape::of(4, byte),
        b'0'..=b'7' => {
            // Three digits that do not fit in a byte are two and a character of text.
            let (count, code) = octal(after);
            let (length, code) = if code > 0xff { (count, code >> 3) } else { (1 + count, code) };
            let [_, byte] = code.to_be_bytes();
            Escape::of(length, byte)
        }
        _ => Escape::of(2, control(first)),
    })
}

/// How many of up to three octal digits there are, and their value.
fn octal(digits: &[u8]) -> (usize, u16) {
    digits
        .iter()
        .take(3)
        .take_while(|byte| matches!(byte, b'0'..=b'7'))
        .fold((0, 0), |(count, code), digit| (count + 1, code << 3 | u16::from(digit - b'0')))
}

/// What a letter means behind a backslash: a control character, or itself.
fn control(letter: u8) -> u8 {
    match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{CssDecode, EscapeSeqDecode, JsDecode};
    use super::super::tests::check;

    #[test]
    fn css_escapes_have_up_to_six_digits() {
        check(CssDecode, b"", b"");
        check(CssDecode, b"no escape", b"no escape");
        check(CssDecode, br"\a|\41|\141|\0041", b"\n|A|A|A");
        check(CssDecode, br"\00041|\000041|\0000411", b"A|A|A1");
        check(CssDecode, br"\12345|\123456", b"E|V");
    }

    #[test]
    fn css_escapes_of_full_width_forms_become_ascii() {
        check(CssDecode, br"\ff1c|\0FF1E|\00ff41", b"<|>|a");
        check(CssDecode, br"\ff00|\ff5f|\1ff1c|\10ff1c", b"\0|_|\x1c|\x1c");
    }

    #[test]
    fn css_escapes_swallow_one_white_space() {
        check(CssDecode, b"\\41 B\\43\t\tD", b"ABC\tD");
        check(CssDecode, b"j\\ava\\script\\:", b"j\nvascript:");
        check(CssDecode, b"a\\\nb\\", b"ab");
    }

    #[test]
    fn ansi_c_escapes() {
        check(EscapeSeqDecode, b"", b"");
        check(EscapeSeqDecode, br#"\a\b\f\n\r\t\v\\\?\'\"\z"#, b"\x07\x08\x0c\n\r\t\x0b\\?'\"z");
        check(EscapeSeqDecode, br"\x41\X4a\x4|\xg", b"AJx4|xg");
        check(EscapeSeqDecode, br"\0|\12|\101|\1011|\777|\8", b"\0|\n|A|A1|\xff|8");
        check(EscapeSeqDecode, b"end\\", b"end\\");
    }

    #[test]
    fn js_escapes() {
        check(JsDecode, b"", b"");
        check(JsDecode, br"\u0041\u2041\uFF21\uff1c", b"AAA<");
        check(JsDecode, br"\u004|\U0041|\u00g1", b"u004|U0041|u00g1");
        check(JsDecode, br"\x41\X41\x4", b"AX41x4");
        check(JsDecode, br"\0|\12|\101|\377|\400|\777|\8", b"\0|\n|A|\xff|\x200|\x3f7|8");
        check(JsDecode, br"\a\b\f\n\r\t\v\?\'", b"\x07\x08\x0c\n\r\t\x0b?'");
        check(JsDecode, b"end\\", b"end\\");
        check(JsDecode, br"\\u0041", br"\u0041");
    }
}
