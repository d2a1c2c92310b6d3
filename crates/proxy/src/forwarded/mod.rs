//! Where a request comes from, and what the upstream is told about it.
//!
//! `Forwarded` (RFC 7239), `X-Forwarded-For`, `-Proto`, `-Host`, `-Port` and `X-Real-IP` are always
//! written afresh, whatever the request brought: from an untrusted peer all of it is dropped, from a
//! trusted one what it says about the way from the client on is kept. So the first address in every
//! field is the client's, and no client can put another in front of it.
//!
//! A trusted peer that sends both `Forwarded` and `X-Forwarded-For` has written at least one of them,
//! and a client may have written the other. If they name different clients, neither is believed: the
//! peer itself then counts as the client ([`Trust::Conflict`]). That can hide a client behind its own
//! proxy, but never lets it pass for someone else.
//!
//! A peer on a Unix socket is trusted: it has no address to judge by, and only those that the
//! socket's permissions admit can be one.

mod chain;
mod trusted;

pub use trusted::TrustedProxies;

use std::borrow::Cow;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

use tidegate_http::field::Known;
use tidegate_http::target::{self, Scheme};
use tidegate_http::{Headers, Request};

use chain::Claim;

/// The fields that are written afresh; all others pass.
pub const FIELDS: [Known; 6] = [
    Known::Forwarded,
    Known::XForwardedFor,
    Known::XForwardedProto,
    Known::XForwardedHost,
    Known::XForwardedPort,
    Known::XRealIp,
];

/// Whether a field is one of [`FIELDS`].
#[inline]
pub const fn is_forwarding(known: Known) -> bool {
    const SET: u64 = {
        let mut set = 0;
        let mut position = 0;
        while position < FIELDS.len() {
            set |= FIELDS[position].bit();
            position += 1;
        }
        set
    };
    SET & known.bit() != 0
}

/// The other end of a connection; made once, so that its text need not be made for each request.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    address: Option<IpAddr>,
    text: AddressText,
}

impl Peer {
    /// A peer with an address: that of the socket, or that of a PROXY header.
    pub fn new(address: IpAddr) -> Peer {
        let address = trusted::canonical(address);
        Peer { address: Some(address), text: AddressText::of(address) }
    }

    /// A peer on a Unix socket.
    pub fn unix() -> Peer {
        Peer { address: None, text: AddressText::UNKNOWN }
    }

    /// Its address, as IPv4 where it is an IPv4-mapped one.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }
}

/// How far the forwarding fields of a request are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Not at all: the peer is the client.
    Untrusted,
    /// The peer is trusted, and what it says is used.
    Trusted,
    /// The peer is trusted, but its fields name different clients, so none is used.
    Conflict,
}

/// Where a request comes from.
#[derive(Clone, Debug)]
pub struct Origin<'a> {
    /// The client's address; `None` if a peer on a Unix socket names none.
    pub client: Option<IpAddr>,
    /// The scheme that the client used.
    pub scheme: Scheme,
    /// The host that the client asked for, without port; may be empty.
    pub host: Cow<'a, [u8]>,
    /// The port beside the host, if one was written.
    pub port: Option<u16>,
    /// How this is known.
    pub trust: Trust,
    peer: &'a Peer,
    /// From the client to the proxy before the peer; empty if the peer is the client.
    hops: Vec<IpAddr>,
}

