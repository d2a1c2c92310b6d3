//! What a header field may be called and hold (RFC 9110, section 5), and the names we know.
//!
//! Everything that reads fields from outside, HTTP/1 heads and trailers as well as HTTP/2, asks
//! [`is_name`] and [`is_value`] before a field gets into [`crate::Headers`].

use crate::block::{self, Control, Kind};
use crate::headers::{FieldRef, Headers};

macro_rules! known {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// A field name that the gate itself looks at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Known {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
            /// Any other name.
            Other,
        }

        impl Known {
            /// All known names; [`Known::Other`] is not among them.
            pub const ALL: &[Known] = &[$(Known::$variant),*];

            /// The name in its usual spelling; empty for [`Known::Other`].
            pub const fn name(self) -> &'static str {
                match self { $(Known::$variant => $name,)* Known::Other => "" }
            }
        }
    };
}

known! {
    Host = "Host",
    Connection = "Connection",
    ContentLength = "Content-Length",
    TransferEncoding = "Transfer-Encoding",
    KeepAlive = "Keep-Alive",
    ProxyConnection = "Proxy-Connection",
    Te = "TE",
    Trailer = "Trailer",
    Upgrade = "Upgrade",
    Http2Settings = "HTTP2-Settings",
    ProxyAuthenticate = "Proxy-Authenticate",
    ProxyAuthorization = "Proxy-Authorization",
    Expect = "Expect",
    Date = "Date",
    Server = "Server",
    Via = "Via",
    Location = "Location",
    Forwarded = "Forwarded",
    XForwardedFor = "X-Forwarded-For",
    XForwardedProto = "X-Forwarded-Proto",
    XForwardedHost = "X-Forwarded-Host",
    XForwardedPort = "X-Forwarded-Port",
    XRealIp = "X-Real-IP",
    UserAgent = "User-Agent",
    Referer = "Referer",
    Cookie = "Cookie",
    SetCookie = "Set-Cookie",
    Authorization = "Authorization",
    ContentType = "Content-Type",
    ContentEncoding = "Content-Encoding",
    ContentRange = "Content-Range",
    Accept = "Accept",
    AcceptEncoding = "Accept-Encoding",
    AcceptLanguage = "Accept-Language",
    AcceptRanges = "Accept-Ranges",
    Age = "Age",
    CacheControl = "Cache-Control",
    Etag = "ETag",
    Expires = "Expires",
    IfMatch = "If-Match",
    IfModifiedSince = "If-Modified-Since",
    IfNoneMatch = "If-None-Match",
    IfRange = "If-Range",
    IfUnmodifiedSince = "If-Unmodified-Since",
    LastModified = "Last-Modified",
    Pragma = "Pragma",
    Range = "Range",
    Vary = "Vary",
    Warning = "Warning",
    SecWebSocketKey = "Sec-WebSocket-Key",
    Proxy = "Proxy",
}

impl Known {
    /// The bit of this name in a set of names; [`Known::Other`] has none.
    pub const fn bit(self) -> u64 {
        match self {
            Known::Other => 0,
            known => 1 << known as u8,
        }
    }

    /// As [`Known::bit`], but [`Known::Other`] has one, too, that no known name has.
    pub(crate) const fn place(self) -> u64 {
        1 << self as u8
    }

    /// Whether a field with this name is for one connection.
    pub(crate) const fn is_hop_by_hop(self) -> bool {
        HOP_BY_HOP & self.bit() != 0
    }

    /// The known name with these letters, whatever their case; else [`Known::Other`].
    ///
    /// Runs for every field of every message, so it compares with one candidate at most.
    pub fn of(name: &[u8]) -> Known {
        let mut text = [0; KNOWN_BYTES_MAX];
        let Some(start) = text.get_mut(..name.len()) else { return Known::Other };
        start.copy_from_slice(name);
        Known::at(&text, name.len())
    }

    /// The known name that the first `len` bytes are; what follows them does not count.
    #[inline]
    pub(crate) fn at(text: &[u8; KNOWN_BYTES_MAX], len: usize) -> Known {
        if len == 0 || len > KNOWN_BYTES_MAX {
            return Known::Other;
        }
        let candidate = TABLE[slot(SEED, len, text[0], text[len - 1], text[late(len)])];
        let name = &SPELLINGS[candidate as usize];
        let (words, _) = text.as_chunks::<8>();
        let mut differs = len as u64 ^ u64::from(name.len);
        for (word, (letters, counts)) in words.iter().zip(name.words) {
            differs |= (u64::from_le_bytes(*word) ^ letters) & counts;
        }
        if differs == 0 { candidate } else { Known::Other }
    }
}

