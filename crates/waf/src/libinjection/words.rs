//! Words and phrases of SQL: what each one is, found by its text in any case.
//!
//! The list is `data/libinjection/words.txt`. It becomes a hash table at compile time, in which a
//! look-up reads at most sixteen bytes of the text, touches one slot or two, and compares at most
//! one word in nearly all cases.

use super::token::{Kind, TEXT_BYTES_MAX};

/// A word or a phrase.
#[derive(Debug)]
pub(super) struct Word {
    /// In capitals, the words of a phrase parted by one space.
    pub(super) text: &'static [u8],
    /// `None` for what means nothing by itself but begins a phrase.
    pub(super) kind: Option<Kind>,
    /// Whether some phrase begins with it.
    pub(super) leads: bool,
}

/// The word with this text, in any case.
pub(super) fn find(text: &[u8]) -> Option<&'static Word> {
    if text.len() > LONGEST {
        return None;
    }
    let hash = hash(text)?;
    let mut at = place(hash);
    loop {
        let slot = TABLE[at];
        if slot == EMPTY {
            return None;
        }
        let word = &WORDS[(slot & INDEX) as usize];
        if slot & !INDEX == hash & !INDEX && word.text.eq_ignore_ascii_case(text) {
            return Some(word);
        }
        at = (at + 1) % SLOTS;
    }
}

/// The phrase that two texts make with a space between them.
pub(super) fn phrase(head: &[u8], tail: &[u8]) -> Option<&'static Word> {
    let len = head.len() + 1 + tail.len();
    if len > TEXT_BYTES_MAX {
        return None;
    }
    let mut both = [b' '; TEXT_BYTES_MAX];
    both[..head.len()].copy_from_slice(head);
    both[head.len() + 1..len].copy_from_slice(tail);
    find(&both[..len])
}

/// Slots of the table, some four for each word.
const SLOTS: usize = 4096;
/// A slot holds the upper bits of a word's hash, and in these its index.
const INDEX: u32 = 0x3ff;
const EMPTY: u32 = u32::MAX;

static LIST: &[u8] = include_bytes!("../../data/libinjection/words.txt");
const COUNT: usize = count();
static WORDS: [Word; COUNT] = read();
static TABLE: [u32; SLOTS] = table();
const LONGEST: usize = 29;

/// Where the search for a hash begins.
const fn place(hash: u32) -> usize {
    // The upper bits tell the words of one run of slots apart, the lower ones choose the run.
    (hash as usize) % SLOTS
}

/// A hash of a text in any case. `None` for what is too short to be a word.
const fn hash(text: &[u8]) -> Option<u32> {
    // Letters differ from their capitals in one bit. Other bytes fall together without it, which the
    // comparison afterwards tells apart.
    const CAPITALS: u64 = 0xdfdf_dfdf_dfdf_dfdf;
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let len = text.len() as u64;
    let (first, last) = if let (Some(first), Some(last)) =
        (text.first_chunk::<8>(), text.last_chunk::<8>())
    {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (u32::from_le_bytes(*first) as u64, u32::from_le_bytes(*last) as u64)
    } else if let (Some(first), Some(last)) = (text.first_chunk::<2>(), text.last_chunk::<2>()) {
        (u16::from_le_bytes(*first) as u64, u16::from_le_bytes(*last) as u64)
    } else {
        return None;
    };
    let mixed = (first & CAPITALS).wrapping_mul(FACTOR) ^ (last & CAPITALS).rotate_left(29) ^ len;
    let mixed = mixed.wrapping_mul(FACTOR);
    Some((mixed >> 32) as u32)
}

/// Lines of the list from `from` on: the line, and where the next one begins.
const fn line(from: usize) -> (&'static [u8], usize) {
    let mut end = from;
    while LIST[end] != b'\n' {
        end += 1;
    }
    (LIST.split_at(end).0.split_at(from).1, end + 1)
}

const fn count() -> usize {
    let (mut at, mut count) = (0, 0);
    while at < LIST.len() {
        let (text, next) = line(at);
        if text[0] != b'#' && text[0] != b'=' {
            count += 1;
        }
        at = next;
    }
    count
}

