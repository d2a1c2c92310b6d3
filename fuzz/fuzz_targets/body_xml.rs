//! XML bodies: the same in any split, whatever becomes of their text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::body::{self, Event, Read};
use tidegate_waf::body::{Kind, Limits, Options, XmlText};

fuzz_target!(|input: &[u8]| {
    let options = |xml_text, limits| Options { xml_text, limits, ..Options::default() };
    body::read(Kind::Xml, b"", &options(XmlText::WholeAndArguments, body::SMALL), input);

    let limits = Limits {
        arguments_max: u32::MAX,
        fields_bytes_max: usize::MAX,
        name_bytes_max: usize::MAX,
        ..Limits::default()
    };
    let read = |xml_text| body::read(Kind::Xml, b"", &options(xml_text, limits.clone()), input);
    let whole = read(XmlText::Whole);
    let both = read(XmlText::WholeAndArguments);
    let arguments = read(XmlText::Arguments);
    assert_eq!(whole.fault, both.fault);
    assert_eq!(whole.fault, arguments.fault);
    assert_eq!(joined(&whole, Part::Text), joined(&both, Part::Text));
    assert_eq!(joined(&arguments, Part::Argument), joined(&both, Part::Argument));
    assert_eq!(joined(&whole, Part::Attribute), joined(&arguments, Part::Attribute));
    for event in &both.told.events {
        let (Event::Argument(_, text) | Event::Text(text) | Event::Attribute(text)) = event else {
            panic!("XML has no {event:?}");
        };
        assert!(std::str::from_utf8(text).is_ok());
    }
    // No text hides from the arguments, but for white space beside elements.
    if whole.fault.is_none() {
        assert_eq!(
            letters(joined(&whole, Part::Text)),
            letters(joined(&arguments, Part::Argument))
        );
    }
});

#[derive(Clone, Copy)]
enum Part {
    Text,
    Attribute,
    Argument,
}

fn joined(read: &Read, part: Part) -> Vec<u8> {
    let mut joined = Vec::new();
    for event in &read.told.events {
        match (part, event) {
            (Part::Text, Event::Text(text)) | (Part::Argument, Event::Argument(_, text)) => {
                joined.extend_from_slice(text);
            }
            (Part::Attribute, Event::Attribute(value)) => {
                joined.extend_from_slice(value);
                joined.push(0);
            }
            _ => {}
        }
    }
    joined
}

fn letters(mut text: Vec<u8>) -> Vec<u8> {
    text.retain(|byte| !byte.is_ascii_whitespace());
    text
}
