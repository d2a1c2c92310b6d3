//! JSON bodies: the same in any split, and accepted exactly when another reader accepts them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tidegate_fuzz::body::{self, Event};
use tidegate_waf::body::{Kind, Limits, Options};

fuzz_target!(|input: &[u8]| {
    let small = Options { limits: body::SMALL, ..Options::default() };
    body::read(Kind::Json, b"", &small, input);

    let limits = Limits {
        arguments_max: u32::MAX,
        fields_bytes_max: usize::MAX,
        name_bytes_max: usize::MAX,
        json_depth_max: u32::MAX,
        ..Limits::default()
    };
    let wide = Options { limits, ..Options::default() };
    let read = body::read(Kind::Json, b"", &wide, input);

    let is_accepted = input.is_empty()
        || std::str::from_utf8(input)
            .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
    assert_eq!(read.fault.is_none(), is_accepted);

    // Half surrogate pairs, deep nesting and numbers out of range are not for the other reader.
    if let Ok(value) = serde_json::from_slice::<Value>(input) {
        let mut strings = Vec::new();
        gather(&value, &mut strings);
        for string in strings {
            let is_given = read.told.events.iter().any(
                |event| matches!(event, Event::Argument(_, value) if value == string.as_bytes()),
            );
            assert!(is_given, "{string:?} is missing");
        }
    }
});

fn gather<'a>(value: &'a Value, strings: &mut Vec<&'a str>) {
    match value {
        Value::String(string) => strings.push(string),
        Value::Array(values) => values.iter().for_each(|value| gather(value, strings)),
        Value::Object(members) => members.values().for_each(|value| gather(value, strings)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
