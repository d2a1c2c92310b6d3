//! Content codings (RFC 9110 section 8.4) taken off, so that bodies can be inspected, streaming.
//!
//! Reads `gzip`, `deflate` (in its zlib form and, as browsers do, bare), `br` and `zstd`, several of
//! them in a row, and nothing else: what cannot be decoded cannot be inspected, and that is for the
//! caller to judge. Bombs end at three limits: bytes given, bytes given for each byte taken, and the
//! decoders' windows. Garbage behind the end of a stream is a fault, since some servers read it.

mod codec;

use std::fmt;

use codec::{Codec, Step};

use super::options::Limits;
use super::sink::Flow;

/// A content coding that can be taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `gzip`, also `x-gzip` (RFC 1952).
    Gzip,
    /// `deflate`: zlib (RFC 1950), or a bare stream (RFC 1951).
    Deflate,
    /// `br` (RFC 7932).
    Brotli,
    /// `zstd` (RFC 8878).
    Zstd,
}

impl Coding {
    fn by_name(name: &[u8]) -> Option<Self> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match () {
            () if is("gzip") || is("x-gzip") => Some(Self::Gzip),
            () if is("deflate") => Some(Self::Deflate),
            () if is("br") => Some(Self::Brotli),
            () if is("zstd") => Some(Self::Zstd),
            () => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }
}

/// Why a body cannot be decoded, or not any further. The sender's doing, but for `Memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A coding that is not known here.
    Unsupported,
    /// More codings than [`Limits::codings_max`].
    Codings,
    /// Not what the coding says, or beyond the window that it may have.
    Corrupt(Coding),
    /// Something follows the end of the stream, or more members than
    /// [`Limits::gzip_members_max`].
    Trailing(Coding),
    /// The body ends before its stream does.
    Unfinished(Coding),
    /// More bytes than [`Limits::decoded_bytes_max`]; so many have been given.
    Bytes,
    /// More bytes for each byte taken than [`Limits::decoded_ratio_max`].
    Ratio,
    /// No memory for a decoder.
    Memory,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Content-Encoding: ")?;
        match self {
            Self::Unsupported => f.write_str("unsupported coding"),
            Self::Codings => f.write_str("too many codings"),
            Self::Corrupt(coding) => write!(f, "corrupt {} data", coding.name()),
            Self::Trailing(coding) => write!(f, "data behind the {} stream", coding.name()),
            Self::Unfinished(coding) => write!(f, "unfinished {} stream", coding.name()),
            Self::Bytes => f.write_str("too many bytes"),
            Self::Ratio => f.write_str("too many bytes for so few"),
            Self::Memory => f.write_str("no memory"),
        }
    }
}

impl std::error::Error for Fault {}

/// Takes the codings off one body.
pub struct Decoder {
    /// The coding applied last first.
    stages: Vec<Stage>,
    bounds: Bounds,
    flow: Flow,
    fault: Option<Fault>,
}

struct Stage {
    coding: Coding,
    codec: Codec,
    buffer: Box<[u8]>,
    taken: u64,
    given: u64,
}

struct Bounds {
    bytes_max: u64,
    ratio_max: u64,
    free_bytes: u64,
}

enum Halt {
    Fault(Fault),
    Stop,
}

/// Bytes that a decoder gives at once.
const BUFFER_BYTES: usize = 16 << 10;

impl Decoder {
    /// A decoder for a body with that `Content-Encoding` (several fields joined by commas), or none
    /// if there is nothing to take off.
    pub fn new(content_encoding: &[u8], limits: &Limits) -> Result<Option<Self>, Fault> {
        let mut stages = Vec::new();
        for name in content_encoding.split(|&byte| byte == b',').rev() {
            let name = name.trim_ascii();
            if name.is_empty() || name.eq_ignore_ascii_case(b"identity") {
                continue;
            }
            let coding = Coding::by_name(name).ok_or(Fault::Unsupported)?;
            if stages.len() == limits.codings_max as usize {
                return Err(Fault::Codings);
            }
            stages.push(Stage {
                coding,
                codec: Codec::new(coding, limits)?,
                buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
                taken: 0,
                given: 0,
            });
        }
        if stages.is_empty() {
            return Ok(None);
        }
        let bounds = Bounds {
            bytes_max: limits.decoded_bytes_max,
            ratio_max: u64::from(limits.decoded_ratio_max),
            free_bytes: limits.decoded_free_bytes,
        };
        Ok(Some(Self { stages, bounds, flow: Flow::Continue, fault: None }))
    }

    /// Takes the next bytes of the body and gives what they decode to, in runs, until `give` says
    /// stop. After a stop or a fault there is nothing more.
    ///
    /// The joined runs do not depend on the pieces, but for how much of what precedes a corrupt place
    /// or [`Fault::Ratio`] is still given. Of a body with [`Fault::Bytes`], just as many as it may
    /// have are.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        give: &mut dyn FnMut(&[u8]) -> Flow,
    ) -> Result<Flow, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.flow == Flow::Continue {
            match decode(&mut self.stages, &self.bounds, bytes, give) {
                Ok(()) => {}
                Err(Halt::Stop) => self.flow = Flow::Stop,
                Err(Halt::Fault(fault)) => {
                    self.fault = Some(fault);
                    return Err(fault);
                }
            }
        }
        Ok(self.flow)
    }

    /// Takes the end of the body.
    pub fn finish(&self) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.flow == Flow::Stop {
            return Ok(());
        }
        let unfinished = |stage: &&Stage| stage.taken > 0 && !stage.codec.is_ended();
        match self.stages.iter().find(unfinished) {
            Some(stage) => Err(Fault::Unfinished(stage.coding)),
            None => Ok(()),
        }
    }
}

/// Decodes through all stages, of which there are few.
fn decode(
    stages: &mut [Stage],
    bounds: &Bounds,
    bytes: &[u8],
    give: &mut dyn FnMut(&[u8]) -> Flow,
) -> Result<(), Halt> {
    let Some((stage, behind)) = stages.split_first_mut() else {
        return match give(bytes) {
            Flow::Continue => Ok(()),
            Flow::Stop => Err(Halt::Stop),
        };
    };
    let mut rest = bytes;
    loop {
        let (step, result) = stage.codec.step(rest, &mut stage.buffer);
        rest = &rest[step.taken..];
        stage.taken += step.taken as u64;
        let left = bounds.bytes_max - stage.given;
        let given = usize::try_from(left).map_or(step.given, |left| step.given.min(left));
        stage.given += given as u64;
        if given > 0 {
            decode(behind, bounds, &stage.buffer[..given], give)?;
        }
        result.map_err(Halt::Fault)?;
        if given < step.given {
            return Err(Halt::Fault(Fault::Bytes));
        }
        if stage.given > bounds.free_bytes.max(stage.taken.saturating_mul(bounds.ratio_max)) {
            return Err(Halt::Fault(Fault::Ratio));
        }
        let is_stuck = step == Step { taken: 0, given: 0 };
        if is_stuck || rest.is_empty() && step.given < stage.buffer.len() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
