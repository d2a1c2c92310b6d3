//! Heads of requests and responses, from bytes (RFC 9112, sections 2 to 5).
//!
//! Reading a head has two steps. [`HeadScan`] watches bytes arrive until the empty line, refuses
//! early what can only become an error, and never looks at a byte twice however slowly they come.
//! [`request`] and [`response`] then take the complete head and are the only judges of it: they do
//! not rely on the scan.
//!
//! Field lines are read in one pass that knows only right and wrong. What it refuses is read once
//! more, off the hot path, to find the reason.
//!
//! What an accepted message's body is, and whether its connection persists, is decided in
//! [`crate::framing`]; where it goes, in [`crate::target`].

use crate::block::{self, Byte, Control};
use crate::error::{FieldError, HostError, RequestError, ResponseError, TargetError};
use crate::field::{self, Known, NAME_BYTES_MAX};
use crate::headers::{Headers, Line};
use crate::message::{Method, PathSource, Request, Response, Version};
use crate::target;
use std::ops::Range;

/// Limits on a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The whole head, first line and final empty line included.
    pub head_bytes_max: usize,
    /// A request's target.
    pub target_bytes_max: usize,
    /// The number of fields.
    pub fields_max: usize,
}

/// The longest method that is read; `UPDATEREDIRECTREF` (RFC 4437) is the longest registered.
pub const METHOD_BYTES_MAX: usize = 32;

/// What an HTTP/2 client with prior knowledge sends first, up to what looks like the end of a head
/// (RFC 9113, section 3.4). `SM`, CR, LF, CR, LF follow.
pub const HTTP2_PREFACE_HEAD: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// The search for the end of one head in a growing buffer.
///
/// Each call passes all bytes of the head that have come so far, from its first on. Only new bytes
/// are looked at, so a sender of single bytes costs no more than one of whole heads.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadScan {
    scanned: usize,
    line_start: usize,
    first_line: FirstLine,
}

/// How much of the first line has been judged before the head was complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstLine {
    #[default]
    Growing,
    EndsAt(usize),
    Judged,
}

