//! Values masked in place: as long as they were, and each character of the class it had.

/// What stands for letters, large letters and digits. None of them begins an escape or a number in
/// hexadecimal, and no word is made of them.
const LOWER: u8 = b'x';
const UPPER: u8 = b'X';
const DIGIT: u8 = b'9';

/// Masks text as it is.
pub fn mask(value: &mut [u8]) {
    let mut units: Vec<Unit> = value
        .iter()
        .enumerate()
        .map(|(at, byte)| Unit { at, byte: *byte, escape: Escape::None })
        .collect();
    mask_units(&mut units);
    write(&units, value);
}

/// Masks text with `%XX` and `%uXXXX` in it; escapes stay escapes.
pub fn mask_escaped(value: &mut [u8]) {
    let mut units = Vec::with_capacity(value.len());
    let mut at = 0;
    while at < value.len() {
        let rest = &value[at..];
        let unit = match rest {
            [b'%', b'u' | b'U', ..] => number(rest, 2, 4).map(|code| (code, Escape::Percent(2, 4))),
            [b'%', ..] => number(rest, 1, 2).map(|code| (code, Escape::Percent(1, 2))),
            _ => None,
        };
        let (byte, escape) = match unit {
            Some((code, escape)) => (one_byte(code), escape),
            None => (rest[0], Escape::None),
        };
        units.push(Unit { at, byte, escape });
        at += escape.bytes();
    }
    mask_units(&mut units);
    write(&units, value);
}

/// Masks the inside of a JSON string; escapes stay escapes.
pub(super) fn mask_json(value: &mut [u8]) {
    let mut units = Vec::with_capacity(value.len());
    let mut at = 0;
    while at < value.len() {
        let rest = &value[at..];
        let (byte, escape) = match rest {
            [b'\\', b'u', ..] => match number(rest, 2, 4) {
                Some(code) => (one_byte(code), Escape::Percent(2, 4)),
                None => (b'\\', Escape::None),
            },
            // A letter behind a backslash is no letter.
            [b'\\', _, ..] => (b'\\', Escape::Pair),
            _ => (rest[0], Escape::None),
        };
        units.push(Unit { at, byte, escape });
        at += escape.bytes();
    }
    mask_units(&mut units);
    write(&units, value);
}

/// A byte of the value, or an escape for one.
struct Unit {
    at: usize,
    byte: u8,
    escape: Escape,
}

/// How a byte is written.
#[derive(Clone, Copy)]
enum Escape {
    /// As it is.
    None,
    /// As two bytes that stay.
    Pair,
    /// In hexadecimal: bytes in front, and digits.
    Percent(usize, usize),
}

impl Escape {
    fn bytes(self) -> usize {
        match self {
            Self::None => 1,
            Self::Pair => 2,
            Self::Percent(front, digits) => front + digits,
        }
    }
}

/// The number of an escape with so many bytes in front of so many hexadecimal digits.
fn number(rest: &[u8], front: usize, digits: usize) -> Option<u32> {
    let digits = rest.get(front..front + digits)?;
    digits.iter().try_fold(0, |number, digit| Some(number * 16 + char::from(*digit).to_digit(16)?))
}

/// A code point as a byte of its class; beyond ASCII all are alike.
fn one_byte(code: u32) -> u8 {
    u8::try_from(code).unwrap_or(0xe9)
}

fn mask_units(units: &mut [Unit]) {
    let bytes: Vec<u8> = units.iter().map(|unit| unit.byte).collect();
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            let width = character.len_utf8();
            let masked: &[u8] = match (character, width) {
                ('a'..='z', _) => &[LOWER],
                ('A'..='Z', _) => &[UPPER],
                ('0'..='9', _) => &[DIGIT],
                (_, 1) => &bytes[at..=at],
                (_, 2) => "\u{e9}".as_bytes(),
                (_, 3) => "\u{4e2d}".as_bytes(),
                _ => "\u{1f600}".as_bytes(),
            };
            for (unit, byte) in units[at..at + width].iter_mut().zip(masked) {
                unit.byte = *byte;
            }
            at += width;
        }
        for unit in &mut units[at..at + chunk.invalid().len()] {
            unit.byte = 0xe9;
        }
        at += chunk.invalid().len();
    }
}

fn write(units: &[Unit], value: &mut [u8]) {
    for Unit { at, byte, escape } in units {
        match escape {
            Escape::None => value[*at] = *byte,
            Escape::Pair => {}
            Escape::Percent(front, digits) => {
                let mut number = *byte;
                for digit in value[at + front..at + front + digits].iter_mut().rev() {
                    *digit = b"0123456789abcdef"[usize::from(number & 0xf)];
                    number >>= 4;
                }
            }
        }
    }
}
