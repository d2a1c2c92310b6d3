//! The PROXY protocol, versions 1 and 2: who is at the other end of a connection that a proxy made.
//!
//! After the specification by HAProxy (`doc/proxy-protocol.txt`, 2020/03/05; section numbers are
//! its). A header comes before everything else on a connection. It is believed only where a listener
//! is told to expect one, and then one is required: a port that takes both would let any client make
//! up an address.
//!
//! [`parse`] is a pure function of the bytes so far; it asks for more with `None`. Nothing here
//! depends on any other crate.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest header of version 1, its CRLF included (section 2.1).
pub const V1_BYTES_MAX: usize = 107;
/// The longest header of version 2 that is accepted. Addresses take 232 bytes at most; the rest is
/// for TLVs, of which a client certificate's names are the longest in use.
pub const V2_BYTES_MAX: usize = 4096;

/// The first bytes of version 2 (section 2.2): no text protocol begins like this.
const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const V2_HEAD_BYTES: usize = 16;
const V1_PREFIX: &[u8; 6] = b"PROXY ";
/// The TLV that holds a CRC-32C of the whole header (section 2.2.3).
const TLV_CRC32C: u8 = 0x03;
/// A Unix address (section 2.2.1).
const UNIX_BYTES: usize = 108;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The connection is the proxy's own, as for a health check: the socket's addresses are true.
    Local,
    /// The proxy cannot say from where: the socket's addresses have to do.
    Unknown,
    /// The connection stands for a TCP connection.
    Tcp {
        /// The client.
        source: SocketAddr,
        /// What the client connected to.
        destination: SocketAddr,
    },
    /// The connection stands for one on a Unix socket; its paths say nothing of use.
    Unix,
}

/// Why there is no valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The first bytes are no header's.
    Missing,
    /// Version 1: no end within [`V1_BYTES_MAX`] bytes, or no CR before the LF.
    Line,
    /// Version 1: neither `TCP4`, nor `TCP6`, nor `UNKNOWN`.
    Protocol,
    /// Version 1: not two addresses of the family and two ports, between single spaces.
    Addresses,
    /// Version 2: another version.
    Version,
    /// Version 2: neither `LOCAL` nor `PROXY`.
    Command,
    /// Version 2: a family or transport that the specification does not know.
    Family,
    /// Version 2: datagrams, which no TCP connection can stand for.
    Datagram,
    /// Version 2: longer than [`V2_BYTES_MAX`].
    TooLong,
    /// Version 2: too short for the addresses of its family.
    TooShort,
    /// Version 2: a TLV that ends behind the header.
    Tlv,
    /// Version 2: the checksum is wrong.
    Checksum,
}

/// The header at the front of `input` and its length; `None` if it has not come whole.
pub fn parse(input: &[u8]) -> Result<Option<(Header, usize)>, Error> {
    if input.starts_with(V2_SIGNATURE) {
        return parse_v2(input);
    }
    if input.starts_with(V1_PREFIX) {
        return parse_v1(input);
    }
    if V2_SIGNATURE.starts_with(input) || V1_PREFIX.starts_with(input) {
        return Ok(None);
    }
    Err(Error::Missing)
}

fn parse_v1(input: &[u8]) -> Result<Option<(Header, usize)>, Error> {
    let head = &input[..input.len().min(V1_BYTES_MAX)];
    let Some(end) = head.iter().position(|byte| *byte == b'\n') else {
        return if head.len() < V1_BYTES_MAX { Ok(None) } else { Err(Error::Line) };
    };
    let line = head[..end].strip_suffix(b"\r").ok_or(Error::Line)?;
    let line = std::str::from_utf8(line).map_err(|_| Error::Line)?;
    let rest = line.get(V1_PREFIX.len()..).ok_or(Error::Line)?;
    let (protocol, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let header = match protocol {
        // Whatever follows has to be ignored (section 2.1).
        "UNKNOWN" => Header::Unknown,
        "TCP4" => v1_addresses::<Ipv4Addr>(rest)?,
        "TCP6" => v1_addresses::<Ipv6Addr>(rest)?,
        _ => return Err(Error::Protocol),
    };
    Ok(Some((header, end + 1)))
}

fn v1_addresses<A: std::str::FromStr + Into<IpAddr>>(text: &str) -> Result<Header, Error> {
    let mut parts = text.split(' ');
    let mut next = || parts.next().ok_or(Error::Addresses);
    let address = |text: &str| text.parse::<A>().map(Into::into).map_err(|_| Error::Addresses);
    let source = address(next()?)?;
    let destination = address(next()?)?;
    let source_port = v1_port(next()?)?;
    let destination_port = v1_port(next()?)?;
    if parts.next().is_some() {
        return Err(Error::Addresses);
    }
    Ok(Header::Tcp {
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
    })
}

/// Decimal digits without sign or leading zero (section 2.1).
fn v1_port(text: &str) -> Result<u16, Error> {
    let canonical = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| canonical).ok_or(Error::Addresses)
}

