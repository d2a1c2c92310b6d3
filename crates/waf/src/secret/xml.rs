//! Secrets in XML, found by the names of elements and attributes.

use super::{Names, shape};

/// Masks the text of secret elements, and the values of secret attributes.
pub(super) fn mask(names: &Names<'_>, body: &mut [u8]) {
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'<', body.get(at..).unwrap_or_default()) {
        let start = at + open + 1;
        let length = memchr::memchr(b'>', &body[start..]).unwrap_or(body.len() - start);
        let end = start + length;
        let is_secret = tag(names, &mut body[start..end]);
        at = end;
        if is_secret {
            let text = memchr::memchr(b'<', &body[end..]).map_or(body.len(), |at| end + at);
            shape::mask(&mut body[end..text]);
            at = text;
        }
    }
}

/// Masks the attributes of a tag; whether the element's text is secret.
fn tag(names: &Names<'_>, tag: &mut [u8]) -> bool {
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    let name_end = tag.iter().position(is_space).unwrap_or(tag.len());
    let is_secret = names.is_argument(local(&tag[..name_end]));
    let mut at = name_end;
    while let Some(equals) = memchr::memchr(b'=', &tag[at..]) {
        let name = tag[at..at + equals].trim_ascii();
        let is_secret = names.is_argument(local(name));
        let open = at + equals + 1;
        let quote = tag[open..].iter().position(|byte| matches!(byte, b'"' | b'\''));
        let Some(quote) = quote.map(|quote| open + quote) else { break };
        let length = memchr::memchr(tag[quote], &tag[quote + 1..]);
        let end = length.map_or(tag.len(), |length| quote + 1 + length);
        if is_secret {
            shape::mask(&mut tag[quote + 1..end]);
        }
        at = (end + 1).min(tag.len());
    }
    is_secret
}

/// A name without its prefix.
fn local(name: &[u8]) -> &[u8] {
    memchr::memchr(b':', name).map_or(name, |at| &name[at + 1..])
}
