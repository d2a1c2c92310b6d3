//! A response's body, kept for its rules up to a limit.

use super::{Inspection, Mode};
use crate::body::decode::Decoder;
use crate::body::{Flow, Limits};
use crate::seclang::setting::{LimitAction, Switch};
use crate::variable::Variable;

/// What has been taken of a response's body.
#[derive(Default)]
pub(super) struct ResponseBody {
    bytes: Vec<u8>,
    coding: Coding,
}

#[derive(Default)]
enum Coding {
    /// The body is as it is.
    #[default]
    Plain,
    Coded(Decoder),
    /// The body cannot be decoded, or not any further.
    Unreadable,
}

impl ResponseBody {
    /// Takes note of the body's content codings.
    pub(super) fn decode(&mut self, codings: &[u8], limits: &Limits) {
        self.coding = match Decoder::new(codings, limits) {
            Ok(None) => Coding::Plain,
            Ok(Some(decoder)) => Coding::Coded(decoder),
            Err(_) => Coding::Unreadable,
        };
    }
}

/// Whether a response goes on as it is, for its body's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The body is within the limit, or only its beginning is to be inspected.
    Fits,
    /// It is longer than `SecResponseBodyLimit`, and the rule set says to refuse such.
    Exceeds,
}

impl Inspection {
    /// Whether rules want the body of the response whose head has come: response bodies are looked at
    /// at all, those of this media type are, and its content codings can be taken off.
    pub fn wants_response_body(&self) -> Switch {
        if self.state.response_body.access == Switch::Off
            || matches!(self.response_body.coding, Coding::Unreadable)
            || self.program.phase(crate::variable::Phase::ResponseBody).is_empty()
        {
            return Switch::Off;
        }
        let media_type = self.state.values.of(Variable::ResponseContentType).first();
        let media_type =
            media_type.map_or(&b""[..], |named| self.state.contents.bytes(named.value));
        let wanted = self
            .program
            .settings
            .response_body_types
            .iter()
            .any(|wanted| wanted.as_bytes().eq_ignore_ascii_case(media_type));
        if wanted { Switch::On } else { Switch::Off }
    }

    /// How many bytes of the response's body are taken (`SecResponseBodyLimit`).
    pub fn response_body_limit(&self) -> u64 {
        self.state.response_body.bytes_max
    }

    /// Takes a run of the response's body as it came; says whether more is wanted. Content codings are
    /// taken off; where that fails, rules look at what came before.
    pub fn response_body(&mut self, bytes: &[u8]) -> Flow {
        let limit = usize::try_from(self.state.response_body.bytes_max).unwrap_or(usize::MAX);
        let ResponseBody { bytes: taken, coding } = &mut self.response_body;
        let extent = &mut self.response_extent;
        let mut take = |run: &[u8]| {
            let room = limit.saturating_sub(taken.len());
            taken.extend_from_slice(&run[..run.len().min(room)]);
            if run.len() > room {
                *extent = Extent::Exceeds;
            }
            // One byte more tells that there is more.
            if *extent == Extent::Exceeds { Flow::Stop } else { Flow::Continue }
        };
        match coding {
            Coding::Plain => take(bytes),
            Coding::Unreadable => Flow::Stop,
            Coding::Coded(decoder) => decoder.feed(bytes, &mut take).unwrap_or_else(|_| {
                *coding = Coding::Unreadable;
                Flow::Stop
            }),
        }
    }

    /// Takes the end of the response's body, or of what is inspected of it; phase 4 can run then.
    pub fn response_body_end(&mut self) -> Extent {
        let body = std::mem::take(&mut self.response_body).bytes;
        let exceeds = self.response_extent == Extent::Exceeds;
        self.state.set(Variable::ResponseBody, &body);
        self.state.set_number(Variable::OutboundDataError, u64::from(exceeds));
        match (self.program.settings.response_body_limit_action, self.state.mode) {
            (LimitAction::Reject, Mode::Block) => self.response_extent,
            (LimitAction::Reject | LimitAction::ProcessPartial, _) => Extent::Fits,
        }
    }
}
