//! Bodies and what they decode to.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;

const TEXT: &[u8] = b"some text, some more text; ";

/// `brotli text, brotli text; ` forty times and `end`.
const BROTLI: &str = "1b1204f8c56d6c5df98dd77b9123888270949a0055593590428f5b75417c190cdb112701";

/// A mebibyte of zeros.
const BROTLI_BOMB: &str = "5bffff8f7f02201e0b0472ef1f00";

fn text() -> Vec<u8> {
    TEXT.repeat(50)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("writes to memory");
    encoder.finish().expect("writes to memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("writes to memory");
    encoder.finish().expect("writes to memory")
}

fn bare(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("writes to memory");
    encoder.finish().expect("writes to memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 3).expect("reads from memory")
}

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn decode_pieces(coding: &str, pieces: &[&[u8]], limits: &Limits) -> (Vec<u8>, Result<(), Fault>) {
    let mut given = Vec::new();
    let mut decoder = match Decoder::new(coding.as_bytes(), limits) {
        Ok(Some(decoder)) => decoder,
        Ok(None) => panic!("{coding} is nothing to decode"),
        Err(fault) => return (given, Err(fault)),
    };
    let mut give = |bytes: &[u8]| {
        given.extend_from_slice(bytes);
        Flow::Continue
    };
    let fed = pieces.iter().try_for_each(|piece| decoder.feed(piece, &mut give).map(|_| ()));
    assert_eq!(fed.is_err(), decoder.fault.is_some());
    let finished = decoder.finish();
    (given, fed.and(finished))
}

#[track_caller]
fn decode_with(coding: &str, body: &[u8], limits: &Limits) -> (Vec<u8>, Result<(), Fault>) {
    let whole = decode_pieces(coding, &[body], limits);
    for size in [1, 3, 100] {
        let pieces: Vec<_> = body.chunks(size).collect();
        let split = decode_pieces(coding, &pieces, limits);
        assert_eq!(split.1, whole.1, "{coding} in pieces of {size}");
        if whole.1.is_ok() || whole.1 == Err(Fault::Bytes) {
            assert!(split.0 == whole.0, "{coding} in pieces of {size}");
        }
    }
    whole
}

#[track_caller]
fn check(coding: &str, body: &[u8], expected: &[u8]) {
    let (given, result) = decode_with(coding, body, &Limits::default());
    assert_eq!(result, Ok(()), "{coding}");
    assert!(given == expected, "{coding}: {}", given.escape_ascii());
}

#[track_caller]
fn check_fault(coding: &str, body: &[u8], fault: Fault) {
    assert_eq!(decode_with(coding, body, &Limits::default()).1, Err(fault), "{coding}");
}

#[test]
fn codings() {
    check("gzip", &gzip(&text()), &text());
    check("X-GZip", &gzip(&text()), &text());
    check("deflate", &zlib(&text()), &text());
    check("deflate", &bare(&text()), &text());
    check("zstd", &zstd(&text()), &text());
    let brotli = [b"brotli text, brotli text; ".repeat(40), b"end".to_vec()].concat();
    check("br", &unhex(BROTLI), &brotli);
    for coding in ["gzip", "deflate", "br", "zstd"] {
        check(coding, b"", b"");
    }
    check("gzip", &gzip(b""), b"");
    check("deflate", &bare(b""), b"");
}

#[test]
fn several_codings() {
    check("deflate, gzip", &gzip(&zlib(&text())), &text());
    check("gzip,identity,, zstd ,deflate", &zlib(&zstd(&gzip(&text()))), &text());
    check_fault("gzip, gzip, gzip, gzip", b"", Fault::Codings);
}

#[test]
fn nothing_to_take_off() {
    for coding in ["", " ", "identity", "Identity, ,identity"] {
        let decoder = Decoder::new(coding.as_bytes(), &Limits::default());
        assert!(matches!(decoder, Ok(None)), "{coding}");
    }
}

#[test]
fn unknown_codings() {
    for coding in ["compress", "aws-chunked", "gzip;q=1", "gzip deflate", "gzipx", "*"] {
        check_fault(coding, b"", Fault::Unsupported);
    }
}

#[test]
fn streams_behind_each_other() {
    let two = [gzip(b"one "), gzip(b"two")].concat();
    check("gzip", &two, b"one two");
    check("zstd", &[zstd(b"one "), zstd(b"two")].concat(), b"one two");
    let limits = Limits { gzip_members_max: 1, ..Limits::default() };
    assert_eq!(decode_with("gzip", &two, &limits).1, Err(Fault::Trailing(Coding::Gzip)));
}

#[test]
fn garbage() {
    let behind = |mut body: Vec<u8>| {
        body.extend_from_slice(b"x");
        body
    };
    check_fault("gzip", b"garbage, not gzip", Fault::Corrupt(Coding::Gzip));
    check_fault("deflate", b"\xff\xff\xff\xff", Fault::Corrupt(Coding::Deflate));
    check_fault("deflate", b"\x78\x9c\xff\xff", Fault::Corrupt(Coding::Deflate));
    check_fault("zstd", b"garbage, not zstd", Fault::Corrupt(Coding::Zstd));
    // Asks for a window beyond the standard's.
    check_fault("br", b"\x11\xff\xff\xff\xff", Fault::Corrupt(Coding::Brotli));
    check_fault("deflate", &behind(zlib(&text())), Fault::Trailing(Coding::Deflate));
    check_fault("deflate", &behind(bare(&text())), Fault::Trailing(Coding::Deflate));
    check_fault("br", &behind(unhex(BROTLI)), Fault::Trailing(Coding::Brotli));
    // Whether another member begins needs more than one byte to tell.
    check_fault("gzip", &behind(gzip(&text())), Fault::Unfinished(Coding::Gzip));
    check_fault("gzip", &[gzip(&text()), b"xyz".to_vec()].concat(), Fault::Corrupt(Coding::Gzip));
    let mut wrong_sum = gzip(&text());
    let sum = wrong_sum.len() - 8;
    wrong_sum[sum] ^= 1;
    check_fault("gzip", &wrong_sum, Fault::Corrupt(Coding::Gzip));
}

#[test]
fn bodies_that_end_early() {
    for (coding, body, name) in [
        ("gzip", gzip(&text()), Coding::Gzip),
        ("deflate", zlib(&text()), Coding::Deflate),
        ("deflate", bare(&text()), Coding::Deflate),
        ("br", unhex(BROTLI), Coding::Brotli),
        ("zstd", zstd(&text()), Coding::Zstd),
    ] {
        for len in [1, body.len() / 2, body.len() - 1] {
            check_fault(coding, &body[..len], Fault::Unfinished(name));
        }
    }
}

#[test]
fn bombs() {
    let zeros = vec![0; 1 << 20];
    for (coding, bomb) in [
        ("gzip", gzip(&zeros)),
        ("deflate", bare(&zeros)),
        ("zstd", zstd(&zeros)),
        ("br", unhex(BROTLI_BOMB)),
        ("gzip, zstd", zstd(&gzip(&zeros))),
    ] {
        check_fault(coding, &bomb, Fault::Ratio);
        let limits = Limits { decoded_bytes_max: 100_000, ..Limits::default() };
        let (given, result) = decode_with(coding, &bomb, &limits);
        assert_eq!((given.len(), result), (100_000, Err(Fault::Bytes)), "{coding}");
        let limits = Limits { decoded_ratio_max: u32::MAX, ..Limits::default() };
        let (given, result) = decode_with(coding, &bomb, &limits);
        assert_eq!((given.len(), result), (zeros.len(), Ok(())), "{coding}");
    }
}

#[test]
fn a_receiver_that_has_enough_is_left_alone() {
    let body = gzip(&vec![b'x'; 100_000]);
    let decoder = Decoder::new(b"gzip", &Limits::default());
    let Ok(Some(mut decoder)) = decoder else { panic!("gzip is known") };
    let mut runs = 0;
    let mut give = |_: &[u8]| {
        runs += 1;
        Flow::Stop
    };
    assert_eq!(decoder.feed(&body, &mut give), Ok(Flow::Stop));
    assert_eq!(decoder.feed(&body, &mut give), Ok(Flow::Stop));
    assert_eq!(runs, 1);
    assert_eq!(decoder.finish(), Ok(()));
}