impl HeadScan {
    /// Makes ready for the next head.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Looks for the end of a request head: the number of its bytes, final empty line included.
    ///
    /// An incomplete head that can only become an error is refused at once. A complete one is not
    /// judged: that is for [`request`], so an error such as [`RequestError::Http2Preface`] may come
    /// from either, as the bytes happen to arrive.
    pub fn find_request(
        &mut self,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<Option<usize>, RequestError> {
        let found = self.advance(input, limits);
        if !matches!(found, Ok(Some(_))) {
            // What is wrong with the first line tells more than what comes of it later on.
            self.judge_request_line(input, limits)?;
        }
        Ok(found?)
    }

    /// Looks for the end of a response head: the number of its bytes, final empty line included.
    ///
    /// An incomplete head that can only become an error is refused at once.
    pub fn find_response(
        &mut self,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<Option<usize>, ResponseError> {
        let found = self.advance(input, limits);
        if !matches!(found, Ok(Some(_))) {
            self.judge_status_line(input)?;
        }
        Ok(found?)
    }

    /// Reads the request head that `input` begins with as soon as it is there, and gives its length.
    ///
    /// Says what [`HeadScan::find_request`] and then [`request`] say. A head that comes all at once,
    /// as nearly all do, is read without being searched for its end.
    pub fn read_request(
        &mut self,
        input: &[u8],
        limits: &HeadLimits,
        out: &mut Request,
    ) -> Result<Option<usize>, RequestError> {
        if self.scanned == 0
            && let Ok(end) = read_request(input, Extent::Start, limits, out)
            && end <= limits.head_bytes_max
        {
            return Ok(Some(end));
        }
        let found = self.find_request(input, limits)?;
        found.map(|end| request(&input[..end], limits, out).map(|()| end)).transpose()
    }

    /// Reads the response head that `input` begins with as soon as it is there, and gives its
    /// length.
    ///
    /// Says what [`HeadScan::find_response`] and then [`response`] say.
    pub fn read_response(
        &mut self,
        input: &[u8],
        limits: &HeadLimits,
        out: &mut Response,
    ) -> Result<Option<usize>, ResponseError> {
        if self.scanned == 0
            && let Ok(end) = read_response(input, Extent::Start, limits, out)
            && end <= limits.head_bytes_max
        {
            return Ok(Some(end));
        }
        let found = self.find_response(input, limits)?;
        found.map(|end| response(&input[..end], limits, out).map(|()| end)).transpose()
    }

    fn judge_request_line(
        &mut self,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<(), RequestError> {
        match self.first_line {
            FirstLine::Growing => judge_request_start(input, limits),
            FirstLine::EndsAt(end) => {
                self.first_line = FirstLine::Judged;
                request_line(input.get(..end).unwrap_or(input), limits).map(drop)
            }
            FirstLine::Judged => Ok(()),
        }
    }

    fn judge_status_line(&mut self, input: &[u8]) -> Result<(), ResponseError> {
        match self.first_line {
            FirstLine::Growing => judge_response_start(input),
            FirstLine::EndsAt(end) => {
                self.first_line = FirstLine::Judged;
                status_line(input.get(..end).unwrap_or(input)).map(drop)
            }
            FirstLine::Judged => Ok(()),
        }
    }

    fn advance(&mut self, input: &[u8], limits: &HeadLimits) -> Result<Option<usize>, FieldError> {
        let mut from = self.scanned;
        while let Some(line_end) = block::find::<Byte<b'\n'>>(input, from) {
            from = line_end + 1;
            if line_end == 0 || input[line_end - 1] != b'\r' {
                return Err(FieldError::BareLf);
            }
            if line_end - 1 == self.line_start {
                let end = line_end + 1;
                return if end > limits.head_bytes_max {
                    Err(FieldError::TooLarge)
                } else {
                    Ok(Some(end))
                };
            }
            if self.line_start == 0 {
                self.first_line = FirstLine::EndsAt(line_end - 1);
            }
            self.line_start = line_end + 1;
        }
        self.scanned = input.len();
        if input.len() >= limits.head_bytes_max { Err(FieldError::TooLarge) } else { Ok(None) }
    }
}

/// The length of the one empty line that a server tolerates before a request (RFC 9112, section
/// 2.2): 2 or 0. An input of a single CR is undecided and gives 0; more has to come.
pub fn skip_empty_line(input: &[u8]) -> usize {
    if input.starts_with(b"\r\n") { 2 } else { 0 }
}

/// How much of the input a head is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// All of it; nothing may follow.
    Whole,
    /// Its start, as far as the first empty line.
    Start,
}

/// Reads a complete request head, final empty line included, into `out`.
///
/// `out` is cleared first. After an error its content means nothing.
pub fn request(head: &[u8], limits: &HeadLimits, out: &mut Request) -> Result<(), RequestError> {
    if head.len() > limits.head_bytes_max {
        out.clear();
        return Err(FieldError::TooLarge.into());
    }
    read_request(head, Extent::Whole, limits, out).map(drop)
}

/// Reads a request head and gives its length.
fn read_request(
    input: &[u8],
    extent: Extent,
    limits: &HeadLimits,
    out: &mut Request,
) -> Result<usize, RequestError> {
    out.clear();
    if input.starts_with(HTTP2_PREFACE_HEAD) {
        return Err(RequestError::Http2Preface);
    }
    let (first, section) = split_first_line(input)?;
    let line = request_line(first, limits)?;
    out.set_method(line.method);
    out.version = line.version;
    let length = read_fields(section, extent, limits.fields_max, &mut out.headers)?;

    match target::form(line.target)? {
        target::Form::Origin => {
            host_of_field(out)?;
            out.set_path_and_query(line.target);
        }
        target::Form::Asterisk => {
            if out.method != Method::Options {
                return Err(TargetError::Asterisk.into());
            }
            host_of_field(out)?;
            out.set_path_and_query(line.target);
        }
        target::Form::Absolute { scheme, authority, path_and_query } => {
            host_of_field(out)?;
            absolute_target(scheme, authority, path_and_query, out)?;
        }
    }
    connection_options(&out.headers)?;
    Ok(input.len() - section.len() + length)
}

/// Reads a complete response head, final empty line included, into `out`.
///
/// `out` is cleared first. After an error its content means nothing.
pub fn response(head: &[u8], limits: &HeadLimits, out: &mut Response) -> Result<(), ResponseError> {
    if head.len() > limits.head_bytes_max {
        out.clear();
        return Err(FieldError::TooLarge.into());
    }
    read_response(head, Extent::Whole, limits, out).map(drop)
}

/// Reads a response head and gives its length.
fn read_response(
    input: &[u8],
    extent: Extent,
    limits: &HeadLimits,
    out: &mut Response,
) -> Result<usize, ResponseError> {
    out.clear();
    let (first, section) = split_first_line(input)?;
    let line = status_line(first)?;
    out.version = line.version;
    out.status = line.status;
    out.reason.extend_from_slice(line.reason);
    let length = read_fields(section, extent, limits.fields_max, &mut out.headers)?;
    connection_options(&out.headers)?;
    Ok(input.len() - section.len() + length)
}

/// Parts a head behind its first line; the first line comes without its CRLF.
fn split_first_line(head: &[u8]) -> Result<(&[u8], &[u8]), FieldError> {
    let line_feed = block::find::<Byte<b'\n'>>(head, 0).ok_or(FieldError::Incomplete)?;
    let (line, section) = head.split_at(line_feed + 1);
    let line = line.strip_suffix(b"\r\n").ok_or(FieldError::BareLf)?;
    Ok((line, section))
}

struct RequestLine<'a> {
    method: &'a [u8],
    target: &'a [u8],
    version: Version,
}

/// `method SP request-target SP HTTP-version` (RFC 9112, section 3), and nothing else: section 3
/// lets servers part the line at any white space, and those who do disagree about what it says.
fn request_line<'a>(line: &'a [u8], limits: &HeadLimits) -> Result<RequestLine<'a>, RequestError> {
    if line.is_empty() {
        return Err(RequestError::EmptyLine);
    }
    let method_end = method_end(line)?.ok_or(RequestError::VersionMissing)?;
    let (method, rest) = (&line[..method_end], &line[method_end + 1..]);
    let Some(space) = block::find::<Byte<b' '>>(rest, 0) else {
        return Err(if rest.contains(&b'\t') {
            RequestError::Whitespace
        } else if rest.len() > limits.target_bytes_max {
            RequestError::TargetTooLong
        } else {
            RequestError::VersionMissing
        });
    };
    let (target, version) = (&rest[..space], &rest[space + 1..]);
    if target.len() > limits.target_bytes_max {
        return Err(RequestError::TargetTooLong);
    }
    if target.is_empty() {
        return Err(RequestError::Whitespace);
    }
    let version = if version == b"HTTP/1.1" {
        Version::Http11
    } else if version == b"HTTP/1.0" {
        Version::Http10
    } else {
        return Err(why_no_version(method, target, version));
    };
    if method == b"CONNECT" {
        return Err(why_no_tunnel(target));
    }
    Ok(RequestLine { method, target, version })
}

