//! Requests and responses in files, as HTTP/1.1 has them and as people write them.
//!
//! A head may have bare line feeds, for that is what editors write, and may lack the length of the
//! body that follows it. Everything else is read as the gate reads it: what the gate would refuse
//! before any rule is refused here with the same words.

use tidegate_http::chunked::{ChunkLimits, Decoder};
use tidegate_http::field::Known;
use tidegate_http::framing;
use tidegate_http::parse::{self, HeadLimits};
use tidegate_http::{Headers, Method, Request, Response};

use super::subject::{Answer, Subject};

/// Files are their owner's: the limits keep a mistake from being read for hours, nothing else.
const LIMITS: HeadLimits =
    HeadLimits { head_bytes_max: 16 << 20, target_bytes_max: 16 << 20, fields_max: 10_000 };

/// A request with its body; the words of what is wrong with it otherwise.
pub(super) fn request(bytes: &[u8]) -> Result<Subject, String> {
    let (head, body) = part(bytes);
    let mut request = Request::new();
    parse::request(&head, &LIMITS, &mut request)
        .map_err(|error| format!("this is no request that the gate would take: {error}"))?;
    let mut remarks = Vec::new();
    let body = unframed(&mut request.headers, body, &mut remarks);
    framing::of_request(&request)
        .map_err(|error| format!("this is no request that the gate would take: {error}"))?;
    Ok(Subject { body, remarks, ..Subject::new("test", request) })
}

/// A response to a request of this method, with its body.
pub(super) fn response(bytes: &[u8], method: Method) -> Result<(Answer, Vec<String>), String> {
    let (text, body) = part(bytes);
    let mut head = Response::new();
    parse::response(&text, &LIMITS, &mut head)
        .map_err(|error| format!("this is no response that the gate would take: {error}"))?;
    let mut remarks = Vec::new();
    let body = unframed(&mut head.headers, body, &mut remarks);
    framing::of_response(&head, method)
        .map_err(|error| format!("this is no response that the gate would take: {error}"))?;
    Ok((Answer { head, body }, remarks))
}

/// The head with the line ends that HTTP has, and the body.
fn part(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let (mut head, mut rest) = (Vec::new(), bytes);
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = &rest[..end.unwrap_or(rest.len())];
        rest = end.map_or(&[], |end| &rest[end + 1..]);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Empty lines before the first one are read over, as the gate does.
        if line.is_empty() && head.is_empty() && !rest.is_empty() {
            continue;
        }
        head.extend_from_slice(line);
        head.extend_from_slice(b"\r\n");
        if line.is_empty() {
            return (head, rest);
        }
    }
}

/// A body without its framing. Fields that do not fit it are mended, and that is told.
fn unframed(fields: &mut Headers, body: &[u8], remarks: &mut Vec<String>) -> Vec<u8> {
    if fields.has(Known::TransferEncoding) {
        if let Some(decoded) = dechunked(body) {
            return decoded;
        }
        remarks.push("the body is not chunked, as its head says; it is taken as it is".into());
        return body.to_vec();
    }
    match framing::content_length(fields) {
        Ok(Some(announced)) => {
            let there = body.len() as u64;
            if there < announced {
                let lack = format!("the body has {there} of the {announced} bytes announced");
                remarks.push(lack);
            }
            let end = usize::try_from(announced.min(there)).unwrap_or(body.len());
            body[..end].to_vec()
        }
        Ok(None) if !body.is_empty() => {
            // Editors end the last line; forms do not.
            let body = body.strip_suffix(b"\n").unwrap_or(body);
            let body = body.strip_suffix(b"\r").unwrap_or(body);
            fields.push(b"Content-Length", body.len().to_string().as_bytes());
            remarks.push(format!("`Content-Length: {}` was added", body.len()));
            body.to_vec()
        }
        Ok(None) | Err(_) => body.to_vec(),
    }
}

fn dechunked(body: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(ChunkLimits::default());
    let (mut decoded, mut rest) = (Vec::new(), body);
    while !rest.is_empty() && !decoder.ended() {
        let step = decoder.step(rest).ok()?;
        decoded.extend_from_slice(&rest[step.data]);
        rest = &rest[step.consumed..];
    }
    decoder.ended().then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_people_write_them() {
        let check = |text: &str, body: &str, remarks: usize| {
            let subject = request(text.as_bytes()).unwrap();
            assert_eq!(subject.request.host, b"a.example", "{text}");
            assert_eq!(subject.body, body.as_bytes(), "{text}");
            assert_eq!(subject.remarks.len(), remarks, "{:?}", subject.remarks);
        };
        check("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "", 0);
        check("\nGET / HTTP/1.1\nHost: a.example\n", "", 0);
        check("GET / HTTP/1.1\nHost: a.example", "", 0);
        check("POST / HTTP/1.1\nHost: a.example\n\na=b\n", "a=b", 1);
        check("POST / HTTP/1.1\nHost: a.example\nContent-Length: 2\n\na=b", "a=", 0);
        check("POST / HTTP/1.1\nHost: a.example\nContent-Length: 9\n\na=b", "a=b", 1);
        check(
            "POST / HTTP/1.1\nHost: a.example\nTransfer-Encoding: chunked\n\n3\r\na=b\r\n0\r\n\r\n",
            "a=b",
            0,
        );
    }

    #[test]
    fn what_the_gate_refuses_is_no_request() {
        for text in [
            "",
            "GET /\nHost: a\n\n",
            "GET / HTTP/1.1\n\n",
            "GET / HTTP/1.1\nHost: a\nContent-Length: 1\nTransfer-Encoding: chunked\n\n",
            "GET / HTTP/1.1\nHost: a\nX Y: 1\n\n",
        ] {
            let refused = request(text.as_bytes()).unwrap_err();
            assert!(refused.contains("no request"), "{text:?}: {refused}");
        }
    }
}
