//! Reading HTTP/1 messages the way a careless peer would, and saying what is wrong with them.
//!
//! The reader takes the most lenient view: LF ends a line, anything numeric is a length. So a message
//! that hides another one yields both. Each departure from the one canonical form is a fault: a
//! message without faults has one reading.

/// Which way a message goes; it decides how its body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Request,
    /// The answer to a request with or without `HEAD`'s rule.
    Response(Body),
}

/// Whether a response may have a body at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Allowed,
    /// The answer to `HEAD`.
    Never,
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum Progress {
    Head,
    Body,
    Complete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length(u64),
    Chunked,
    UntilClose,
    /// Behind a 101 there are no messages.
    Tunnel,
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Request or status line.
    pub line: Vec<u8>,
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub framing: Framing,
    pub body: Vec<u8>,
    pub progress: Progress,
    /// Bytes of the input that are this message's.
    pub consumed: usize,
    /// An HTTP/2 stream's error: what `RST_STREAM` says, or what the client would raise itself.
    pub reset: Option<u32>,
    pub faults: Vec<String>,
}

impl Message {
    /// Reads one message from the start of `input`.
    pub(crate) fn read(side: Side, input: &[u8]) -> Message {
        let mut message = Message {
            line: Vec::new(),
            fields: Vec::new(),
            framing: Framing::None,
            body: Vec::new(),
            progress: Progress::Head,
            consumed: input.len(),
            reset: None,
            faults: Vec::new(),
        };
        let Some(head) = message.read_lines(input, Lines::Head) else { return message };
        message.judge_line(side);
        message.framing = message.judge_framing(side);
        message.progress = Progress::Body;
        let rest = &input[head..];
        let body = match message.framing {
            Framing::None | Framing::Tunnel => Some(0),
            Framing::Length(length) => {
                let there = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
                message.body = rest[..there].to_vec();
                (there as u64 == length).then_some(there)
            }
            Framing::Chunked => message.read_chunks(rest),
            Framing::UntilClose => {
                message.body = rest.to_vec();
                None
            }
        };
        if let Some(body) = body {
            message.progress = Progress::Complete;
            message.consumed = head + body;
        }
        message
    }