/// A tunnel is asked for with host and port, and a target without is malformed (RFC 9110, section
/// 9.3.6); one that is not is refused all the same.
#[cold]
fn why_no_tunnel(target: &[u8]) -> RequestError {
    match target::host(target, &mut Vec::new()) {
        Ok(Some(_port)) => RequestError::Connect,
        Ok(None) | Err(_) => TargetError::Form.into(),
    }
}

#[cold]
fn why_no_version(method: &[u8], target: &[u8], version: &[u8]) -> RequestError {
    match version {
        b"HTTP/2.0" if method == b"PRI" && target == b"*" => RequestError::Http2Preface,
        // The requests of HTTP/0.9 name no version, so one that does is malformed.
        [b'H', b'T', b'T', b'P', b'/', b'0', b'.', _] => RequestError::VersionMalformed,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            RequestError::VersionUnsupported
        }
        _ if version.iter().any(|byte| matches!(byte, b' ' | b'\t')) => RequestError::Whitespace,
        _ => RequestError::VersionMalformed,
    }
}

/// Where the method ends, at its space; `None` if the line ends before.
///
/// Looks at no more than [`METHOD_BYTES_MAX`] bytes and one.
fn method_end(line: &[u8]) -> Result<Option<usize>, RequestError> {
    let start = line.get(..=METHOD_BYTES_MAX).unwrap_or(line);
    let Some(end) = start.iter().position(|&byte| !field::is_name_byte(byte)) else {
        return if start.len() > METHOD_BYTES_MAX {
            Err(RequestError::MethodTooLong)
        } else {
            Ok(None)
        };
    };
    match line[end] {
        b' ' if end > 0 => Ok(Some(end)),
        b' ' | b'\t' => Err(RequestError::Whitespace),
        0x16 if end == 0 => Err(RequestError::Tls),
        _ => Err(RequestError::Method),
    }
}

