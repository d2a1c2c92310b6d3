//! Hosts: one spelling, which reads as itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_http::{target, write};

fuzz_target!(|input: &[u8]| {
    let mut host = Vec::new();
    let Ok(port) = target::host(input, &mut host) else { return };
    assert!(!host.is_empty() && host.len() <= target::HOST_BYTES_MAX);
    assert!(!host.iter().any(u8::is_ascii_uppercase));
    match host.as_slice() {
        [b'[', inside @ .., b']'] => {
            assert!(inside.iter().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte)));
        }
        name => {
            let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
            assert!(name.iter().all(fits));
            assert!(name.split(|&byte| byte == b'.').all(|label| !label.is_empty()));
        }
    }
    let mut text = Vec::new();
    write::host(&mut text, &host, port);
    let mut again = Vec::new();
    assert_eq!(target::host(&text, &mut again), Ok(port));
    assert_eq!(again, host);
});
