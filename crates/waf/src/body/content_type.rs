//! Media types (RFC 9110 section 8.3.1), read strictly.
//!
//! For choosing a processor and for what is inspected of responses. The boundary of a multipart body
//! has [rules of its own](super::multipart).

use std::borrow::Cow;

use super::Kind;

/// The value of a `Content-Type` field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentType<'a> {
    /// Type and subtype as written, like `text/html`.
    pub essence: &'a [u8],
    parameters: Vec<(&'a [u8], Cow<'a, [u8]>)>,
}

/// Why a value is no media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// No type, slash and subtype.
    Essence,
    /// Something other than `;` between parameters, or no `=` or value.
    Parameter,
    /// A quoted value that does not end.
    Quote,
    /// A parameter twice, in any case: readers take the first, or the last.
    Repeated,
}

impl<'a> ContentType<'a> {
    /// Reads a value.
    pub fn parse(value: &'a [u8]) -> Result<Self, Malformed> {
        let value = value.trim_ascii();
        let (essence, mut rest) = value.split_at(token_len(value, b"/"));
        let is_token = |part: &[u8]| !part.is_empty() && !part.contains(&b'/');
        match essence.iter().position(|&byte| byte == b'/') {
            Some(slash) if is_token(&essence[..slash]) && is_token(&essence[slash + 1..]) => {}
            _ => return Err(Malformed::Essence),
        }
        let mut parameters: Vec<(&[u8], Cow<'_, [u8]>)> = Vec::new();
        loop {
            rest = rest.trim_ascii_start();
            if rest.is_empty() {
                return Ok(Self { essence, parameters });
            }
            rest = rest.strip_prefix(b";").ok_or(Malformed::Parameter)?.trim_ascii_start();
            // RFC 9110 section 5.6.6 lets parameters be missing.
            if matches!(rest.first(), None | Some(b';')) {
                continue;
            }
            let (name, behind) = rest.split_at(token_len(rest, b""));
            let behind = behind.strip_prefix(b"=").ok_or(Malformed::Parameter)?;
            let (value, behind) = if let Some(quoted) = behind.strip_prefix(b"\"") {
                unquote(quoted)?
            } else {
                let (value, behind) = behind.split_at(token_len(behind, b""));
                if value.is_empty() {
                    return Err(Malformed::Parameter);
                }
                (Cow::Borrowed(value), behind)
            };
            if name.is_empty() {
                return Err(Malformed::Parameter);
            }
            if parameters.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                return Err(Malformed::Repeated);
            }
            parameters.push((name, value));
            rest = behind;
        }
    }

    /// The value of the parameter of that name, in any case.
    pub fn parameter(&self, name: &str) -> Option<&[u8]> {
        let is = |known: &[u8]| known.eq_ignore_ascii_case(name.as_bytes());
        self.parameters.iter().find(|(known, _)| is(known)).map(|(_, value)| &**value)
    }
}

impl Kind {
    /// The processor that a request body gets unasked: ModSecurity looks at the first characters of
    /// its content type. The others are for rules to choose.
    pub fn by_content_type(value: &[u8]) -> Option<Self> {
        let begins = |known: &str| {
            value
                .get(..known.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(known.as_bytes()))
        };
        if begins("application/x-www-form-urlencoded") {
            Some(Self::Urlencoded)
        } else if begins("multipart/form-data") {
            Some(Self::Multipart)
        } else {
            None
        }
    }
}

/// What a content type is before its parameters, however malformed these are, without white space:
/// what `SecResponseBodyMimeType` names.
pub fn essence(value: &[u8]) -> &[u8] {
    let end = value.iter().position(|&byte| byte == b';').unwrap_or(value.len());
    value[..end].trim_ascii()
}

/// Bytes of a token (RFC 9110 section 5.6.2), `also` being part of it.
fn token_len(text: &[u8], also: &[u8]) -> usize {
    let is_token = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte) || also.contains(&byte)
    };
    text.iter().position(|&byte| !is_token(byte)).unwrap_or(text.len())
}