/// Refuses the start of a request line that nothing can mend any more.
fn judge_request_start(input: &[u8], limits: &HeadLimits) -> Result<(), RequestError> {
    // The CR of the line's end may be there already, and the byte behind it is not.
    let line = input.strip_suffix(b"\r").unwrap_or(input);
    let Some(method_end) = method_end(line)? else { return Ok(()) };
    // One space and eight bytes of version may follow the longest target.
    let longest = limits.target_bytes_max.saturating_add(b" HTTP/1.1".len());
    if line.len() - method_end - 1 > longest {
        return Err(RequestError::TargetTooLong);
    }
    Ok(())
}

struct StatusLine<'a> {
    version: Version,
    status: u16,
    reason: &'a [u8],
}

/// `HTTP-version SP status-code SP [ reason-phrase ]` (RFC 9112, section 4).
///
/// The second space may be missing where there is no reason: many origins leave it out, and no
/// parser takes the line for anything else.
fn status_line(line: &[u8]) -> Result<StatusLine<'_>, ResponseError> {
    let Some((version, rest)) = line.split_first_chunk::<9>() else {
        return Err(ResponseError::StatusLine);
    };
    let version = if version == b"HTTP/1.1 " {
        Version::Http11
    } else if version == b"HTTP/1.0 " {
        Version::Http10
    } else {
        return Err(match version {
            [b'H', b'T', b'T', b'P', b'/', major, b'.', minor, b' ']
                if major.is_ascii_digit() && minor.is_ascii_digit() =>
            {
                ResponseError::Version
            }
            _ => ResponseError::StatusLine,
        });
    };
    let Some((digits, rest)) = rest.split_first_chunk::<3>() else {
        return Err(ResponseError::Status);
    };
    if !digits.iter().all(u8::is_ascii_digit) || digits[0] == b'0' {
        return Err(ResponseError::Status);
    }
    let status = digits.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    let reason = match rest {
        [] => rest,
        [b' ', reason @ ..] => reason,
        _ => return Err(ResponseError::Status),
    };
    if !field::is_value(reason) {
        return Err(ResponseError::Reason);
    }
    Ok(StatusLine { version, status, reason })
}

/// Refuses the start of a status line that nothing can mend any more.
fn judge_response_start(input: &[u8]) -> Result<(), ResponseError> {
    let expected = b"HTTP/";
    let known = input.len().min(expected.len());
    if input[..known] == expected[..known] { Ok(()) } else { Err(ResponseError::StatusLine) }
}

