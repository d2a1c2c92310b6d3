//! Keys as they are written: by whoever looks something up, and by whoever purges it.

use tidegate_cache::key::{KeyBuffer, Uri};
use tidegate_cache::policy::{KeyPolicy, Part};
use tidegate_http::Request;

/// Where a worker writes keys, again and again in the same memory.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Where its parts are put together.
    pub(crate) buffer: KeyBuffer,
    /// The whole of it.
    pub(crate) text: Vec<u8>,
    /// The text of a variant.
    pub(crate) variant: Vec<u8>,
}

/// Writes into `text` the key of a URI on a site, for a request that is otherwise this one.
pub(crate) fn write(
    buffer: &mut KeyBuffer,
    text: &mut Vec<u8>,
    site: &str,
    uri: &Uri<'_>,
    request: &Request,
    policy: &KeyPolicy,
) {
    text.clear();
    if policy.host == Part::LeftOut {
        // Hosts of one site share their responses, sites do not.
        text.extend_from_slice(site.as_bytes());
        text.push(0);
    }
    text.extend_from_slice(buffer.write_uri(uri, request, policy));
}

/// What of a key's text is its URL, without the fields and cookies behind it: a purge of the URL
/// takes all of them.
pub(crate) fn url_of<'t>(text: &'t [u8], policy: &KeyPolicy) -> &'t [u8] {
    // One NUL ends the site's name, the next begins what follows the URL.
    let before = match policy.host {
        Part::LeftOut => memchr::memchr(0, text).map_or(0, |end| end + 1),
        Part::Counts => 0,
    };
    let end = memchr::memchr(0, &text[before..]).map_or(text.len(), |end| before + end);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use tidegate_http::target::Scheme;

    use super::*;

    #[test]
    fn the_url_of_a_key_is_all_but_fields_and_cookies() {
        let check = |host: Part, expected: &[u8]| {
            let mut request = Request::new();
            request.host.extend_from_slice(b"a.example");
            request.set_path_and_query(b"/p?q=1");
            for (name, value) in [("X-Country", "de"), ("Cookie", "currency=EUR")] {
                request.headers.push(name.as_bytes(), value.as_bytes());
            }
            let policy = KeyPolicy {
                host,
                headers: vec![Box::from(&b"X-Country"[..])],
                cookies: vec![Box::from(&b"currency"[..])],
                ..KeyPolicy::default()
            };
            let uri = Uri::of(Scheme::Https, &request);
            let (mut buffer, mut text) = (KeyBuffer::new(), Vec::new());
            write(&mut buffer, &mut text, "shop", &uri, &request, &policy);
            assert_eq!(url_of(&text, &policy), expected);
            assert!(text.len() > expected.len());
            let bare = KeyPolicy { host, ..KeyPolicy::default() };
            write(&mut buffer, &mut text, "shop", &uri, &request, &bare);
            assert_eq!(url_of(&text, &bare), expected);
            assert_eq!(text, expected);
        };
        check(Part::Counts, b"https://a.example/p?q=1");
        check(Part::LeftOut, b"shop\0https:///p?q=1");
    }
}
