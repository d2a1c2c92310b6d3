//! What the processors' tests share: a sink that writes down what it is told, and a reader that
//! splits bodies in every way.

use super::{Contents, End, Fault, File, Flow, Kind, Options, Processor, Sink};

/// What a processor told, one line each; runs are joined.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) lines: Vec<String>,
    run: Option<(&'static str, Vec<u8>)>,
}

impl Told {
    fn line(&mut self, line: String) -> Flow {
        if let Some((what, bytes)) = self.run.take() {
            self.lines.push(format!("{what} {}", bytes.escape_ascii()));
        }
        self.lines.push(line);
        Flow::Continue
    }

    fn run(&mut self, what: &'static str, bytes: &[u8]) -> Flow {
        self.run.get_or_insert((what, Vec::new())).1.extend_from_slice(bytes);
        Flow::Continue
    }
}

impl Sink for Told {
    fn argument(&mut self, name: &[u8], value: &[u8]) -> Flow {
        self.line(format!("{}={}", name.escape_ascii(), value.escape_ascii()))
    }

    fn part_header(&mut self, part: &[u8], line: &[u8]) -> Flow {
        self.line(format!("header {}: {}", part.escape_ascii(), line.escape_ascii()))
    }

    fn file(&mut self, file: File<'_>) -> Flow {
        let contents = match file.contents {
            Contents::Follow => "",
            Contents::Counted => " counted",
        };
        let (name, filename) = (file.name.escape_ascii(), file.filename.escape_ascii());
        let extended = file.filename_extended.map(|name| format!(" ({})", name.escape_ascii()));
        let extended = extended.unwrap_or_default();
        self.line(format!("file {name} {filename}{extended}{contents}"))
    }

    fn file_data(&mut self, bytes: &[u8]) -> Flow {
        self.run("data", bytes)
    }

    fn file_end(&mut self, bytes: u64) -> Flow {
        self.line(format!("end {bytes}"))
    }

    fn xml_text(&mut self, text: &[u8]) -> Flow {
        self.run("text", text)
    }

    fn xml_attribute(&mut self, value: &[u8]) -> Flow {
        self.line(format!("attribute {}", value.escape_ascii()))
    }
}

/// A body that has been read.
pub(super) struct Read {
    pub(super) told: Vec<String>,
    pub(super) fault: Option<Fault>,
    pub(super) processor: Processor,
}

/// Reads a body, after making sure that no split of it reads differently.
#[track_caller]
pub(super) fn read(kind: Kind, content_type: &str, options: &Options, body: &[u8]) -> Read {
    read_to(End::Complete, kind, content_type, options, body)
}

#[track_caller]
pub(super) fn read_to(
    end: End,
    kind: Kind,
    content_type: &str,
    options: &Options,
    body: &[u8],
) -> Read {
    let read = |pieces: &[&[u8]]| pieces_to(end, kind, content_type, options, pieces);
    let whole = read(&[body]);
    let check = |pieces: &[&[u8]]| {
        let split = read(pieces);
        assert_eq!(split.told, whole.told, "in pieces: {:?}", texts(pieces));
        assert_eq!(split.fault, whole.fault, "in pieces: {:?}", texts(pieces));
        assert_eq!(split.processor.escapes(), whole.processor.escapes());
        let flags = |read: &Read| read.processor.multipart().map(|read| read.flags().clone());
        assert_eq!(flags(&split), flags(&whole), "in pieces: {:?}", texts(pieces));
    };
    check(&body.chunks(1).collect::<Vec<_>>());
    check(&body.chunks(3).collect::<Vec<_>>());
    for at in 0..=body.len().min(2000) {
        check(&[&body[..at], &body[at..]]);
    }
    whole
}

fn pieces_to(
    end: End,
    kind: Kind,
    content_type: &str,
    options: &Options,
    pieces: &[&[u8]],
) -> Read {
    let mut told = Told::default();
    let mut processor = Processor::new(kind, content_type.as_bytes(), options);
    for piece in pieces {
        let flow = processor.feed(piece, &mut told);
        assert_eq!(flow == Flow::Stop, processor.fault().is_some());
    }
    let fault = processor.finish(end, &mut told).cloned();
    if told.run.is_some() {
        let _ = told.line(String::new());
        told.lines.pop();
    }
    Read { told: told.lines, fault, processor }
}

fn texts(pieces: &[&[u8]]) -> Vec<String> {
    pieces.iter().map(|piece| piece.escape_ascii().to_string()).collect()
}