/// Reads field lines and the empty line behind them. Also reads trailer sections.
pub(crate) fn fields(
    section: &[u8],
    fields_max: usize,
    out: &mut Headers,
) -> Result<(), FieldError> {
    read_fields(section, Extent::Whole, fields_max, out).map(drop)
}

/// Reads field lines up to the first empty line, and gives the place behind that.
fn read_fields(
    section: &[u8],
    extent: Extent,
    fields_max: usize,
    out: &mut Headers,
) -> Result<usize, FieldError> {
    let mut at = 0;
    loop {
        if starts_with_line_end(section, at) {
            at += LINE_END.len();
            if extent == Extent::Whole && at < section.len() {
                out.clear();
                return Err(FieldError::Incomplete);
            }
            out.adopt(&section[..at]);
            return Ok(at);
        }
        let next = field_line(section, at, out).filter(|_| out.len() <= fields_max);
        let Some(next) = next else {
            // Nothing has been adopted, so no field may point there.
            let read = out.len();
            out.clear();
            let too_many = read > fields_max;
            return Err(if too_many { FieldError::TooMany } else { why_refused(section) });
        };
        at = next;
    }
}

const LINE_END: [u8; 2] = *b"\r\n";

fn starts_with_line_end(text: &[u8], at: usize) -> bool {
    text.get(at..).and_then(|rest| rest.first_chunk()) == Some(&LINE_END)
}

/// Reads one field line and gives the place behind it; `None` if it is not as it should be.
#[inline]
fn field_line(section: &[u8], at: usize, out: &mut Headers) -> Option<usize> {
    let colon = block::find::<Byte<b':'>>(section, at)?;
    let start = section.get(at..)?;
    let name = start.get(..colon - at)?;
    let known = match start.first_chunk() {
        Some(text) => Known::at(text, name.len()),
        None => Known::of(name),
    };
    // A known name is a name.
    if known == Known::Other {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return None;
        }
        if !field::is_plain(name) {
            if !field::is_name(name) {
                return None;
            }
            out.note_odd_name();
        }
    }
    let end = value_end(section, colon + 1)?;
    // Nearly always one space stands before the value and none behind it. Of what is no greater
    // than a space, only white space has been let through.
    let (line, value) = match section.get(colon + 1..end)? {
        [b' ', first, .., last] if *first > b' ' && *last > b' ' => {
            (Line::AsWritten, colon + 2..end)
        }
        [b' ', only] if *only > b' ' => (Line::AsWritten, colon + 2..end),
        _ => (Line::Parts, trimmed(section, colon + 1, end)),
    };
    out.push_within(known, line, at..colon, value);
    Some(end + LINE_END.len())
}

/// Where the line ends whose value begins at `start`; `None` if at another control byte than HTAB.
#[inline]
fn value_end(section: &[u8], start: usize) -> Option<usize> {
    let end = block::find::<Control>(section, start)?;
    if starts_with_line_end(section, end) { Some(end) } else { value_end_behind_tab(section, end) }
}

#[cold]
fn value_end_behind_tab(section: &[u8], tab: usize) -> Option<usize> {
    let mut end = tab;
    while section[end] == b'\t' {
        end = block::find::<Control>(section, end + 1)?;
    }
    starts_with_line_end(section, end).then_some(end)
}

/// Where a value lies without the white space around it.
#[cold]
fn trimmed(section: &[u8], mut start: usize, mut end: usize) -> Range<usize> {
    while start < end && matches!(section[start], b' ' | b'\t') {
        start += 1;
    }
    while start < end && matches!(section[end - 1], b' ' | b'\t') {
        end -= 1;
    }
    start..end
}