fn parse_v2(input: &[u8]) -> Result<Option<(Header, usize)>, Error> {
    let Some((head, rest)) = input.split_first_chunk::<V2_HEAD_BYTES>() else { return Ok(None) };
    let [.., version_command, family, length_high, length_low] = *head;
    if version_command >> 4 != 2 {
        return Err(Error::Version);
    }
    let length = usize::from(u16::from_be_bytes([length_high, length_low]));
    if V2_HEAD_BYTES + length > V2_BYTES_MAX {
        return Err(Error::TooLong);
    }
    let command = version_command & 0xF;
    if command > 1 {
        return Err(Error::Command);
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    let (header, tlvs) = if command == 0 {
        // The family has to be ignored, and the addresses with it (section 2.2).
        let skipped = address_bytes(family).unwrap_or(length).min(length);
        (Header::Local, &body[skipped..])
    } else {
        v2_addresses(family, body)?
    };
    check_tlvs(tlvs, &input[..V2_HEAD_BYTES + length])?;
    Ok(Some((header, V2_HEAD_BYTES + length)))
}

/// How many bytes the addresses of a family take.
fn address_bytes(family: u8) -> Option<usize> {
    match family >> 4 {
        0 => Some(0),
        1 => Some(12),
        2 => Some(36),
        3 => Some(2 * UNIX_BYTES),
        _ => None,
    }
}

fn v2_addresses(family: u8, body: &[u8]) -> Result<(Header, &[u8]), Error> {
    let bytes = address_bytes(family).ok_or(Error::Family)?;
    let (addresses, tlvs) = body.split_at_checked(bytes).ok_or(Error::TooShort)?;
    let header = match (family >> 4, family & 0xF) {
        (_, transport) if transport > 2 => return Err(Error::Family),
        (0, _) | (_, 0) => Header::Unknown,
        (_, 2) => return Err(Error::Datagram),
        (1, _) => v2_tcp::<4, Ipv4Addr>(addresses).ok_or(Error::TooShort)?,
        (2, _) => v2_tcp::<16, Ipv6Addr>(addresses).ok_or(Error::TooShort)?,
        _ => Header::Unix,
    };
    Ok((header, tlvs))
}

fn v2_tcp<const N: usize, A: From<[u8; N]> + Into<IpAddr>>(bytes: &[u8]) -> Option<Header> {
    let (source, rest) = bytes.split_first_chunk::<N>()?;
    let (destination, rest) = rest.split_first_chunk::<N>()?;
    let (source_port, rest) = rest.split_first_chunk()?;
    let (destination_port, _) = rest.split_first_chunk()?;
    let address = |bytes: &[u8; N], port: &[u8; 2]| {
        SocketAddr::new(A::from(*bytes).into(), u16::from_be_bytes(*port))
    };
    Some(Header::Tcp {
        source: address(source, source_port),
        destination: address(destination, destination_port),
    })
}

/// Steps over TLVs, all of which have to fit, and checks the checksum if there is one.
fn check_tlvs(mut tlvs: &[u8], header: &[u8]) -> Result<(), Error> {
    while !tlvs.is_empty() {
        let (head, rest) = tlvs.split_first_chunk::<3>().ok_or(Error::Tlv)?;
        let [kind, length_high, length_low] = *head;
        let length = usize::from(u16::from_be_bytes([length_high, length_low]));
        let (value, rest) = rest.split_at_checked(length).ok_or(Error::Tlv)?;
        if kind == TLV_CRC32C {
            let stated: [u8; 4] = value.try_into().map_err(|_| Error::Tlv)?;
            // Computed with zeros in the place of the checksum itself (section 2.2.3).
            let at = header.len() - rest.len() - stated.len();
            let crc = [&header[..at], &[0; 4], rest].into_iter().fold(!0, crc32c);
            if !crc != u32::from_be_bytes(stated) {
                return Err(Error::Checksum);
            }
        }
        tlvs = rest;
    }
    Ok(())
}

/// CRC-32C (RFC 3720, appendix B.4), bit by bit: headers are short, and few carry one.
fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            let carry = crc & 1;
            (crc >> 1) ^ (0x82F6_3B78 * carry)
        })
    })
}

