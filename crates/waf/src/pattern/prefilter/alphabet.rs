//! The 64 symbols that a content is read as: coarse enough for small tables, fine enough to tell
//! attacks from text.

use super::super::{ByteSet, Edge, Place, requirement::frequency::Chance};

/// How many symbols there are: as many as a word has bits, so that a set of them is a word.
pub(super) const SYMBOLS: usize = 64;
/// What is beyond a content's edges; also every control byte that has no symbol of its own.
pub(super) const BEYOND: u8 = 0;
/// The symbols of letters.
pub(super) const LETTERS: Signature = ((1 << 26) - 1) << 1;

/// A set of symbols.
pub(super) type Signature = u64;

/// The symbols of plain text: prose, numbers, names. Most sequences that patterns ask for have others.
pub(super) const PLAIN: Signature = {
    let (plain, mut symbols, mut at) = (b" 0.,:'!?-_", LETTERS, 0);
    while at < plain.len() {
        symbols |= 1 << SYMBOL_OF[plain[at] as usize];
        at += 1;
    }
    symbols
};

/// Each byte's symbol.
pub(super) const SYMBOL_OF: [u8; 256] = {
    const PUNCTUATION: &[u8; 32] = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    let mut table = [BEYOND; 256];
    let mut byte = 0u8;
    loop {
        table[byte as usize] = match byte {
            b'a'..=b'z' => 1 + byte - b'a',
            b'A'..=b'Z' => 1 + byte - b'A',
            b'0'..=b'9' => 27,
            b' ' => 28,
            b'\t' | 0x0b | 0x0c => 29,
            b'\n' | b'\r' => 30,
            0x80.. => 63,
            _ => BEYOND,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    let mut at = 0u8;
    while at < 32 {
        table[PUNCTUATION[at as usize] as usize] = 31 + at;
        at += 1;
    }
    table
};

/// A byte's symbol.
#[inline]
pub(super) fn symbol(byte: u8) -> u8 {
    SYMBOL_OF[usize::from(byte)]
}

/// The symbols of a set's bytes.
pub(super) fn signature(set: &ByteSet) -> Signature {
    set.iter().fold(0, |signature, byte| signature | 1 << symbol(byte))
}

/// The symbols that may stand at a place.
pub(super) fn symbols_at(place: &Place) -> Signature {
    let beyond = if place.edge == Edge::Allowed { 1 << BEYOND } else { 0 };
    signature(&place.bytes) | beyond
}

/// How likely symbols are at a place of ordinary contents.
pub(super) fn chance(symbols: Signature) -> Chance {
    let bytes = (0..=u8::MAX).filter(|&byte| symbols >> symbol(byte) & 1 == 1).collect();
    let edge = if symbols >> BEYOND & 1 == 1 { Edge::Allowed } else { Edge::Excluded };
    Chance::of(&Place { bytes, edge })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_is_used_and_folds_case() {
        assert_eq!(signature(&ByteSet::ALL), u64::MAX);
        for byte in 0..=255u8 {
            assert!(usize::from(symbol(byte)) < SYMBOLS);
            assert_eq!(symbol(byte), symbol(byte.to_ascii_lowercase()));
            assert_eq!(1 << symbol(byte) & LETTERS != 0, byte.is_ascii_alphabetic());
        }
        assert_ne!(symbol(b'<'), symbol(b'>'));
        assert_eq!(symbols_at(&Place::ANY), u64::MAX);
    }
}