/// Why lines are refused. Off the hot path.
#[cold]
fn why_refused(section: &[u8]) -> FieldError {
    let mut rest = section;
    let mut first = true;
    while let Some(line_feed) = memchr::memchr(b'\n', rest) {
        let Some(line) = rest[..line_feed].strip_suffix(b"\r") else {
            return FieldError::BareLf;
        };
        if line.is_empty() {
            break;
        }
        if let Err(reason) = judge_field_line(line, first) {
            return reason;
        }
        rest = &rest[line_feed + 1..];
        first = false;
    }
    FieldError::Incomplete
}

fn judge_field_line(line: &[u8], first: bool) -> Result<(), FieldError> {
    if line.contains(&b'\r') {
        return Err(FieldError::BareCr);
    }
    if matches!(line[0], b' ' | b'\t') {
        return Err(if first { FieldError::LeadingSpace } else { FieldError::Fold });
    }
    let colon = memchr::memchr(b':', line).ok_or(FieldError::NoColon)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    match name {
        [] => Err(FieldError::NameEmpty),
        _ if name.len() > NAME_BYTES_MAX => Err(FieldError::NameTooLong),
        [.., b' ' | b'\t'] => Err(FieldError::SpaceBeforeColon),
        _ if !field::is_name(name) => Err(FieldError::Name),
        _ if !field::is_value(value) => Err(FieldError::Value),
        _ => Ok(()),
    }
}

/// Takes the host from `Host` (RFC 9112, section 3.2).
fn host_of_field(out: &mut Request) -> Result<(), HostError> {
    let mut hosts = out.headers.all(Known::Host);
    let value = match (hosts.next(), hosts.next(), out.version) {
        (Some(value), None, _) => value,
        (Some(_), Some(_), _) => return Err(HostError::Several),
        (None, _, Version::Http10) => return Ok(()),
        (None, ..) => return Err(HostError::Missing),
    };
    out.port = target::host(value, &mut out.host)?;
    Ok(())
}

/// Takes scheme, host and path from an absolute target, whose host has to be that of `Host`.
///
/// A proxy would let the target win (RFC 9112, section 3.2.2); but a server behind us that looks at
/// `Host` alone would then see another site than we did.
fn absolute_target(
    scheme: target::Scheme,
    authority: &[u8],
    path_and_query: &[u8],
    out: &mut Request,
) -> Result<(), RequestError> {
    out.scheme.extend_from_slice(scheme.name().as_bytes());
    let mut host = Vec::with_capacity(authority.len());
    let port = target::host(authority, &mut host)?;
    if out.headers.has(Known::Host) {
        let default = scheme.default_port();
        let same_port = port.unwrap_or(default) == out.port.unwrap_or(default);
        if host != out.host || !same_port {
            return Err(HostError::Conflict.into());
        }
    }
    out.host = host;
    out.port = port;
    match path_and_query {
        [b'/', ..] => out.set_path_and_query(path_and_query),
        [] if out.method == Method::Options => {
            out.path_source = PathSource::Supplied;
            out.set_path_and_query(b"*");
        }
        _ => {
            out.path_source = PathSource::Supplied;
            let mut path = Vec::with_capacity(path_and_query.len() + 1);
            path.push(b'/');
            path.extend_from_slice(path_and_query);
            out.set_path_and_query(&path);
        }
    }
    Ok(())
}

/// Refuses more connection options than [`field::CONNECTION_OPTIONS_MAX`], so that leaving out the
/// fields they nominate costs linear time.
fn connection_options(headers: &Headers) -> Result<(), FieldError> {
    if !headers.has(Known::Connection) {
        return Ok(());
    }
    // An option takes two bytes with its comma, so a short list is not worth counting.
    let mut bytes = 0;
    for value in headers.all(Known::Connection) {
        bytes += value.len() + 1;
    }
    if bytes <= 2 * field::CONNECTION_OPTIONS_MAX {
        return Ok(());
    }
    let options = headers.all(Known::Connection).flat_map(field::tokens).count();
    if options > field::CONNECTION_OPTIONS_MAX {
        return Err(FieldError::ConnectionOptions);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
