//! `Content-Disposition` of a part (RFC 7578 section 4.2): its name and its file's name.
//!
//! Read as ModSecurity does, in lower case only and without spaces around `=` (which ModSecurity
//! allows), as other readers find other names there. `filename*` (RFC 8187) has no place in a form
//! (RFC 7578) but some servers read it, so it is read too and given beside the plain name, without
//! which it is refused.

use std::fmt;

use super::flags::Flags;
use crate::body::urlencoded::hex_digit;

/// What a part is called.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Disposition {
    pub(super) name: Option<Vec<u8>>,
    pub(super) filename: Option<Vec<u8>>,
    pub(super) filename_extended: Option<Vec<u8>>,
}

/// What is wrong with it; shown as ModSecurity's numbers, which are all that its messages tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Another disposition than `form-data`.
    Type,
    /// Something other than a semicolon behind it.
    Separator,
    /// Nothing behind a semicolon and a space.
    ParameterMissing,
    /// A parameter without `=`, or with spaces before it.
    Equals,
    /// Nothing behind `=`, or spaces.
    ValueMissing,
    /// A quoted value that does not end.
    Unclosed,
    /// A parameter that a form does not have.
    Parameter,
    /// Something behind a value.
    AfterValue,
    /// Two names.
    NameRepeated,
    /// Two file names.
    FilenameRepeated,
    /// A `filename*` that is not `UTF-8''` or `ISO-8859-1''` and a percent-encoded name.
    Extended,
    /// Two of them.
    ExtendedRepeated,
    /// One without `filename`.
    ExtendedAlone,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Type => "-1",
            Self::Separator => "-2",
            Self::ParameterMissing => "-3",
            Self::Equals => "-13",
            Self::ValueMissing => "-6",
            Self::Unclosed => "-10",
            Self::Parameter => "-11",
            Self::AfterValue => "-12",
            Self::NameRepeated => "-14",
            Self::FilenameRepeated => "-15",
            Self::Extended => "-16",
            Self::ExtendedRepeated => "-20",
            Self::ExtendedAlone => "-21",
        })
    }
}

impl Disposition {
    /// Reads the value of a `Content-Disposition` field.
    pub(super) fn read(value: &[u8], flags: &mut Flags) -> Result<Self, Fault> {
        let mut read = Self::default();
        let mut rest = skip_blanks(value.strip_prefix(b"form-data").ok_or(Fault::Type)?);
        if !rest.is_empty() {
            rest = rest.strip_prefix(b";").ok_or(Fault::Separator)?;
        }
        while !rest.is_empty() {
            rest = skip_blanks(rest);
            if rest.is_empty() {
                return Err(Fault::ParameterMissing);
            }
            let end = position(rest, |byte| matches!(byte, b'=' | b' ' | b'\t'));
            let (name, behind) = rest.split_at(end);
            rest = behind.strip_prefix(b"=").ok_or(Fault::Equals)?;
            rest = read.parameter(name, rest, flags)?;
            rest = skip_blanks(rest);
            if let Some(behind) = rest.strip_prefix(b";") {
                rest = behind;
            } else if !rest.is_empty() {
                return Err(Fault::AfterValue);
            }
        }
        if read.filename_extended.is_some() && read.filename.is_none() {
            return Err(Fault::ExtendedAlone);
        }
        Ok(read)
    }