/// A quoted string from behind its first quote (RFC 9110 section 5.6.4), and what is behind it.
fn unquote(text: &[u8]) -> Result<(Cow<'_, [u8]>, &[u8]), Malformed> {
    let plain = text.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    let plain = plain.ok_or(Malformed::Quote)?;
    if text[plain] == b'"' {
        return Ok((Cow::Borrowed(&text[..plain]), &text[plain + 1..]));
    }
    let mut value = text[..plain].to_vec();
    let mut rest = text[plain..].iter();
    loop {
        match rest.next().ok_or(Malformed::Quote)? {
            b'"' => return Ok((Cow::Owned(value), rest.as_slice())),
            b'\\' => value.push(*rest.next().ok_or(Malformed::Quote)?),
            byte => value.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, essence: &str, parameters: &[(&str, &str)]) {
        let parsed = ContentType::parse(value.as_bytes());
        let parsed = parsed.unwrap_or_else(|malformed| panic!("{value}: {malformed:?}"));
        assert_eq!(parsed.essence, essence.as_bytes(), "{value}");
        assert_eq!(parsed.parameters.len(), parameters.len(), "{value}");
        for (name, expected) in parameters {
            assert_eq!(parsed.parameter(name), Some(expected.as_bytes()), "{value}");
        }
    }

    #[test]
    fn media_types() {
        check("text/html", "text/html", &[]);
        check(" Text/HTML ;", "Text/HTML", &[]);
        check("text/html;charset=utf-8", "text/html", &[("Charset", "utf-8")]);
        check("a/b ; c=d;; e=\"f;g\"", "a/b", &[("c", "d"), ("e", "f;g")]);
        check("a/b; c=\"\"", "a/b", &[("c", "")]);
        check(r#"a/b; c="d\"e\\f""#, "a/b", &[("c", r#"d"e\f"#)]);
        check("application/vnd.a+json", "application/vnd.a+json", &[]);
    }

    #[test]
    fn what_is_none() {
        for (value, malformed) in [
            ("", Malformed::Essence),
            ("text", Malformed::Essence),
            ("text/", Malformed::Essence),
            ("/html", Malformed::Essence),
            ("text/html/x", Malformed::Essence),
            ("text /html", Malformed::Essence),
            ("text/html x", Malformed::Parameter),
            ("text/html, a/b", Malformed::Parameter),
            ("text/html; charset", Malformed::Parameter),
            ("text/html; charset=", Malformed::Parameter),
            ("text/html; charset =a", Malformed::Parameter),
            ("text/html; charset= a", Malformed::Parameter),
            ("text/html; =a", Malformed::Parameter),
            ("text/html; a=b c=d", Malformed::Parameter),
            ("text/html; a=\"b", Malformed::Quote),
            ("text/html; a=\"b\\\"", Malformed::Quote),
            ("text/html; a=b; A=c", Malformed::Repeated),
        ] {
            assert_eq!(ContentType::parse(value.as_bytes()), Err(malformed), "{value}");
        }
    }

    #[test]
    fn processors_unasked() {
        for (value, kind) in [
            ("application/x-www-form-urlencoded", Some(Kind::Urlencoded)),
            ("Application/X-WWW-Form-Urlencoded; charset=utf-8", Some(Kind::Urlencoded)),
            ("multipart/form-data; boundary=x", Some(Kind::Multipart)),
            ("multipart/mixed; boundary=x", None),
            ("application/json", None),
            ("", None),
        ] {
            assert_eq!(Kind::by_content_type(value.as_bytes()), kind, "{value}");
        }
    }

    #[test]
    fn essences() {
        assert_eq!(essence(b" text/html ; charset"), b"text/html");
        assert_eq!(essence(b"text/html"), b"text/html");
        assert_eq!(essence(b""), b"");
    }
}
