//! Bytes that are kept: short ones in place, long ones on the heap, 24 bytes either way.
//!
//! Keys, names and values of context are mostly short (an address, a counter's name, a flag); in
//! place they cost neither an allocation nor a cache miss of their own.

use std::fmt;

const IN_PLACE_MAX: usize = 22;

/// Bytes that do not change any more.
#[derive(Clone)]
pub(super) enum Bytes {
    InPlace(u8, [u8; IN_PLACE_MAX]),
    Heap(Box<[u8]>),
}

const _: () = assert!(size_of::<Bytes>() == 24);

impl Bytes {
    /// What keeping `bytes` costs on the heap, in bytes.
    pub(super) const fn heap_bytes(length: usize) -> usize {
        if length <= IN_PLACE_MAX { 0 } else { length }
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        let mut place = [0; IN_PLACE_MAX];
        match (place.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(part), Ok(length)) => {
                part.copy_from_slice(bytes);
                Self::InPlace(length, place)
            }
            _ => Self::Heap(bytes.into()),
        }
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::InPlace(length, place) => place.get(..usize::from(*length)).unwrap_or(place),
            Self::Heap(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_come_back() {
        let long = b"a name that is longer than what fits in place";
        for length in 0..long.len() {
            let kept = Bytes::from(&long[..length]);
            assert_eq!(&*kept, &long[..length]);
            assert_eq!(matches!(kept, Bytes::Heap(_)), Bytes::heap_bytes(length) > 0);
        }
    }
}