    /// Takes a value for `name` from the beginning of `rest`; what is behind it.
    fn parameter<'a>(
        &mut self,
        name: &[u8],
        rest: &'a [u8],
        flags: &mut Flags,
    ) -> Result<&'a [u8], Fault> {
        let (slot, repeated) = match name {
            b"name" => (&mut self.name, Fault::NameRepeated),
            b"filename" => (&mut self.filename, Fault::FilenameRepeated),
            b"filename*" => (&mut self.filename_extended, Fault::ExtendedRepeated),
            _ => return Err(Fault::Parameter),
        };
        let (value, behind) = match rest.first() {
            None | Some(b' ' | b'\t') => return Err(Fault::ValueMissing),
            _ if name == b"filename*" => extended(rest)?,
            Some(&quote @ (b'"' | b'\'')) => {
                flags.invalid_quoting |= quote == b'\'';
                quoted(&rest[1..], quote)?
            }
            Some(_) => {
                let (value, behind) = rest.split_at(position(rest, |byte| !is_token(byte)));
                if value.is_empty() {
                    return Err(Fault::ValueMissing);
                }
                flags.invalid_quoting |= value.contains(&b'\'');
                (value.to_vec(), behind)
            }
        };
        // A quote directly behind a value is the end of some other reading of it.
        flags.invalid_quoting |= matches!(behind.first(), Some(b'"' | b'\''));
        if slot.replace(value).is_some() {
            return Err(repeated);
        }
        Ok(behind)
    }
}

/// A quoted value from behind its opening quote. Only the quote and the backslash can be escaped;
/// other backslashes stay, as in the paths that old browsers send.
fn quoted(text: &[u8], quote: u8) -> Result<(Vec<u8>, &[u8]), Fault> {
    let mut value = Vec::with_capacity(text.len().min(64));
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte == quote {
            return Ok((value, rest));
        }
        match (byte, rest.first()) {
            (b'\\', Some(&escaped)) if escaped == quote || escaped == b'\\' => {
                value.push(escaped);
                rest = &rest[1..];
            }
            _ => value.push(byte),
        }
    }
    Err(Fault::Unclosed)
}

/// A value of RFC 8187: charset, language, and a name in percent-encoding.
fn extended(text: &[u8]) -> Result<(Vec<u8>, &[u8]), Fault> {
    let (text, behind) = text.split_at(position(text, |byte| matches!(byte, b';' | b' ' | b'\t')));
    let mut thirds = text.splitn(3, |&byte| byte == b'\'');
    let (Some(charset), Some(language), Some(encoded)) =
        (thirds.next(), thirds.next(), thirds.next())
    else {
        return Err(Fault::Extended);
    };
    let known = [&b"utf-8"[..], b"iso-8859-1"];
    let is_language = |&byte: &u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !known.iter().any(|known| charset.eq_ignore_ascii_case(known))
        || !language.iter().all(is_language)
    {
        return Err(Fault::Extended);
    }
    let mut value = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'%' => {
                let digits = rest.first_chunk::<2>().ok_or(Fault::Extended)?;
                let [high, low] = digits.map(hex_digit);
                let byte = high.zip(low).map(|(high, low)| high << 4 | low);
                // A NUL would end the name early for some.
                value.push(byte.filter(|&byte| byte != 0).ok_or(Fault::Extended)?);
                rest = &rest[2..];
            }
            // RFC 8187 section 3.2.1: attr-char.
            byte if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) => {
                value.push(byte);
            }
            _ => return Err(Fault::Extended),
        }
    }
    Ok((value, behind))
}

/// RFC 2045 section 5.1.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte)
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    &text[position(text, |byte| !matches!(byte, b' ' | b'\t'))..]
}

