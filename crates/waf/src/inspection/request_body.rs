//! A request's body, put into variables as its processor finds them.
//!
//! Content codings are taken off first: the server behind will do so, and rules are to see what it
//! sees. A coding that cannot be taken off makes the body one that cannot be read, as any other fault
//! does.

use super::Inspection;
use super::contents::Contents;
use super::state::State;
use super::uploads::Uploads;
use super::values::Values;
use crate::body::decode::{self, Decoder};
use crate::body::multipart::Flags;
use crate::body::urlencoded::Escapes;
use crate::body::{Contents as FileContents, End, Fault, File, Flow, Kind, Processor, Sink};
use crate::seclang::control::BodyProcessor;
use crate::seclang::setting::Switch;
use crate::variable::Variable;

/// What has come of a request's body.
#[derive(Default)]
pub(super) struct RequestBody {
    processor: Option<Processor>,
    found: Found,
    /// The body as it came, where `REQUEST_BODY` shows it.
    raw: Option<Vec<u8>>,
    /// Bytes after decoding.
    bytes: u64,
    decoder: Option<Decoder>,
    /// Why the codings could not be taken off.
    coding_fault: Option<decode::Fault>,
}

/// What the processor found that has no variable of its own yet.
#[derive(Default)]
struct Found {
    arguments_bytes: u64,
    files_bytes: u64,
    file: Vec<u8>,
    xml_text: Vec<u8>,
}

impl Inspection {
    /// Whether more of the body is wanted; the first call settles how it is read, so phase 1 has to be
    /// over.
    pub fn request_body(&mut self, bytes: &[u8]) -> Flow {
        if self.request_body.is_none() {
            self.begin_body();
        }
        let Some(body) = &mut self.request_body else { return Flow::Stop };
        if body.coding_fault.is_some() {
            return Flow::Stop;
        }
        let Some(mut decoder) = body.decoder.take() else { return self.decoded_body(bytes) };
        let fed = decoder.feed(bytes, &mut |run| self.decoded_body(run));
        let Some(body) = &mut self.request_body else { return Flow::Stop };
        body.decoder = Some(decoder);
        fed.unwrap_or_else(|fault| {
            body.coding_fault = Some(fault);
            Flow::Stop
        })
    }

    fn decoded_body(&mut self, bytes: &[u8]) -> Flow {
        let program = std::sync::Arc::clone(&self.program);
        let (state, Some(body)) = (&mut *self.state, &mut self.request_body) else {
            return Flow::Stop;
        };
        body.bytes += bytes.len() as u64;
        let mut flow = Flow::Stop;
        if let Some(raw) = &mut body.raw {
            let room = program.settings.body.limits.fields_bytes_max.saturating_sub(raw.len());
            raw.extend_from_slice(&bytes[..bytes.len().min(room)]);
            flow = Flow::Continue;
        }
        if let Some(processor) = &mut body.processor {
            let mut sink = BodySink {
                contents: &mut state.contents,
                values: &mut state.values,
                found: &mut body.found,
                uploads: self.uploads.as_mut(),
            };
            if processor.feed(bytes, &mut sink) == Flow::Continue {
                flow = Flow::Continue;
            }
        }
        flow
    }

    fn begin_body(&mut self) {
        let state = &mut *self.state;
        let kind = state.body_processor.and_then(|processor| match processor {
            BodyProcessor::UrlEncoded => Some(Kind::Urlencoded),
            BodyProcessor::Multipart => Some(Kind::Multipart),
            BodyProcessor::Json => Some(Kind::Json),
            BodyProcessor::Xml => Some(Kind::Xml),
            BodyProcessor::Raw => None,
        });
        // As ModSecurity 2: other processors keep their findings, not the bytes.
        let shows_raw = kind.is_none_or(|kind| kind == Kind::Urlencoded)
            || state.force_request_body == Switch::On;
        let limits = &self.program.settings.body.limits;
        let (decoder, coding_fault) = match Decoder::new(&self.content_encoding, limits) {
            Ok(decoder) => (decoder, None),
            Err(fault) => (None, Some(fault)),
        };
        if kind == Some(Kind::Multipart) {
            self.uploads = Uploads::wanted(&self.program);
        }
        self.request_body = Some(RequestBody {
            decoder,
            coding_fault,
            processor: kind
                .map(|kind| Processor::new(kind, &self.content_type, &self.program.settings.body)),
            raw: shows_raw.then(Vec::new),
            ..RequestBody::default()
        });
    }