impl<'a> Origin<'a> {
    /// Where this request comes from. `scheme` is that of the connection it came on.
    #[inline]
    pub fn of(
        peer: &'a Peer,
        scheme: Scheme,
        request: &'a Request,
        trusted: &TrustedProxies,
    ) -> Origin<'a> {
        let origin = Origin {
            client: peer.address,
            scheme,
            host: Cow::Borrowed(&request.host),
            port: request.port,
            trust: Trust::Untrusted,
            peer,
            hops: Vec::new(),
        };
        if peer.address.is_none_or(|address| trusted.contains(address)) {
            origin.with_claims(&request.headers, trusted)
        } else {
            origin
        }
    }

    fn with_claims(mut self, headers: &Headers, trusted: &TrustedProxies) -> Origin<'a> {
        let claims = (chain::forwarded(headers, trusted), chain::x_forwarded(headers, trusted));
        let claim = match claims {
            (Some(new), Some(old)) if new.hops.last() != old.hops.last() => {
                self.trust = Trust::Conflict;
                return self;
            }
            (Some(new), Some(old)) => {
                Claim { scheme: new.scheme.or(old.scheme), host: new.host.or(old.host), ..new }
            }
            (Some(claim), None) | (None, Some(claim)) => claim,
            (None, None) => chain::x_real_ip(headers),
        };
        self.trust = Trust::Trusted;
        if let Some(client) = claim.hops.last() {
            self.client = Some(*client);
        }
        self.scheme = claim.scheme.unwrap_or(self.scheme);
        let mut host = Vec::new();
        if let Some(port) = claim.host.and_then(|text| target::host(text, &mut host).ok()) {
            self.host = Cow::Owned(host);
            self.port = port;
        }
        self.port = claim.port.or(self.port);
        self.hops = claim.hops;
        self.hops.reverse();
        self
    }

    /// Appends the fields as lines of an HTTP/1 head.
    pub fn write_lines(&self, out: &mut Vec<u8>) {
        if self.hops.is_empty()
            && self.client.is_some()
            && self.client == self.peer.address
            && self.host_is_quotable()
        {
            self.write_lines_of_peer(out);
        } else {
            self.write_each_line(out);
        }
    }

    /// The same for a client that is the peer itself, as nearly all are: in a few long pieces.
    fn write_lines_of_peer(&self, out: &mut Vec<u8>) {
        let address = self.peer.text.as_bytes();
        let begin = out.len();
        out.reserve(PIECES_BYTES + 4 * address.len() + 2 * self.host.len());
        if address.contains(&b':') {
            out.extend_from_slice(b"Forwarded: for=\"[");
            out.extend_from_slice(address);
            out.extend_from_slice(b"]\";host=\"");
        } else {
            out.extend_from_slice(b"Forwarded: for=");
            out.extend_from_slice(address);
            out.extend_from_slice(b";host=\"");
        }
        let authority = out.len();
        self.write_authority(out);
        let authority = authority..out.len();
        out.extend_from_slice(match self.scheme {
            Scheme::Http => b"\";proto=http\r\nX-Forwarded-For: ",
            Scheme::Https => b"\";proto=https\r\nX-Forwarded-For: ",
        });
        out.extend_from_slice(address);
        out.extend_from_slice(match self.scheme {
            Scheme::Http => b"\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: ",
            Scheme::Https => b"\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: ",
        });
        out.extend_from_within(authority);
        out.extend_from_slice(b"\r\nX-Forwarded-Port: ");
        write_number(self.port.unwrap_or(self.scheme.default_port()), out);
        out.extend_from_slice(b"\r\nX-Real-IP: ");
        out.extend_from_slice(address);
        out.extend_from_slice(b"\r\n");
        debug_assert!(out.len() - begin <= PIECES_BYTES + 4 * address.len() + 2 * self.host.len());
    }

    fn write_each_line(&self, out: &mut Vec<u8>) {
        for known in FIELDS {
            let start = out.len();
            out.extend_from_slice(known.name().as_bytes());
            out.extend_from_slice(b": ");
            match self.write(known, out) {
                Written::Value => out.extend_from_slice(b"\r\n"),
                Written::Nothing => out.truncate(start),
            }
        }
    }

    /// Adds the fields; those that came with the request have to be gone. `scratch` is overwritten.
    pub fn push_fields(&self, headers: &mut Headers, scratch: &mut Vec<u8>) {
        for known in FIELDS {
            scratch.clear();
            match self.write(known, scratch) {
                Written::Value => headers.push_known(known, scratch),
                Written::Nothing => {}
            }
        }
    }

    fn write(&self, known: Known, out: &mut Vec<u8>) -> Written {
        match known {
            Known::Forwarded => self.write_forwarded(out),
            Known::XForwardedFor => self.each_hop(|text, position| {
                if position > 0 {
                    out.extend_from_slice(b", ");
                }
                out.extend_from_slice(text.as_bytes());
            }),
            Known::XForwardedProto => out.extend_from_slice(self.scheme.name().as_bytes()),
            Known::XForwardedHost if !self.host.is_empty() => self.write_authority(out),
            Known::XForwardedPort => {
                write_number(self.port.unwrap_or(self.scheme.default_port()), out);
            }
            Known::XRealIp if self.client.is_some() => {
                let first = if self.hops.is_empty() { Some(self.peer.text) } else { None };
                let text = first.or_else(|| self.client.map(AddressText::of));
                out.extend_from_slice(text.unwrap_or(AddressText::UNKNOWN).as_bytes());
            }
            _ => return Written::Nothing,
        }
        Written::Value
    }

    /// RFC 7239, section 4. Scheme and host are those of the first hop: what the client used.
    fn write_forwarded(&self, out: &mut Vec<u8>) {
        self.each_hop(|text, position| {
            if position > 0 {
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(b"for=");
            // Colons are no token characters, and IPv6 addresses stand in brackets (section 6).
            if text.as_bytes().contains(&b':') {
                out.extend_from_slice(b"\"[");
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(b"]\"");
            } else {
                out.extend_from_slice(text.as_bytes());
            }
            if position == 0 {
                if self.host_is_quotable() {
                    out.extend_from_slice(b";host=\"");
                    self.write_authority(out);
                    out.push(b'"');
                }
                out.extend_from_slice(b";proto=");
                out.extend_from_slice(self.scheme.name().as_bytes());
            }
        });
    }

    fn host_is_quotable(&self) -> bool {
        !self.host.is_empty() && !self.host.iter().any(|byte| matches!(byte, b'"' | b'\\'))
    }

    fn write_authority(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.host);
        if let Some(port) = self.port {
            out.push(b':');
            write_number(port, out);
        }
    }

    /// From the client to the peer.
    fn each_hop(&self, mut each: impl FnMut(&AddressText, usize)) {
        for (position, hop) in self.hops.iter().enumerate() {
            each(&AddressText::of(*hop), position);
        }
        each(&self.peer.text, self.hops.len());
    }
}

