//! Content codings: which ones a request accepts, and which one it likes best (RFC 9110, section
//! 12.5.3).

use tidegate_http::Headers;
use tidegate_http::field::{self, Known};

/// The content codings that the gate tells apart, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codings(u8);

/// A content coding that the gate knows (RFC 9110, section 8.4.1, RFC 7932 and RFC 8878).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Coding {
    /// None at all.
    Identity,
    /// `gzip`
    Gzip,
    /// `br`
    Brotli,
    /// `zstd`
    Zstd,
}

impl Coding {
    /// All of them.
    pub const ALL: [Coding; 4] = [Coding::Identity, Coding::Gzip, Coding::Brotli, Coding::Zstd];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// The coding with this name, in any case.
    pub fn of(name: &[u8]) -> Option<Coding> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Coding::Gzip);
        }
        let is_it = |coding: &Coding| name.eq_ignore_ascii_case(coding.name().as_bytes());
        Coding::ALL.into_iter().find(is_it)
    }
}

impl Codings {
    /// The codings a request accepts (RFC 9110, section 12.5.3). One that does not say gets no
    /// coding: it may accept any, but knows perhaps none.
    pub fn accepted(request: &Headers) -> Codings {
        let weights = Weights::of(request);
        let bits = weights.0.iter().zip(Coding::ALL);
        Codings(bits.fold(0, |set, (weight, coding)| set | (u8::from(*weight > 0) << coding as u8)))
    }

    /// Whether a coding is in it.
    pub const fn has(self, coding: Coding) -> bool {
        self.0 & (1 << coding as u8) != 0
    }

    /// The set as bits, below sixteen.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// Whether it holds all the codings that a response has.
    pub fn hold_coding_of(self, response: &Headers) -> bool {
        let mut codings = response.all(Known::ContentEncoding).flat_map(field::tokens).peekable();
        if codings.peek().is_none() {
            return self.has(Coding::Identity);
        }
        codings.all(|name| Coding::of(name).is_some_and(|coding| self.has(coding)))
    }
}

/// How much a request likes each of [`Coding::ALL`], in thousandths; 0 is not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Weights([u16; Coding::ALL.len()]);

impl Weights {
    /// What identity weighs where it is not excluded, nor mentioned: anything else is better.
    const UNSAID: u16 = 1;

    fn of(request: &Headers) -> Weights {
        let unsaid = [Weights::UNSAID, 0, 0, 0];
        if !request.has(Known::AcceptEncoding) {
            return Weights(unsaid);
        }
        let mut said = [None; Coding::ALL.len()];
        let mut others = None;
        for member in request.all(Known::AcceptEncoding).flat_map(field::tokens) {
            let (name, quality) = weighted(member);
            match Coding::of(name) {
                Some(coding) => said[coding as usize] = Some(quality),
                None if name == b"*" => others = Some(quality),
                None => {}
            }
        }
        let mut weights = unsaid;
        for (weight, said) in weights.iter_mut().zip(said) {
            *weight = said.or(others).unwrap_or(*weight);
        }
        Weights(weights)
    }
}

/// The coding, of those that are on offer, that a request likes best; of those it likes equally, the
/// one that is offered first. `None` if it accepts none of them.
pub fn preferred(request: &Headers, offered: &[Coding]) -> Option<Coding> {
    let weights = Weights::of(request);
    let weight = |coding: &Coding| weights.0[*coding as usize];
    let accepted = offered.iter().copied().filter(|coding| weight(coding) > 0);
    // The first of several that weigh the same.
    accepted.reduce(|best, coding| if weight(&coding) > weight(&best) { coding } else { best })
}

/// A member of a weighted list: the item, and its quality in thousandths (RFC 9110, section 12.4.2).
/// A quality that is none is the best one.
pub(crate) fn weighted(member: &[u8]) -> (&[u8], u16) {
    let mut parts = member.split(|&byte| byte == b';').map(field::trim);
    let item = parts.next().unwrap_or_default();
    let quality = parts.find_map(|part| match part {
        [b'q' | b'Q', b'=', value @ ..] => Some(value),
        _ => None,
    });
    (item, quality.and_then(thousandths).unwrap_or(1000))
}