/// Appends a header of version 1 that says source and destination, or `UNKNOWN` where there are none
/// or they are of different families.
pub fn write_v1(out: &mut Vec<u8>, addresses: Option<(SocketAddr, SocketAddr)>) {
    let Some((source, destination)) = alike(addresses) else {
        out.extend_from_slice(b"PROXY UNKNOWN\r\n");
        return;
    };
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let line = format!(
        "PROXY {family} {} {} {} {}\r\n",
        source.ip(),
        destination.ip(),
        source.port(),
        destination.port()
    );
    out.extend_from_slice(line.as_bytes());
}

/// Appends a header of version 2, without TLVs, that says source and destination; `LOCAL` where
/// there are none or they are of different families, so that the receiver goes by its socket.
pub fn write_v2(out: &mut Vec<u8>, addresses: Option<(SocketAddr, SocketAddr)>) {
    out.extend_from_slice(V2_SIGNATURE);
    let Some((source, destination)) = alike(addresses) else {
        out.extend_from_slice(&[0x20, 0, 0, 0]);
        return;
    };
    // PROXY; TCP over IPv4 or IPv6; the bytes of two addresses and two ports.
    out.extend_from_slice(if source.is_ipv4() {
        &[0x21, 0x11, 0, 12]
    } else {
        &[0x21, 0x21, 0, 36]
    });
    for address in [source.ip(), destination.ip()] {
        match address {
            IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
}

/// Addresses of one family, IPv4-mapped ones as IPv4.
fn alike(addresses: Option<(SocketAddr, SocketAddr)>) -> Option<(SocketAddr, SocketAddr)> {
    let canonical = |it: SocketAddr| SocketAddr::new(it.ip().to_canonical(), it.port());
    let (source, destination) = addresses.map(|(it, other)| (canonical(it), canonical(other)))?;
    (source.is_ipv4() == destination.is_ipv4()).then_some((source, destination))
}

impl Error {
    /// One word for metrics and logs.
    pub const fn code(self) -> &'static str {
        match self {
            Error::Missing => "proxy_missing",
            Error::Line => "proxy_line",
            Error::Protocol => "proxy_protocol",
            Error::Addresses => "proxy_addresses",
            Error::Version => "proxy_version",
            Error::Command => "proxy_command",
            Error::Family => "proxy_family",
            Error::Datagram => "proxy_datagram",
            Error::TooLong => "proxy_too_long",
            Error::TooShort => "proxy_too_short",
            Error::Tlv => "proxy_tlv",
            Error::Checksum => "proxy_checksum",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Error::Missing => "the connection does not begin with a PROXY header",
            Error::Line => "the PROXY line has no proper end",
            Error::Protocol => "the PROXY line names an unknown protocol",
            Error::Addresses => "the PROXY line's addresses or ports are malformed",
            Error::Version => "the PROXY header has an unknown version",
            Error::Command => "the PROXY header has an unknown command",
            Error::Family => "the PROXY header has an unknown address family or transport",
            Error::Datagram => "the PROXY header speaks of datagrams",
            Error::TooLong => "the PROXY header is too long",
            Error::TooShort => "the PROXY header is too short for its addresses",
            Error::Tlv => "a TLV of the PROXY header does not fit",
            Error::Checksum => "the PROXY header's checksum is wrong",
        })
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(source: &str, destination: &str) -> Header {
        Header::Tcp { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
    }

    fn v2(version_command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = V2_SIGNATURE.to_vec();
        bytes.extend([version_command, family]);
        bytes.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn v4_body(tlvs: &[u8]) -> Vec<u8> {
        [&[192, 0, 2, 1, 198, 51, 100, 7, 0x30, 0x39, 1, 0xBB], tlvs].concat()
    }

    /// A whole header is parsed with and without bytes behind it, and any part of it asks for more.
    fn check(input: &[u8], expected: Result<Header, Error>) {
        let whole = expected.map(|header| Some((header, input.len())));
        assert_eq!(parse(input), whole, "{input:?}");
        let followed = [input, b"GET / HTTP/1.1\r\n"].concat();
        assert_eq!(parse(&followed), whole, "{input:?} and more");
        if expected.is_ok() {
            for length in 0..input.len() {
                assert_eq!(parse(&input[..length]), Ok(None), "{length} bytes of {input:?}");
            }
        }
    }

    #[test]
    fn version_1_is_read() {
        check(
            b"PROXY TCP4 192.0.2.1 198.51.100.7 12345 443\r\n",
            Ok(tcp("192.0.2.1:12345", "198.51.100.7:443")),
        );
        check(
            b"PROXY TCP6 2001:db8::1 2001:db8::2 0 65535\r\n",
            Ok(tcp("[2001:db8::1]:0", "[2001:db8::2]:65535")),
        );
        check(b"PROXY UNKNOWN\r\n", Ok(Header::Unknown));
        check(b"PROXY UNKNOWN what ever, really\r\n", Ok(Header::Unknown));
        let longest = b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535";
        let longest = [&longest[..], &[b'x'; 48], b"\r\n"].concat();
        assert_eq!(longest.len(), V1_BYTES_MAX);
        check(&longest, Ok(Header::Unknown));
    }

    #[test]
    fn version_1_is_refused() {
        let check = |line: &str, expected| check(line.as_bytes(), Err(expected));
        check("PROXY TCP4 192.0.2.1 198.51.100.7 1 2\n", Error::Line);
        check("PROXY \r\n", Error::Protocol);
        check("PROXY tcp4 192.0.2.1 198.51.100.7 1 2\r\n", Error::Protocol);
        check("PROXY UDP4 192.0.2.1 198.51.100.7 1 2\r\n", Error::Protocol);
        check("PROXY  TCP4 192.0.2.1 198.51.100.7 1 2\r\n", Error::Protocol);
        for addresses in [
            "",
            "192.0.2.1",
            "192.0.2.1 198.51.100.7",
            "192.0.2.1 198.51.100.7 1",
            "192.0.2.1 198.51.100.7 1 2 ",
            "192.0.2.1 198.51.100.7 1 2 3",
            "192.0.2.1  198.51.100.7 1 2",
            "192.0.2.1 198.51.100.7 01 2",
            "192.0.2.1 198.51.100.7 +1 2",
            "192.0.2.1 198.51.100.7 65536 2",
            "192.0.2.1 198.51.100.7 1 -2",
            "192.0.2.01 198.51.100.7 1 2",
            "::1 ::2 1 2",
            "192.0.2.1 ::2 1 2",
        ] {
            check(&format!("PROXY TCP4 {addresses}\r\n"), Error::Addresses);
        }
        check("PROXY TCP6 192.0.2.1 198.51.100.7 1 2\r\n", Error::Addresses);
        super::tests::check(
            &[b"PROXY UNKNOWN ".as_slice(), &[b'x'; 93]].concat(),
            Err(Error::Line),
        );
        super::tests::check(b"PROXY UNKNOWN \xFF\r\n", Err(Error::Line));
    }

    #[test]
    fn version_2_is_read() {
        check(&v2(0x21, 0x11, &v4_body(&[])), Ok(tcp("192.0.2.1:12345", "198.51.100.7:443")));
        let v6 = [[0x20; 16].as_slice(), &[0x21; 16], &[0, 80, 1, 0xBB]].concat();
        let [source, destination] = [0x2020_u16, 0x2121].map(|group| Ipv6Addr::from([group; 8]));
        check(
            &v2(0x21, 0x21, &v6),
            Ok(Header::Tcp {
                source: SocketAddr::new(source.into(), 80),
                destination: SocketAddr::new(destination.into(), 443),
            }),
        );
        check(&v2(0x21, 0x31, &[0; 216]), Ok(Header::Unix));
        check(&v2(0x21, 0x00, &[]), Ok(Header::Unknown));
        check(&v2(0x20, 0x00, &[]), Ok(Header::Local));
        check(&v2(0x20, 0x11, &v4_body(&[])), Ok(Header::Local));
        check(&v2(0x20, 0x11, &[1, 2, 3]), Ok(Header::Local));
        check(&v2(0x20, 0xFF, &[9; 40]), Ok(Header::Local));
        let tlvs = [0x04, 0, 2, 0, 0, 0xEA, 0, 0, 0x20, 0, 1, 7];
        check(&v2(0x21, 0x11, &v4_body(&tlvs)), Ok(tcp("192.0.2.1:12345", "198.51.100.7:443")));
    }

    #[test]
    fn version_2_is_refused() {
        let check = |input: Vec<u8>, expected| check(&input, Err(expected));
        check(v2(0x11, 0x11, &v4_body(&[])), Error::Version);
        check(v2(0x31, 0x11, &v4_body(&[])), Error::Version);
        check(v2(0x22, 0x11, &v4_body(&[])), Error::Command);
        check(v2(0x21, 0x41, &v4_body(&[])), Error::Family);
        check(v2(0x21, 0x13, &v4_body(&[])), Error::Family);
        check(v2(0x21, 0x12, &v4_body(&[])), Error::Datagram);
        check(v2(0x21, 0x11, &v4_body(&[])[..11]), Error::TooShort);
        check(v2(0x21, 0x21, &v4_body(&[])), Error::TooShort);
        check(v2(0x21, 0x31, &[0; 215]), Error::TooShort);
        check(v2(0x21, 0x11, &v4_body(&[4, 0])), Error::Tlv);
        check(v2(0x21, 0x11, &v4_body(&[4, 0, 1])), Error::Tlv);
        check(v2(0x21, 0x11, &v4_body(&[4, 0xFF, 0xFF, 0])), Error::Tlv);
        check(v2(0x21, 0x11, &v4_body(&[3, 0, 1, 0])), Error::Tlv);
        check(v2(0x21, 0x11, &vec![0; V2_BYTES_MAX - V2_HEAD_BYTES + 1]), Error::TooLong);
        // Refused by its length alone, before anything is waited for.
        assert_eq!(parse(&v2(0x21, 0x11, &vec![0; 60_000])[..16]), Err(Error::TooLong));
    }

    #[test]
    fn other_protocols_are_not_mistaken_for_it() {
        let others: [&[u8]; 7] = [
            b"GET / HTTP/1.1\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"PUT / HTTP/1.1\r\n",
            b"\x16\x03\x01",
            b"\r\n\r\nGET",
            b"PROXYTCP4 ",
            b"proxy TCP4 ",
        ];
        for other in others {
            assert_eq!(parse(other), Err(Error::Missing));
        }
        assert_eq!(parse(b""), Ok(None));
    }

    #[test]
    fn the_checksum_is_checked() {
        // "123456789" is the check value of the CRC catalogue.
        assert_eq!(!crc32c(!0, b"123456789"), 0xE306_9283);
        let mut header = v2(0x21, 0x11, &v4_body(&[0x20, 0, 1, 7, 3, 0, 4, 0, 0, 0, 0, 4, 0, 0]));
        let at = header.len() - 7;
        let crc = !crc32c(!0, &header);
        header[at..at + 4].copy_from_slice(&crc.to_be_bytes());
        check(&header, Ok(tcp("192.0.2.1:12345", "198.51.100.7:443")));
        for position in 16..header.len() - 14 {
            let mut broken = header.clone();
            broken[position] ^= 1;
            assert_eq!(parse(&broken), Err(Error::Checksum), "byte {position}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let addresses = |source: &str, destination: &str| {
            Some((source.parse().unwrap(), destination.parse().unwrap()))
        };
        let read =
            |write: fn(&mut Vec<u8>, Option<(SocketAddr, SocketAddr)>), addresses, expected| {
                let mut out = Vec::new();
                write(&mut out, addresses);
                check(&out, Ok(expected));
            };
        for write in [write_v1, write_v2] {
            let v4 = addresses("192.0.2.1:12345", "198.51.100.7:443");
            read(write, v4, tcp("192.0.2.1:12345", "198.51.100.7:443"));
            let v6 = addresses("[2001:db8::1]:1", "[2001:db8::2]:65535");
            read(write, v6, tcp("[2001:db8::1]:1", "[2001:db8::2]:65535"));
            let mapped = addresses("[::ffff:192.0.2.1]:5", "198.51.100.7:443");
            read(write, mapped, tcp("192.0.2.1:5", "198.51.100.7:443"));
        }
        for none in [None, addresses("[2001:db8::1]:5", "198.51.100.7:443")] {
            read(write_v1, none, Header::Unknown);
            read(write_v2, none, Header::Local);
        }
    }

    #[test]
    fn no_bytes_make_it_panic_and_more_bytes_never_change_a_header() {
        let mut seed = 1_u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize
        };
        let starts = [
            v2(0x21, 0x11, &v4_body(&[3, 0, 4, 0, 0, 0, 0])),
            v2(0x21, 0x21, &[0; 40]),
            b"PROXY TCP4 192.0.2.1 198.51.100.7 12345 443\r\n".to_vec(),
        ];
        for _ in 0..20_000 {
            let mut bytes = starts[random() % starts.len()].clone();
            for _ in 0..random() % 4 {
                let position = random() % bytes.len();
                bytes[position] = u8::try_from(random() % 256).unwrap();
            }
            let whole = parse(&bytes);
            for length in 0..bytes.len() {
                match parse(&bytes[..length]) {
                    Ok(None) => {}
                    decided => assert_eq!(decided, whole, "{length} bytes of {bytes:?}"),
                }
            }
        }
    }
}
