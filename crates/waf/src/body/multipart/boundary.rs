//! The boundary, from the content type.
//!
//! Stricter than RFC 9110's parameters, since every liberty here is known to be read differently by
//! some server: only `boundary` (once, in lower case) and `charset` may stand there. A charset is no
//! parameter of `multipart/form-data` (RFC 7578), but frameworks send it; ModSecurity 2 refuses it,
//! version 3 accepts it behind the boundary. A comma in a boundary ends it for PHP, and a space for
//! others, so these have to be quoted, which raises a flag of its own.

use super::fault::Fault;
use super::flags::Flags;

const MEDIA_TYPE: &[u8] = b"multipart/form-data";

/// ModSecurity's limit for the whole field.
const CONTENT_TYPE_BYTES_MAX: usize = 1024;

/// RFC 2046 section 5.1.1.
const BOUNDARY_BYTES_MAX: usize = 70;

/// The boundary that a content type announces.
pub(super) fn boundary<'a>(content_type: &'a [u8], flags: &mut Flags) -> Result<&'a [u8], Fault> {
    let content_type = content_type.trim_ascii();
    if content_type.is_empty() {
        return Err(Fault::ContentTypeMissing);
    }
    if content_type.len() > CONTENT_TYPE_BYTES_MAX {
        return Err(Fault::BoundaryLength);
    }
    let mut rest = match content_type.split_at_checked(MEDIA_TYPE.len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case(MEDIA_TYPE) => rest,
        _ => return Err(Fault::MediaType),
    };
    let mut boundary = None;
    while let Some(parameter) = Parameter::next(&mut rest, flags)? {
        if parameter.name == b"boundary" {
            if boundary.is_some() {
                return Err(Fault::BoundaryRepeated);
            }
            parameter.check_boundary(flags)?;
            boundary = Some(parameter.value);
        } else if parameter.name.eq_ignore_ascii_case(b"boundary") {
            return Err(Fault::BoundaryCase);
        } else if !parameter.is_charset() {
            return Err(Fault::BoundaryParameter);
        }
    }
    boundary.ok_or(Fault::BoundaryMissing)
}

struct Parameter<'a> {
    name: &'a [u8],
    value: &'a [u8],
    form: Form,
    spaces: Spaces,
}

#[derive(PartialEq, Eq)]
enum Form {
    Quoted,
    Plain,
}

/// Whether white space stands around the `=` or behind the value.
#[derive(PartialEq, Eq)]
enum Spaces {
    None,
    Some,
}

impl<'a> Parameter<'a> {
    /// Takes the next parameter, with the semicolon before it.
    fn next(rest: &mut &'a [u8], flags: &mut Flags) -> Result<Option<Self>, Fault> {
        let before = rest.len();
        let mut text = rest.trim_ascii_start();
        if text.is_empty() {
            return Ok(None);
        }
        if let Some(behind) = text.strip_prefix(b";") {
            text = behind.trim_ascii_start();
        } else if text.len() < before {
            flags.missing_semicolon = true;
        } else {
            return Err(Fault::BoundaryMalformed);
        }
        if text.is_empty() {
            return Ok(None);
        }
        let end = position(text, |byte| matches!(byte, b'=' | b';'));
        let (name, behind) = text.split_at(end);
        let after = behind.strip_prefix(b"=").ok_or(Fault::BoundaryMalformed)?;
        let value = after.trim_ascii_start();
        let trimmed = name.trim_ascii_end();
        let mut spaces = trimmed.len() < name.len() || value.len() < after.len();
        let name = trimmed;
        if name.is_empty() || name.iter().any(|&byte| byte.is_ascii_whitespace()) {
            return Err(Fault::BoundaryParameter);
        }
        let (value, form) = if let Some(quoted) = value.strip_prefix(b"\"") {
            let end = position(quoted, |byte| matches!(byte, b'"' | b'\\'));
            *rest = quoted[end..].strip_prefix(b"\"").ok_or(Fault::BoundaryQuote)?;
            // Something glued to the closing quote is part of the value to some.
            if !matches!(rest.first(), None | Some(b';' | b' ' | b'\t')) {
                return Err(Fault::BoundaryQuote);
            }
            (&quoted[..end], Form::Quoted)
        } else {
            let end = position(value, |byte| byte == b';');
            *rest = &value[end..];
            let trimmed = value[..end].trim_ascii_end();
            spaces |= trimmed.len() < end;
            (trimmed, Form::Plain)
        };
        let spaces = if spaces { Spaces::Some } else { Spaces::None };
        Ok(Some(Self { name, value, form, spaces }))
    }

