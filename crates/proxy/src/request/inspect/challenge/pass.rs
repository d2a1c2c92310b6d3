//! Tickets and passes: what a client is given to work on, and what it brings back.
//!
//! A ticket is `EXPIRY.BITS.NONCE.SIGNATURE`, in hexadecimal digits. A pass is a ticket, a dot and a
//! decimal number such that SHA-256 of the whole begins with that many zero bits. The signature
//! (HMAC-SHA256, its first half) covers the ticket and its bearer: the site, the network of the
//! client's address and its user agent. So a pass is of no use to another client, for another site, or
//! after its time, and to check one takes nothing but the key.

use std::fmt::Write as _;
use std::net::IpAddr;

use aws_lc_rs::{constant_time, digest, hmac, rand};

use crate::settings::ChallengeKey;

const NONCE_BYTES: usize = 16;
const SIGNATURE_BYTES: usize = 16;
/// The longest number that ends a pass.
const COUNTER_DIGITS_MAX: usize = 20;
/// The longest pass: expiry and bits of sixteen and two digits, and the dots.
const PASS_BYTES_MAX: usize =
    16 + 2 + 2 * NONCE_BYTES + 2 * SIGNATURE_BYTES + COUNTER_DIGITS_MAX + 4;

/// Whom a pass is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bearer<'a> {
    /// The site's name.
    pub(super) site: &'a str,
    /// The client's address; none over a Unix socket.
    pub(super) address: Option<IpAddr>,
    pub(super) user_agent: &'a [u8],
}

/// What a client is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// Seconds since 1970 until which it is valid.
    expiry_s: u64,
    bits: u8,
    nonce: [u8; NONCE_BYTES],
    signature: [u8; SIGNATURE_BYTES],
}

/// What a client brings back, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pass<'a> {
    ticket: Ticket,
    text: &'a [u8],
}

impl Ticket {
    /// A new ticket; `None` if the system gives no random bytes.
    pub(super) fn issue(
        key: &ChallengeKey,
        bearer: &Bearer<'_>,
        bits: u8,
        expiry_s: u64,
    ) -> Option<Self> {
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce).ok()?;
        let mut ticket = Self { expiry_s, bits, nonce, signature: [0; SIGNATURE_BYTES] };
        ticket.signature = ticket.sign(key, bearer);
        Some(ticket)
    }

    /// The ticket's text.
    pub(super) fn text(&self) -> String {
        let Self { expiry_s, bits, nonce, signature } = self;
        format!("{expiry_s:x}.{bits:x}.{}.{}", hex(nonce), hex(signature))
    }

    /// What makes it the only one of its kind.
    pub(super) fn nonce(&self) -> String {
        hex(&self.nonce)
    }

    fn sign(&self, key: &ChallengeKey, bearer: &Bearer<'_>) -> [u8; SIGNATURE_BYTES] {
        let mut context = hmac::Context::with_key(&key.signer());
        // The key serves this alone, and each part tells its length: no two bearers sign alike.
        for part in [bearer.site.as_bytes(), &network(bearer.address), bearer.user_agent] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        context.update(&self.expiry_s.to_be_bytes());
        context.update(&[self.bits]);
        context.update(&self.nonce);
        let mut signature = [0; SIGNATURE_BYTES];
        signature.copy_from_slice(&context.sign().as_ref()[..SIGNATURE_BYTES]);
        signature
    }
}

impl<'a> Pass<'a> {
    /// A pass from a cookie's value; `None` where it is none.
    pub(super) fn read(text: &'a [u8]) -> Option<Self> {
        if text.len() > PASS_BYTES_MAX {
            return None;
        }
        let mut parts = text.split(|&byte| byte == b'.');
        let (expiry, bits) = (number(parts.next()?)?, number(parts.next()?)?);
        let (nonce, signature) = (bytes(parts.next()?)?, bytes(parts.next()?)?);
        let counter = parts.next()?;
        let is_counter = (1..=COUNTER_DIGITS_MAX).contains(&counter.len())
            && counter.iter().all(u8::is_ascii_digit);
        if !is_counter || parts.next().is_some() {
            return None;
        }
        let ticket = Ticket { expiry_s: expiry, bits: u8::try_from(bits).ok()?, nonce, signature };
        Some(Self { ticket, text })
    }

    /// Whether it was made for this client by somebody with this key, is valid now, and has cost as
    /// much work as is asked for.
    pub(super) fn holds(
        &self,
        key: &ChallengeKey,
        bearer: &Bearer<'_>,
        bits: u8,
        now_s: u64,
    ) -> bool {
        let ticket = &self.ticket;
        ticket.expiry_s > now_s
            && ticket.bits >= bits
            && constant_time::verify_slices_are_equal(&ticket.sign(key, bearer), &ticket.signature)
                .is_ok()
            && zero_bits(digest::digest(&digest::SHA256, self.text).as_ref())
                >= u32::from(ticket.bits)
    }
}

/// The network that a client may move in with its pass: /24 of IPv4, /64 of IPv6.
fn network(address: Option<IpAddr>) -> [u8; 8] {
    let mut network = [0; 8];
    match address.map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => network[..3].copy_from_slice(&address.octets()[..3]),
        Some(IpAddr::V6(address)) => network.copy_from_slice(&address.octets()[..8]),
        None => {}
    }
    network
}