    /// The status of a response; 0 if its line has none.
    pub(crate) fn status(&self) -> u16 {
        let code = self.line.get(9..12).and_then(|code| std::str::from_utf8(code).ok());
        code.and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    /// Whether the message is an interim response, other than the 101 that ends HTTP.
    pub(crate) fn is_interim(&self) -> bool {
        self.status() / 100 == 1 && self.status() != 101
    }

    /// The target of a request, as far as the line shows one.
    pub(crate) fn target(&self) -> &[u8] {
        self.line.split(|&byte| byte == b' ').nth(1).unwrap_or_default()
    }

    /// The values of a field, in order.
    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let of_name =
            self.fields.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name.as_bytes()));
        of_name.map(|(_, value)| value.as_slice())
    }

    fn fault(&mut self, text: impl Into<String>) {
        self.faults.push(text.into());
    }

    /// Reads lines to the empty one; returns the bytes read, or `None` if it is not there yet.
    fn read_lines(&mut self, input: &[u8], lines: Lines) -> Option<usize> {
        let mut position = 0;
        loop {
            let end = position + input[position..].iter().position(|&byte| byte == b'\n')?;
            let mut line = &input[position..end];
            match line.strip_suffix(b"\r") {
                Some(stripped) => line = stripped,
                None => self.fault("a line ends in LF without CR"),
            }
            position = end + 1;
            if line.is_empty() {
                if self.line.is_empty() && lines == Lines::Head {
                    self.fault("an empty line stands before the start line");
                    continue;
                }
                return Some(position);
            }
            if line.iter().any(|&byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f) {
                self.fault(format!("control bytes in {:?}", line.escape_ascii().to_string()));
            }
            if self.line.is_empty() && lines == Lines::Head {
                self.line = line.to_vec();
            } else {
                self.read_field(line);
            }
        }
    }

    fn read_field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        if name.is_empty() || !name.iter().all(|&byte| is_token(byte)) || colon == line.len() {
            self.fault(format!("no field: {:?}", line.escape_ascii().to_string()));
        }
        self.fields.push((name.trim_ascii().to_vec(), value.trim_ascii().to_vec()));
    }

    fn judge_line(&mut self, side: Side) {
        let line = self.line.clone();
        let well_formed = match side {
            Side::Request => {
                let parts: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
                matches!(parts[..], [method, target, b"HTTP/1.1" | b"HTTP/1.0"]
                    if !method.is_empty() && method.iter().all(|&byte| is_token(byte))
                        && !target.is_empty() && !target.contains(&b'#') && !target.contains(&b'\t'))
            }
            Side::Response(_) => {
                (line.starts_with(b"HTTP/1.1 ") || line.starts_with(b"HTTP/1.0 "))
                    && (100..=999).contains(&self.status())
                    && line.get(12).is_none_or(|&byte| byte == b' ')
            }
        };
        if !well_formed {
            self.fault(format!("malformed start line {:?}", line.escape_ascii().to_string()));
        }
        if side == Side::Request {
            let hosts = self.values("host").count();
            if hosts > 1 || (hosts == 0 && line.ends_with(b"1.1")) {
                self.fault(format!("{hosts} Host fields"));
            }
        }
    }

    fn judge_framing(&mut self, side: Side) -> Framing {
        let lengths: Vec<Vec<u8>> = self.values("content-length").map(<[u8]>::to_vec).collect();
        let codings: Vec<Vec<u8>> = self.values("transfer-encoding").map(<[u8]>::to_vec).collect();
        if lengths.len() > 1 {
            self.fault("several Content-Lengths");
        }
        if lengths.iter().any(|length| {
            length.is_empty() || length.len() > 19 || !length.iter().all(u8::is_ascii_digit)
        }) {
            self.fault("a Content-Length that is no plain number");
        }
        if codings.iter().any(|coding| coding != b"chunked") || codings.len() > 1 {
            self.fault("a Transfer-Encoding that is not a single chunked");
        }
        if !codings.is_empty() && !lengths.is_empty() {
            self.fault("both Transfer-Encoding and Content-Length");
        }
        if !codings.is_empty() && self.line.ends_with(b"HTTP/1.0") {
            self.fault("Transfer-Encoding in HTTP/1.0");
        }
        let chunked = codings
            .iter()
            .any(|coding| crate::bytes::contains(&coding.to_ascii_lowercase(), b"chunked"));
        let length = lengths.iter().find_map(|length| {
            std::str::from_utf8(length).ok().and_then(|length| length.parse().ok())
        });
        let fallback = match side {
            Side::Response(Body::Never) => return self.judge_bodiless(Framing::None),
            Side::Response(Body::Allowed) => match self.status() {
                101 => return self.judge_bodiless(Framing::Tunnel),
                100..200 | 204 | 304 => return self.judge_bodiless(Framing::None),
                _ => Framing::UntilClose,
            },
            Side::Request => Framing::None,
        };
        if chunked { Framing::Chunked } else { length.map_or(fallback, Framing::Length) }
    }

    /// RFC 9110, section 8.6 and RFC 9112, section 6.1: no framing fields in 1xx and 204.
    fn judge_bodiless(&mut self, framing: Framing) -> Framing {
        let status = self.status();
        if (status / 100 == 1 || status == 204)
            && (self.values("content-length").next().is_some()
                || self.values("transfer-encoding").next().is_some())
        {
            self.fault(format!("framing fields in a {status}"));
        }
        framing
    }

    /// Reads a chunked body; returns the bytes read, or `None` if it is not whole.
    fn read_chunks(&mut self, input: &[u8]) -> Option<usize> {
        let mut position = 0;
        loop {
            let end = position + input[position..].iter().position(|&byte| byte == b'\n')?;
            let line = &input[position..end];
            let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let text = std::str::from_utf8(&line[..digits]).unwrap_or_default();
            if line[digits..] != *b"\r" || digits == 0 {
                self.fault(format!("chunk size line {:?}", line.escape_ascii().to_string()));
            }
            let size = usize::from_str_radix(text, 16).unwrap_or(0);
            position = end + 1;
            if size == 0 {
                let trailers = self.read_lines(&input[position..], Lines::Trailers)?;
                return Some(position + trailers);
            }
            let there = size.min(input.len() - position);
            self.body.extend_from_slice(&input[position..position + there]);
            position += there;
            let ending = input.get(position..position + 2)?;
            if ending != b"\r\n" {
                self.fault("a chunk's data does not end in CRLF");
            }
            position += 2;
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Lines {
    Head,
    Trailers,
}

/// RFC 9110, section 5.6.2.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// All responses in what a client received. `methods` are those of its requests, `closed` tells
/// whether FIN came. What no response claims is left over.
pub(crate) fn responses(input: &[u8], methods: &[String], closed: bool) -> (Vec<Message>, Vec<u8>) {
    let mut messages: Vec<Message> = Vec::new();
    let mut rest = input;
    let mut finals = 0;
    while rest.starts_with(b"HTTP/") {
        let head = methods.get(finals).is_some_and(|method| method == "HEAD");
        let body = if head { Body::Never } else { Body::Allowed };
        let mut message = Message::read(Side::Response(body), rest);
        if message.framing == Framing::UntilClose && message.progress == Progress::Body && closed {
            message.progress = Progress::Complete;
        }
        rest = &rest[message.consumed..];
        finals += usize::from(!message.is_interim());
        let last = message.framing == Framing::Tunnel || message.progress != Progress::Complete;
        messages.push(message);
        if last {
            break;
        }
    }
    (messages, rest.to_vec())
}

#[cfg(test)]
#[track_caller]
fn check(side: Side, input: &[u8], progress: Progress, body: &[u8], faults: usize) {
    let message = Message::read(side, input);
    assert_eq!(message.progress, progress);
    assert_eq!(message.body, body);
    assert_eq!(message.faults.len(), faults, "{:?}", message.faults);
}

#[test]
fn requests_are_judged() {
    use Progress::{Body as Partial, Complete, Head};
    let check = |input: &[u8], progress, body: &[u8], faults| {
        check(Side::Request, input, progress, body, faults);
    };
    check(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", Complete, b"", 0);
    check(b"GET / HTTP/1.1\r\nHost: a\r\n", Head, b"", 0);
    check(b"GET / HTTP/1.1\nHost: a\n\n", Complete, b"", 3);
    check(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", Complete, b"", 1);
    check(b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Complete, b"", 1);
    check(b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", Complete, b"", 1);
    check(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab", Partial, b"ab", 0);
    check(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", Complete, b"abc", 1);
    let chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(&[chunked, &b"3\r\nabc\r\n0\r\n\r\n"[..]].concat(), Complete, b"abc", 0);
    check(&[chunked, &b"3;x\r\nabc\r\n0\r\n\r\n"[..]].concat(), Complete, b"abc", 1);
    check(&[chunked, &b"3\r\nabc\r\n0\r\n"[..]].concat(), Partial, b"abc", 0);
}

#[test]
fn responses_are_told_apart() {
    let input = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokx";
    let (messages, rest) = responses(input, &[], true);
    assert_eq!(messages.iter().map(Message::status).collect::<Vec<_>>(), [100, 200]);
    assert_eq!((messages[1].body.as_slice(), rest.as_slice()), (&b"ok"[..], &b"x"[..]));
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nHTTP/1.1 404 No\r\n\r\nhi";
    let (messages, _) = responses(input, &["HEAD".into()], true);
    assert_eq!(messages.iter().map(Message::status).collect::<Vec<_>>(), [200, 404]);
    assert_eq!(messages[1].progress, Progress::Complete);
    let (messages, _) = responses(input, &["HEAD".into()], false);
    assert_eq!(messages[1].progress, Progress::Body);
}
