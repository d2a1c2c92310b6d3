//! The decoders of single codings behind one step.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

use super::{Coding, Fault};
use crate::body::options::Limits;

/// What one step has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) taken: usize,
    pub(super) given: usize,
}

/// A decoder of one coding.
pub(super) enum Codec {
    Gzip(Gzip),
    Deflate(Deflate),
    Brotli(Box<Brotli>),
    Zstd(Zstd),
}

impl Codec {
    pub(super) fn new(coding: Coding, limits: &Limits) -> Result<Self, Fault> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip(Gzip {
                inflate: Decompress::new_gzip(WINDOW_LOG),
                progress: Progress::Open,
                members_left: limits.gzip_members_max.saturating_sub(1),
            }),
            Coding::Deflate => Self::Deflate(Deflate::Undecided { first: None }),
            Coding::Brotli => Self::Brotli(Box::new(Brotli {
                // Windows of the standard's sizes only, up to 16 MiB.
                state: BrotliState::new_strict(
                    StandardAlloc::default(),
                    StandardAlloc::default(),
                    StandardAlloc::default(),
                ),
                progress: Progress::Open,
            })),
            Coding::Zstd => Self::Zstd(Zstd::new().map_err(|_| Fault::Memory)?),
        })
    }

    /// Decodes some of `input` into `output`; what was given before a fault is valid.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> (Step, Result<(), Fault>) {
        match self {
            Self::Gzip(gzip) => gzip.step(input, output),
            Self::Deflate(deflate) => deflate.step(input, output),
            Self::Brotli(brotli) => brotli.step(input, output),
            Self::Zstd(zstd) => zstd.step(input, output),
        }
    }

    /// Whether the stream may end here.
    pub(super) fn is_ended(&self) -> bool {
        match self {
            Self::Gzip(Gzip { progress, .. })
            | Self::Deflate(Deflate::Decided { progress, .. }) => *progress == Progress::Ended,
            Self::Deflate(Deflate::Undecided { .. }) => false,
            Self::Brotli(brotli) => brotli.progress == Progress::Ended,
            Self::Zstd(zstd) => zstd.progress == Progress::Ended,
        }
    }
}

/// Whether a stream has come to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Open,
    Ended,
}

/// The window of DEFLATE, always 32 KiB.
const WINDOW_LOG: u8 = 15;

/// Members behind each other (RFC 1952 section 2.2).
pub(super) struct Gzip {
    inflate: Decompress,
    progress: Progress,
    members_left: u32,
}

impl Gzip {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> (Step, Result<(), Fault>) {
        if self.progress == Progress::Ended && !input.is_empty() {
            let Some(left) = self.members_left.checked_sub(1) else {
                return (Step::default(), Err(Fault::Trailing(Coding::Gzip)));
            };
            self.members_left = left;
            self.inflate = Decompress::new_gzip(WINDOW_LOG);
            self.progress = Progress::Open;
        }
        inflate(&mut self.inflate, &mut self.progress, Coding::Gzip, input, output)
    }
}

/// Zlib or a bare stream, which its first two bytes tell.
pub(super) enum Deflate {
    Undecided { first: Option<u8> },
    Decided { inflate: Decompress, progress: Progress },
}

impl Deflate {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> (Step, Result<(), Fault>) {
        match self {
            Self::Undecided { first: None } => {
                *self = Self::Undecided { first: input.first().copied() };
                (Step { taken: input.len().min(1), given: 0 }, Ok(()))
            }
            Self::Undecided { first: Some(first) } => {
                let (first, Some(&second)) = (*first, input.first()) else {
                    return (Step::default(), Ok(()));
                };
                let mut state = Decompress::new(is_zlib(first, second));
                let mut progress = Progress::Open;
                // One byte of input gives none of output.
                let (_, result) =
                    inflate(&mut state, &mut progress, Coding::Deflate, &[first], output);
                *self = Self::Decided { inflate: state, progress };
                match result {
                    Ok(()) => self.step(input, output),
                    Err(fault) => (Step::default(), Err(fault)),
                }
            }
            Self::Decided { progress: Progress::Ended, .. } if !input.is_empty() => {
                (Step::default(), Err(Fault::Trailing(Coding::Deflate)))
            }
            Self::Decided { inflate: state, progress } => {
                inflate(state, progress, Coding::Deflate, input, output)
            }
        }
    }
}

/// RFC 1950 section 2.2.
fn is_zlib(first: u8, second: u8) -> bool {
    first & 0x0f == 8 && first >> 4 <= 7 && u16::from_be_bytes([first, second]).is_multiple_of(31)
}

fn inflate(
    state: &mut Decompress,
    progress: &mut Progress,
    coding: Coding,
    input: &[u8],
    output: &mut [u8],
) -> (Step, Result<(), Fault>) {
    if *progress == Progress::Ended {
        return (Step::default(), Ok(()));
    }
    let (taken, given) = (state.total_in(), state.total_out());
    let result = match state.decompress(input, output, FlushDecompress::None) {
        Ok(Status::Ok | Status::BufError) => Ok(()),
        Ok(Status::StreamEnd) => {
            *progress = Progress::Ended;
            Ok(())
        }
        Err(_) => Err(Fault::Corrupt(coding)),
    };
    let within =
        |count: u64, max: usize| usize::try_from(count).map_or(max, |count| count.min(max));
    let step = Step {
        taken: within(state.total_in() - taken, input.len()),
        given: within(state.total_out() - given, output.len()),
    };
    (step, result)
}

pub(super) struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    progress: Progress,
}

impl Brotli {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> (Step, Result<(), Fault>) {
        if self.progress == Progress::Ended {
            let result = match input {
                [] => Ok(()),
                _ => Err(Fault::Trailing(Coding::Brotli)),
            };
            return (Step::default(), result);
        }
        let (mut input_left, mut taken) = (input.len(), 0);
        let (mut output_left, mut given) = (output.len(), 0);
        let result = BrotliDecompressStream(
            &mut input_left,
            &mut taken,
            input,
            &mut output_left,
            &mut given,
            output,
            &mut 0,
            &mut self.state,
        );
        let result = match result {
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Ok(()),
            BrotliResult::ResultSuccess => {
                self.progress = Progress::Ended;
                Ok(())
            }
            BrotliResult::ResultFailure => Err(Fault::Corrupt(Coding::Brotli)),
        };
        (Step { taken, given }, result)
    }
}

pub(super) struct Zstd {
    decoder: zstd::stream::raw::Decoder<'static>,
    progress: Progress,
}

impl Zstd {
    /// RFC 9659: what a content coding may ask for, 8 MiB.
    const WINDOW_LOG_MAX: u32 = 23;

    fn new() -> std::io::Result<Self> {
        let mut decoder = zstd::stream::raw::Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(Self::WINDOW_LOG_MAX))?;
        Ok(Self { decoder, progress: Progress::Open })
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> (Step, Result<(), Fault>) {
        // Without input there may be output left, but not behind the end of a frame.
        if self.progress == Progress::Ended && input.is_empty() {
            return (Step::default(), Ok(()));
        }
        let mut input = InBuffer::around(input);
        let mut output = OutBuffer::around(output);
        let result = match self.decoder.run(&mut input, &mut output) {
            Ok(0) => {
                self.progress = Progress::Ended;
                Ok(())
            }
            Ok(_) => {
                self.progress = Progress::Open;
                Ok(())
            }
            Err(_) => Err(Fault::Corrupt(Coding::Zstd)),
        };
        (Step { taken: input.pos(), given: output.pos() }, result)
    }
}
