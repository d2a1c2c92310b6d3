//! PROXY headers: pieces decide as the whole does, and what is written reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/proxy/src/proxy_protocol.rs"]
#[expect(dead_code, reason = "error texts are not looked at here")]
mod proxy_protocol;

use proxy_protocol::{Header, V2_BYTES_MAX, parse, write_v1, write_v2};

fuzz_target!(|input: &[u8]| {
    let whole = parse(input);
    for length in 0..input.len().min(600) {
        match parse(&input[..length]) {
            // Asking for more has an end.
            Ok(None) => assert!(length < V2_BYTES_MAX),
            decided => assert_eq!(decided, whole, "{length} bytes decide otherwise"),
        }
    }
    let Ok(Some((header, length))) = whole else { return };
    assert!(length <= input.len() && length <= V2_BYTES_MAX);
    let Header::Tcp { source, destination } = header else { return };
    for write in [write_v1, write_v2] {
        let mut text = Vec::new();
        write(&mut text, Some((source, destination)));
        let Ok(Some((again, written))) = parse(&text) else { panic!("unreadable: {text:?}") };
        assert_eq!(written, text.len());
        if let Header::Tcp { source: other, destination: its } = again {
            assert_eq!(other.ip().to_canonical(), source.ip().to_canonical());
            assert_eq!((other.port(), its.port()), (source.port(), destination.port()));
        }
    }
});