    /// Takes the end of the body; phase 2 can run then. For a request without a body this is called
    /// all the same.
    pub fn request_body_end(&mut self, end: End) {
        if self.request_body.is_none() && self.wants_request_body() == Switch::On {
            self.begin_body();
        }
        let state = &mut *self.state;
        let Some(mut body) = self.request_body.take() else { return };
        if let (Some(decoder), End::Complete, None) = (&body.decoder, end, body.coding_fault) {
            body.coding_fault = decoder.finish().err();
        }
        let mut fault: Option<Fault> = None;
        if let Some(processor) = &mut body.processor
            && body.bytes > 0
        {
            let mut sink = BodySink {
                contents: &mut state.contents,
                values: &mut state.values,
                found: &mut body.found,
                uploads: self.uploads.as_mut(),
            };
            fault = processor.finish(end, &mut sink).cloned();
            if processor.escapes() == Escapes::Invalid {
                state.set_number(Variable::UrlencodedError, 1);
            }
            if let Some(multipart) = processor.multipart() {
                state.set_multipart_flags(multipart.flags());
            }
        }
        let state = &mut *self.state;
        if let Some(uploads) = &mut self.uploads {
            // Nothing is left to do if the caller has written them. What cannot be written is not
            // shown; a caller that wants to know writes by itself.
            if uploads.is_unwritten() {
                let _ = uploads.write();
            }
            uploads.show(&mut state.contents, &mut state.values);
        }
        if !body.found.xml_text.is_empty() {
            let name = state.contents.intern(b"/*");
            let value = state.contents.intern(&body.found.xml_text);
            state.values.push(Variable::Xml, name, value);
        }
        if let Some(raw) = &body.raw {
            state.set(Variable::RequestBody, raw);
        }
        state.set_number(Variable::RequestBodyLength, body.bytes);
        state.set_number(Variable::FilesCombinedSize, body.found.files_bytes);
        state.set_number(
            Variable::ArgsCombinedSize,
            self.arguments_bytes + body.found.arguments_bytes,
        );
        let coding = body.coding_fault.map(|fault| fault.to_string());
        let message = coding.or(fault.map(|fault| fault.to_string()));
        let code = u64::from(message.is_some());
        let processor = state.body_processor.map_or("", |processor| processor.name());
        let full = message.as_ref().map(|text| format!("{processor} parsing error: {text}"));
        for (flag, text, words) in [
            (Variable::ReqbodyError, Variable::ReqbodyErrorMsg, &full),
            (Variable::ReqbodyProcessorError, Variable::ReqbodyProcessorErrorMsg, &message),
        ] {
            state.set_number(flag, code);
            state.set(text, words.as_deref().unwrap_or_default().as_bytes());
        }
    }
}

impl State {
    fn set_multipart_flags(&mut self, flags: &Flags) {
        use Variable as V;
        for (variable, raised) in [
            (V::MultipartBoundaryQuoted, flags.boundary_quoted),
            (V::MultipartBoundaryWhitespace, flags.boundary_whitespace),
            (V::MultipartDataBefore, flags.data_before),
            (V::MultipartDataAfter, flags.data_after),
            (V::MultipartHeaderFolding, flags.header_folding),
            (V::MultipartInvalidHeaderFolding, flags.invalid_header_folding),
            (V::MultipartLfLine, flags.lf_line),
            (V::MultipartCrlfLfLines, flags.crlf_lf_lines()),
            (V::MultipartMissingSemicolon, flags.missing_semicolon),
            (V::MultipartInvalidQuoting, flags.invalid_quoting),
            (V::MultipartInvalidPart, flags.invalid_part),
            (V::MultipartFileLimitExceeded, flags.file_limit_exceeded),
            (V::MultipartStrictError, flags.strict_error()),
        ] {
            self.set_number(variable, u64::from(raised));
        }
        let unmatched = u64::from(flags.unmatched_boundary_number());
        self.set_number(V::MultipartUnmatchedBoundary, unmatched);
    }
}

struct BodySink<'a> {
    contents: &'a mut Contents,
    values: &'a mut Values,
    found: &'a mut Found,
    uploads: Option<&'a mut Uploads>,
}

impl BodySink<'_> {
    fn push(&mut self, variable: Variable, name: &[u8], value: &[u8]) {
        let name = self.contents.intern(name);
        let value = self.contents.intern(value);
        self.values.push(variable, name, value);
    }
}

impl Sink for BodySink<'_> {
    fn argument(&mut self, name: &[u8], value: &[u8]) -> Flow {
        self.push(Variable::ArgsPost, name, value);
        self.found.arguments_bytes += (name.len() + value.len()) as u64;
        Flow::Continue
    }

    fn part_header(&mut self, part: &[u8], line: &[u8]) -> Flow {
        self.push(Variable::MultipartPartHeaders, part, line);
        Flow::Continue
    }

    fn file(&mut self, file: File<'_>) -> Flow {
        self.push(Variable::Files, file.name, file.filename);
        self.push(Variable::MultipartFilename, file.name, file.filename);
        self.found.file.clear();
        self.found.file.extend_from_slice(file.name);
        if let (Some(uploads), FileContents::Follow) = (&mut self.uploads, file.contents) {
            uploads.begin(file.name);
        }
        Flow::Continue
    }

    fn file_data(&mut self, bytes: &[u8]) -> Flow {
        if let Some(uploads) = &mut self.uploads {
            uploads.feed(bytes);
        }
        Flow::Continue
    }

    fn file_end(&mut self, bytes: u64) -> Flow {
        let name = std::mem::take(&mut self.found.file);
        self.push(Variable::FilesSizes, &name, itoa::Buffer::new().format(bytes).as_bytes());
        self.found.files_bytes += bytes;
        self.found.file = name;
        Flow::Continue
    }

    fn xml_text(&mut self, text: &[u8]) -> Flow {
        self.found.xml_text.extend_from_slice(text);
        Flow::Continue
    }

    fn xml_attribute(&mut self, value: &[u8]) -> Flow {
        self.push(Variable::Xml, b"//@*", value);
        Flow::Continue
    }
}
