//! What the body processors' targets share: a body read whole, in pieces, and byte by byte.

use tidegate_waf::body::multipart::Flags;
use tidegate_waf::body::urlencoded::Escapes;
use tidegate_waf::body::{End, Fault, File, Flow, Kind, Limits, Options, Processor, Sink};

use crate::pieces;

/// Limits that inputs of a fuzzer's size can reach.
pub const SMALL: Limits = Limits {
    arguments_max: 12,
    fields_bytes_max: 600,
    name_bytes_max: 48,
    json_depth_max: 6,
    xml_depth_max: 6,
    xml_attributes_max: 4,
    xml_elements_max: 12,
    parts_max: 5,
    part_headers_max: 3,
    part_header_bytes_max: 96,
    files_max: 2,
    codings_max: 2,
    decoded_bytes_max: 4096,
    decoded_ratio_max: 10,
    decoded_free_bytes: 64,
    gzip_members_max: 2,
};

/// What a processor told, in order; runs are joined.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub events: Vec<Event>,
}

/// One thing that a processor told.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    Argument(Vec<u8>, Vec<u8>),
    PartHeader(Vec<u8>, Vec<u8>),
    File(Vec<u8>, Vec<u8>),
    FileData(Vec<u8>),
    FileEnd(u64),
    Text(Vec<u8>),
    Attribute(Vec<u8>),
}

impl Told {
    fn push(&mut self, event: Event) -> Flow {
        self.events.push(event);
        Flow::Continue
    }
}

impl Sink for Told {
    fn argument(&mut self, name: &[u8], value: &[u8]) -> Flow {
        self.push(Event::Argument(name.to_vec(), value.to_vec()))
    }

    fn part_header(&mut self, part: &[u8], line: &[u8]) -> Flow {
        self.push(Event::PartHeader(part.to_vec(), line.to_vec()))
    }

    fn file(&mut self, file: File<'_>) -> Flow {
        self.push(Event::File(file.name.to_vec(), file.filename.to_vec()))
    }

    fn file_data(&mut self, bytes: &[u8]) -> Flow {
        assert!(!bytes.is_empty());
        match self.events.last_mut() {
            Some(Event::FileData(run)) => run.extend_from_slice(bytes),
            Some(Event::File(..)) => return self.push(Event::FileData(bytes.to_vec())),
            other => panic!("data outside of a file, behind {other:?}"),
        }
        Flow::Continue
    }

    fn file_end(&mut self, bytes: u64) -> Flow {
        if let Some(Event::FileData(run)) = self.events.last() {
            assert_eq!(run.len() as u64, bytes);
        }
        self.push(Event::FileEnd(bytes))
    }

    fn xml_text(&mut self, text: &[u8]) -> Flow {
        assert!(!text.is_empty());
        if let Some(Event::Text(run)) = self.events.last_mut() {
            run.extend_from_slice(text);
            return Flow::Continue;
        }
        self.push(Event::Text(text.to_vec()))
    }

    fn xml_attribute(&mut self, value: &[u8]) -> Flow {
        self.push(Event::Attribute(value.to_vec()))
    }
}

/// A body that has been read.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    pub told: Told,
    pub fault: Option<Fault>,
    pub escapes: Escapes,
    pub flags: Option<Flags>,
}

/// Reads a body in several ways, which must not differ, to both of its ends.
pub fn read(kind: Kind, content_type: &[u8], options: &Options, body: &[u8]) -> Read {
    let whole = read_pieces(kind, content_type, options, &[body], End::Complete);
    let bytes: Vec<_> = body.chunks(1).collect();
    for end in [End::Complete, End::Truncated] {
        let whole = read_pieces(kind, content_type, options, &[body], end);
        assert_eq!(read_pieces(kind, content_type, options, &pieces(body), end), whole);
        assert_eq!(read_pieces(kind, content_type, options, &bytes, end), whole);
    }
    if let Some(fault) = &whole.fault {
        assert!(!fault.to_string().is_empty());
    }
    let limits = &options.limits;
    let mut arguments = 0;
    for event in &whole.told.events {
        if let Event::Argument(name, value) = event {
            arguments += 1;
            assert!(value.len() <= limits.fields_bytes_max.saturating_mul(2));
            assert!(
                matches!(kind, Kind::Urlencoded | Kind::Multipart)
                    || name.len() <= limits.name_bytes_max
            );
        }
    }
    assert!(arguments <= limits.arguments_max);
    whole
}

fn read_pieces(
    kind: Kind,
    content_type: &[u8],
    options: &Options,
    pieces: &[&[u8]],
    end: End,
) -> Read {
    let mut told = Told::default();
    let mut processor = Processor::new(kind, content_type, options);
    for piece in pieces {
        let flow = processor.feed(piece, &mut told);
        assert_eq!(flow == Flow::Stop, processor.fault().is_some());
    }
    let fault = processor.finish(end, &mut told).cloned();
    let flags = processor.multipart().map(|multipart| multipart.flags().clone());
    Read { told, fault, escapes: processor.escapes(), flags }
}
