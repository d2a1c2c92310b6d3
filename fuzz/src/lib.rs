//! What the targets share: inputs in pieces, and parsers so plain that they can serve as oracles.

pub mod body;

use tidegate_http::Headers;

/// Cuts an input into pieces whose lengths depend on the input alone, so that a finding replays.
pub fn pieces(input: &[u8]) -> Vec<&[u8]> {
    // FNV-1a, then xorshift.
    let mut state = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }) | 1;
    let mut pieces = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let longest = if state & 0x100 == 0 { 3 } else { 24 };
        let len = (state as usize % longest + 1).min(rest.len());
        let (piece, behind) = rest.split_at(len);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

/// Parts a head at each CRLF and its fields at their first colon. Only accepted heads come here.
pub fn plain_fields(head: &[u8]) -> (&[u8], Vec<(&[u8], &[u8])>) {
    let lines = head.strip_suffix(b"\r\n\r\n").expect("an accepted head ends in an empty line");
    let mut lines = split(lines, b"\r\n").into_iter();
    let first = lines.next().expect("a head has a first line");
    assert!(!first.contains(&b'\n') && !first.contains(&b'\r'));
    let fields = lines.map(|line| {
        assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
        let colon = line.iter().position(|&byte| byte == b':').expect("a field has a colon");
        (&line[..colon], tidegate_http::field::trim(&line[colon + 1..]))
    });
    (first, fields.collect())
}

/// Parts at each occurrence of `separator`.
pub fn split<'a>(text: &'a [u8], separator: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(separator.len()).position(|window| window == separator) {
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    parts
}

/// Fields as a list that can be compared.
pub fn pairs(headers: &Headers) -> Vec<(&[u8], &[u8])> {
    headers.iter().map(|field| (field.name, field.value)).collect()
}
