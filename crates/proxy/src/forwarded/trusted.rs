//! Whose forwarding fields are believed.

use std::net::IpAddr;

use ipnet::IpNet;

/// A set of networks, as sorted ranges: a look-up is a binary search.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    v4: Box<[(u32, u32)]>,
    v6: Box<[(u128, u128)]>,
}

impl TrustedProxies {
    /// The set of all addresses in these networks. Networks of IPv4-mapped IPv6 addresses mean the
    /// IPv4 ones.
    pub fn new(nets: &[IpNet]) -> TrustedProxies {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for net in nets {
            match (canonical(net.network()), canonical(net.broadcast())) {
                (IpAddr::V4(first), IpAddr::V4(last)) => v4.push((first.into(), last.into())),
                (IpAddr::V6(first), IpAddr::V6(last)) => v6.push((first.into(), last.into())),
                // A network shorter than ::ffff:0:0/96 begins or ends outside of the mapped range,
                // unless it is one of those that hold it whole, such as ::/0: then IPv6 alone.
                (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => {
                    if let (IpAddr::V6(first), IpAddr::V6(last)) = (net.network(), net.broadcast())
                    {
                        v6.push((first.into(), last.into()));
                    }
                }
            }
        }
        TrustedProxies { v4: merged(v4), v6: merged(v6) }
    }

    /// Whether an address is in the set. An IPv4-mapped one counts as its IPv4 address.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        match canonical(address) {
            IpAddr::V4(address) => holds(&self.v4, u32::from(address)),
            IpAddr::V6(address) => holds(&self.v6, u128::from(address)),
        }
    }
}

/// IPv4 for an IPv4-mapped address (RFC 4291, section 2.5.5.2), as which a socket that listens on
/// both families shows IPv4 clients.
#[inline]
pub(super) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

#[inline]
fn holds<T: Ord + Copy>(ranges: &[(T, T)], address: T) -> bool {
    let behind = ranges.partition_point(|(first, _)| *first <= address);
    behind.checked_sub(1).is_some_and(|position| address <= ranges[position].1)
}

fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Box<[(T, T)]> {
    ranges.sort_unstable();
    let mut merged: Vec<(T, T)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_their_networks() {
        let check = |nets: &[&str], address: &str, expected: bool| {
            let parsed: Vec<IpNet> = nets.iter().map(|net| net.parse().unwrap()).collect();
            let got = TrustedProxies::new(&parsed).contains(address.parse().unwrap());
            assert_eq!(got, expected, "{address} in {nets:?}");
        };
        check(&[], "127.0.0.1", false);
        check(&["10.0.0.0/8"], "10.255.255.255", true);
        check(&["10.0.0.0/8"], "11.0.0.0", false);
        check(&["10.0.0.0/8"], "9.255.255.255", false);
        check(&["10.0.0.0/8"], "::ffff:10.1.2.3", true);
        check(&["::ffff:10.0.0.0/104"], "10.1.2.3", true);
        check(&["0.0.0.0/0"], "203.0.113.9", true);
        check(&["0.0.0.0/0"], "2001:db8::1", false);
        check(&["::/0"], "2001:db8::1", true);
        check(&["::/0"], "203.0.113.9", false);
        check(&["2001:db8::/32", "192.0.2.7/32"], "2001:db8:ffff::", true);
        check(&["2001:db8::/32", "192.0.2.7/32"], "192.0.2.7", true);
        check(&["2001:db8::/32", "192.0.2.7/32"], "192.0.2.8", false);
        // Within and beside one another, in any order.
        check(&["10.1.0.0/16", "10.0.0.0/8", "10.2.0.0/16"], "10.200.0.1", true);
        check(&["10.1.0.0/16", "10.3.0.0/16"], "10.2.0.1", false);
        check(&["10.3.0.0/16", "10.1.0.0/16"], "10.1.9.9", true);
    }
}
