//! `@ipMatch` and `@ipMatchFromFile`: whether an address is in a set of networks.

use std::net::{IpAddr, Ipv6Addr};

use super::Fault;

/// A set of addresses: ranges that neither overlap nor touch, so that a look-up is a binary search.
///
/// IPv4 addresses within IPv6 (`::ffff:192.0.2.1`, RFC 4291 section 2.5.5.2) are IPv4 addresses
/// here, in the set as in questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The first and the last address of each range, in ascending order.
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

impl Addresses {
    /// Reads the argument of `@ipMatch`: addresses and networks, parted by commas.
    pub fn parse(argument: &[u8]) -> Result<Self, Fault> {
        let mut set = Self::default();
        set.add_list(super::readable(argument)?)?;
        if set.v4.is_empty() && set.v6.is_empty() {
            return Err(Fault::new("there is no address").hint("as in 192.0.2.1,2001:db8::/32"));
        }
        set.merge();
        Ok(set)
    }

    /// Reads the contents of files: lists as in [`Self::parse`], on any number of lines, with
    /// comments from `#` to the end of the line. The set may be empty.
    pub fn read<'a>(contents: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, Fault> {
        let mut set = Self::default();
        for content in contents {
            for (number, line) in super::readable(content)?.lines().enumerate() {
                let list = line.split('#').next().unwrap_or_default();
                set.add_list(list).map_err(|fault| Fault {
                    message: format!("line {}: {}", number + 1, fault.message),
                    ..fault
                })?;
            }
        }
        set.merge();
        Ok(set)
    }

    /// Whether the address is in one of the networks.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => holds(&self.v4, address.to_bits()),
            IpAddr::V6(address) => holds(&self.v6, address.to_bits()),
        }
    }

    /// Whether the value is an address, and in one of the networks.
    pub fn contains_text(&self, value: &[u8]) -> bool {
        str::from_utf8(value)
            .ok()
            .and_then(|value| value.parse().ok())
            .is_some_and(|address| self.contains(address))
    }

    fn add_list(&mut self, list: &str) -> Result<(), Fault> {
        list.split(',').map(str::trim).filter(|item| !item.is_empty()).try_for_each(|item| {
            self.add(item).ok_or_else(|| {
                Fault::new(format!("`{item}` is neither an address nor a network"))
                    .hint("as in 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32")
            })
        })
    }

    /// Adds an address, or a network with the length of its prefix.
    fn add(&mut self, item: &str) -> Option<()> {
        let (address, length) = match item.split_once('/') {
            // The grammar of Rust's numbers is wider than that of prefix lengths.
            Some((_, length)) if length.starts_with('+') => return None,
            Some((address, length)) => (address, Some(length.parse::<u32>().ok()?)),
            None => (item, None),
        };
        match address.parse::<IpAddr>().ok()? {
            IpAddr::V4(address) => self.add_v4(address.to_bits(), length.unwrap_or(32)),
            IpAddr::V6(address) => self.add_v6(address, length.unwrap_or(128)),
        }
    }

    fn add_v4(&mut self, address: u32, length: u32) -> Option<()> {
        if length > u32::BITS {
            return None;
        }
        let hosts = u32::MAX.checked_shr(length).unwrap_or(0);
        self.v4.push((address & !hosts, address | hosts));
        Some(())
    }

    fn add_v6(&mut self, address: Ipv6Addr, length: u32) -> Option<()> {
        if let (Some(address), 96..) = (address.to_ipv4_mapped(), length) {
            return self.add_v4(address.to_bits(), length - 96);
        }
        if length > u128::BITS {
            return None;
        }
        let (address, hosts) = (address.to_bits(), u128::MAX.checked_shr(length).unwrap_or(0));
        self.v6.push((address & !hosts, address | hosts));
        Some(())
    }

    fn merge(&mut self) {
        merge(&mut self.v4, |address| address.checked_add(1));
        merge(&mut self.v6, |address| address.checked_add(1));
    }
}

