//! Tags by which an origin names what a response was made of, so that all such responses can be
//! purged at once.
//!
//! Three fields are in use: `Cache-Tag` (members between commas), `Surrogate-Key` and `xkey`
//! (members between spaces; `xkey` is often written with commas, too). All three are read, and all
//! members mean the same. Tags are compared byte for byte. A response with more or longer tags than
//! allowed is not stored rather than stored out of some purge's reach.

use crate::hash::Seed;
use tidegate_http::Headers;
use tidegate_http::field::Known;

/// The hash of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u64);

impl Tag {
    /// The tag with this text.
    pub fn of(text: &[u8], seed: &Seed) -> Tag {
        Tag(seed.hash(text))
    }

    /// A tag whose hash was kept.
    pub const fn from_hash(hash: u64) -> Tag {
        Tag(hash)
    }

    /// Its hash.
    pub const fn hash(self) -> u64 {
        self.0
    }
}

/// How many tags a response may have, and how long they may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagLimits {
    /// Different tags of one response.
    pub tags_max: usize,
    /// Bytes of one tag.
    pub tag_bytes_max: usize,
}

impl Default for TagLimits {
    fn default() -> Self {
        TagLimits { tags_max: 256, tag_bytes_max: 1024 }
    }
}

/// Why a response's tags cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagError {
    /// There are more than [`TagLimits::tags_max`].
    TooMany,
    /// One has more than [`TagLimits::tag_bytes_max`] bytes.
    TooLong,
}

/// Whether a field holds tags. Such fields are for the gate: it may keep them from clients.
pub fn is_tag_field(name: &[u8]) -> bool {
    separators(name).is_some()
}

/// Puts a response's tags into `tags`, in ascending order and each once.
pub fn read(
    response: &Headers,
    seed: &Seed,
    limits: &TagLimits,
    tags: &mut Vec<Tag>,
) -> Result<(), TagError> {
    tags.clear();
    for text in texts(response) {
        if text.len() > limits.tag_bytes_max {
            return Err(TagError::TooLong);
        }
        let tag = Tag::of(text, seed);
        if let Err(place) = tags.binary_search(&tag) {
            if tags.len() == limits.tags_max {
                return Err(TagError::TooMany);
            }
            tags.insert(place, tag);
        }
    }
    Ok(())
}

/// The texts of all tags in a message's fields, in their order; one that is written twice is here
/// twice.
pub fn texts(headers: &Headers) -> impl Iterator<Item = &[u8]> {
    headers
        .iter()
        .filter(|field| field.known == Known::Other)
        .filter_map(|field| separators(field.name).map(|separates| field.value.split(separates)))
        .flatten()
        .filter(|text| !text.is_empty())
}

/// What stands between the tags of a field with this name, if it holds tags.
fn separators(name: &[u8]) -> Option<fn(&u8) -> bool> {
    // White space around a comma belongs to no tag, and none of these products allows it within.
    const COMMAS: fn(&u8) -> bool = |byte| matches!(byte, b',' | b' ' | b'\t');
    const SPACES: fn(&u8) -> bool = |byte| matches!(byte, b' ' | b'\t');
    match name.len() {
        9 if name.eq_ignore_ascii_case(b"Cache-Tag") => Some(COMMAS),
        13 if name.eq_ignore_ascii_case(b"Surrogate-Key") => Some(SPACES),
        4 if name.eq_ignore_ascii_case(b"xkey") => Some(COMMAS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed::new([1; 16]);

    fn check(fields: &[(&str, &str)], expected: Result<&[&str], TagError>) {
        let mut headers = Headers::new();
        for (name, value) in fields {
            headers.push(name.as_bytes(), value.as_bytes());
        }
        let limits = TagLimits { tags_max: 3, tag_bytes_max: 5 };
        let mut tags = vec![Tag(0)];
        let read = read(&headers, &SEED, &limits, &mut tags).map(|()| tags);
        let expected = expected.map(|texts| {
            let mut tags: Vec<_> =
                texts.iter().map(|text| Tag::of(text.as_bytes(), &SEED)).collect();
            tags.sort();
            tags
        });
        assert_eq!(read, expected, "{fields:?}");
    }

    #[test]
    fn all_three_fields_are_read() {
        check(&[], Ok(&[]));
        check(&[("Cache-Tag", "a, b,,c")], Ok(&["a", "b", "c"]));
        check(&[("cache-tag", "a"), ("Cache-Tag", "b")], Ok(&["a", "b"]));
        check(&[("Surrogate-Key", " a  b ")], Ok(&["a", "b"]));
        check(&[("Surrogate-Key", "a,b c")], Ok(&["a,b", "c"]));
        check(&[("XKEY", "a b, c")], Ok(&["a", "b", "c"]));
        check(&[("Cache-Tags", "a"), ("X-Cache-Tag", "b")], Ok(&[]));
    }

    #[test]
    fn a_tag_counts_once() {
        check(&[("Cache-Tag", "a,a,a,a,b"), ("xkey", "a b")], Ok(&["a", "b"]));
        check(&[("Cache-Tag", "a,A")], Ok(&["a", "A"]));
    }

    #[test]
    fn limits_hold() {
        check(&[("xkey", "a b c d")], Err(TagError::TooMany));
        check(&[("xkey", "aaaaa")], Ok(&["aaaaa"]));
        check(&[("xkey", "aaaaaa")], Err(TagError::TooLong));
    }
}
