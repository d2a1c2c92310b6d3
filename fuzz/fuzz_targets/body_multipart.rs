//! Multipart bodies behind a line with their content type: the same in any split, and where nothing
//! is odd, the parts that a plain splitter finds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::body::{self, Event};
use tidegate_fuzz::split;
use tidegate_waf::body::multipart::Unmatched;
use tidegate_waf::body::{Kind, Limits, Options};

fuzz_target!(|input: &[u8]| {
    let Some(end) = input.iter().position(|&byte| byte == b'\n') else { return };
    let (content_type, body) = (&input[..end], &input[end + 1..]);
    let small = Options { limits: body::SMALL, ..Options::default() };
    body::read(Kind::Multipart, content_type, &small, body);

    let limits = Limits {
        arguments_max: u32::MAX,
        fields_bytes_max: usize::MAX,
        parts_max: u32::MAX,
        files_max: u32::MAX,
        ..Limits::default()
    };
    let wide = Options { limits, ..Options::default() };
    let read = body::read(Kind::Multipart, content_type, &wide, body);
    let flags = read.flags.expect("a multipart body has flags");
    assert_eq!(flags.error, read.fault.is_some());
    if flags.strict_error() || flags.unmatched_boundary != Unmatched::None || body.is_empty() {
        return;
    }

    // Nothing odd: the content type is plain, and so is the body.
    let boundary = content_type.windows(9).position(|window| window == b"boundary=");
    let boundary = &content_type[boundary.expect("there is a boundary") + 9..];
    let boundary = boundary.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let delimiter = [b"\r\n--", boundary].concat();
    let framed = [b"\r\n", body].concat();
    let parts = split(&framed, &delimiter);
    let (last, parts) = parts.split_last().expect("a split has parts");
    let (first, parts) = parts.split_first().expect("an accepted body has a delimiter");
    assert!(first.is_empty());
    assert!(*last == b"--" || *last == b"--\r\n");

    let contents: Vec<_> = parts
        .iter()
        .map(|part| {
            let header = part.windows(4).position(|window| window == b"\r\n\r\n");
            &part[header.expect("a part has a header") + 4..]
        })
        .collect();
    let mut told = Vec::new();
    let mut file = None;
    for event in &read.told.events {
        match event {
            Event::Argument(_, value) => told.push(value.clone()),
            Event::File(_, filename) => file = Some((filename, Vec::new())),
            Event::FileData(data) => file.as_mut().expect("data has a file").1 = data.clone(),
            Event::FileEnd(_) => {
                let (filename, data) = file.take().expect("an end has a file");
                // A nameless one follows as an argument.
                if !filename.is_empty() {
                    told.push(data);
                }
            }
            Event::PartHeader(..) => {}
            Event::Text(_) | Event::Attribute(_) => panic!("no XML was asked for"),
        }
    }
    assert_eq!(told, contents);
});