    fn check_boundary(&self, flags: &mut Flags) -> Result<(), Fault> {
        flags.boundary_whitespace |= self.spaces == Spaces::Some;
        flags.boundary_quoted |= self.form == Form::Quoted;
        if self.value.is_empty() {
            return Err(Fault::BoundaryEmpty);
        }
        if self.value.len() > BOUNDARY_BYTES_MAX {
            return Err(Fault::BoundaryLength);
        }
        if self.form == Form::Plain && self.value.contains(&b'"') {
            return Err(Fault::BoundaryQuote);
        }
        let allowed = |byte: u8| match byte {
            b',' | b' ' => self.form == Form::Quoted,
            // RFC 2046 section 5.1.1: bchars.
            byte => byte.is_ascii_alphanumeric() || b"'()+_-./:=?".contains(&byte),
        };
        if !self.value.iter().all(|&byte| allowed(byte)) || self.value.ends_with(b" ") {
            return Err(Fault::BoundaryCharacters);
        }
        if looks_like_boundary(self.value) {
            return Err(Fault::BoundaryContent);
        }
        Ok(())
    }

    fn is_charset(&self) -> bool {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
        self.name.eq_ignore_ascii_case(b"charset")
            && !self.value.is_empty()
            && self.value.iter().all(is_part)
    }
}

/// Whether `boundary` is in the text with a `=` somewhere behind it.
fn looks_like_boundary(text: &[u8]) -> bool {
    const NAME: &[u8] = b"boundary";
    let last_equals = text.iter().rposition(|&byte| byte == b'=').unwrap_or(0);
    text.windows(NAME.len()).take(last_equals).any(|window| window.eq_ignore_ascii_case(NAME))
}

