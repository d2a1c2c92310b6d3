//! Transformations: each agrees with a plain one that looks at one byte after another, says that
//! nothing changed exactly when nothing did, and grows a value no more than it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_waf::pattern::Makeup;
use tidegate_waf::transformation::{Outcome, Transformation};

/// The longest result for an empty value: a digest.
const CONSTANT_BYTES: usize = 20;

fuzz_target!(|input: &[u8]| {
    let mut output = Vec::new();
    for &transformation in Transformation::ALL {
        output.clear();
        output.extend_from_slice(b"what was there before");
        let result = match transformation.apply(input, &mut output) {
            Outcome::Unchanged => input,
            Outcome::Written => {
                assert_ne!(output, input, "{transformation:?} wrote what it read");
                let changes = transformation.changes();
                assert!(Makeup::of(input).meets(changes), "{transformation:?} has more to change");
                output.as_slice()
            }
        };
        let longest = transformation.growth_max() * input.len() + CONSTANT_BYTES;
        assert!(result.len() <= longest, "{transformation:?} grows beyond its measure");
        if let Some(expected) = plain(transformation, input) {
            let shown = [result, &expected].map(|bytes| bytes.escape_ascii().to_string());
            assert_eq!(shown[0], shown[1], "{transformation:?} of {}", input.escape_ascii());
        }
    }
});

/// What `transformation` makes of `input`; none for digests.
fn plain(transformation: Transformation, input: &[u8]) -> Option<Vec<u8>> {
    use Transformation as T;
    let mapped = |map: fn(u8) -> u8| input.iter().map(|&byte| map(byte)).collect();
    let kept = |keep: fn(&u8) -> bool| input.iter().copied().filter(keep).collect();
    Some(match transformation {
        T::Md5 | T::Sha1 => return None,
        T::Length => input.len().to_string().into_bytes(),
        T::Lowercase => mapped(|byte| byte.to_ascii_lowercase()),
        T::Uppercase => mapped(|byte| byte.to_ascii_uppercase()),
        T::ParityZero7bit => mapped(|byte| byte & 0x7f),
        T::ParityEven7bit => mapped(|byte| byte & 0x7f | (byte.count_ones() as u8 & 1) << 7),
        T::ParityOdd7bit => mapped(|byte| byte & 0x7f | (!byte.count_ones() as u8 & 1) << 7),
        T::ReplaceNulls => mapped(|byte| if byte == 0 { b' ' } else { byte }),
        T::RemoveNulls => kept(|&byte| byte != 0),
        T::Trim => trim(input, true, true),
        T::TrimLeft => trim(input, true, false),
        T::TrimRight => trim(input, false, true),
        T::HexEncode => input.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
        T::HexDecode => input.chunks_exact(2).map(|pair| lenient(pair)).collect(),
        T::Base64Encode => base64_encode(input),
        T::Base64Decode => base64_decode(input, true),
        T::Base64DecodeExt => base64_decode(input, false),
        T::NormalizePath => path(input),
        T::NormalizePathWin => {
            let slashed: Vec<u8> =
                input.iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect();
            path(&slashed)
        }
        T::CmdLine => command_line(input),
        T::CompressWhitespace => compress(input),
        T::RemoveComments => remove_comments(input),
        T::RemoveWhitespace => stepwise(input, |rest| match rest {
            [0xc2, 0xa0, ..] => (2, vec![]),
            [byte, ..] if is_space(*byte) || *byte == 0xa0 => (1, vec![]),
            _ => (1, vec![rest[0]]),
        }),
        T::RemoveCommentsChar => stepwise(input, |rest| {
            let marks: [&[u8]; 6] = [b"/*", b"*/", b"<!--", b"-->", b"--", b"#"];
            match marks.iter().find(|mark| rest.starts_with(mark)) {
                Some(mark) => (mark.len(), vec![]),
                None => (1, vec![rest[0]]),
            }
        }),
        T::ReplaceComments => stepwise(input, |rest| {
            if !rest.starts_with(b"/*") {
                return (1, vec![rest[0]]);
            }
            let end = rest[2..].windows(2).position(|pair| pair == b"*/");
            (end.map_or(rest.len(), |end| end + 4), vec![b' '])
        }),
        T::UrlEncode => stepwise(input, |rest| match rest[0] {
            b' ' => (1, vec![b'+']),
            byte if byte.is_ascii_alphanumeric() || byte == b'*' => (1, vec![byte]),
            byte => (1, format!("%{byte:02x}").into_bytes()),
        }),
        T::UrlDecode => stepwise(input, |rest| url_escape(rest, false)),
        T::UrlDecodeUni => stepwise(input, |rest| url_escape(rest, true)),
        T::SqlHexDecode => stepwise(input, |rest| match rest {
            [b'0', b'x' | b'X', digits @ ..] if number(digits, 2, 16).is_some() => {
                let bytes: Vec<u8> =
                    digits.chunks_exact(2).map_while(|pair| number(pair, 2, 16)).collect();
                (2 + 2 * bytes.len(), bytes)
            }
            _ => (1, vec![rest[0]]),
        }),
        T::HtmlEntityDecode => stepwise(input, html_reference),
        T::CssDecode => stepwise(input, css_escape),
        T::JsDecode => stepwise(input, js_escape),
        T::EscapeSeqDecode => stepwise(input, ansi_c_escape),
        T::Utf8toUnicode => stepwise(input, utf8_character),
    })
}