/// The longest known name, and some room, so that it is whole words.
pub(crate) const KNOWN_BYTES_MAX: usize = 24;

/// A known name in words, so that it is compared eight bytes at a time.
#[derive(Clone, Copy)]
struct Spelling {
    len: u8,
    /// The name's bytes, and the bits of them that count: not the one that makes a letter small,
    /// and none behind the name's end.
    words: [(u64, u64); KNOWN_BYTES_MAX / 8],
}

const SPELLINGS: [Spelling; Known::ALL.len() + 1] = spellings();

const fn spellings() -> [Spelling; Known::ALL.len() + 1] {
    let mut all = [Spelling { len: 0, words: [(0, 0); KNOWN_BYTES_MAX / 8] }; Known::ALL.len() + 1];
    let mut index = 0;
    while index < Known::ALL.len() {
        let name = Known::ALL[index].name().as_bytes();
        let mut at = 0;
        while at < name.len() {
            let counts = if name[at].is_ascii_alphabetic() { 0xdf } else { 0xff };
            let word = &mut all[index].words[at / 8];
            word.0 |= (name[at] as u64) << (8 * (at % 8));
            word.1 |= counts << (8 * (at % 8));
            at += 1;
        }
        all[index].len = name.len().to_le_bytes()[0];
        index += 1;
    }
    all
}

// A set of known names is the bits of a `u64`, one of which is for all other names.
const _: () = assert!(Known::ALL.len() < 64);

const TABLE_LEN: usize = 512;
const TABLE: [Known; TABLE_LEN] = table(SEED);
/// The first seed under which no two known names share a slot.
const SEED: u32 = find_seed();

/// Where a name stands in the table. Blind to case: letters differ from their capitals in bit 5.
const fn slot(seed: u32, len: usize, first: u8, last: u8, late: u8) -> usize {
    let bytes = [len.to_le_bytes()[0], first | 0x20, last | 0x20, late | 0x20];
    (u32::from_le_bytes(bytes).wrapping_mul(seed) >> 23) as usize
}

/// Which byte tells names apart that begin and end alike, as `X-Forwarded-Host` and `-Port` do.
const fn late(len: usize) -> usize {
    len * 3 / 4
}

const fn slot_of(seed: u32, known: Known) -> usize {
    let name = known.name().as_bytes();
    slot(seed, name.len(), name[0], name[name.len() - 1], name[late(name.len())])
}

const fn table(seed: u32) -> [Known; TABLE_LEN] {
    let mut table = [Known::Other; TABLE_LEN];
    let mut index = 0;
    while index < Known::ALL.len() {
        table[slot_of(seed, Known::ALL[index])] = Known::ALL[index];
        index += 1;
    }
    table
}

const fn find_seed() -> u32 {
    let mut seed = 0x9e37_79b1_u32;
    while has_collision(seed) {
        seed = seed.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
    }
    seed
}

const fn has_collision(seed: u32) -> bool {
    let mut taken = [false; TABLE_LEN];
    let mut index = 0;
    while index < Known::ALL.len() {
        let slot = slot_of(seed, Known::ALL[index]);
        if taken[slot] {
            return true;
        }
        taken[slot] = true;
        index += 1;
    }
    false
}

/// The longest name that is read. The longest registered one has 44 bytes.
pub const NAME_BYTES_MAX: usize = 1024;

/// How many connection options a message may have in all.
pub const CONNECTION_OPTIONS_MAX: usize = 32;

/// The bytes of a token (RFC 9110, section 5.6.2).
const NAME_BYTES: ByteSet =
    byte_set(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

type ByteSet = [bool; 256];

const fn byte_set(bytes: &[u8]) -> ByteSet {
    let mut set = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        set[bytes[at] as usize] = true;
        at += 1;
    }
    set
}

/// Whether a byte may stand in a token (RFC 9110, section 5.6.2).
pub const fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES[byte as usize]
}