fn position(text: &[u8], is: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|&byte| is(byte)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content_type: &str, expected: Result<&str, Fault>) -> Flags {
        let mut flags = Flags::default();
        let found = boundary(content_type.as_bytes(), &mut flags);
        assert_eq!(found, expected.map(str::as_bytes), "{content_type}");
        flags
    }

    #[test]
    fn what_browsers_send() {
        let webkit = "----WebKitFormBoundaryoRWIb3busvBrbttO";
        let gecko = "----geckoformboundary4a7acee3709293e183ef2932a147a331";
        for boundary in [webkit, gecko, "---------------------------265001916915724", "x"] {
            let content_type = format!("multipart/form-data; boundary={boundary}");
            assert_eq!(check(&content_type, Ok(boundary)), Flags::default());
        }
        check("Multipart/Form-Data;boundary=x", Ok("x"));
        check("multipart/form-data; boundary=x;", Ok("x"));
    }

    #[test]
    fn a_charset_may_stand_by() {
        for content_type in [
            "multipart/form-data; boundary=----geckoformboundary4a; charset=UTF-8",
            "multipart/form-data; charset=utf-8; boundary=----geckoformboundary4a",
            "multipart/form-data; charset=\"utf-8\"; boundary=----geckoformboundary4a",
        ] {
            let flags = check(content_type, Ok("----geckoformboundary4a"));
            assert_eq!(flags, Flags::default(), "{content_type}");
        }
        let malformed = Err(Fault::BoundaryParameter);
        check("multipart/form-data; boundary=x; charset=\"a;boundary=y\"", malformed);
        check("multipart/form-data; boundary=x; charset=", malformed);
        check("multipart/form-data; boundary=x; foo=bar", malformed);
        check("multipart/form-data; boundary*0=x; boundary=y", malformed);
        check("multipart/form-data; boundary*=utf-8''x", malformed);
    }

    #[test]
    fn oddities_raise_flags() {
        assert!(check("multipart/form-data; boundary=\"x\"", Ok("x")).boundary_quoted);
        assert!(check("multipart/form-data; boundary=\"a,b\"", Ok("a,b")).boundary_quoted);
        assert!(check("multipart/form-data boundary=x", Ok("x")).missing_semicolon);
        for content_type in [
            "multipart/form-data; boundary =x",
            "multipart/form-data; boundary= x",
            "multipart/form-data; boundary\t=\tx",
            "multipart/form-data; boundary=x ; charset=utf-8",
        ] {
            assert!(check(content_type, Ok("x")).boundary_whitespace, "{content_type}");
        }
    }

    #[test]
    fn what_servers_disagree_about_is_refused() {
        let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
        let longer = format!("multipart/form-data; boundary=x{}", ";".repeat(1000));
        for (content_type, fault) in [
            ("", Fault::ContentTypeMissing),
            ("  ", Fault::ContentTypeMissing),
            ("multipart/mixed; boundary=x", Fault::MediaType),
            ("multipart/form-dat", Fault::MediaType),
            ("multipart/form-data", Fault::BoundaryMissing),
            ("multipart/form-data; charset=utf-8", Fault::BoundaryMissing),
            ("multipart/form-datax; boundary=x", Fault::BoundaryMalformed),
            ("multipart/form-data,boundary=x", Fault::BoundaryMalformed),
            ("multipart/form-data;; boundary=x", Fault::BoundaryMalformed),
            ("multipart/form-data; boundary", Fault::BoundaryMalformed),
            ("multipart/form-data; boundary; boundary=x", Fault::BoundaryMalformed),
            ("multipart/form-data; xboundary=x", Fault::BoundaryParameter),
            ("multipart/form-data; boundary x=y", Fault::BoundaryParameter),
            ("multipart/form-data; =y", Fault::BoundaryParameter),
            ("multipart/form-data; boundary=x; boundary=y", Fault::BoundaryRepeated),
            ("multipart/form-data; boundary=x; Boundary=y", Fault::BoundaryCase),
            ("multipart/form-data; BOUNDARY=x", Fault::BoundaryCase),
            ("multipart/form-data; boundary=", Fault::BoundaryEmpty),
            ("multipart/form-data; boundary=\"\"", Fault::BoundaryEmpty),
            ("multipart/form-data; boundary=\"x", Fault::BoundaryQuote),
            ("multipart/form-data; boundary=x\"", Fault::BoundaryQuote),
            ("multipart/form-data; boundary=\"x\"y", Fault::BoundaryQuote),
            ("multipart/form-data; boundary=\"x\\y\"", Fault::BoundaryQuote),
            ("multipart/form-data; boundary=x,y", Fault::BoundaryCharacters),
            ("multipart/form-data; boundary=x boundary=y", Fault::BoundaryCharacters),
            ("multipart/form-data; boundary=xBoundaryy=", Fault::BoundaryContent),
            ("multipart/form-data; boundary=\"x \"", Fault::BoundaryCharacters),
            ("multipart/form-data; boundary=x<y", Fault::BoundaryCharacters),
            ("multipart/form-data; boundary=x\u{e9}", Fault::BoundaryCharacters),
            (long.as_str(), Fault::BoundaryLength),
            (longer.as_str(), Fault::BoundaryLength),
        ] {
            check(content_type, Err(fault));
        }
    }
}
