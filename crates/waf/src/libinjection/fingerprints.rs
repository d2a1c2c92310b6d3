//! Fingerprints, and which of them are attacks.
//!
//! The list is `data/libinjection/fingerprints.txt`. It becomes a sorted table at compile time: each
//! sequence of kinds but the last with the set of kinds that may end it.

use std::fmt;

use super::token::Kind;

/// What gave a value away: the kinds of its tokens after folding, one byte each, at most five.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    kinds: [u8; KINDS_MAX],
    len: u8,
}

/// Tokens that make a fingerprint, at most.
pub(super) const KINDS_MAX: usize = 5;

impl Fingerprint {
    /// What is evil in whatever company.
    pub(super) const EVIL: Self = Self { kinds: [Kind::Evil as u8, 0, 0, 0, 0], len: 1 };

    /// The fingerprint of these kinds, of which at most five count.
    pub(super) fn new(tokens: impl IntoIterator<Item = Kind>) -> Self {
        let mut print = Self { kinds: [0; KINDS_MAX], len: 0 };
        for (place, kind) in print.kinds.iter_mut().zip(tokens) {
            *place = kind as u8;
            print.len += 1;
        }
        print
    }

    /// The kinds, as libinjection writes them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.kinds[..usize::from(self.len)]
    }

    /// Whether it is one that attacks leave.
    pub(super) fn is_listed(self) -> bool {
        let Some((&last, head)) = self.as_bytes().split_last() else { return false };
        let mut key = 0;
        for place in 0..KINDS_MAX - 1 {
            let code = head.get(place).map_or(0, |&kind| CODES[usize::from(kind)]);
            if code == NOWHERE {
                return false;
            }
            key = key << CODE_BITS | u32::from(code);
        }
        let pair = (key >> (2 * CODE_BITS)) as usize;
        let (from, to) = (usize::from(PAIRS[pair]), usize::from(PAIRS[pair + 1]));
        let last = CODES[usize::from(last)];
        HEADS[from..to]
            .binary_search_by_key(&key, |head| head.key)
            .is_ok_and(|at| HEADS[from + at].tails >> last & 1 == 1)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Fingerprint({self})")
    }
}

/// All kinds but the last of some fingerprints.
#[derive(Clone, Copy)]
struct Head {
    /// Four codes, the first one in the highest bits, zeros behind a shorter head.
    key: u32,
    /// A bit for the code of each kind that may follow and end the fingerprint.
    tails: u32,
}

/// The kinds that occur in fingerprints, in capitals and in the order of their bytes, which is the
/// order of the list. A code is a place among them, from one on.
const ALPHABET: &[u8] = b"&(),1:;ABCEFKNOSTUV";
const CODE_BITS: u32 = 5;
/// The code of what occurs in no fingerprint.
const NOWHERE: u8 = 31;

static LIST: &[u8] = include_bytes!("../../data/libinjection/fingerprints.txt");
static CODES: [u8; 256] = codes();
const COUNT: usize = count();
static HEADS: [Head; COUNT] = read();
/// Where the heads begin that share their first two codes.
static PAIRS: [u16; (1 << (2 * CODE_BITS)) + 1] = pairs();

#[expect(clippy::cast_possible_truncation, reason = "the alphabet has 19 kinds")]
const fn codes() -> [u8; 256] {
    let mut codes = [NOWHERE; 256];
    let mut code = 1;
    while code <= ALPHABET.len() {
        let kind = ALPHABET[code - 1];
        codes[kind as usize] = code as u8;
        // Types and statements share a capital, and with it their fingerprints.
        codes[kind.to_ascii_lowercase() as usize] = code as u8;
        code += 1;
    }
    codes
}

const fn count() -> usize {
    let (mut at, mut count) = (0, 0);
    while at < LIST.len() {
        count += (LIST[at] != b'#') as usize;
        at = next_line(at);
    }
    count
}