fn zero_bits(hash: &[u8]) -> u32 {
    let whole = hash.iter().take_while(|&&byte| byte == 0).count();
    let rest = hash.get(whole).map_or(0, |byte| byte.leading_zeros());
    u32::try_from(whole).unwrap_or(u32::MAX).saturating_mul(8).saturating_add(rest)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A hexadecimal number in its shortest form.
fn number(text: &[u8]) -> Option<u64> {
    if text.len() > 1 && text[0] == b'0' || !text.iter().all(|&byte| is_digit(byte)) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// Exactly so many bytes in hexadecimal digits.
fn bytes<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.iter().all(|&byte| is_digit(byte)) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_800_000_000;
    const AGENT: &[u8] = b"Browser/1.0";

    fn bearer(address: &str) -> Bearer<'static> {
        Bearer { site: "shop", address: Some(address.parse().unwrap()), user_agent: AGENT }
    }

    /// Does a browser's work.
    fn solve(ticket: &Ticket) -> String {
        let text = ticket.text();
        (0..u32::MAX)
            .map(|counter| format!("{text}.{counter}"))
            .find(|pass| {
                let hash = digest::digest(&digest::SHA256, pass.as_bytes());
                zero_bits(hash.as_ref()) >= u32::from(ticket.bits)
            })
            .unwrap()
    }

    #[test]
    fn a_pass_is_for_its_bearer_its_time_and_its_work() {
        let key = ChallengeKey::of_secret("a secret that several gates share");
        let client = bearer("192.0.2.7");
        let ticket = Ticket::issue(&key, &client, 8, NOW_S + 60).unwrap();
        let pass = solve(&ticket);
        let holds = |key: &ChallengeKey, bearer: &Bearer<'_>, bits, now_s| {
            Pass::read(pass.as_bytes()).unwrap().holds(key, bearer, bits, now_s)
        };
        assert!(holds(&key, &client, 8, NOW_S));
        assert!(holds(&key, &client, 8, NOW_S + 59));
        assert!(holds(&key, &bearer("192.0.2.250"), 8, NOW_S), "the same network");
        assert!(holds(&key, &bearer("::ffff:192.0.2.7"), 8, NOW_S), "the same address");
        assert!(holds(&key, &client, 7, NOW_S), "less work is asked for");
        assert!(!holds(&key, &client, 8, NOW_S + 60), "its time is over");
        assert!(!holds(&key, &client, 9, NOW_S), "more work is asked for");
        assert!(!holds(&key, &bearer("192.0.3.7"), 8, NOW_S));
        assert!(!holds(&key, &Bearer { site: "blog", ..client }, 8, NOW_S));
        assert!(!holds(&key, &Bearer { user_agent: b"Bot", ..client }, 8, NOW_S));
        assert!(!holds(&key, &Bearer { address: None, ..client }, 8, NOW_S));
        let other = ChallengeKey::of_secret("another secret of the same length");
        assert!(!holds(&other, &client, 8, NOW_S));
        assert!(!holds(&ChallengeKey::of_process().unwrap(), &client, 8, NOW_S));
    }

    #[test]
    fn nothing_of_a_pass_can_be_changed() {
        let key = ChallengeKey::of_process().unwrap();
        let client = bearer("2001:db8::1");
        let ticket = Ticket::issue(&key, &client, 4, NOW_S + 60).unwrap();
        let check = |ticket: Ticket| {
            let pass = solve(&ticket);
            let pass = Pass::read(pass.as_bytes()).unwrap();
            assert!(!pass.holds(&key, &client, 0, NOW_S), "{:?}", pass.ticket);
        };
        check(Ticket { expiry_s: ticket.expiry_s + 1, ..ticket.clone() });
        check(Ticket { bits: 3, ..ticket.clone() });
        check(Ticket { bits: 5, ..ticket.clone() });
        check(Ticket { nonce: [7; NONCE_BYTES], ..ticket.clone() });
        check(Ticket { signature: [7; SIGNATURE_BYTES], ..ticket.clone() });
        let unworked = (0..u32::MAX)
            .map(|counter| format!("{}.{counter}", ticket.text()))
            .find(|pass| zero_bits(digest::digest(&digest::SHA256, pass.as_bytes()).as_ref()) < 4);
        let unworked = unworked.unwrap();
        assert!(!Pass::read(unworked.as_bytes()).unwrap().holds(&key, &client, 0, NOW_S));
    }

    #[test]
    fn what_is_no_pass_is_not_read_as_one() {
        let nonce = "0123456789abcdef0123456789abcdef";
        let pass = format!("6b49d200.10.{nonce}.{nonce}.12345");
        assert_eq!(Pass::read(pass.as_bytes()).unwrap().ticket.bits, 16);
        for wrong in [
            String::new(),
            "....".to_owned(),
            nonce.to_owned(),
            pass.replace("6b49d200", "06b49d200"),
            pass.replace("6b49d200", "6B49D200"),
            pass.replace("6b49d200", "+b49d200"),
            pass.replace("6b49d200", ""),
            pass.replace("6b49d200", "1ffffffffffffffff"),
            pass.replace(".10.", ".100."),
            pass.replace(".10.", ".1g."),
            pass.replacen(nonce, &nonce[1..], 1),
            pass.replacen(nonce, &format!("{nonce}0"), 1),
            pass.replacen(nonce, &nonce.to_uppercase(), 1),
            pass.replace("12345", ""),
            pass.replace("12345", "-1"),
            pass.replace("12345", "0x1"),
            pass.replace("12345", "123456789012345678901"),
            format!("{pass}."),
            format!("{pass}.1"),
            format!("{pass} "),
        ] {
            assert_eq!(Pass::read(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn zero_bits_are_counted_from_the_front() {
        let check = |hash: &[u8], expected| assert_eq!(zero_bits(hash), expected, "{hash:?}");
        check(&[], 0);
        check(&[0xff], 0);
        check(&[0x01], 7);
        check(&[0, 0x40], 9);
        check(&[0, 0, 0], 24);
    }
}