fn position(text: &[u8], is: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|&byte| is(byte)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, name: Option<&str>, filename: Option<&str>) -> Flags {
        let mut flags = Flags::default();
        let read = Disposition::read(value.as_bytes(), &mut flags);
        let bytes = |text: &str| text.as_bytes().to_vec();
        let expected = Disposition {
            name: name.map(bytes),
            filename: filename.map(bytes),
            filename_extended: None,
        };
        assert_eq!(read, Ok(expected), "{value}");
        flags
    }

    #[test]
    fn names() {
        for (value, name, filename) in [
            ("form-data", None, None),
            ("form-data ", None, None),
            ("form-data; name=\"a\"", Some("a"), None),
            ("form-data;name=a", Some("a"), None),
            ("form-data; name=a;", Some("a"), None),
            ("form-data; name=\"a\" ; filename=\"b.txt\" ", Some("a"), Some("b.txt")),
            ("form-data; filename=b.txt; name=\"\"", Some(""), Some("b.txt")),
            ("form-data; name=\"a\"; filename=\"\"", Some("a"), Some("")),
            ("form-data; name=\"a b; c=d\"", Some("a b; c=d"), None),
            (r#"form-data; name="a\"b\\c""#, Some(r#"a"b\c"#), None),
            (r#"form-data; name=a; filename="C:\x\y.txt""#, Some("a"), Some(r"C:\x\y.txt")),
            ("form-data; name=\"it's\"", Some("it's"), None),
            ("form-data; name=\"\u{e9}\"", Some("\u{e9}"), None),
        ] {
            assert_eq!(check(value, name, filename), Flags::default(), "{value}");
        }
    }

    #[test]
    fn single_quotes_are_flagged() {
        for (value, name) in [
            ("form-data; name='a'", "a"),
            ("form-data; name='a\"b'", "a\"b"),
            ("form-data; name=it's", "it's"),
        ] {
            assert!(check(value, Some(name), None).invalid_quoting, "{value}");
        }
    }

    #[test]
    fn extended_names() {
        let read = |value: &str| Disposition::read(value.as_bytes(), &mut Flags::default());
        for (value, expected) in [
            ("UTF-8''a%20%c3%a9.txt", "a \u{e9}.txt"),
            ("utf-8'en'a.txt", "a.txt"),
            ("ISO-8859-1''%2e%2e%2fa", "../a"),
        ] {
            let read = read(&format!("form-data; name=n; filename=\"f\"; filename*={value}"));
            let found = read.map(|read| read.filename_extended);
            assert_eq!(found, Ok(Some(expected.as_bytes().to_vec())), "{value}");
        }
        for value in [
            "a.txt",
            "UTF-8'a.txt",
            "utf-16''a",
            "''a",
            "UTF-8'?'a",
            "UTF-8''%4",
            "UTF-8''%zz",
            "UTF-8''a\"b",
            "UTF-8''a'b",
            "\"UTF-8''a\"",
            "UTF-8''%00",
        ] {
            let read = read(&format!("form-data; name=n; filename=\"f\"; filename*={value}"));
            assert_eq!(read, Err(Fault::Extended), "{value}");
        }
        assert_eq!(read("form-data; name=n; filename*=UTF-8''a"), Err(Fault::ExtendedAlone));
    }

    #[test]
    fn what_servers_disagree_about_is_refused() {
        for (value, fault) in [
            ("", Fault::Type),
            ("Form-Data; name=a", Fault::Type),
            ("attachment; name=a", Fault::Type),
            ("form-datax; name=a", Fault::Separator),
            ("form-data, name=a", Fault::Separator),
            ("form-data; ", Fault::ParameterMissing),
            ("form-data; name", Fault::Equals),
            ("form-data; name =a", Fault::Equals),
            ("form-data; name= a", Fault::ValueMissing),
            ("form-data; name=", Fault::ValueMissing),
            ("form-data; name=;", Fault::ValueMissing),
            ("form-data; name=\"a", Fault::Unclosed),
            ("form-data; name=\"a\\\"", Fault::Unclosed),
            ("form-data; Name=a", Fault::Parameter),
            ("form-data; name=a; size=3", Fault::Parameter),
            ("form-data; name*=utf-8''a", Fault::Parameter),
            ("form-data; name*0=a", Fault::Parameter),
            ("form-data; name=\"a\"b", Fault::AfterValue),
            ("form-data; name=\"a\"\"b\"", Fault::AfterValue),
            ("form-data; name=a b", Fault::AfterValue),
            ("form-data; name=a; name=b", Fault::NameRepeated),
            ("form-data; name=\"\"; name=b", Fault::NameRepeated),
            ("form-data; name=a; filename=a; filename=b", Fault::FilenameRepeated),
        ] {
            let mut flags = Flags::default();
            assert_eq!(Disposition::read(value.as_bytes(), &mut flags), Err(fault), "{value}");
        }
    }
}
