//! How often bytes are seen, to tell selective clauses from others. Only speed depends on it.

use super::{ByteSet, Edge, Place};

/// How many bytes of ordinary traffic a clause is judged by.
const CONTENT_BYTES: f32 = 100.0;
/// How often a place lies at the edge: contents are often short.
const AT_EDGE: f32 = 0.1;

/// A byte's share of what requests carry, in thousandths: names, URLs, JSON, prose. A letter's share
/// is that of both cases, and is booked on the lower one.
const SHARES: [f32; 256] = {
    let mut shares = [0.0; 256];
    let mut byte = 0u8;
    while byte < u8::MAX {
        shares[byte as usize] = match byte {
            b' ' => 100.0,
            b'e' => 85.0,
            b'a' | b't' => 65.0,
            b'i' | b'n' | b'o' => 55.0,
            b's' | b'r' => 50.0,
            b'l' | b'd' | b'h' => 32.0,
            b'c' => 28.0,
            b'u' | b'm' => 22.0,
            b'p' => 19.0,
            b'f' | b'g' | b'w' | b'y' | b'b' => 14.0,
            b'.' | b',' | b'0'..=b'2' => 12.0,
            b'v' | b'k' | b'3'..=b'9' => 8.0,
            b'"' | b'-' | b'/' | b':' | b'_' => 7.0,
            b'=' | b'&' | b'\n' => 4.0,
            b'x' | b'j' | b'z' | b'q' | b'\'' | b';' | b'%' | b'+' => 2.0,
            b'(' | b')' | b'?' | b'{' | b'}' | b'[' | b']' | b'\r' => 1.0,
            b'!' | b'@' | b'<' | b'>' | b'\t' | b'#' | b'*' | b'$' | b'\\' => 0.4,
            b'|' | b'~' | b'^' | b'`' | 0x80.. => 0.1,
            b'A'..=b'Z' => 0.0,
            _ => 0.01,
        };
        byte += 1;
    }
    shares[byte as usize] = shares[0x80];
    shares
};

/// How many kinds of bytes [`PAIRS`] tells apart: the letters, white space, digits.
const KINDS: usize = 28;
const SPACE: u8 = 26;
const DIGIT: u8 = 27;

/// How often one kind (column) follows another (row): the negative binary logarithm, 9 for 9 and
/// more. Counted in 7.6 MB of English about computers, with some names, numbers and addresses.
const PAIRS: [[u8; KINDS]; KINDS] = [
    *b"9545975959635395734366986947",
    *b"4867377946937847945739994946",
    *b"3959399359458927946358997956",
    *b"5675297939978848965868997926",
    *b"5754667989955496733596858928",
    *b"4488559929969836936669997926",
    *b"5968297549967467945749999929",
    *b"3998199939998948978469998939",
    *b"6545555999845236953396979769",
    *b"4777278969877724784739899967",
    *b"4787265949988678984469899938",
    *b"4985288939939948995558994939",
    *b"2585298939965943995959999948",
    *b"4953453959768749994357997929",
    *b"8755846979754265935446599949",
    *b"3987388659748944934468996938",
    *b"8986889989969898884619999938",
    *b"4866275949675648964556895939",
    *b"6969399549778955985359895929",
    *b"4968399239978945955569796938",
    *b"6556475959944384932399969958",
    *b"3989196929987959998899999965",
    *b"3998499329989539955999599949",
    *b"3957479849975984977399967925",
    *b"8899699969976644973599899919",
    *b"4898198749967959986969995547",
    *b"4545556649855545954357597996",
    *b"6666669999999999999899989831",
];

/// How likely a place is met.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Chance {
    /// By itself.
    alone: f32,
    /// Its kind in [`PAIRS`], when it is of one.
    kind: Option<u8>,
}

impl Chance {
    /// How likely it is that a place is as demanded.
    pub(in super::super) fn of(place: &Place) -> Self {
        let edge = if place.edge == Edge::Allowed { AT_EDGE } else { 0.0 };
        let alone = (byte_is_in(&place.bytes) + edge).min(1.0);
        let all_of = |set: ByteSet| place.bytes.is_within(&set);
        let kind = match place.bytes.iter().next() {
            _ if edge > 0.0 => None,
            Some(byte @ (b'a'..=b'z' | b'A'..=b'Z')) => {
                let same = all_of(ByteSet::of(&[byte]).folded());
                same.then_some(byte.to_ascii_lowercase() - b'a')
            }
            Some(b'0'..=b'9') => all_of(ByteSet::range(b'0', b'9')).then_some(DIGIT),
            Some(b'\t'..=b'\r' | b' ') => all_of(ByteSet::of(b"\t\n\x0b\x0c\r ")).then_some(SPACE),
            _ => None,
        };
        Self { alone, kind }
    }

    /// By itself.
    pub(in super::super) fn alone(self) -> f32 {
        self.alone
    }

    /// How likely places with these chances are in a row.
    pub(in super::super) fn in_a_row(places: impl Iterator<Item = Self>) -> f32 {
        let mut row = 1.0;
        let mut last = None;
        for Self { alone, kind } in places {
            row *= match (last, kind) {
                (Some(last), Some(kind)) => {
                    let exponent = PAIRS[usize::from(last)][usize::from(kind)] - b'0';
                    1.0 / f32::from(1u16 << exponent)
                }
                _ => alone,
            };
            last = kind;
        }
        row
    }
}

/// How likely the next byte is one of these; letters count in both cases.
pub(super) fn byte_is_in(set: &ByteSet) -> f32 {
    if *set == ByteSet::ALL {
        return 1.0;
    }
    let share: f32 = set.folded().iter().map(|byte| SHARES[usize::from(byte)]).sum();
    (share / 1000.0).min(1.0)
}

/// How likely ordinary contents have, somewhere, what has this likelihood at one place.
pub(super) fn somewhere(at_a_place: f32) -> f32 {
    1.0 - (-at_a_place * CONTENT_BYTES).exp()
}
