//! What a log keeps of the people behind requests.
//!
//! Each log has its own choice. It is applied where a field's value is taken, before any
//! formatting, so no format and no template can get around it.
//!
//! Addresses can be replaced by a keyed hash, SipHash-2-4 with 128 bits of result. It is a keyed
//! pseudo-random function: without its 128-bit key, the four billion IPv4 addresses cannot be tried
//! out, and it costs 20 ns where HMAC-SHA-256 costs several hundred. Whoever has the key can
//! try them, so hashed addresses are pseudonyms, not anonymous; throwing the key away makes them so.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use siphasher::sip128::SipHasher24;

/// What a log keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privacy {
    /// The client's address; unless it is kept, the port goes too.
    pub address: AddressPrivacy,
    /// The query, in paths, referrers and redirects alike.
    pub query: Keep,
    /// The user agent.
    pub user_agent: Keep,
    /// The referrer.
    pub referer: Keep,
}

impl Privacy {
    /// Keeps nothing of address, query, agent and referrer.
    pub const STRICT: Privacy = Privacy {
        address: AddressPrivacy::Drop,
        query: Keep::No,
        user_agent: Keep::No,
        referer: Keep::No,
    };
}

/// Whether something is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// It is.
    #[default]
    Yes,
    /// It is not.
    No,
}

/// What becomes of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AddressPrivacy {
    /// It is kept.
    #[default]
    Keep,
    /// It is left out.
    Drop,
    /// Its network is kept: /24 for IPv4, /48 for IPv6.
    Truncate,
    /// Its keyed hash is kept.
    Hash(HashKey),
}

/// The key of hashed addresses.
#[derive(Clone, PartialEq, Eq)]
pub struct HashKey([u8; 16]);

/// A key is not shown.
impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(..)")
    }
}

impl HashKey {
    /// A key of 16 random bytes.
    pub const fn new(key: [u8; 16]) -> HashKey {
        HashKey(key)
    }

    /// A key from 32 hex digits, as `openssl rand -hex 16` makes them.
    pub fn from_hex(digits: &str) -> Option<HashKey> {
        let nibble = |digit: u8| char::from(digit).to_digit(16);
        let mut key = [0; 16];
        let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
        if pairs.len() != key.len() {
            return None;
        }
        for (byte, [high, low]) in key.iter_mut().zip(pairs) {
            *byte = u8::try_from(nibble(*high)? << 4 | nibble(*low)?).ok()?;
        }
        Some(HashKey(key))
    }

    /// A key of this process's own, from the kernel's random numbers: hashes of one run cannot be
    /// compared with those of another.
    pub fn random() -> io::Result<HashKey> {
        let mut key = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(HashKey(key))
    }

    /// The hash of an address, which must be canonical; its digits are in the order of the bytes.
    fn hash(&self, address: IpAddr) -> u128 {
        let hasher = SipHasher24::new_with_key(&self.0);
        let hash = match address {
            IpAddr::V4(address) => hasher.hash(&address.octets()),
            IpAddr::V6(address) => hasher.hash(&address.octets()),
        };
        u128::from_be_bytes(hash.as_bytes())
    }
}

/// What a log may say of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Nothing,
    Address(IpAddr),
    Hash(u128),
}

impl AddressPrivacy {
    /// What is shown of an address. IPv4 addresses mapped into IPv6, which a dual-stack socket
    /// gives, are the IPv4 addresses that they are.
    #[inline]
    pub(super) fn show(&self, address: Option<IpAddr>) -> Shown {
        let Some(address) = address.map(|address| address.to_canonical()) else {
            return Shown::Nothing;
        };
        match self {
            AddressPrivacy::Keep => Shown::Address(address),
            AddressPrivacy::Drop => Shown::Nothing,
            AddressPrivacy::Truncate => Shown::Address(network(address)),
            AddressPrivacy::Hash(key) => Shown::Hash(key.hash(address)),
        }
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, 0))
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn addresses_lose_what_they_should() {
        let check = |privacy: &AddressPrivacy, input: &str, expected: &str| {
            assert_eq!(
                privacy.show(Some(address(input))),
                Shown::Address(address(expected)),
                "{privacy:?} {input}"
            );
        };
        check(&AddressPrivacy::Keep, "192.0.2.77", "192.0.2.77");
        check(&AddressPrivacy::Keep, "::ffff:192.0.2.77", "192.0.2.77");
        check(&AddressPrivacy::Truncate, "192.0.2.77", "192.0.2.0");
        check(&AddressPrivacy::Truncate, "::ffff:192.0.2.77", "192.0.2.0");
        check(&AddressPrivacy::Truncate, "2001:db8:1:2:3:4:5:6", "2001:db8:1::");
        assert_eq!(AddressPrivacy::Drop.show(Some(address("192.0.2.77"))), Shown::Nothing);
        assert_eq!(AddressPrivacy::Keep.show(None), Shown::Nothing);
    }

    /// A vector of the reference implementation: key 00..0f, input 00 01 02 03.
    #[test]
    fn hashes_are_siphash() {
        let key = HashKey::from_hex("000102030405060708090a0b0c0d0e0f").expect("a key");
        let expected = 0xf881_64c1_2d9c_8faf_7d0f_6e7c_7bcd_5579;
        assert_eq!(key.hash(IpAddr::from([0, 1, 2, 3])), expected);
        let same = AddressPrivacy::Hash(key);
        assert_eq!(
            same.show(Some(address("::ffff:192.0.2.77"))),
            same.show(Some(address("192.0.2.77"))),
            "one client has one pseudonym"
        );
        assert_ne!(same.show(Some(address("192.0.2.78"))), same.show(Some(address("192.0.2.77"))));
    }

    #[test]
    fn keys_are_whole_or_nothing() {
        let check = |digits: &str| assert_eq!(HashKey::from_hex(digits), None, "{digits}");
        check("");
        check("00");
        check("000102030405060708090a0b0c0d0e0");
        check("000102030405060708090a0b0c0d0e0g");
        check("000102030405060708090a0b0c0d0e0f0");
        check("+00102030405060708090a0b0c0d0e0f");
        let upper = HashKey::from_hex("000102030405060708090A0B0C0D0E0F");
        assert_eq!(upper, HashKey::from_hex("000102030405060708090a0b0c0d0e0f"));
        let random = HashKey::random().expect("random numbers");
        assert_ne!(random, HashKey::random().expect("random numbers"));
        assert_eq!(format!("{random:?}"), "HashKey(..)");
    }
}
