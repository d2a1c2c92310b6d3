//! Eight bytes at a time, without vectors: for texts so short that a vector search does not pay.
//!
//! A search marks the high bit of each byte that it finds. Of several searches' marks, joined by
//! `|`, the lowest is exact: a borrow can only mark bytes behind one that was found.

use memchr::memchr2;

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Eight bytes as a word; none of fewer.
pub(super) fn word(eight: &[u8]) -> u64 {
    eight.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// Marks the bytes below a limit, which is at most 128.
pub(super) fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGHS
}

/// Marks the bytes that are `byte`.
pub(super) fn is(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// The place of the lowest mark.
pub(super) fn first(marks: u64) -> Option<usize> {
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

/// Whether all bytes of a word, or of several joined by `|`, are ASCII.
pub(super) fn is_ascii(word: u64) -> bool {
    word & HIGHS == 0
}

/// Bytes that are looked at by eights before a vector search pays.
const SHORT_BYTES: usize = 64;

/// The place of the first byte that is one of two.
pub(super) fn position(text: &[u8], [one, other]: [u8; 2]) -> Option<usize> {
    let short = &text[..text.len().min(SHORT_BYTES)];
    let (eights, rest) = short.as_chunks::<8>();
    for (index, eight) in eights.iter().enumerate() {
        let word = u64::from_le_bytes(*eight);
        if let Some(first) = first(is(word, one) | is(word, other)) {
            return Some(index * 8 + first);
        }
    }
    if text.len() > SHORT_BYTES {
        return memchr2(one, other, &text[SHORT_BYTES..]).map(|at| SHORT_BYTES + at);
    }
    let found = rest.iter().position(|&byte| byte == one || byte == other);
    found.map(|at| eights.len() * 8 + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions() {
        for len in (0..20).chain(60..70).chain([200]) {
            let mut text = vec![b'a'; len];
            assert_eq!(position(&text, [b'%', b'+']), None);
            for at in (0..len).rev() {
                for (byte, near) in [(b'%', 0x24), (b'+', 0x2a), (b'+', 0xab), (b'%', 0xff)] {
                    text[at] = byte;
                    assert_eq!(position(&text, [b'%', b'+']), Some(at), "{len}");
                    text[at] = near;
                    let expected = if at + 1 < len { Some(at + 1) } else { None };
                    assert_eq!(position(&text, [b'%', b'+']), expected, "{len}");
                }
                text[at] = b'%';
            }
        }
    }

    #[test]
    fn marks() {
        for byte in 0..=255 {
            let word = u64::from_le_bytes([b'a', b'a', byte, b'a', 0, 0, 0, 0]);
            let expected = if byte < b' ' { 2 } else { 4 };
            assert_eq!(first(below(word, b' ')), Some(expected), "{byte:#x}");
            let expected = if byte == b'"' { Some(2) } else { None };
            assert_eq!(first(is(word, b'"')), expected, "{byte:#x}");
            assert_eq!(is_ascii(word), byte < 0x80);
        }
    }
}