const fn next_line(mut at: usize) -> usize {
    while LIST[at] != b'\n' {
        at += 1;
    }
    at + 1
}

const fn code(byte: u8) -> u32 {
    let code = CODES[byte as usize];
    assert!(code != NOWHERE, "a fingerprint has an unknown kind");
    code as u32
}

#[expect(clippy::large_stack_arrays, reason = "on the stack of the compiler only")]
const fn read() -> [Head; COUNT] {
    let mut heads = [Head { key: 0, tails: 0 }; COUNT];
    let (mut at, mut count) = (0, 0);
    while at < LIST.len() {
        let next = next_line(at);
        if LIST[at] != b'#' {
            let (mut key, mut len) = (0, 0);
            while LIST[at] != b' ' {
                key = key << CODE_BITS | code(LIST[at]);
                len += 1;
                at += 1;
            }
            assert!(0 < len && len < KINDS_MAX);
            while len < KINDS_MAX - 1 {
                key <<= CODE_BITS;
                len += 1;
            }
            let mut tails = 0;
            at += 1;
            while at < next - 1 {
                tails |= 1 << code(LIST[at]);
                at += 1;
            }
            assert!(count == 0 || heads[count - 1].key < key, "the list is not in order");
            heads[count] = Head { key, tails };
            count += 1;
        }
        at = next;
    }
    heads
}

#[expect(clippy::cast_possible_truncation, reason = "there are 2235 heads and 1024 pairs")]
const fn pairs() -> [u16; (1 << (2 * CODE_BITS)) + 1] {
    let mut pairs = [0; (1 << (2 * CODE_BITS)) + 1];
    let (mut pair, mut at) = (0, 0);
    while pair < pairs.len() {
        while at < COUNT && (HEADS[at].key >> (2 * CODE_BITS)) < pair as u32 {
            at += 1;
        }
        pairs[pair] = at as u16;
        pair += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(kinds: &[u8]) -> Fingerprint {
        let mut print = Fingerprint { kinds: [0; KINDS_MAX], len: kinds.len().try_into().unwrap() };
        print.kinds[..kinds.len()].copy_from_slice(kinds);
        print
    }

    #[test]
    fn the_list_is_found_and_nothing_else() {
        let list = std::str::from_utf8(LIST).unwrap();
        let listed: std::collections::HashSet<Vec<u8>> = list
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(|line| {
                let (head, tails) = line.split_once(' ').unwrap();
                tails.bytes().map(move |tail| [head.as_bytes(), &[tail]].concat())
            })
            .collect();
        assert_eq!(listed.len(), 8366);
        for kinds in &listed {
            assert!(print(kinds).is_listed());
            assert!(print(&kinds.to_ascii_lowercase()).is_listed());
        }
        // Every sequence of at most four kinds, and a stride through those of five.
        let mut all = vec![vec![]];
        for len in 1..=5 {
            all = all
                .iter()
                .flat_map(|kinds: &Vec<u8>| {
                    ALPHABET.iter().map(move |&kind| [&kinds[..], &[kind]].concat())
                })
                .collect();
            for kinds in all.iter().step_by(if len < 5 { 1 } else { 13 }) {
                assert_eq!(print(kinds).is_listed(), listed.contains(kinds), "{kinds:?}");
            }
        }
    }

    #[test]
    fn what_occurs_nowhere_is_not_listed() {
        for kinds in [&b""[..], b".", b"1.1", b"{", b"1c?", b"1\\"] {
            assert!(!print(kinds).is_listed(), "{kinds:?}");
        }
    }

    #[test]
    fn a_fingerprint_reads_as_its_kinds() {
        let kinds = [Kind::Text, Kind::Logic, Kind::Number, Kind::Comment];
        assert_eq!(Fingerprint::new(kinds).to_string(), "s&1c");
        assert_eq!(Fingerprint::new([Kind::Comma; 7]).as_bytes(), b",,,,,");
        assert_eq!(Fingerprint::EVIL.to_string(), "X");
    }
}