#[expect(clippy::large_stack_arrays, reason = "on the stack of the compiler only")]
const fn read() -> [Word; COUNT] {
    let mut words = [const { Word { text: b"", kind: None, leads: false } }; COUNT];
    let (mut at, mut count, mut kind) = (0, 0, None);
    while at < LIST.len() {
        let (text, next) = line(at);
        if text[0] == b'=' {
            kind = Kind::named(text[2]);
        } else if text[0] != b'#' {
            assert!(text.len() <= LONGEST);
            words[count] = Word { text, kind, leads: false };
            count += 1;
        }
        at = next;
    }
    let table = slots(&words);
    let mut index = 0;
    while index < COUNT {
        let text = words[index].text;
        let mut len = 0;
        while len < text.len() {
            if text[len] == b' ' {
                words[position(&words, &table, text.split_at(len).0)].leads = true;
            }
            len += 1;
        }
        index += 1;
    }
    words
}

const fn table() -> [u32; SLOTS] {
    slots(&WORDS)
}

#[expect(clippy::cast_possible_truncation, reason = "an index is at most `INDEX`")]
const fn slots(words: &[Word; COUNT]) -> [u32; SLOTS] {
    assert!(COUNT <= INDEX as usize);
    let mut slots = [EMPTY; SLOTS];
    let mut index = 0;
    while index < COUNT {
        let Some(hash) = hash(words[index].text) else { panic!("a word has two bytes or more") };
        let mut at = place(hash);
        while slots[at] != EMPTY {
            at = (at + 1) % SLOTS;
        }
        slots[at] = hash & !INDEX | index as u32;
        index += 1;
    }
    slots
}

/// Where a word stands that must be there: [`find`] for the compiler.
const fn position(words: &[Word; COUNT], slots: &[u32; SLOTS], text: &[u8]) -> usize {
    let Some(hash) = hash(text) else { panic!("a word has two bytes or more") };
    let mut at = place(hash);
    loop {
        assert!(slots[at] != EMPTY, "what begins a phrase is in the list");
        let index = (slots[at] & INDEX) as usize;
        if same(words[index].text, text) {
            return index;
        }
        at = (at + 1) % SLOTS;
    }
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_in_any_case() {
        for word in &WORDS {
            let lower = word.text.to_ascii_lowercase();
            assert!(std::ptr::eq(find(word.text).unwrap(), word));
            assert!(std::ptr::eq(find(&lower).unwrap(), word));
            assert!(find(&[&lower[..], b"x"].concat()).is_none_or(|other| other.text != word.text));
        }
    }

    #[test]
    fn kinds_are_those_of_the_list() {
        let check = |text: &str, kind| {
            assert_eq!(find(text.as_bytes()).map(|word| word.kind), kind, "{text}");
        };
        check("select", Some(Some(Kind::Expression)));
        check("Utl_Inaddr.Get_Host_Address", Some(Some(Kind::Function)));
        check("for update skip locked", Some(Some(Kind::Keyword)));
        check("and", Some(Some(Kind::Logic)));
        check("COLLATE", Some(Some(Kind::Collate)));
        check("natural full outer", Some(None));
        check("", None);
        check("a", None);
        check("tidegate", None);
        // Differs from a word in the bit that tells letters from capitals, in a byte that is no letter.
        check("date\u{7f}add", None);
        check("INSERT HIGH_PRIORITY INTO NOTHING", None);
    }

    #[test]
    fn phrases_are_made_of_heads_and_tails() {
        let check = |head: &str, tail: &str, kind| {
            assert_eq!(
                phrase(head.as_bytes(), tail.as_bytes()).map(|word| word.kind),
                kind,
                "{head} {tail}"
            );
        };
        check("union", "all", Some(Some(Kind::Union)));
        check("union all", "distinct", Some(Some(Kind::Union)));
        check("full", "outer join", Some(Some(Kind::Keyword)));
        check("all", "union", None);
        check("0123456789012345", "0123456789012345", None);
        assert!(find(b"natural full").unwrap().leads);
        assert!(find(b"current").unwrap().leads);
        assert!(!find(b"natural full outer join").unwrap().leads);
        assert!(!find(b"sleep").unwrap().leads);
    }
}