/// Sorts ranges and joins those that overlap or touch.
fn merge<A: Copy + Ord>(ranges: &mut Vec<(A, A)>, next: impl Fn(A) -> Option<A>) {
    ranges.sort_unstable();
    ranges.dedup_by(|&mut (first, last), (_, end)| {
        let joins = next(*end).is_none_or(|behind| first <= behind);
        if joins {
            *end = last.max(*end);
        }
        joins
    });
    ranges.shrink_to_fit();
}

/// Whether one of the merged ranges holds the address.
fn holds<A: Copy + Ord>(ranges: &[(A, A)], address: A) -> bool {
    let behind = ranges.partition_point(|&(first, _)| first <= address);
    ranges[..behind].last().is_some_and(|&(_, last)| address <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(argument: &str) -> Addresses {
        Addresses::parse(argument.as_bytes()).expect("addresses")
    }

    fn check(argument: &str, inside: &[&str], outside: &[&str]) {
        let set = set(argument);
        for address in inside {
            assert!(set.contains_text(address.as_bytes()), "{address} in {argument}");
        }
        for address in outside {
            assert!(!set.contains_text(address.as_bytes()), "{address} not in {argument}");
        }
    }

    #[test]
    fn addresses_and_networks() {
        check("192.0.2.1", &["192.0.2.1", "::ffff:192.0.2.1"], &["192.0.2.0", "192.0.2.2"]);
        check("10.1.2.3/8", &["10.0.0.0", "10.255.255.255"], &["9.255.255.255", "11.0.0.0"]);
        check("0.0.0.0/0", &["0.0.0.0", "255.255.255.255"], &["::", "::1"]);
        check("2001:db8::/32", &["2001:db8::", "2001:DB8:ffff::1"], &["2001:db9::", "32.1.13.184"]);
        check("::1", &["::1", "0:0:0:0:0:0:0:1"], &["::", "::2", "0.0.0.1"]);
        check("::/0", &["::", "ffff::"], &["1.2.3.4"]);
        check("::ffff:10.0.0.0/104", &["10.9.8.7", "::ffff:10.9.8.7"], &["11.0.0.0"]);
        check("192.0.2.1, 10.0.0.0/30,,::1 ", &["192.0.2.1", "10.0.0.3", "::1"], &["10.0.0.4"]);
    }

    #[test]
    fn what_is_no_address_is_in_no_set() {
        check(
            "0.0.0.0/0,::/0",
            &[],
            &["", "example.org", "1.2.3", "1.2.3.4 ", "1.2.3.4/32", "[::1]"],
        );
    }

    #[test]
    fn ranges_are_merged() {
        let merged = set("10.0.0.2/31,10.0.0.0/31,10.0.0.4,10.0.0.1,10.0.0.6,255.255.255.255");
        let expected =
            [(0x0a00_0000, 0x0a00_0004), (0x0a00_0006, 0x0a00_0006), (u32::MAX, u32::MAX)];
        assert_eq!(merged.v4, expected);
        assert_eq!(set("0.0.0.0/0,255.255.255.255,1.2.3.4").v4, [(0, u32::MAX)]);
        assert_eq!(set("::/1,8000::/1").v6, [(0, u128::MAX)]);
    }

    #[test]
    fn files_have_lists_and_comments() {
        let file = b"# offices\n10.0.0.0/8 # all\n\n192.0.2.1, ::1\r\n";
        let set = Addresses::read([&file[..], b"192.0.2.2"]).expect("addresses");
        for address in ["10.1.1.1", "192.0.2.1", "192.0.2.2", "::1"] {
            assert!(set.contains_text(address.as_bytes()), "{address}");
        }
        assert_eq!(Addresses::read([&b"# none yet"[..]]), Ok(Addresses::default()));
        let fault = Addresses::read([&b"::1\n10.0.0"[..]]).expect_err("no address");
        assert_eq!(fault.message, "line 2: `10.0.0` is neither an address nor a network");
    }

    #[test]
    fn refuses_what_is_no_network() {
        for argument in
            ["", ",", "10.0.0.0/33", "::/129", "10.0.0.0/255.0.0.0", "10.0.0.0/+8", "a.b"]
        {
            assert!(Addresses::parse(argument.as_bytes()).is_err(), "{argument:?}");
        }
    }
}
