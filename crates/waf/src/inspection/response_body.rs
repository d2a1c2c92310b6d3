//! A response's body, kept for its rules up to a limit.

use super::{Inspection, Mode};
use crate::body::Flow;
use crate::seclang::setting::{LimitAction, Switch};
use crate::variable::Variable;

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
    /// at all, and those of this media type are.
    pub fn wants_response_body(&self) -> Switch {
        if self.state.response_body.access == Switch::Off
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

    /// Takes a run of the response's body, decoded; says whether more is wanted.
    pub fn response_body(&mut self, bytes: &[u8]) -> Flow {
        let limit = usize::try_from(self.state.response_body.bytes_max).unwrap_or(usize::MAX);
        let room = limit.saturating_sub(self.response_body.len());
        self.response_body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            self.response_extent = Extent::Exceeds;
        }
        if self.response_body.len() < limit { Flow::Continue } else { Flow::Stop }
    }

    /// Takes the end of the response's body, or of what is inspected of it; phase 4 can run then.
    pub fn response_body_end(&mut self) -> Extent {
        let body = std::mem::take(&mut self.response_body);
        let exceeds = self.response_extent == Extent::Exceeds;
        self.state.set(Variable::ResponseBody, &body);
        self.state.set_number(Variable::OutboundDataError, u64::from(exceeds));
        match (self.program.settings.response_body_limit_action, self.state.mode) {
            (LimitAction::Reject, Mode::Block) => self.response_extent,
            (LimitAction::Reject | LimitAction::ProcessPartial, _) => Extent::Fits,
        }
    }
}