/// Takes off the front what `step` says and puts in its place what it gives, until nothing is left.
fn stepwise(input: &[u8], step: impl Fn(&[u8]) -> (usize, Vec<u8>)) -> Vec<u8> {
    let mut output = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        let (length, bytes) = step(rest);
        output.extend(bytes);
        rest = &rest[length..];
    }
    output
}

fn is_space(byte: u8) -> bool {
    b" \t\n\x0b\x0c\r".contains(&byte)
}

/// The lower byte of the number that the first `count` digits are.
fn number(digits: &[u8], count: usize, base: u32) -> Option<u8> {
    let digits = digits.get(..count)?;
    let value = digits.iter().try_fold(0_i64, |value, &digit| {
        let digit = i64::from(char::from(digit).to_digit(base)?);
        Some(value.saturating_mul(base.into()).saturating_add(digit))
    })?;
    (count > 0).then_some(value as u8)
}

/// How many of the first `most` bytes are digits.
fn digit_count(text: &[u8], most: usize, base: u32) -> usize {
    text.iter().take(most).take_while(|&&byte| char::from(byte).is_digit(base)).count()
}

fn lenient(pair: &[u8]) -> u8 {
    let value = |byte: u8| match byte {
        0x41.. => (byte & 0xdf).wrapping_sub(0x41).wrapping_add(10),
        _ => byte.wrapping_sub(0x30),
    };
    value(pair[0]).wrapping_mul(16).wrapping_add(value(pair[1]))
}

fn trim(input: &[u8], left: bool, right: bool) -> Vec<u8> {
    let mut bytes = input.to_vec();
    while right && bytes.last().is_some_and(|&byte| is_space(byte)) {
        bytes.pop();
    }
    while left && bytes.first().is_some_and(|&byte| is_space(byte)) {
        bytes.remove(0);
    }
    bytes
}

const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_encode(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    for group in input.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| {
            bits << 8 | usize::from(group.get(at).copied().unwrap_or_default())
        });
        for digit in 0..4 {
            let byte = BASE64[bits >> (18 - 6 * digit) & 63];
            output.push(if digit <= group.len() { byte } else { b'=' });
        }
    }
    output
}

fn base64_decode(input: &[u8], strict: bool) -> Vec<u8> {
    let mut bits = Vec::new();
    for byte in input {
        match BASE64.iter().position(|digit| digit == byte) {
            Some(value) => bits.extend((0..6).rev().map(|bit| value >> bit & 1)),
            None if strict && !b"\r\n".contains(byte) => break,
            None => {}
        }
    }
    let byte = |bits: &[usize]| bits.iter().fold(0, |byte, bit| byte << 1 | bit) as u8;
    bits.chunks_exact(8).map(byte).collect()
}

