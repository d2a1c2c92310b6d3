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

pub mod cookies;
mod fault;
pub mod json;
mod options;
mod sink;
pub mod urlencoded;

#[cfg(test)]
mod testing;

pub use fault::Fault;
pub use options::{Limits, Options, XmlText};
pub use sink::{Contents, File, Flow, Sink};

use json::Json;
use urlencoded::{Escapes, Urlencoded};

/// The processors that a rule set can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `application/x-www-form-urlencoded`.
    Urlencoded,
    /// `application/json` and its relatives, GraphQL among them.
    Json,
}

impl Kind {
    /// The processor of that name (`URLENCODED`), in any case.
    pub fn by_name(name: &[u8]) -> Option<Self> {
        [Self::Urlencoded, Self::Json]
            .into_iter()
            .find(|kind| kind.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Its name: `REQBODY_PROCESSOR`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Urlencoded => "URLENCODED",
            Self::Json => "JSON",
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
    /// Bytes outside of files that may still come.
    fields_bytes_left: usize,
    flow: Flow,
    fault: Option<Fault>,
}

#[derive(Debug)]
enum State {
    Urlencoded(Urlencoded),
    Json(Box<Json>),
}

impl Processor {
    /// A processor for a body with that `Content-Type` (empty if there is none).
    ///
    /// When the content type alone makes the body unreadable, the [`fault`](Self::fault) is there
    /// from the start.
    pub fn new(kind: Kind, content_type: &[u8], options: &Options) -> Self {
        let _ = content_type;
        let state = match kind {
            Kind::Urlencoded => State::Urlencoded(Urlencoded::new(options)),
            Kind::Json => State::Json(Box::new(Json::new(options))),
        };
        Self {
            state,
            fields_bytes_left: options.limits.fields_bytes_max,
            flow: Flow::Continue,
            fault: None,
        }
    }

    /// Takes the next bytes of the body, and says whether more are of use: none are after a fault,
    /// or when the sink said stop. Further bytes are then ignored.
    pub fn feed<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Flow {
        if self.flow == Flow::Stop {
            return Flow::Stop;
        }
        let within = &bytes[..bytes.len().min(self.fields_bytes_left)];
        let fed = match &mut self.state {
            State::Urlencoded(urlencoded) => urlencoded.feed(within, sink),
            State::Json(json) => json.feed(within, sink),
        };
        self.fields_bytes_left -= within.len();
        let fed = match fed {
            Ok(Flow::Continue) if within.len() < bytes.len() => Err(Fault::Fields),
            fed => fed,
        };
        self.flow = fed.unwrap_or_else(|fault| {
            self.fault = Some(fault);
            Flow::Stop
        });
        self.flow
    }

    /// Takes the end of the body. Nothing happens after a stop, and nothing the second time.
    pub fn finish<S: Sink + ?Sized>(&mut self, end: End, sink: &mut S) -> Option<&Fault> {
        if std::mem::replace(&mut self.flow, Flow::Stop) == Flow::Continue {
            let finished = match (&mut self.state, end) {
                (State::Urlencoded(urlencoded), _) => urlencoded.finish(sink),
                (State::Json(json), End::Complete) => json.finish(sink),
                (State::Json(json), End::Truncated) => json.truncate(sink),
            };
            self.fault = finished.err();
        }
        self.fault.as_ref()
    }

    /// What makes the body unreadable, if anything does so far.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Whether all escapes of an urlencoded body were valid; those of others are.
    pub fn escapes(&self) -> Escapes {
        match &self.state {
            State::Urlencoded(urlencoded) => urlencoded.escapes(),
            State::Json(_) => Escapes::Valid,
        }
    }
}
