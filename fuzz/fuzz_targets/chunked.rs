//! Chunked bodies: the same in any split, to a plain decoder, and when written afresh.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::{pairs, pieces, split};
use tidegate_http::Headers;
use tidegate_http::chunked::{self, ChunkLimits, Decoder};
use tidegate_http::error::ChunkError;

const LIMITS: ChunkLimits = ChunkLimits {
    extension_bytes_max: 16,
    extension_bytes_total_max: 64,
    trailer_bytes_max: 512,
    trailer_fields_max: 8,
};

/// Data, trailers and the length of a body that has ended.
type Body = (Vec<u8>, Headers, usize);

fuzz_target!(|input: &[u8]| {
    let whole = decode(&[input]);
    same(&whole, &decode(&pieces(input)));
    same(&whole, &decode(&input.chunks(1).collect::<Vec<_>>()));
    let Ok(Some((data, trailers, len))) = whole else { return };

    assert_eq!(plain(&input[..len]), data);

    let mut text = Vec::new();
    for piece in pieces(&data) {
        text.extend_from_slice(chunked::size_line(piece.len(), &mut [0; 18]));
        text.extend_from_slice(piece);
        text.extend_from_slice(b"\r\n");
    }
    chunked::end(&mut text, &trailers);
    // Written fields have a space behind the colon, which those read may lack.
    let roomier = ChunkLimits { trailer_bytes_max: 2 * LIMITS.trailer_bytes_max, ..LIMITS };
    let again = decode_within(roomier, &[&text]).expect("what was written is accepted");
    let (data_again, trailers_again, len_again) = again.expect("what was written has an end");
    assert_eq!(data_again, data);
    assert_eq!(pairs(&trailers_again), pairs(&trailers));
    assert_eq!(len_again, text.len());
});

fn decode(pieces: &[&[u8]]) -> Result<Option<Body>, ChunkError> {
    decode_within(LIMITS, pieces)
}

fn decode_within(limits: ChunkLimits, pieces: &[&[u8]]) -> Result<Option<Body>, ChunkError> {
    let mut decoder = Decoder::new(limits);
    let mut data = Vec::new();
    let mut len = 0;
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let step = decoder.step(rest)?;
            assert!(step.consumed > 0 && step.consumed <= rest.len());
            assert!(step.data.end <= step.consumed);
            data.extend_from_slice(&rest[step.data]);
            len += step.consumed;
            rest = &rest[step.consumed..];
            if step.ended {
                return Ok(Some((data, decoder.trailers().clone(), len)));
            }
        }
    }
    Ok(None)
}

#[track_caller]
fn same(one: &Result<Option<Body>, ChunkError>, other: &Result<Option<Body>, ChunkError>) {
    match (one, other) {
        (Ok(Some(one)), Ok(Some(other))) => {
            assert_eq!((&one.0, one.2), (&other.0, other.2));
            assert_eq!(pairs(&one.1), pairs(&other.1));
        }
        (Ok(None), Ok(None)) => {}
        (Err(one), Err(other)) => assert_eq!(one, other),
        _ => panic!("one split is accepted and another is not"),
    }
}

/// The data of a body that is known to be good.
fn plain(body: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut rest = body;
    loop {
        let line = split(rest, b"\r\n")[0];
        let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
        let digits = std::str::from_utf8(digits).expect("digits are ASCII");
        let size = usize::from_str_radix(digits, 16).expect("a size is hex");
        rest = &rest[line.len() + 2..];
        if size == 0 {
            return data;
        }
        data.extend_from_slice(&rest[..size]);
        assert_eq!(&rest[size..size + 2], b"\r\n");
        rest = &rest[size + 2..];
    }
}