fn thousandths(quality: &[u8]) -> Option<u16> {
    let (whole, decimals) = match quality {
        [whole @ (b'0' | b'1')] => (whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let mut sum = u16::from(whole - b'0') * 1000;
    for (digit, unit) in decimals.iter().zip([100, 10, 1]) {
        sum += digit.is_ascii_digit().then(|| u16::from(digit - b'0') * unit)?;
    }
    Some(sum.min(1000))
}

#[cfg(test)]
mod tests {
    use super::Coding::{Brotli, Gzip, Identity, Zstd};
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in lines {
            headers.push(name.as_bytes(), value.as_bytes());
        }
        headers
    }

    #[test]
    fn codings_are_a_set() {
        // RFC 9110, section 12.5.3
        let check = |lines: &[&str], expected: &[Coding]| {
            let lines: Vec<_> = lines.iter().map(|line| ("Accept-Encoding", *line)).collect();
            let codings = Codings::accepted(&headers(&lines));
            let seen: Vec<_> = Coding::ALL.into_iter().filter(|one| codings.has(*one)).collect();
            assert_eq!(seen, expected, "{lines:?}");
        };
        check(&[], &[Identity]);
        check(&[""], &[Identity]);
        check(&["gzip"], &[Identity, Gzip]);
        check(&["x-GZIP, Br"], &[Identity, Gzip, Brotli]);
        check(&["gzip, deflate", "br, zstd"], &[Identity, Gzip, Brotli, Zstd]);
        check(&["gzip;q=0, br"], &[Identity, Brotli]);
        check(&["gzip;q=0.000, br; Q=0.001"], &[Identity, Brotli]);
        check(&["identity;q=0, gzip"], &[Gzip]);
        check(&["*"], &[Identity, Gzip, Brotli, Zstd]);
        check(&["*;q=0"], &[]);
        check(&["gzip, *;q=0"], &[Gzip]);
        check(&["gzip;q=0, *"], &[Identity, Brotli, Zstd]);
        check(&["gzip;q=x"], &[Identity, Gzip]);
    }

    #[test]
    fn the_heaviest_coding_is_preferred() {
        let check = |value: &str, offered: &[Coding], expected| {
            let seen = preferred(&headers(&[("Accept-Encoding", value)]), offered);
            assert_eq!(seen, expected, "{value}");
        };
        let all = [Zstd, Brotli, Gzip, Identity];
        check("gzip, br, zstd", &all, Some(Zstd));
        check("gzip, br;q=0.9, zstd;q=0.5", &all, Some(Gzip));
        check("gzip;q=0.5", &all, Some(Gzip));
        check("gzip;q=0.5, identity", &all, Some(Identity));
        check("gzip;q=0.5, *;q=0.7", &all, Some(Zstd));
        check("deflate", &all, Some(Identity));
        check("", &all, Some(Identity));
        check("gzip", &[Brotli, Identity], Some(Identity));
        check("gzip", &[Brotli], None);
        check("identity;q=0", &[Identity], None);
        check("*;q=0", &all, None);
        assert_eq!(preferred(&Headers::new(), &all), Some(Identity));
    }

    #[test]
    fn qualities_are_thousandths() {
        // RFC 9110, section 12.4.2
        let check = |member: &str, expected: (&str, u16)| {
            assert_eq!(
                weighted(member.as_bytes()),
                (expected.0.as_bytes(), expected.1),
                "{member}"
            );
        };
        check("a", ("a", 1000));
        check("a;q=0", ("a", 0));
        check("a ; q=0.05", ("a", 50));
        check("a;x=1;Q=0.123", ("a", 123));
        check("a;q=1.000", ("a", 1000));
        check("a;q=1.5", ("a", 1000));
        for bad in ["a;q=2", "a;q=0.1234", "a;q=.5", "a;q=x", "a;q=", "a;q=-0"] {
            check(bad, ("a", 1000));
        }
    }
}
