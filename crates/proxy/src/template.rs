//! Text with placeholders: values of header fields and targets of redirects.
//!
//! `$name` and `${name}` are replaced, `$$` is a dollar sign. What a placeholder brings in comes from
//! clients and has been validated as part of a field or a target before, so no template can break a
//! line. The configuration refuses unknown names with [`Template::check`]; here they stay as they are.

use memchr::memchr;

/// A parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Text(Box<[u8]>),
    Value(Variable),
}

macro_rules! variables {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)*) => {
        /// What a placeholder stands for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Variable {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Variable {
            /// All of them with name and meaning, for the reference.
            pub const ALL: &[(Variable, &str, &str)] =
                &[$((Variable::$variant, $name, concat!($($doc),+))),*];
        }
    };
}

variables! {
    /// The client's address.
    ClientAddress = "client_addr",
    /// The host the client asked for, without port.
    Host = "host",
    /// `http` or `https`.
    Scheme = "scheme",
    /// The path as received.
    Path = "path",
    /// The query with its `?`, or nothing.
    Query = "query",
    /// Path and query.
    Uri = "uri",
    /// The request's id, 16 hexadecimal digits.
    RequestId = "request_id",
    /// The site's name.
    Site = "site",
    /// The route's name.
    Route = "route",
    /// The subject of the client's certificate, or nothing.
    TlsClientSubject = "tls_client_subject",
    /// The SHA-256 fingerprint of the client's certificate in hexadecimal, or nothing.
    TlsClientFingerprint = "tls_client_fingerprint",
    /// The TLS version, or nothing.
    TlsVersion = "tls_version",
}

/// A placeholder that is not known: its name and where in the text it stands, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVariable {
    /// The name as written.
    pub name: String,
    /// Position of its `$`.
    pub at: usize,
}

impl Template {
    /// Parses a template; unknown placeholders stay text.
    pub fn parse(text: &str) -> Self {
        let mut segments = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text.as_bytes();
        while let Some(dollar) = memchr(b'$', rest) {
            literal.extend_from_slice(&rest[..dollar]);
            rest = &rest[dollar..];
            if rest.starts_with(b"$$") {
                literal.push(b'$');
                rest = &rest[2..];
                continue;
            }
            let (name, len) = placeholder(rest);
            if let Some((variable, ..)) = known(name) {
                if !literal.is_empty() {
                    segments.push(Segment::Text(std::mem::take(&mut literal).into()));
                }
                segments.push(Segment::Value(*variable));
            } else {
                literal.extend_from_slice(&rest[..len]);
            }
            rest = &rest[len..];
        }
        literal.extend_from_slice(rest);
        if !literal.is_empty() {
            segments.push(Segment::Text(literal.into()));
        }
        Self(segments)
    }

    /// The placeholders that are not known.
    pub fn check(text: &str) -> Vec<UnknownVariable> {
        let bytes = text.as_bytes();
        let mut unknown = Vec::new();
        let mut at = 0;
        while let Some(dollar) = memchr(b'$', &bytes[at..]) {
            at += dollar;
            if bytes[at..].starts_with(b"$$") {
                at += 2;
                continue;
            }
            let (name, len) = placeholder(&bytes[at..]);
            if known(name).is_none() {
                unknown.push(UnknownVariable { name: String::from_utf8_lossy(name).into(), at });
            }
            at += len;
        }
        unknown
    }

    /// Writes the text; `value` appends what a placeholder stands for.
    pub fn write(&self, out: &mut Vec<u8>, mut value: impl FnMut(Variable, &mut Vec<u8>)) {
        for segment in &self.0 {
            match segment {
                Segment::Text(text) => out.extend_from_slice(text),
                Segment::Value(variable) => value(*variable, out),
            }
        }
    }

    /// The text, where there is no placeholder in it.
    pub fn literal(&self) -> Option<&[u8]> {
        match self.0.as_slice() {
            [] => Some(b""),
            [Segment::Text(text)] => Some(text),
            _ => None,
        }
    }
}

/// The name behind a `$` and how long the whole placeholder is, at least the `$` itself.
fn placeholder(text: &[u8]) -> (&[u8], usize) {
    if text.get(1) == Some(&b'{')
        && let Some(close) = memchr(b'}', text)
    {
        return (&text[2..close], close + 1);
    }
    let len =
        text[1..].iter().take_while(|byte| byte.is_ascii_lowercase() || **byte == b'_').count();
    (&text[1..=len], len + 1)
}

fn known(name: &[u8]) -> Option<&'static (Variable, &'static str, &'static str)> {
    Variable::ALL.iter().find(|(_, known, _)| known.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut out = Vec::new();
        Template::parse(text).write(&mut out, |variable, out| match variable {
            Variable::Host => out.extend_from_slice(b"example.org"),
            Variable::Uri => out.extend_from_slice(b"/a?b"),
            _ => {}
        });
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn placeholders_are_replaced() {
        check("https://$host$uri", "https://example.org/a?b");
        check("${host}name", "example.orgname");
        check("cost: 5$$", "cost: 5$");
        check("$", "$");
        check("$unknown ${x", "$unknown ${x");
        check("", "");
    }

    #[test]
    fn unknown_placeholders_are_found_where_they_stand() {
        let unknown = Template::check("a $host $hots $$x ${b}");
        let found: Vec<_> = unknown.iter().map(|u| (u.name.as_str(), u.at)).collect();
        assert_eq!(found, [("hots", 8), ("b", 18)]);
    }

    #[test]
    fn text_without_placeholders_is_known_to_be_literal() {
        assert_eq!(Template::parse("plain").literal(), Some(&b"plain"[..]));
        assert_eq!(Template::parse("$host").literal(), None);
    }
}
