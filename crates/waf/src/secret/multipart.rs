//! Secrets in multipart forms, found by the names of their parts.

use memchr::memmem;

use super::{Names, shape};

/// Masks the content of parts with secret names.
pub(super) fn mask(names: &Names<'_>, boundary: &[u8], body: &mut [u8]) {
    let delimiter = [b"--", boundary].concat();
    let mut places: Vec<usize> = memmem::find_iter(body, &delimiter).collect();
    // A body that was cut ends within a part.
    places.push(body.len());
    for place in places.windows(2) {
        let (start, end) = (place[0] + delimiter.len(), place[1]);
        let Some(part) = body.get_mut(start..end) else { continue };
        let ends = [(b"\r\n\r\n".as_slice(), 4), (b"\n\n", 2)];
        let head = ends.iter().filter_map(|(end, bytes)| Some(memmem::find(part, end)? + bytes));
        let Some(head) = head.min() else { continue };
        let (head, content) = part.split_at_mut(head);
        if name(head).is_some_and(|name| names.is_argument(name)) {
            shape::mask(content);
        }
    }
}

/// The `name` of a part's head.
fn name(head: &[u8]) -> Option<&[u8]> {
    let lower = head.to_ascii_lowercase();
    let at = memmem::find_iter(&lower, b"name=").find(|at| !lower[..*at].ends_with(b"file"))? + 5;
    match head.get(at)? {
        quote @ (b'"' | b'\'') => {
            let rest = &head[at + 1..];
            Some(&rest[..memchr::memchr(*quote, rest)?])
        }
        _ => head[at..].split(|byte| matches!(byte, b';' | b'\r' | b'\n')).next(),
    }
}
