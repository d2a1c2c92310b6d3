//! Body processors: bytes of a request or response body to arguments, files and faults, streaming.
//!
//! A [`Processor`] is fed a body in pieces of any size and tells a [`Sink`] what it finds as soon as
//! it is complete. What it tells does not depend on the pieces. Memory is bounded by [`Limits`], time
//! is linear in the body, and nothing recurses on its nesting. What the processors do where
//! ModSecurity 2, ModSecurity 3 and Coraza differ is said in each module; the measure is that the
//! Core Rule Set's own regression tests pass, and then, that a server behind us must not be able to
//! see something in a body that the rules did not.
//!
//! Left to others: which processor a request gets (`ctl:requestBodyProcessor`), the limit of the
//! whole body and what follows from going over it, the names of variables, and all judgement.

pub mod content_type;
pub mod cookies;
pub mod decode;
mod fault;
pub mod json;
pub mod multipart;
mod options;
mod sink;
pub mod spool;
mod swar;
pub mod urlencoded;
pub mod xml;

#[cfg(test)]
mod testing;

pub use fault::Fault;
pub use options::{Limits, Options, XmlText};
pub use sink::{Contents, File, Flow, Sink};

use fault::Halt;
use json::Json;
use multipart::Multipart;
use urlencoded::{Escapes, Urlencoded};
use xml::Xml;

/// The processors that a rule set can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `application/x-www-form-urlencoded`.
    Urlencoded,
    /// `multipart/form-data`.
    Multipart,
    /// `application/json` and its relatives, GraphQL among them.
    Json,
    /// `application/xml`, `text/xml` and their relatives.
    Xml,
}

impl Kind {
    /// The processor of that name (`URLENCODED`), in any case.
    pub fn by_name(name: &[u8]) -> Option<Self> {
        [Self::Urlencoded, Self::Multipart, Self::Json, Self::Xml]
            .into_iter()
            .find(|kind| kind.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Its name: `REQBODY_PROCESSOR`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Urlencoded => "URLENCODED",
            Self::Multipart => "MULTIPART",
            Self::Json => "JSON",
            Self::Xml => "XML",
        }
    }
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it was fed.
    Complete,
    /// The caller stopped feeding it (`SecRequestBodyLimitAction ProcessPartial`): that it is
    /// unfinished is no fault, and what has begun is given as far as it came.
    Truncated,
}

/// Reads one body.
#[derive(Debug)]
pub struct Processor {
    state: State,
    /// Bytes that may still come of a body that has no files.
    bytes_left: usize,
    flow: Flow,
    fault: Option<Fault>,
}

#[derive(Debug)]
enum State {
    Urlencoded(Urlencoded),
    Multipart(Box<Multipart>),
    Json(Box<Json>),
    Xml(Box<Xml>),
}

impl Processor {
    /// A processor for a body with that `Content-Type` (empty if there is none).
    ///
    /// When the content type alone makes the body unreadable, the [`fault`](Self::fault) is there
    /// from the start.
    pub fn new(kind: Kind, content_type: &[u8], options: &Options) -> Self {
        let mut fault = None;
        let state = match kind {
            Kind::Urlencoded => State::Urlencoded(Urlencoded::new(options)),
            Kind::Multipart => {
                let (multipart, unreadable) = Multipart::new(content_type, options);
                fault = unreadable;
                State::Multipart(Box::new(multipart))
            }
            Kind::Json => State::Json(Box::new(Json::new(options))),
            Kind::Xml => State::Xml(Box::new(Xml::new(options))),
        };
        Self {
            state,
            bytes_left: options.limits.fields_bytes_max,
            flow: if fault.is_some() { Flow::Stop } else { Flow::Continue },
            fault,
        }
    }

    /// Takes the next bytes of the body, and says whether more are of use: none are after a fault,
    /// or when the sink said stop. Further bytes are then ignored.
    pub fn feed<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Flow {
        if self.flow == Flow::Stop {
            return Flow::Stop;
        }
        // A multipart body knows itself which of its bytes count.
        let count = match self.state {
            State::Multipart(_) => bytes.len(),
            State::Urlencoded(_) | State::Json(_) | State::Xml(_) => {
                bytes.len().min(self.bytes_left)
            }
        };
        let (within, beyond) = bytes.split_at(count);
        let fed = match &mut self.state {
            State::Urlencoded(urlencoded) => urlencoded.feed(within, sink),
            State::Multipart(multipart) => multipart.feed(within, sink),
            State::Json(json) => json.feed(within, sink),
            State::Xml(xml) => xml.feed(within, sink),
        };
        self.bytes_left = self.bytes_left.saturating_sub(count);
        match fed {
            Ok(()) if !beyond.is_empty() => self.settle(Err(Fault::Fields.into())),
            fed => self.settle(fed),
        }
    }

    /// Takes the end of the body. Nothing happens after a stop, and nothing the second time.
    pub fn finish<S: Sink + ?Sized>(&mut self, end: End, sink: &mut S) -> Option<&Fault> {
        if self.flow == Flow::Continue {
            let finished = match (&mut self.state, end) {
                (State::Urlencoded(urlencoded), _) => urlencoded.finish(sink),
                (State::Multipart(multipart), End::Complete) => multipart.finish(sink),
                (State::Multipart(multipart), End::Truncated) => multipart.truncate(sink),
                (State::Json(json), End::Complete) => json.finish(sink),
                (State::Json(json), End::Truncated) => json.truncate(sink),
                (State::Xml(xml), End::Complete) => xml.finish(),
                (State::Xml(xml), End::Truncated) => xml.truncate(sink),
            };
            let _ = self.settle(finished);
            self.flow = Flow::Stop;
        }
        self.fault.as_ref()
    }

    fn settle(&mut self, fed: Result<(), Halt>) -> Flow {
        if let Err(halt) = fed {
            self.flow = Flow::Stop;
            match halt {
                Halt::Fault(fault) => self.fault = Some(fault),
                Halt::Stop => {}
            }
        }
        self.flow
    }

    /// What makes the body unreadable, if anything does so far.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Whether all escapes of an urlencoded body were valid; those of others are.
    pub fn escapes(&self) -> Escapes {
        match &self.state {
            State::Urlencoded(urlencoded) => urlencoded.escapes(),
            State::Multipart(_) | State::Json(_) | State::Xml(_) => Escapes::Valid,
        }
    }

    /// What only a multipart body has: its flags, and its current part's names.
    pub fn multipart(&self) -> Option<&Multipart> {
        match &self.state {
            State::Multipart(multipart) => Some(multipart),
            State::Urlencoded(_) | State::Json(_) | State::Xml(_) => None,
        }
    }
}