/// Whether this may be a field's name: a token of at most [`NAME_BYTES_MAX`] bytes.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.iter().all(|&byte| is_name_byte(byte))
}

/// Whether this may be in a field's value (RFC 9110, section 5.5): no CR, LF or NUL, nor any other
/// control byte but HTAB. Bytes above 0x7F are opaque and allowed.
pub fn is_value(value: &[u8]) -> bool {
    block::none(value, |byte| Control::has(byte) && byte != b'\t')
}

/// Whether a name is, as nearly all are, of letters, digits and `-`.
pub(crate) fn is_plain(name: &[u8]) -> bool {
    block::none(name, |byte| !byte.is_ascii_alphanumeric() && byte != b'-')
}

/// The value without white space around it (RFC 9110, section 5.6.3).
pub fn trim(value: &[u8]) -> &[u8] {
    let start = value.iter().position(|byte| !is_space(*byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !is_space(*byte)).map_or(start, |last| last + 1);
    &value[start..end]
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The members of a comma-separated list of tokens, without empty ones (RFC 9110, section 5.6.1).
///
/// For lists whose members may hold quoted strings there is [`list`].
pub fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim).filter(|member| !member.is_empty())
}

/// The members of a comma-separated list, in which a comma within a quoted string parts nothing
/// (RFC 9110, sections 5.6.1 and 5.6.4). An unclosed quoted string reaches to the end.
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = member_end(rest);
            let member = trim(&rest[..end]);
            rest = rest.get(end + 1..).unwrap_or_default();
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    })
}

fn member_end(list: &[u8]) -> usize {
    let mut quoted = false;
    let mut bytes = list.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b',' if !quoted => return at,
            b'"' => quoted = !quoted,
            b'\\' if quoted => {
                bytes.next();
            }
            _ => {}
        }
    }
    list.len()
}

/// The known name that a CGI environment would confuse this one with.
///
/// CGI and its heirs (PHP, WSGI, Rack) spell `Content-Length` as `CONTENT_LENGTH`, and so every name
/// that differs from it only in signs between the words (RFC 3875, section 4.1.18). A name that is
/// one of ours by that spelling but not by its own is an attempt to say two things at once.
pub fn look_alike(name: &[u8]) -> Option<Known> {
    if is_plain(name) {
        return None;
    }
    let mut dashed = [b'-'; 32];
    let dashed = dashed.get_mut(..name.len())?;
    for (to, byte) in dashed.iter_mut().zip(name) {
        if byte.is_ascii_alphanumeric() {
            *to = *byte;
        }
    }
    match Known::of(dashed) {
        Known::Other => None,
        known => Some(known),
    }
}

/// Fields that are for one connection (RFC 9110, section 7.6.1, and RFC 9113, section 8.2.2).
const HOP_BY_HOP: u64 = Known::Connection.bit()
    | Known::KeepAlive.bit()
    | Known::ProxyConnection.bit()
    | Known::Te.bit()
    | Known::Trailer.bit()
    | Known::TransferEncoding.bit()
    | Known::Upgrade.bit()
    | Known::Http2Settings.bit()
    | Known::ProxyAuthenticate.bit()
    | Known::ProxyAuthorization.bit();

/// The fields that go on to the other side: all but those for this connection, which are the
/// hop-by-hop ones and those that `Connection` nominates (RFC 9110, section 7.6.1).
///
/// A nomination of a [`Known`] name is ignored. These have a meaning for all recipients, and such a
/// field must not be nominated; clients do it to make a gate forget who they are (`Connection: close,
/// X-Forwarded-For`), drop a credential or unlock a cache. The same goes for whatever else begins
/// with `X-Forwarded-`.
pub fn end_to_end(headers: &Headers) -> impl Iterator<Item = FieldRef<'_>> {
    let is_nominated = nominated(headers);
    headers.iter().filter(move |field| match field.known {
        Known::Other => !is_nominated(field.name),
        known => !known.is_hop_by_hop(),
    })
}

/// Which names, of those that are not [`Known`], `Connection` nominates.
pub(crate) fn nominated(headers: &Headers) -> impl Fn(&[u8]) -> bool {
    let nominates = headers.has(Known::Connection) && nominates(headers);
    move |name| nominates && is_nominated(headers, name)
}

