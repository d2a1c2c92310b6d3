//! Masks: a body keeps its length and its marks, and what is masked is not masked any further.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_waf::secret::Names;

const CONTENT_TYPES: [&[u8]; 4] = [
    b"application/json",
    b"text/xml",
    b"application/x-www-form-urlencoded",
    b"multipart/form-data; boundary=b",
];

fuzz_target!(|input: &[u8]| {
    let own = ["pin".to_owned()];
    let names = Names::with(&own);
    for content_type in CONTENT_TYPES {
        let mut body = input.to_vec();
        let _ = names.mask_body(content_type, &mut body);
        assert_eq!(body.len(), input.len());
        let is_mark = |byte: u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
        for (before, after) in input.iter().zip(&body) {
            assert!(before == after || !is_mark(*before), "{before} became {after}");
        }
        let masked = body.clone();
        let _ = names.mask_body(content_type, &mut body);
        assert_eq!(masked, body);
    }
    let mut target = input.to_vec();
    names.mask_target(&mut target);
    for field in [&b"cookie"[..], b"authorization", b"referer"] {
        let mut value = input.to_vec();
        names.mask_field(field, &mut value);
        assert_eq!(value.len(), input.len());
    }
});
