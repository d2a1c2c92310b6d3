//! Numbers and addresses as text, appended without the formatting machinery.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The two digits of 0 to 99.
#[expect(clippy::cast_possible_truncation, reason = "digits are below ten")]
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Two digits; `n` is below 100.
#[inline]
pub(super) fn pair(n: u64) -> [u8; 2] {
    PAIRS[(n % 100) as usize]
}

/// A number in decimal.
#[inline]
pub(super) fn decimal(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    while n >= 100 {
        start -= 2;
        digits[start..start + 2].copy_from_slice(&pair(n));
        n /= 100;
    }
    let [tens, ones] = pair(n);
    start -= 1;
    digits[start] = ones;
    if n >= 10 {
        start -= 1;
        digits[start] = tens;
    }
    out.extend_from_slice(&digits[start..]);
}

/// A count of thousandths, with all three decimals: 1234 is `1.234`.
#[inline]
pub(super) fn thousandths(out: &mut Vec<u8>, n: u64) {
    decimal(out, n / 1000);
    let [tens, ones] = pair(n);
    let [_, hundreds] = pair(n / 100 % 10);
    out.extend_from_slice(&[b'.', hundreds, tens, ones]);
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A byte as two hex digits.
#[inline]
pub(super) fn hex(byte: u8) -> [u8; 2] {
    [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]
}

/// An address, in the form of RFC 5952 for IPv6.
pub(super) fn address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => ipv4(out, address),
        IpAddr::V6(address) => ipv6(out, address),
    }
}

fn ipv4(out: &mut Vec<u8>, address: Ipv4Addr) {
    let [first, rest @ ..] = address.octets();
    decimal(out, first.into());
    for octet in rest {
        out.push(b'.');
        decimal(out, octet.into());
    }
}

/// RFC 5952: no leading zeros, `::` for the first of the longest runs of at least two zero groups.
/// Mapped IPv4 addresses keep their dotted form; callers have made them IPv4 before.
fn ipv6(out: &mut Vec<u8>, address: Ipv6Addr) {
    if let Some(mapped) = address.to_ipv4_mapped() {
        out.extend_from_slice(b"::ffff:");
        return ipv4(out, mapped);
    }
    let groups = address.segments();
    let (start, end) = longest_zeros(groups);
    let part = |out: &mut Vec<u8>, groups: &[u16]| {
        for (index, group) in groups.iter().enumerate() {
            if index > 0 {
                out.push(b':');
            }
            let [high, low] = group.to_be_bytes();
            let digits = [hex(high), hex(low)];
            let digits = digits.as_flattened();
            let zeros = digits[..3].iter().take_while(|digit| **digit == b'0').count();
            out.extend_from_slice(&digits[zeros..]);
        }
    };
    part(out, &groups[..start]);
    if end > start {
        out.extend_from_slice(b"::");
    }
    part(out, &groups[end..]);
}

/// The first of the longest runs of at least two zero groups; an empty range at the end if none.
fn longest_zeros(groups: [u16; 8]) -> (usize, usize) {
    let mut best = (8, 8);
    let mut start = 0;
    for (index, group) in groups.into_iter().enumerate() {
        if group != 0 {
            start = index + 1;
        } else if index + 1 - start > (best.1 - best.0).max(1) {
            best = (start, index + 1);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn numbers_as_the_standard_library_writes_them() {
        let mut n: u64 = 1;
        for value in [0, 9, 10, 99, 100, 101, 999, 1_000, 65_535, u64::MAX - 1, u64::MAX] {
            assert_eq!(written(|out| decimal(out, value)), value.to_string());
        }
        for _ in 0..20_000 {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = n >> (n % 64);
            assert_eq!(written(|out| decimal(out, value)), value.to_string());
        }
    }

    #[test]
    fn thousandths_keep_their_zeros() {
        for (n, text) in [(0, "0.000"), (5, "0.005"), (70, "0.070"), (1_234, "1.234")] {
            assert_eq!(written(|out| thousandths(out, n)), text);
        }
        assert_eq!(written(|out| thousandths(out, 98_765_432_100)), "98765432.100");
    }

    #[test]
    fn addresses_as_the_standard_library_writes_them() {
        let check = |text: IpAddr| assert_eq!(written(|out| address(out, text)), text.to_string());
        for text in [
            "0.0.0.0",
            "192.0.2.1",
            "255.255.255.255",
            "::",
            "::1",
            "1::",
            "2001:db8::1",
            "2001:db8:0:1:1:1:1:1",
            "2001:0:0:1:0:0:0:1",
            "2001:db8:0:0:1:0:0:1",
            "fe80::10:a",
            "0:0:1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:0:0",
            "0:1:0:1:0:1:0:1",
            "::ffff:192.0.2.1",
        ] {
            check(text.parse().expect("an address"));
        }
        let mut n: u128 = 1;
        for _ in 0..20_000 {
            n = n.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(0x9e37_79b9);
            // Holes of zero groups are where the forms differ.
            let mut groups = Ipv6Addr::from(n).segments();
            for (index, group) in groups.iter_mut().enumerate() {
                if n >> (8 + index) & 1 == 1 {
                    *group = 0;
                }
            }
            check(IpAddr::V6(Ipv6Addr::from(groups)));
        }
    }
}