/// What a `Connection` field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoleOption {
    /// `close` and nothing else.
    Close,
    /// `keep-alive` and nothing else.
    KeepAlive,
    /// Anything that has to be looked at closely, perhaps one of these in an unusual spelling.
    Other,
}

/// Tells the two things that nearly all `Connection` fields say, in their usual spellings.
pub(crate) fn sole_option(value: &[u8]) -> SoleOption {
    match value {
        b"close" => SoleOption::Close,
        b"keep-alive" | b"Keep-Alive" => SoleOption::KeepAlive,
        _ => SoleOption::Other,
    }
}

/// Whether `Connection` holds an option that could be the name of a field.
fn nominates(headers: &Headers) -> bool {
    headers
        .all(Known::Connection)
        .filter(|value| sole_option(value) == SoleOption::Other)
        .flat_map(tokens)
        .any(|option| Known::of(option) == Known::Other && !option.eq_ignore_ascii_case(b"close"))
}

fn is_nominated(headers: &Headers, name: &[u8]) -> bool {
    const FORWARDED: &[u8] = b"X-Forwarded-";
    if name.get(..FORWARDED.len()).is_some_and(|start| start.eq_ignore_ascii_case(FORWARDED)) {
        return false;
    }
    headers
        .all(Known::Connection)
        .flat_map(tokens)
        .take(CONNECTION_OPTIONS_MAX)
        .any(|option| option.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_found_in_any_case() {
        for &known in Known::ALL {
            let name = known.name();
            assert_eq!(Known::of(name.as_bytes()), known);
            assert_eq!(Known::of(name.to_lowercase().as_bytes()), known);
            assert_eq!(Known::of(name.to_uppercase().as_bytes()), known);
        }
    }

    #[test]
    fn near_misses_are_other() {
        for &known in Known::ALL {
            let name = known.name().as_bytes();
            assert_eq!(Known::of(&name[1..]), Known::Other, "{known:?}");
            assert_eq!(Known::of(&name[..name.len() - 1]), Known::Other, "{known:?}");
            for at in 0..name.len() {
                for wrong in [b'_', b' ', b'\0', 0x80, name[at] ^ 0x40, name[at].wrapping_add(1)] {
                    let mut near = name.to_vec();
                    near[at] = wrong;
                    let found = Known::of(&near);
                    assert!(
                        found == Known::Other
                            || found.name().as_bytes().eq_ignore_ascii_case(&near),
                        "{near:?} is taken for {found:?}"
                    );
                }
            }
        }
        assert_eq!(Known::of(b""), Known::Other);
        // `-` without bit 5 is CR, `H` with bit 6 cleared is BS: the slot is the same, the name not.
        assert_eq!(Known::of(b"Content\rLength"), Known::Other);
    }

    #[test]
    fn what_stands_behind_a_name_does_not_count() {
        let text = b"Content-Length: 1\r\nHost:";
        let text = text.first_chunk().unwrap();
        for len in 0..=KNOWN_BYTES_MAX + 1 {
            let expected = if len == 14 { Known::ContentLength } else { Known::Other };
            assert_eq!(Known::at(text, len), expected, "{len}");
        }
    }

    #[test]
    fn plain_names_are_of_letters_digits_and_dashes() {
        for byte in 0..=255_u8 {
            for len in [1, 4, 8, 16, 20] {
                let mut name = vec![b'a'; len];
                name[len / 2] = byte;
                let expected = byte.is_ascii_alphanumeric() || byte == b'-';
                assert_eq!(is_plain(&name), expected, "{byte:#x} of {len}");
            }
        }
    }

    #[test]
    fn names_are_tokens() {
        let all: Vec<u8> = (0..=255).filter(|&byte| is_name(&[b'a', byte])).collect();
        assert_eq!(
            all,
            b"!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~"
        );
        assert!(!is_name(b""));
        assert!(is_name(&[b'a'; NAME_BYTES_MAX]));
        assert!(!is_name(&[b'a'; NAME_BYTES_MAX + 1]));
    }

    #[test]
    fn values_hold_no_control_but_tab() {
        for byte in 0..=255_u8 {
            let allowed = byte == b'\t' || (byte >= b' ' && byte != 0x7f);
            for at in [0, 7, 31, 32, 63, 69] {
                let mut value = [b'a'; 70];
                value[at] = byte;
                assert_eq!(is_value(&value), allowed, "{byte:#x} at {at}");
            }
        }
        assert!(is_value(b""));
    }

    #[test]
    fn white_space_around_values_goes() {
        assert_eq!(trim(b" \ta b\t "), b"a b");
        assert_eq!(trim(b" \t "), b"");
        assert_eq!(trim(b""), b"");
        assert_eq!(trim(b"\x0ba"), b"\x0ba");
    }

    #[test]
    fn lists_are_parted_at_commas() {
        let check = |value: &[u8], expected: &[&[u8]]| {
            assert_eq!(tokens(value).collect::<Vec<_>>(), expected, "tokens of {value:?}");
            assert_eq!(list(value).collect::<Vec<_>>(), expected, "list of {value:?}");
        };
        check(b"", &[]);
        check(b" , ,\t,", &[]);
        check(b"a", &[b"a"]);
        check(b"a,b , c\t,", &[b"a", b"b", b"c"]);
        check(b",a b", &[b"a b"]);
    }

    #[test]
    fn quoted_commas_part_nothing() {
        let check = |value: &[u8], expected: &[&[u8]]| {
            assert_eq!(list(value).collect::<Vec<_>>(), expected, "{value:?}");
        };
        check(br#"for="a,b", for=c"#, &[br#"for="a,b""#, b"for=c"]);
        check(br#""a\",b",c"#, &[br#""a\",b""#, b"c"]);
        check(br#""a,b"#, &[br#""a,b"#]);
        check(br#""a\"#, &[br#""a\"#]);
        check(br"a\,b", &[br"a\", b"b"]);
    }

    #[test]
    fn names_that_cgi_would_confuse_are_known() {
        let check = |name: &str, expected| {
            assert_eq!(look_alike(name.as_bytes()), expected, "{name}");
        };
        check("Content_Length", Some(Known::ContentLength));
        check("TRANSFER_ENCODING", Some(Known::TransferEncoding));
        check("transfer.encoding", Some(Known::TransferEncoding));
        check("X_Forwarded-For", Some(Known::XForwardedFor));
        check("Content-Length", None);
        check("X_Custom", None);
        check("Host", None);
        check("_Host", None);
        check(&"_".repeat(33), None);
    }

    fn passed(fields: &[(&str, &str)]) -> Vec<String> {
        let mut headers = Headers::new();
        for (name, value) in fields {
            headers.push(name.as_bytes(), value.as_bytes());
        }
        end_to_end(&headers).map(|field| String::from_utf8_lossy(field.name).into_owned()).collect()
    }

    #[test]
    fn hop_by_hop_fields_end_here() {
        for name in [
            "Connection",
            "Keep-Alive",
            "Proxy-Connection",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Upgrade",
            "HTTP2-Settings",
            "Proxy-Authenticate",
            "Proxy-Authorization",
        ] {
            assert_eq!(passed(&[("A", "1"), (name, "x"), ("B", "2")]), ["A", "B"], "{name}");
        }
    }

    #[test]
    fn nominated_fields_end_here() {
        let fields = [("Connection", "close"), ("X-Hop", "1"), ("X-End", "1")];
        assert_eq!(passed(&fields), ["X-Hop", "X-End"]);
        let fields = [("Connection", "keep-alive, x-hop"), ("X-Hop", "1"), ("X-End", "1")];
        assert_eq!(passed(&fields), ["X-End"]);
        let fields =
            [("X-One", "1"), ("Connection", "x-one"), ("X-Two", "1"), ("connection", ",x-TWO,")];
        assert_eq!(passed(&fields), Vec::<String>::new());
    }

    #[test]
    fn fields_for_all_recipients_cannot_be_nominated() {
        for &known in Known::ALL {
            if HOP_BY_HOP & known.bit() == 0 {
                let name = known.name();
                assert_eq!(passed(&[("Connection", name), (name, "1")]), [name]);
                let beside_another = format!("x-a, {name}");
                assert_eq!(passed(&[("Connection", &beside_another), (name, "1")]), [name]);
            }
        }
        let fields = [("Connection", "x-forwarded-prefix, x-a"), ("X-Forwarded-Prefix", "/")];
        assert_eq!(passed(&fields), ["X-Forwarded-Prefix"]);
    }
}
