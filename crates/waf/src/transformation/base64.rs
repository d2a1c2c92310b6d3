//! Base64: `base64Decode`, `base64DecodeExt` and `base64Encode`.

use super::Outcome;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of each byte as a digit of the alphabet; [`FOREIGN`] for the others, the padding too.
const DIGIT_VALUE: [u8; 256] = {
    let mut values = [FOREIGN; 256];
    let mut value = 0_u8;
    while value < 64 {
        values[ALPHABET[value as usize] as usize] = value;
        value += 1;
    }
    values
};
const FOREIGN: u8 = 0xff;

/// What a decoder does with a byte that is not of the alphabet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Foreign {
    /// It ends there with what it has.
    Ends,
    /// It goes on with the next.
    IsSkipped,
}

/// Decodes up to the first byte that is not of the alphabet; line breaks are skipped.
///
/// Version 2 of ModSecurity gives the beginning that can be decoded, version 3 an empty value when
/// any byte is foreign; here it is the beginning, which hides nothing from the rules. Version 3 skips
/// line breaks, version 2 ends at them; they are skipped.
pub(super) fn decode(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    decode_with(Foreign::Ends, input, output)
}

/// Decodes and skips every byte that is not of the alphabet.
///
/// Padding is skipped too, wherever it stands. ModSecurity gives an empty value when padding, or
/// the digit `9` at the end, follows a single digit: two bytes appended to an attack would hide it.
pub(super) fn decode_lenient(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    decode_with(Foreign::IsSkipped, input, output)
}

fn decode_with(foreign: Foreign, input: &[u8], output: &mut Vec<u8>) -> Outcome {
    output.reserve(input.len() / 4 * 3 + 3);
    let mut rest = input;
    // The digits of a group that is not complete, and how many there are.
    let mut pending = 0_u32;
    let mut count = 0;
    loop {
        if count == 0 {
            rest = decode_groups(rest, output);
        }
        let Some((&byte, after)) = rest.split_first() else {
            break;
        };
        rest = after;
        match DIGIT_VALUE[usize::from(byte)] {
            FOREIGN if foreign == Foreign::Ends && !matches!(byte, b'\r' | b'\n') => break,
            FOREIGN => {}
            value => {
                pending = pending << 6 | u32::from(value);
                count += 1;
                if count == 4 {
                    let [_, group @ ..] = pending.to_be_bytes();
                    output.extend_from_slice(&group);
                    (pending, count) = (0, 0);
                }
            }
        }
    }
    // Two digits make one byte, three make two; one alone makes none.
    if count >= 2 {
        let [_, group @ ..] = (pending << (6 * (4 - count))).to_be_bytes();
        output.extend_from_slice(&group[..count - 1]);
    }
    // Each byte takes more than one digit, so the result is shorter than the input.
    if input.is_empty() { Outcome::Unchanged } else { Outcome::Written }
}

/// Decodes groups of four digits while there is nothing else, and returns what follows them.
fn decode_groups<'a>(input: &'a [u8], output: &mut Vec<u8>) -> &'a [u8] {
    let mut rest = input;
    while let Some((&group, after)) = rest.split_first_chunk::<4>() {
        let [a, b, c, d] = group.map(|byte| DIGIT_VALUE[usize::from(byte)]);
        if (a | b | c | d) == FOREIGN {
            break;
        }
        output.extend_from_slice(&[a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]);
        rest = after;
    }
    rest
}

/// Encodes with padding, on one line.
pub(super) fn encode(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    if input.is_empty() {
        return Outcome::Unchanged;
    }
    output.reserve(input.len().div_ceil(3) * 4);
    let letter = |bits: u8| ALPHABET[usize::from(bits & 0x3f)];
    let (groups, rest) = input.as_chunks::<3>();
    for &[a, b, c] in groups {
        output.extend_from_slice(&[
            letter(a >> 2),
            letter(a << 4 | b >> 4),
            letter(b << 2 | c >> 6),
            letter(c),
        ]);
    }
    match *rest {
        [a] => output.extend_from_slice(&[letter(a >> 2), letter(a << 4), b'=', b'=']),
        [a, b] => output.extend_from_slice(&[
            letter(a >> 2),
            letter(a << 4 | b >> 4),
            letter(b << 2),
            b'=',
        ]),
        _ => {}
    }
    Outcome::Written
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{Base64Decode, Base64DecodeExt, Base64Encode};
    use super::super::tests::check;

    const PAIRS: &[(&[u8], &[u8])] = &[
        (b"", b""),
        (b"t", b"dA=="),
        (b"ti", b"dGk="),
        (b"tid", b"dGlk"),
        (b"tide", b"dGlkZQ=="),
        (b"tidegate", b"dGlkZWdhdGU="),
        (b"\0\xff\xfe\x80", b"AP/+gA=="),
    ];

    #[test]
    fn encodes_with_padding() {
        for &(plain, encoded) in PAIRS {
            check(Base64Encode, plain, encoded);
        }
    }

    #[test]
    fn decodes_with_and_without_padding() {
        for decoder in [Base64Decode, Base64DecodeExt] {
            for &(plain, encoded) in PAIRS {
                check(decoder, encoded, plain);
            }
            check(decoder, b"dGlkZQ", b"tide");
            check(decoder, b"dGlkZWdhdGU", b"tidegate");
            check(decoder, b"dGlkZ", b"tid");
            check(decoder, b"dGlk\r\nZWdh\ndGU=", b"tidegate");
        }
    }

    #[test]
    fn the_strict_decoder_ends_at_a_foreign_byte() {
        check(Base64Decode, b"dGlk.ZWdh", b"tid");
        check(Base64Decode, b"dGlk ZWdh", b"tid");
        check(Base64Decode, b"dGlkZQ==dGlk", b"tide");
        check(Base64Decode, b"dG\xc3\xa4k", b"t");
        check(Base64Decode, b"<dGlk", b"");
    }

    #[test]
    fn the_lenient_decoder_goes_on() {
        check(Base64DecodeExt, b"d.G-l_k Z\0Wdh", b"tidega");
        // The digits behind the padding continue the group before it.
        check(Base64DecodeExt, b"dGlkZQ==dGlk", b"tide\x07F\x96");
        check(Base64DecodeExt, b"<>", b"");
    }

    #[test]
    fn nothing_appended_hides_what_came_before() {
        check(Base64DecodeExt, b"dGlk9", b"tid");
        check(Base64DecodeExt, b"dGlkA=", b"tid");
    }
}
