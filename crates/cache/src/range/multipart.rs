//! The body that carries several parts: `multipart/byteranges` (RFC 9110, section 14.6).

use super::ByteSpan;
use tidegate_http::write;

/// How several parts of a representation are wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multipart<'a> {
    /// What parts them; must occur nowhere in the representation, and so is best random.
    pub boundary: &'a [u8],
    /// The representation's `Content-Type`, if it has one.
    pub content_type: Option<&'a [u8]>,
    /// The representation's length.
    pub complete: u64,
}

impl Multipart<'_> {
    /// Writes the `Content-Type` of the response.
    pub fn write_content_type(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"multipart/byteranges; boundary=");
        out.extend_from_slice(self.boundary);
    }

    /// Writes what stands before a part's bytes.
    pub fn write_part_head(&self, span: ByteSpan, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary);
        out.extend_from_slice(b"\r\n");
        if let Some(content_type) = self.content_type {
            write::field(out, b"Content-Type", content_type);
        }
        out.extend_from_slice(b"Content-Range: ");
        span.write_content_range(self.complete, out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Writes what stands behind the last part.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary);
        out.extend_from_slice(b"--\r\n");
    }

    /// The length of the whole body. Writes all that stands around the parts into `scratch` for it.
    pub fn content_length(&self, spans: &[ByteSpan], scratch: &mut Vec<u8>) -> u64 {
        scratch.clear();
        let mut bytes = 0_u64;
        for &span in spans {
            self.write_part_head(span, scratch);
            bytes = bytes.saturating_add(span.len());
        }
        self.write_end(scratch);
        bytes.saturating_add(scratch.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::{Ranges, Selection};

    #[test]
    fn parts_are_wrapped() {
        let body = b"0123456789";
        let ranges = Ranges::read(b"bytes=7-,0-1").unwrap();
        let Selection::Parts(parts) = ranges.select(10) else { panic!("no parts") };
        let multipart =
            Multipart { boundary: b"XX", content_type: Some(b"text/plain"), complete: 10 };
        let mut out = Vec::new();
        for &span in &parts {
            multipart.write_part_head(span, &mut out);
            out.extend_from_slice(
                &body[usize::try_from(span.first).unwrap()..usize::try_from(span.end).unwrap()],
            );
        }
        multipart.write_end(&mut out);
        let expected = "\r\n--XX\r\nContent-Type: text/plain\r\nContent-Range: bytes 7-9/10\r\n\r\n789\
                        \r\n--XX\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\
                        \r\n--XX--\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(multipart.content_length(&parts, &mut Vec::new()), expected.len() as u64);
        let mut head = Vec::new();
        multipart.write_content_type(&mut head);
        assert_eq!(head, b"multipart/byteranges; boundary=XX");
    }
}
