//! Urlencoded bodies: the same in any split, as a query, and to a plain decoder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::body::{self, Event};
use tidegate_waf::body::urlencoded::{self, Escapes};
use tidegate_waf::body::{Flow, Kind, Limits, Options};

fuzz_target!(|input: &[u8]| {
    let small = Options { limits: body::SMALL, ..Options::default() };
    body::read(Kind::Urlencoded, b"", &small, input);

    let limits =
        Limits { arguments_max: u32::MAX, fields_bytes_max: usize::MAX, ..Limits::default() };
    let wide = Options { limits, ..Options::default() };
    let read = body::read(Kind::Urlencoded, b"", &wide, input);
    assert_eq!(read.fault, None);

    let mut query = Vec::new();
    let escapes = urlencoded::query(input, b'&', |name, value| {
        query.push(Event::Argument(name.to_vec(), value.to_vec()));
        Flow::Continue
    });
    assert_eq!(query, read.told.events);
    assert_eq!(escapes, read.escapes);

    let mut escapes = Escapes::Valid;
    let plain: Vec<_> = input
        .split(|&byte| byte == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let mut halves = pair.splitn(2, |&byte| byte == b'=');
            let mut half = || decode(halves.next().unwrap_or_default(), &mut escapes);
            Event::Argument(half(), half())
        })
        .collect();
    assert_eq!(plain, read.told.events);
    assert_eq!(escapes, read.escapes);
});

fn decode(text: &[u8], escapes: &mut Escapes) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match (text[at], digits) {
            (b'+', _) => decoded.push(b' '),
            (b'%', Some(digits)) => {
                decoded.push(u8::from_str_radix(digits, 16).expect("two digits make a byte"));
                at += 2;
            }
            (byte, _) => {
                if byte == b'%' {
                    *escapes = Escapes::Invalid;
                }
                decoded.push(byte);
            }
        }
        at += 1;
    }
    decoded
}
