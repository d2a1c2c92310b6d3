//! Entity tags (RFC 9110, section 8.8.3), and how they are compared.

/// An entity tag as it lies in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagRef<'a> {
    /// The opaque part with its quotes; what a sloppy origin sent without them is kept as it is.
    pub opaque: &'a [u8],
    /// Whether it may be the same for representations that differ in their bytes.
    pub strength: Strength,
}

/// How much a validator promises (RFC 9110, section 8.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// It changes with each byte.
    Strong,
    /// It changes with the meaning.
    Weak,
}

/// An entity tag that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityTag {
    text: Box<[u8]>,
    strength: Strength,
}

impl<'a> TagRef<'a> {
    /// Reads the value of an `ETag` field. `None` if it is empty.
    ///
    /// A tag that is none by the grammar is good enough to be asked for again, byte for byte, but
    /// promises nothing: it is weak.
    pub fn of(value: &'a [u8]) -> Option<TagRef<'a>> {
        match value {
            [] => None,
            [b'W', b'/', opaque @ ..] if is_quoted(opaque) => {
                Some(TagRef { opaque, strength: Strength::Weak })
            }
            opaque if is_quoted(opaque) => Some(TagRef { opaque, strength: Strength::Strong }),
            opaque => Some(TagRef { opaque, strength: Strength::Weak }),
        }
    }

    /// The weak comparison (RFC 9110, section 8.8.3.2).
    pub fn is_like(self, other: TagRef<'_>) -> bool {
        self.opaque == other.opaque
    }

    /// Writes it as a weak one: that of a representation whose coding we changed, which has other
    /// bytes (RFC 9110, section 8.8.3.3). Clients that send it back are answered all the same, as
    /// `If-None-Match` compares weakly.
    pub fn write_weak(self, out: &mut Vec<u8>) {
        if is_quoted(self.opaque) {
            out.extend_from_slice(b"W/");
        }
        out.extend_from_slice(self.opaque);
    }

    /// The strong comparison.
    pub fn is_same(self, other: TagRef<'_>) -> bool {
        let strong = |tag: TagRef<'_>| tag.strength == Strength::Strong;
        strong(self) && strong(other) && self.opaque == other.opaque
    }
}

impl EntityTag {
    /// Keeps the value of an `ETag` field.
    pub fn of(value: &[u8]) -> Option<EntityTag> {
        let strength = TagRef::of(value)?.strength;
        Some(EntityTag { text: value.into(), strength })
    }

    /// As the field had it.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether it is strong or weak.
    pub const fn strength(&self) -> Strength {
        self.strength
    }

    /// It, borrowed.
    pub fn borrow(&self) -> TagRef<'_> {
        let opaque = match &*self.text {
            [b'W', b'/', opaque @ ..] if is_quoted(opaque) => opaque,
            opaque => opaque,
        };
        TagRef { opaque, strength: self.strength }
    }
}

fn is_quoted(text: &[u8]) -> bool {
    matches!(text, [b'"', inner @ .., b'"'] if !inner.contains(&b'"'))
}

/// The tags of a list (RFC 9110, section 13.1.1). A tag has no escapes, and so a backslash before its
/// closing quote is a part of it, unlike in quoted strings.
pub fn list(value: &[u8]) -> impl Iterator<Item = TagRef<'_>> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        rest = &rest[start..];
        let prefix = if rest.starts_with(b"W/\"") { 2 } else { 0 };
        let end = match rest[prefix..].strip_prefix(b"\"") {
            Some(opaque) => match opaque.iter().position(|&byte| byte == b'"') {
                Some(close) => prefix + close + 2,
                None => rest.len(),
            },
            None => rest.iter().position(|&byte| byte == b',').unwrap_or(rest.len()),
        };
        let (tag, behind) = rest.split_at(end);
        rest = behind;
        TagRef::of(tidegate_http::field::trim(tag))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(value: &str) -> Vec<(String, Strength)> {
        let text = |tag: TagRef<'_>| String::from_utf8(tag.opaque.to_vec()).unwrap();
        list(value.as_bytes()).map(|tag| (text(tag), tag.strength)).collect()
    }

    #[test]
    fn tags_compare_as_the_rfc_shows() {
        // RFC 9110, section 8.8.3.2, table 3
        let check = |one: &str, other: &str, same: bool, like: bool| {
            let (one, other) =
                (EntityTag::of(one.as_bytes()).unwrap(), EntityTag::of(other.as_bytes()).unwrap());
            assert_eq!(one.borrow().is_same(other.borrow()), same, "{one:?} {other:?}");
            assert_eq!(one.borrow().is_like(other.borrow()), like, "{one:?} {other:?}");
        };
        check("W/\"1\"", "W/\"1\"", false, true);
        check("W/\"1\"", "W/\"2\"", false, false);
        check("W/\"1\"", "\"1\"", false, true);
        check("\"1\"", "\"1\"", true, true);
        check("\"1\"", "\"2\"", false, false);
        // What is none by the grammar is itself alone, and weak.
        check("1", "1", false, true);
        check("1", "\"1\"", false, false);
        check("w/\"1\"", "w/\"1\"", false, true);
        check("w/\"1\"", "\"1\"", false, false);
        check("W/1", "W/1", false, true);
    }

    #[test]
    fn a_changed_coding_weakens() {
        let check = |value: &str, expected: &str| {
            let mut out = Vec::new();
            TagRef::of(value.as_bytes()).unwrap().write_weak(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        };
        check("\"a\"", "W/\"a\"");
        check("W/\"a\"", "W/\"a\"");
        check("a", "a");
    }

    #[test]
    fn lists_are_parted_outside_of_quotes() {
        use Strength::{Strong, Weak};
        let check = |value: &str, expected: &[(&str, Strength)]| {
            let expected: Vec<_> =
                expected.iter().map(|(text, strength)| ((*text).to_owned(), *strength)).collect();
            assert_eq!(tags(value), expected, "{value}");
        };
        check("", &[]);
        check(" , ,", &[]);
        check("\"a\"", &[("\"a\"", Strong)]);
        check("\"a\", W/\"b\",\"c,d\"", &[("\"a\"", Strong), ("\"b\"", Weak), ("\"c,d\"", Strong)]);
        check("\"a\\\", \"b\"", &[("\"a\\\"", Strong), ("\"b\"", Strong)]);
        check("\"\"", &[("\"\"", Strong)]);
        check("a, b", &[("a", Weak), ("b", Weak)]);
        check("\"a", &[("\"a", Weak)]);
        check("\"", &[("\"", Weak)]);
        check("*", &[("*", Weak)]);
        check("\"a\"\"b\"", &[("\"a\"", Strong), ("\"b\"", Strong)]);
        check("\"abcdef\u{fc}\"", &[("\"abcdef\u{fc}\"", Strong)]);
    }
}