/// What the lines of a peer take beside its address and host, at most.
const PIECES_BYTES: usize = 192;

enum Written {
    Value,
    Nothing,
}

/// An address as text, without an allocation.
#[derive(Clone, Copy, Debug)]
struct AddressText {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

impl AddressText {
    /// The longest: an IPv6 address with an IPv4 part, all groups in full.
    const BYTES_MAX: usize = 45;
    /// RFC 7239, section 6.2.
    const UNKNOWN: AddressText = {
        let mut bytes = [0; Self::BYTES_MAX];
        let text = b"unknown";
        let mut position = 0;
        while position < text.len() {
            bytes[position] = text[position];
            position += 1;
        }
        AddressText { bytes, len: 7 }
    };

    fn of(address: IpAddr) -> AddressText {
        let mut bytes = [0; Self::BYTES_MAX];
        let len = match address {
            IpAddr::V4(address) => write_v4(address, &mut bytes),
            IpAddr::V6(address) => {
                let mut rest = bytes.as_mut_slice();
                // It always fits; if it did not, the text would be cut, not the program.
                let _: std::io::Result<()> = write!(rest, "{address}");
                let left = rest.len();
                Self::BYTES_MAX - left
            }
        };
        AddressText { bytes, len: u8::try_from(len).unwrap_or(0) }
    }

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Writes dotted decimals without the formatting machinery; returns their length.
fn write_v4(address: Ipv4Addr, out: &mut [u8; AddressText::BYTES_MAX]) -> usize {
    let mut len = 0;
    let mut put = |byte| {
        out[len] = byte;
        len += 1;
    };
    for (position, octet) in address.octets().into_iter().enumerate() {
        if position > 0 {
            put(b'.');
        }
        if octet >= 100 {
            put(b'0' + octet / 100);
        }
        if octet >= 10 {
            put(b'0' + octet / 10 % 10);
        }
        put(b'0' + octet % 10);
    }
    len
}

fn write_number(number: u16, out: &mut Vec<u8>) {
    let mut digits = [0; 5];
    let mut start = digits.len();
    let mut rest = number;
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusted() -> TrustedProxies {
        TrustedProxies::new(&["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()])
    }

    fn request(fields: &[(&str, &str)]) -> Request {
        let mut request = Request::new();
        request.host = b"www.example.org".to_vec();
        for (name, value) in fields {
            request.headers.push(name.as_bytes(), value.as_bytes());
        }
        request
    }

    fn lines(peer: &Peer, scheme: Scheme, request: &Request) -> Vec<String> {
        let origin = Origin::of(peer, scheme, request, &trusted());
        let mut out = Vec::new();
        origin.write_lines(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with("\r\n"));
        text.lines().map(str::to_owned).collect()
    }

    fn peer(text: &str) -> Peer {
        Peer::new(text.parse().unwrap())
    }

    #[test]
    fn what_an_untrusted_client_sends_is_dropped() {
        let forged = request(&[
            ("Forwarded", "for=9.9.9.9;proto=https;host=evil.example"),
            ("X-Forwarded-For", "9.9.9.9"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "evil.example"),
            ("X-Forwarded-Port", "1"),
            ("X-Real-IP", "9.9.9.9"),
        ]);
        for request in [&forged, &request(&[])] {
            assert_eq!(
                lines(&peer("192.0.2.1"), Scheme::Http, request),
                [
                    "Forwarded: for=192.0.2.1;host=\"www.example.org\";proto=http",
                    "X-Forwarded-For: 192.0.2.1",
                    "X-Forwarded-Proto: http",
                    "X-Forwarded-Host: www.example.org",
                    "X-Forwarded-Port: 80",
                    "X-Real-IP: 192.0.2.1",
                ]
            );
        }
    }

    #[test]
    fn a_trusted_chain_is_kept_from_the_client_on() {
        let request = request(&[
            ("X-Forwarded-For", "9.9.9.9, 2001:db8::1, 10.0.0.7"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "shop.example:8443"),
        ]);
        assert_eq!(
            lines(&peer("::ffff:10.0.0.1"), Scheme::Http, &request),
            [
                "Forwarded: for=\"[2001:db8::1]\";host=\"shop.example:8443\";proto=https, \
                 for=10.0.0.7, for=10.0.0.1",
                "X-Forwarded-For: 2001:db8::1, 10.0.0.7, 10.0.0.1",
                "X-Forwarded-Proto: https",
                "X-Forwarded-Host: shop.example:8443",
                "X-Forwarded-Port: 8443",
                "X-Real-IP: 2001:db8::1",
            ]
        );
    }

    #[test]
    fn who_the_client_is() {
        let check = |fields: &[(&str, &str)], client: &str, trust: Trust| {
            let request = request(fields);
            let peer = peer("10.0.0.1");
            let origin = Origin::of(&peer, Scheme::Http, &request, &trusted());
            assert_eq!(origin.client, Some(client.parse().unwrap()), "{fields:?}");
            assert_eq!(origin.trust, trust, "{fields:?}");
        };
        let forwarded = ("Forwarded", "for=192.0.2.1;proto=https");
        check(&[], "10.0.0.1", Trust::Trusted);
        check(&[forwarded], "192.0.2.1", Trust::Trusted);
        check(&[("X-Forwarded-For", "192.0.2.1")], "192.0.2.1", Trust::Trusted);
        check(&[("X-Real-IP", "192.0.2.1")], "192.0.2.1", Trust::Trusted);
        check(&[("X-Real-IP", "192.0.2.1"), ("X-Real-IP", "9.9.9.9")], "10.0.0.1", Trust::Trusted);
        check(&[("X-Real-IP", "9.9.9.9"), forwarded], "192.0.2.1", Trust::Trusted);
        check(&[forwarded, ("X-Forwarded-For", "192.0.2.1")], "192.0.2.1", Trust::Trusted);
        check(&[forwarded, ("X-Forwarded-For", "9.9.9.9")], "10.0.0.1", Trust::Conflict);
        check(&[forwarded, ("X-Forwarded-For", "")], "10.0.0.1", Trust::Conflict);
        check(&[("X-Forwarded-For", "192.0.2.1, rubbish")], "10.0.0.1", Trust::Trusted);
    }

    #[test]
    fn scheme_host_and_port_come_from_the_trusted_or_from_the_request() {
        let check = |fields: &[(&str, &str)], expected: (&str, &str, Option<u16>)| {
            let request = request(fields);
            let peer = peer("10.0.0.1");
            let origin = Origin::of(&peer, Scheme::Http, &request, &trusted());
            let host = std::str::from_utf8(&origin.host).unwrap();
            assert_eq!((origin.scheme.name(), host, origin.port), expected, "{fields:?}");
        };
        let xff = ("X-Forwarded-For", "192.0.2.1");
        let host = |value| ("X-Forwarded-Host", value);
        check(&[xff], ("http", "www.example.org", None));
        check(&[xff, ("X-Forwarded-Proto", "https")], ("https", "www.example.org", None));
        check(&[("X-Forwarded-Proto", "https")], ("https", "www.example.org", None));
        check(&[xff, host("A.example:81")], ("http", "a.example", Some(81)));
        check(&[xff, host("bad host")], ("http", "www.example.org", None));
        check(&[xff, host("a\"b")], ("http", "www.example.org", None));
        check(&[xff, ("X-Forwarded-Port", "8443")], ("http", "www.example.org", Some(8443)));
        check(&[xff, ("X-Forwarded-Port", "x")], ("http", "www.example.org", None));
        check(
            &[("Forwarded", "for=192.0.2.1;proto=https;host=\"[2001:db8::9]:444\"")],
            ("https", "[2001:db8::9]", Some(444)),
        );
        // Not said by the proxy that says who the client is, so not believed.
        check(
            &[("Forwarded", "for=192.0.2.1"), ("X-Forwarded-Proto", "https")],
            ("http", "www.example.org", None),
        );
        check(
            &[("Forwarded", "for=9.9.9.9;proto=https"), xff, ("X-Forwarded-Proto", "https")],
            ("http", "www.example.org", None),
        );
    }

    #[test]
    fn a_unix_peer_has_no_address_but_is_trusted() {
        let peer = Peer::unix();
        assert_eq!(
            lines(&peer, Scheme::Http, &request(&[])),
            [
                "Forwarded: for=unknown;host=\"www.example.org\";proto=http",
                "X-Forwarded-For: unknown",
                "X-Forwarded-Proto: http",
                "X-Forwarded-Host: www.example.org",
                "X-Forwarded-Port: 80",
            ]
        );
        let told = request(&[("X-Forwarded-For", "192.0.2.1")]);
        let lines = lines(&peer, Scheme::Http, &told);
        assert_eq!(lines[1], "X-Forwarded-For: 192.0.2.1, unknown");
        assert_eq!(lines[5], "X-Real-IP: 192.0.2.1");
    }

    #[test]
    fn lines_and_fields_say_the_same() {
        let mut request = request(&[("X-Forwarded-For", "192.0.2.1, 10.9.9.9")]);
        request.port = Some(8080);
        let peer = peer("fd00::1");
        let origin = Origin::of(&peer, Scheme::Https, &request, &trusted());
        let mut headers = Headers::new();
        origin.push_fields(&mut headers, &mut Vec::new());
        let mut expected = String::new();
        for field in headers.iter() {
            assert!(is_forwarding(field.known));
            expected.push_str(std::str::from_utf8(field.name).unwrap());
            expected.push_str(": ");
            expected.push_str(std::str::from_utf8(field.value).unwrap());
            expected.push_str("\r\n");
        }
        let mut out = Vec::new();
        origin.write_lines(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert!(!is_forwarding(Known::Host) && !is_forwarding(Known::Other));
    }

    #[test]
    fn an_old_request_without_host_has_none_to_tell() {
        let mut request = request(&[]);
        request.host.clear();
        let lines = lines(&peer("192.0.2.1"), Scheme::Https, &request);
        assert_eq!(lines[0], "Forwarded: for=192.0.2.1;proto=https");
        assert!(!lines.iter().any(|line| line.starts_with("X-Forwarded-Host")), "{lines:?}");
    }

    #[test]
    fn addresses_and_numbers_are_written_as_the_standard_library_writes_them() {
        for text in [
            "0.0.0.0",
            "1.22.133.4",
            "255.255.255.255",
            "100.10.9.99",
            "::",
            "::1",
            "2001:db8::1",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ] {
            assert_eq!(AddressText::of(text.parse().unwrap()).as_bytes(), text.as_bytes());
        }
        for number in [0, 7, 10, 80, 443, 8080, 65535] {
            let mut out = Vec::new();
            write_number(number, &mut out);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
