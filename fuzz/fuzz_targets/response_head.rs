//! Response heads: in pieces as in one, the same to a plain parser, the same when written afresh.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::{pairs, pieces, plain_fields};
use tidegate_http::parse::{self, HeadLimits, HeadScan};
use tidegate_http::{Method, Response, Version, field, framing, write};

const LIMITS: HeadLimits =
    HeadLimits { head_bytes_max: 4096, target_bytes_max: 1024, fields_max: 40 };

fuzz_target!(|input: &[u8]| {
    let mut response = Response::new();
    let whole = HeadScan::default().find_response(input, &LIMITS);
    let Ok(Some(end)) = whole else {
        if whole.is_err() {
            assert!(parse::response(input, &LIMITS, &mut response).is_err());
        }
        return;
    };
    let head = &input[..end];
    let accepted = parse::response(head, &LIMITS, &mut response);
    match scan_in_pieces(input) {
        Err(_) => assert!(accepted.is_err(), "refused early, accepted late"),
        Ok(found) => assert_eq!(found, Some(end)),
    }
    if accepted.is_err() {
        return;
    }

    let (line, fields) = plain_fields(head);
    assert_eq!(pairs(&response.headers), fields);
    assert_eq!(&line[9..12], response.status.to_string().as_bytes());
    assert_eq!(line.get(13..).unwrap_or_default(), response.reason);
    assert!(fields.iter().all(|(name, value)| field::is_name(name) && field::is_value(value)));

    let mut text = Vec::new();
    write::status_line(&mut text, response.status);
    for (name, value) in fields {
        write::field(&mut text, name, value);
    }
    write::end(&mut text);
    let mut again = Response::new();
    let limits = HeadLimits { head_bytes_max: 2 * LIMITS.head_bytes_max, ..LIMITS };
    parse::response(&text, &limits, &mut again).expect("what was accepted is accepted again");
    assert_eq!(again.status, response.status);
    assert_eq!(pairs(&again.headers), pairs(&response.headers));
    if response.version == Version::Http11 {
        for method in [Method::Get, Method::Head] {
            let body = framing::of_response(&response, method);
            assert_eq!(framing::of_response(&again, method), body);
            if let Ok(body) = body {
                let persist = framing::persist_response(&response, body);
                assert_eq!(framing::persist_response(&again, body), persist);
            }
        }
    }
});

fn scan_in_pieces(input: &[u8]) -> Result<Option<usize>, tidegate_http::ResponseError> {
    let mut scan = HeadScan::default();
    let mut len = 0;
    for piece in pieces(input) {
        len += piece.len();
        if let Some(end) = scan.find_response(&input[..len], &LIMITS)? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}
