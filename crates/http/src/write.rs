//! Writing heads afresh (RFC 9112, sections 3 to 6).
//!
//! Nothing of a received head is copied as a whole; each line is written from parsed parts, so what
//! leaves has one meaning. The caller vouches that names and values have passed [`crate::field`],
//! as everything that was parsed has; debug builds check it.

use crate::field::{self, Known};
use crate::headers::Headers;

/// Writes `method target HTTP/1.1` and CRLF.
pub fn request_line(out: &mut Vec<u8>, method: &[u8], target: &[u8]) {
    debug_assert!(field::is_name(method));
    debug_assert!(target.iter().all(|byte| (0x21..=0x7e).contains(byte)));
    out.reserve(method.len() + target.len() + 12);
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// Writes `HTTP/1.1 status reason` and CRLF, with the usual reason.
///
/// A server says HTTP/1.1 to HTTP/1.0 clients, too: it is the version it speaks (RFC 9110, section
/// 2.5). `status` is 100 to 999, as parsers guarantee.
pub fn status_line(out: &mut Vec<u8>, status: u16) {
    debug_assert!((100..=999).contains(&status));
    out.extend_from_slice(b"HTTP/1.1 ");
    decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Writes one field line.
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    debug_assert!(field::is_name(name) && field::is_value(value));
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Writes the lines of all fields that are for the other side (see [`field::end_to_end`]) and that
/// `keeps` says.
pub fn end_to_end(out: &mut Vec<u8>, headers: &Headers, keeps: impl Fn(Known) -> bool) {
    let is_nominated = field::nominated(headers);
    headers.write(out, |known| !known.is_hop_by_hop() && keeps(known), |name| !is_nominated(name));
}

/// Writes `Content-Length`.
pub fn content_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Length: ");
    decimal(out, length);
    out.extend_from_slice(b"\r\n");
}

/// Writes `Transfer-Encoding: chunked`.
pub fn chunked(out: &mut Vec<u8>) {
    out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
}

/// Writes a host as [`crate::target::host`] reads it.
pub fn host(out: &mut Vec<u8>, host: &[u8], port: Option<u16>) {
    out.extend_from_slice(host);
    if let Some(port) = port {
        out.push(b':');
        decimal(out, u64::from(port));
    }
}

/// Writes the empty line that ends a head.
pub fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Writes a number in decimal without the machinery of `fmt`.
pub fn decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The usual reason phrase of a status (RFC 9110, section 15, and the registry); empty if none.
pub const fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn lines_are_written_in_their_one_form() {
        let mut out = Vec::new();
        request_line(&mut out, b"GET", b"/a?b");
        field(&mut out, b"Host", b"a");
        field(&mut out, b"X-Empty", b"");
        content_length(&mut out, 12);
        end(&mut out);
        assert_eq!(out, b"GET /a?b HTTP/1.1\r\nHost: a\r\nX-Empty: \r\nContent-Length: 12\r\n\r\n");
        out.clear();
        status_line(&mut out, 404);
        chunked(&mut out);
        status_line(&mut out, 799);
        assert_eq!(
            out,
            b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nHTTP/1.1 799 \r\n"
        );
    }

    #[test]
    fn what_passes_is_written_as_field_by_field() {
        let check = |lines: &str| {
            let mut headers = Headers::new();
            parse::fields(format!("{lines}\r\n").as_bytes(), 20, &mut headers).unwrap();
            headers.push(b"X-Pushed", b"1");
            for kept in [Known::Other, Known::Accept, Known::Via] {
                let mut expected = Vec::new();
                for passed in field::end_to_end(&headers).filter(|field| field.known != kept) {
                    field(&mut expected, passed.name, passed.value);
                }
                let mut out = Vec::new();
                end_to_end(&mut out, &headers, |known| known != kept);
                assert_eq!(String::from_utf8(out), String::from_utf8(expected), "{lines}");
            }
        };
        check("");
        check("A: b\r\n");
        check("A: b\r\nAccept: c\r\nB: d\r\nVia: e\r\nVia: f\r\n");
        check("A:b\r\nB: c\r\nC:\r\nD: \r\nE:  e\r\nF: f \r\nG: g\r\nH: h\ti\r\nI:\ti\r\n");
        check("Connection: x-a\r\nX-A: b\r\nX-B: c\r\nTE: d\r\nX-C: d\r\n");
        check("Connection: close\r\nClose: b\r\nX-B: c\r\n");
    }

    #[test]
    fn numbers_are_written_as_fmt_writes_them() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            decimal(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    #[test]
    fn hosts_are_written_with_the_port_they_had() {
        let check = |name: &[u8], port, expected: &[u8]| {
            let mut out = Vec::new();
            host(&mut out, name, port);
            assert_eq!(out, expected);
        };
        check(b"a.b", None, b"a.b");
        check(b"[::1]", Some(8080), b"[::1]:8080");
        check(b"a", Some(0), b"a:0");
    }
}
