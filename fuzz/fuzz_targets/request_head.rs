//! Request heads: in pieces as in one, the same to a plain parser, the same when written afresh.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::{pairs, pieces, plain_fields};
use tidegate_http::parse::{self, HeadLimits, HeadScan};
use tidegate_http::{Request, Version, field, framing, target, write};

const LIMITS: HeadLimits =
    HeadLimits { head_bytes_max: 4096, target_bytes_max: 1024, fields_max: 40 };

fuzz_target!(|input: &[u8]| {
    let mut request = Request::new();
    let whole = HeadScan::default().find_request(input, &LIMITS);
    let Ok(Some(end)) = whole else {
        if whole.is_err() {
            assert!(parse::request(input, &LIMITS, &mut request).is_err());
        }
        return;
    };
    let head = &input[..end];
    let accepted = parse::request(head, &LIMITS, &mut request);
    match scan_in_pieces(input) {
        // Bytes behind the head cannot be the reason.
        Err(_) => assert!(accepted.is_err(), "refused early, accepted late"),
        Ok(found) => assert_eq!(found, Some(end)),
    }
    if accepted.is_err() {
        return;
    }

    let (line, fields) = plain_fields(head);
    assert_eq!(pairs(&request.headers), fields);
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    assert_eq!(words.len(), 3);
    assert_eq!(words[0], request.method_bytes());
    assert!(fields.iter().all(|(name, value)| field::is_name(name) && field::is_value(value)));
    if target::form(words[1]) == Ok(target::Form::Origin) {
        assert_eq!(words[1], request.path_and_query);
    }

    let mut text = Vec::new();
    write::request_line(&mut text, request.method_bytes(), &request.path_and_query);
    for (name, value) in fields {
        write::field(&mut text, name, value);
    }
    write::end(&mut text);
    if request.version == Version::Http11 {
        let mut again = Request::new();
        let limits = HeadLimits { head_bytes_max: 2 * LIMITS.head_bytes_max, ..LIMITS };
        parse::request(&text, &limits, &mut again).expect("what was accepted is accepted again");
        assert_eq!(again.method_bytes(), request.method_bytes());
        assert_eq!(again.path_and_query, request.path_and_query);
        assert_eq!(again.path_len, request.path_len);
        assert_eq!(again.host, request.host);
        assert_eq!(pairs(&again.headers), pairs(&request.headers));
        assert_eq!(framing::of_request(&again), framing::of_request(&request));
        assert_eq!(framing::persist_request(&again), framing::persist_request(&request));
        assert_eq!(framing::expects_continue(&again), framing::expects_continue(&request));
    }
    for passed in field::end_to_end(&request.headers) {
        assert!(!passed.name.eq_ignore_ascii_case(b"transfer-encoding"));
        assert!(!passed.name.eq_ignore_ascii_case(b"connection"));
    }
});

fn scan_in_pieces(input: &[u8]) -> Result<Option<usize>, tidegate_http::RequestError> {
    let mut scan = HeadScan::default();
    let mut len = 0;
    for piece in pieces(input) {
        len += piece.len();
        if let Some(end) = scan.find_request(&input[..len], &LIMITS)? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}
