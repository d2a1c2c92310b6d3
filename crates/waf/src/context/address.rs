//! Where a variable stands: its collection, the key of its record, its name.
//!
//! Keys and names are compared byte by byte. What `SecLang` says of case (names of variables do not
//! care for it) and of name spaces (`SecWebAppId` before session and user keys) is the engine's to
//! apply before it asks.

use std::fmt;

use super::hash;

/// One of `SecLang`'s five persistent collections (`ModSecurity` reference, "Persistent Storage").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Collection {
    /// `GLOBAL`: one record for everything, usually under the key `global`.
    Global,
    /// `IP`: a record per client, usually under its address.
    Ip,
    /// `RESOURCE`: a record per protected thing, opened by `setrsc`.
    Resource,
    /// `SESSION`: a record per session, opened by `setsid`.
    Session,
    /// `USER`: a record per user, opened by `setuid`.
    User,
}

impl Collection {
    /// All of them, in the order in which they sort.
    pub const ALL: [Self; 5] = [Self::Global, Self::Ip, Self::Resource, Self::Session, Self::User];

    /// The name that rules use, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Ip => "ip",
            Self::Resource => "resource",
            Self::Session => "session",
            Self::User => "user",
        }
    }

    /// The collection that a rule means by `name`, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|known| name.eq_ignore_ascii_case(known.name().as_bytes()))
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The address of a record: what one collection keeps under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record<'a> {
    /// The collection.
    pub collection: Collection,
    /// The key within the collection, such as `203.0.113.7`.
    pub key: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record that `collection` keeps under `key`.
    pub const fn new(collection: Collection, key: &'a [u8]) -> Self {
        Self { collection, key }
    }
}

/// The address of a record that is asked for more than once: what that takes is worked out once.
#[derive(Clone, Debug)]
pub struct Opened {
    collection: Collection,
    key: Box<[u8]>,
    pub(super) hash: u64,
}

impl Opened {
    /// The address of what `collection` keeps under `key`.
    pub fn new(collection: Collection, key: impl Into<Box<[u8]>>) -> Self {
        let key = key.into();
        let hash = hash::of_record(Record::new(collection, &key));
        Self { collection, key, hash }
    }

    /// The address.
    pub fn record(&self) -> Record<'_> {
        Record::new(self.collection, &self.key)
    }
}

/// The name of a variable that is asked for more than once, likewise.
#[derive(Clone, Debug)]
pub struct Name {
    bytes: Box<[u8]>,
    pub(super) hash: u64,
}

impl Name {
    /// The name that these bytes are.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        let bytes = bytes.into();
        let hash = hash::of_name(&bytes);
        Self { bytes, hash }
    }
}

impl std::ops::Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_known_by_name_in_any_case() {
        for collection in Collection::ALL {
            let shouted = collection.name().to_uppercase();
            assert_eq!(Collection::named(shouted.as_bytes()), Some(collection));
            assert_eq!(collection.to_string(), collection.name());
        }
        assert_eq!(Collection::named(b"tx"), None);
    }
}
