//! A request to be tried, with the response to it if there is one.
//!
//! It comes from the command line, from a file as HTTP/1.1 has it ([`message`](super::message)), or
//! from a record of the gate ([`record`](super::record)).

use std::fs;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use tidegate_http::field::Known;
use tidegate_http::target::Scheme;
use tidegate_http::{Request, Response, Version};
use tidegate_telemetry::clock;
use tidegate_telemetry::record::Protocol;

use super::super::question::Question;
use super::{message, record};
use crate::cli;

/// Where a request comes from if nobody says: an address that is no one's (RFC 5737).
const SOMEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A request to be tried.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// Its id: that of the record, or a word.
    pub(super) id: String,
    /// Its head, as the gate would have parsed it.
    pub(super) request: Request,
    /// The scheme of the connection.
    pub(super) scheme: Scheme,
    /// The port it was sent to.
    pub(super) port: u16,
    /// The address of the peer.
    pub(super) peer: IpAddr,
    /// Its body without framing, as far as it is there.
    pub(super) body: Vec<u8>,
    /// Whether that is all of it.
    pub(super) extent: Extent,
    /// When it came, in milliseconds since the Unix epoch.
    pub(super) unix_millis: u64,
    /// What the server answers.
    pub(super) answer: Option<Answer>,
    /// What somebody who tries it should know of how it was read.
    pub(super) remarks: Vec<String>,
}

/// How much of a body there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// The beginning: the record was cut.
    Beginning,
}

/// A response, for phases 3 and 4.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) head: Response,
    /// Its body without framing.
    pub(super) body: Vec<u8>,
}

impl Subject {
    /// The request that the command line means; the words of what is wrong with it otherwise.
    pub(super) fn of(arguments: &cli::WafTest) -> Result<Self, String> {
        let named = match (&arguments.url, arguments.what.as_str()) {
            (Some(url), method) => Some((Some(method), url.as_str())),
            (None, url) if url.contains("://") => Some((None, url)),
            (None, _) => None,
        };
        let mut subject = match named {
            Some((method, url)) => Self::asked(arguments, method, url)?,
            None => Self::filed(arguments)?,
        };
        if let Some(from) = arguments.from {
            subject.peer = from;
        }
        if let Some(path) = &arguments.response {
            let (answer, mut remarks) = message::response(&read(path)?, subject.request.method)?;
            subject.answer = Some(answer);
            subject.remarks.append(&mut remarks);
        }
        Ok(subject)
    }

    fn asked(arguments: &cli::WafTest, method: Option<&str>, url: &str) -> Result<Self, String> {
        let body = match &arguments.data {
            None => None,
            Some(data) => Some(match data.strip_prefix('@') {
                Some(path) => read(Path::new(path))?,
                None => data.clone().into_bytes(),
            }),
        };
        let method = method.unwrap_or(if body.is_some() { "POST" } else { "GET" });
        let Question { mut request, scheme, port, .. } =
            Question::of(method, url, &arguments.headers, arguments.from)?;
        let fields = &mut request.headers;
        // What every client sends: rules would wonder at a request without it.
        for (name, value) in [("User-Agent", "tidegate-waf-test"), ("Accept", "*/*")] {
            if fields.named(name.as_bytes()).next().is_none() {
                fields.push(name.as_bytes(), value.as_bytes());
            }
        }
        if let Some(body) = &body {
            if !fields.has(Known::ContentType) {
                fields.push(b"Content-Type", b"application/x-www-form-urlencoded");
            }
            if !fields.has(Known::ContentLength) {
                fields.push(b"Content-Length", body.len().to_string().as_bytes());
            }
        }
        let body = body.unwrap_or_default();
        Ok(Self { scheme, port, body, ..Self::new("test", request) })
    }

    fn filed(arguments: &cli::WafTest) -> Result<Self, String> {
        if let Some(field) = arguments.headers.first() {
            return Err(format!(
                "`{}` has no place: the file has the fields",
                field.escape_debug()
            ));
        }
        if arguments.data.is_some() {
            return Err("`--data` has no place: the file has the body".into());
        }
        let bytes = read(Path::new(&arguments.what))?;
        if record::is_record(&bytes) {
            return record::find(&bytes, arguments.id.as_deref());
        }
        message::request(&bytes)
    }

    /// A request without a body, over plain HTTP.
    pub(super) fn new(id: &str, request: Request) -> Self {
        Self {
            id: id.to_owned(),
            scheme: Scheme::Http,
            port: request.port.unwrap_or(Scheme::Http.default_port()),
            request,
            peer: SOMEWHERE,
            body: Vec::new(),
            extent: Extent::Whole,
            unix_millis: clock::unix_millis(),
            answer: None,
            remarks: Vec::new(),
        }
    }

    /// The protocol by the name that rules know.
    pub(super) fn protocol(&self) -> Protocol {
        match self.request.version {
            Version::Http10 => Protocol::Http10,
            Version::Http11 => Protocol::Http11,
            Version::Http2 => Protocol::H2,
            Version::Http3 => Protocol::H3,
        }
    }

    /// Method and URL, for people.
    pub(super) fn title(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let request = &self.request;
        format!(
            "{} {}://{}{}",
            text(request.method_bytes()),
            self.scheme.name(),
            text(&request.host),
            text(&request.path_and_query)
        )
    }
}

/// A file, or the standard input for `-`.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let told = |error: std::io::Error| format!("`{}`: {error}", path.display());
    let mut bytes = Vec::new();
    let mut input: Box<dyn std::io::Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(fs::File::open(path).map_err(told)?)
    };
    input.by_ref().take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(told)?;
    Ok(bytes)
}
