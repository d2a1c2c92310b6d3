//! HPACK (RFC 7541), as little as a test client needs: it writes literals only, without any check of
//! what it writes, and reads everything but the dynamic table, which its SETTINGS forbid.
#![expect(clippy::cast_possible_truncation, reason = "every cast is of a remainder that fits")]

use std::collections::HashMap;
use std::sync::OnceLock;

/// A field list: names and values as they are.
pub(crate) type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Writes a field list as literals without indexing and without Huffman coding (section 6.2.2).
pub(crate) fn encode(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            encode_integer(text.len(), &mut block);
            block.extend_from_slice(text);
        }
    }
    block
}

/// A length with a prefix of seven bits (section 5.1).
fn encode_integer(mut value: usize, block: &mut Vec<u8>) {
    if value < 127 {
        block.push(value as u8);
        return;
    }
    block.push(127);
    value -= 127;
    while value >= 128 {
        block.push((value % 128) as u8 | 128);
        value /= 128;
    }
    block.push(value as u8);
}

/// Reads a field list.
pub(crate) fn decode(mut block: &[u8]) -> Result<Fields, String> {
    let mut fields = Vec::new();
    while let Some(&first) = block.first() {
        if first & 0x80 != 0 {
            let (name, value) = table(decode_integer(&mut block, 7)?)?;
            fields.push((name.into(), value.into()));
            continue;
        }
        if first & 0xe0 == 0x20 {
            decode_integer(&mut block, 5)?;
            continue;
        }
        let prefix = if first & 0x40 != 0 { 6 } else { 4 };
        let name = match decode_integer(&mut block, prefix)? {
            0 => decode_text(&mut block)?,
            index => table(index)?.0.into(),
        };
        fields.push((name, decode_text(&mut block)?));
    }
    Ok(fields)
}

fn table(index: usize) -> Result<(&'static str, &'static str), String> {
    let entry = index.checked_sub(1).and_then(|index| STATIC_TABLE.get(index));
    entry.copied().ok_or(format!("index {index} is outside the static table"))
}

fn decode_integer(block: &mut &[u8], prefix: u32) -> Result<usize, String> {
    let mut next = || {
        let (&first, rest) = block.split_first().ok_or("a header block ends early")?;
        *block = rest;
        Ok::<usize, String>(first.into())
    };
    let mask = (1 << prefix) - 1;
    let mut value = next()? & mask;
    if value < mask {
        return Ok(value);
    }
    for shift in (0..28).step_by(7) {
        let byte = next()?;
        value += (byte & 127) << shift;
        if byte < 128 {
            return Ok(value);
        }
    }
    Err("an integer is too long".into())
}

fn decode_text(block: &mut &[u8]) -> Result<Vec<u8>, String> {
    let huffman = block.first().is_some_and(|&first| first & 0x80 != 0);
    let length = decode_integer(block, 7)?;
    let (text, rest) = block.split_at_checked(length).ok_or("a header block ends early")?;
    *block = rest;
    Ok(if huffman { decode_huffman(text) } else { text.to_vec() })
}

/// What is left at the end are padding bits.
fn decode_huffman(text: &[u8]) -> Vec<u8> {
    let codes = HUFFMAN_CODES.get_or_init(huffman_codes);
    let mut decoded = Vec::new();
    let (mut code, mut length) = (0_u32, 0_u8);
    for bit in text.iter().flat_map(|byte| (0..8).rev().map(move |shift| byte >> shift & 1)) {
        code = code << 1 | u32::from(bit);
        length += 1;
        if let Some(symbol) = codes.get(&(length, code)) {
            decoded.push(*symbol);
            (code, length) = (0, 0);
        }
    }
    decoded
}

/// Symbols by the length of their code and the code.
static HUFFMAN_CODES: OnceLock<HashMap<(u8, u32), u8>> = OnceLock::new();

/// The code is canonical: its lengths define it. EOS stands in no text.
fn huffman_codes() -> HashMap<(u8, u32), u8> {
    let mut symbols: Vec<(u8, u8)> = CODE_LENGTHS.into_iter().zip(0..=255).collect();
    symbols.sort_unstable();
    let mut next = 0_u32;
    let mut before = symbols[0].0;
    let codes = symbols.into_iter().map(|(length, symbol)| {
        let code = next << (length - before);
        (next, before) = (code + 1, length);
        ((length, code), symbol)
    });
    codes.collect()
}

/// Bits of each symbol's Huffman code (RFC 7541, appendix B), but for EOS.
#[rustfmt::skip]
const CODE_LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// RFC 7541, appendix A.
const STATIC_TABLE: &[(&str, &str)] = &[
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

#[test]
fn what_is_written_is_read() {
    let fields = vec![(b":path".to_vec(), vec![b'a'; 300]), (b"X\r\n".to_vec(), b"\0".to_vec())];
    assert_eq!(decode(&encode(&fields)).unwrap(), fields);
}

#[test]
fn the_rfc_s_examples_are_read() {
    // RFC 7541, appendix C.4.1 and C.2.1, without their use of the dynamic table.
    let block = b"\x82\x86\x84\x01\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
    let fields = decode(block).unwrap();
    assert_eq!(fields[0], (b":method".to_vec(), b"GET".to_vec()));
    assert_eq!(fields[3], (b":authority".to_vec(), b"www.example.com".to_vec()));
    assert!(decode(b"\xff").is_err());
    assert!(decode(b"\xbe").is_err());
}