fn path(input: &[u8]) -> Vec<u8> {
    let absolute = input.first() == Some(&b'/');
    let mut outside = false;
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in input.split(|&byte| byte == b'/') {
        let written = usize::from(absolute) + kept.iter().map(|kept| kept.len() + 1).sum::<usize>();
        if segment.is_empty() || segment == b"." {
            continue;
        }
        if let Some(before) = segment.strip_suffix(b"..") {
            if !absolute && (outside || written + before.len() <= 1) {
                outside = true;
                kept.push(segment);
                continue;
            }
            if before.is_empty() {
                kept.pop();
            }
            outside |= kept.is_empty();
        } else {
            outside &= segment.ends_with(b".") || (written == 0 && segment.len() == 1);
            kept.push(segment);
        }
    }
    let mut output = if absolute { b"/".to_vec() } else { Vec::new() };
    output.extend(kept.join(&b'/'));
    match (input.ends_with(b"/"), output.ends_with(b"/")) {
        (true, false) if !output.is_empty() => output.push(b'/'),
        (false, true) => output.truncate(output.len() - 1),
        _ => {}
    }
    output
}

fn command_line(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    for &byte in input {
        match byte {
            b'"' | b'\'' | b'\\' | b'^' => {}
            b' ' | b',' | b';' | b'\t' | b'\r' | b'\n' => {
                if output.last() != Some(&b' ') {
                    output.push(b' ');
                }
            }
            b'/' | b'(' => {
                if output.last() == Some(&b' ') {
                    output.pop();
                }
                output.push(byte);
            }
            _ => output.push(byte.to_ascii_lowercase()),
        }
    }
    output
}

fn compress(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut in_space = false;
    for &byte in input {
        let space = is_space(byte) || byte == 0xa0;
        if !space {
            output.push(byte);
        } else if !in_space {
            output.push(b' ');
        }
        in_space = space;
    }
    output
}

fn remove_comments(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let rest = &input[at..];
        let inside = match rest {
            [b'/', b'*', ..] => 2,
            [b'<', b'!', b'-', b'-', ..] => 4,
            [b'-', b'-', ..] | [b'#', ..] => break,
            _ => {
                output.push(rest[0]);
                at += 1;
                continue;
            }
        };
        let ends = |at: &usize| rest[*at..].starts_with(b"*/") || rest[*at..].starts_with(b"-->");
        let Some(end) = (inside..rest.len()).find(ends) else {
            output.push(b' ');
            break;
        };
        at += end + if rest[end] == b'*' { 2 } else { 3 };
        output.push(input.get(at).copied().unwrap_or_default());
        at += 1;
    }
    output
}

fn url_escape(rest: &[u8], unicode: bool) -> (usize, Vec<u8>) {
    match rest {
        [b'+', ..] => (1, vec![b' ']),
        [b'%', b'u' | b'U', digits @ ..] if unicode && number(digits, 4, 16).is_some() => {
            let code = |at| u16::from(number(&digits[at..], 2, 16).unwrap_or_default());
            let code = code(0) << 8 | code(2);
            let [_, low] = code.to_be_bytes();
            let fit = match code {
                0xff01..=0xff5e => low + 0x20,
                // The best fits of other characters have their own tests.
                0xa0..0x200 | 0x261..0x340 | 0x2000..0x2123 => {
                    let mut output = Vec::new();
                    let _ = Transformation::UrlDecodeUni.apply(&rest[..6], &mut output);
                    output[0]
                }
                _ => low,
            };
            (6, vec![fit])
        }
        [b'%', digits @ ..] if number(digits, 2, 16).is_some() => {
            (3, number(digits, 2, 16).into_iter().collect())
        }
        _ => (1, vec![rest[0]]),
    }
}

fn html_reference(rest: &[u8]) -> (usize, Vec<u8>) {
    let numeric = |start: usize, base| {
        let count = digit_count(&rest[start..], usize::MAX, base);
        Some((start + count, number(&rest[start..], count, base)?))
    };
    let found = match rest {
        [b'&', b'#', b'x' | b'X', ..] => numeric(3, 16),
        [b'&', b'#', ..] => numeric(2, 10),
        [b'&', after @ ..] => {
            let length = after.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let byte = match after[..length].to_ascii_lowercase().as_slice() {
                b"quot" => Some(b'"'),
                b"amp" => Some(b'&'),
                b"lt" => Some(b'<'),
                b"gt" => Some(b'>'),
                b"nbsp" => Some(0xa0),
                _ => None,
            };
            byte.map(|byte| (1 + length, byte))
        }
        _ => None,
    };
    match found {
        Some((end, byte)) => (end + usize::from(rest.get(end) == Some(&b';')), vec![byte]),
        None => (1, vec![rest[0]]),
    }
}

/// What a full-width form is in ASCII, if the digits before its last two are `ff`, zeros before them.
fn narrowed(byte: u8, before: &[u8]) -> u8 {
    let digits = before.to_ascii_lowercase();
    match digits.strip_suffix(b"ff") {
        Some(zeros) if (1..=0x5e).contains(&byte) && zeros.iter().all(|&zero| zero == b'0') => {
            byte + 0x20
        }
        _ => byte,
    }
}

fn css_escape(rest: &[u8]) -> (usize, Vec<u8>) {
    let [b'\\', after @ ..] = rest else { return (1, vec![rest[0]]) };
    match digit_count(after, 6, 16) {
        0 => match after {
            [] => (1, vec![]),
            [b'\n', ..] => (2, vec![]),
            [byte, ..] => (2, vec![*byte]),
        },
        count => {
            let byte = number(after, count, 16).expect("there are digits");
            let space = after.get(count).is_some_and(|&byte| is_space(byte));
            let byte = narrowed(byte, &after[..count.saturating_sub(2)]);
            (1 + count + usize::from(space), vec![byte])
        }
    }
}

fn letter(letter: u8) -> u8 {
    let (from, to) = (b"abfnrtv", b"\x07\x08\x0c\n\r\t\x0b");
    from.iter().position(|&from| from == letter).map_or(letter, |at| to[at])
}

fn js_escape(rest: &[u8]) -> (usize, Vec<u8>) {
    let [b'\\', after @ ..] = rest else { return (1, vec![rest[0]]) };
    match after {
        [] => (1, vec![b'\\']),
        [b'u', digits @ ..] if number(digits, 4, 16).is_some() => {
            let byte = number(&digits[2..], 2, 16).expect("there are digits");
            (6, vec![narrowed(byte, &digits[..2])])
        }
        [b'x', digits @ ..] if number(digits, 2, 16).is_some() => {
            (4, number(digits, 2, 16).into_iter().collect())
        }
        [b'0'..=b'7', ..] => {
            let most = if after[0] > b'3' { 2 } else { 3 };
            let count = digit_count(after, most, 8);
            (1 + count, number(after, count, 8).into_iter().collect())
        }
        [byte, ..] => (2, vec![letter(*byte)]),
    }
}

fn ansi_c_escape(rest: &[u8]) -> (usize, Vec<u8>) {
    let [b'\\', after @ ..] = rest else { return (1, vec![rest[0]]) };
    match after {
        [] => (1, vec![b'\\']),
        [b'x' | b'X', digits @ ..] if number(digits, 2, 16).is_some() => {
            (4, number(digits, 2, 16).into_iter().collect())
        }
        [b'0'..=b'7', ..] => {
            let count = digit_count(after, 3, 8);
            (1 + count, number(after, count, 8).into_iter().collect())
        }
        [byte, ..] => (2, vec![letter(*byte)]),
    }
}

fn utf8_character(rest: &[u8]) -> (usize, Vec<u8>) {
    let lead = rest[0];
    let length = match lead.leading_ones() {
        0 if lead == 0 && rest.len() > 1 => return (1, vec![]),
        length @ 2..=4 => length as usize,
        _ => return (1, vec![lead]),
    };
    let mut output = if lead >= 0xf5 { vec![lead] } else { vec![] };
    let complete = rest.len() >= length && rest[1..length].iter().all(|byte| byte >> 6 == 0b10);
    if !complete {
        return (1, output);
    }
    let bits: String = rest[1..length].iter().map(|byte| format!("{:06b}", byte & 63)).collect();
    let bits = format!("{:b}{bits}", lead & (0x7f >> length));
    let code = u32::from_str_radix(&bits, 2).expect("bits");
    output.extend(format!("%u{code:04x}").bytes());
    if (0xd800..=0xdfff).contains(&code) {
        output.push(lead);
    }
    if code < [0x80, 0x800, 0x1_0000][length - 2] {
        output.push(lead);
    }
    (length, output)
}
