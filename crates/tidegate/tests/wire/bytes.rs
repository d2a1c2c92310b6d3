//! Bytes as scripts write them and as reports show them.

/// Bytes that a report shows of one transcript before it cuts it.
const SHOWN_MAX: usize = 3_000;

/// The names a case's text may use.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// `$host`: the host of the case's own site; always ten bytes, so that lengths can be written.
    pub host: String,
    /// `$id`: the marker by which the default origin tells cases apart.
    pub id: String,
}

/// Expands the escapes of a script line: `\r \n \t \0 \\ \$ \xNN`, `$host`, `$id` and `${N*text}`.
///
/// `text` inside a repetition may hold escapes but no `}`.
pub(crate) fn expand(text: &str, names: &Names) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '\\' => expand_escape(&rest[1..], &mut bytes)?,
            '$' => expand_name(&rest[1..], names, &mut bytes)?,
            _ => {
                let (literal, after) = rest.split_at(first.len_utf8());
                bytes.extend_from_slice(literal.as_bytes());
                after
            }
        };
    }
    Ok(bytes)
}

fn expand_escape<'a>(rest: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, String> {
    let byte = match rest.as_bytes().first() {
        Some(b'r') => b'\r',
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        Some(b'0') => 0,
        Some(b'\\') => b'\\',
        Some(b'$') => b'$',
        Some(b'x') => {
            let digits = rest.get(1..3).ok_or("\\x wants two hex digits")?;
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| "\\x wants two hex digits")?);
            return Ok(&rest[3..]);
        }
        _ => return Err(format!("unknown escape before {rest:?}")),
    };
    bytes.push(byte);
    Ok(&rest[1..])
}

fn expand_name<'a>(rest: &'a str, names: &Names, bytes: &mut Vec<u8>) -> Result<&'a str, String> {
    if let Some(after) = rest.strip_prefix("host") {
        bytes.extend_from_slice(names.host.as_bytes());
        return Ok(after);
    }
    if let Some(after) = rest.strip_prefix("id") {
        bytes.extend_from_slice(names.id.as_bytes());
        return Ok(after);
    }
    let inner = rest.strip_prefix('{').ok_or("`$` is `$host`, `$id`, `${N*text}` or `\\$`")?;
    let (repetition, after) = inner.split_once('}').ok_or("`${` without `}`")?;
    let (times, text) = repetition.split_once('*').ok_or("`${N*text}` wants a `*`")?;
    let times: usize = times.parse().map_err(|_| format!("{times:?} is no number"))?;
    bytes.extend_from_slice(&expand(text, names)?.repeat(times));
    Ok(after)
}

/// Bytes as text, one line per line feed, everything invisible escaped, and cut when long.
pub(crate) fn show(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes[..bytes.len().min(SHOWN_MAX)].split_inclusive(|&byte| byte == b'\n') {
        text.push_str("    ");
        text.push_str(&line.escape_ascii().to_string());
        text.push('\n');
    }
    if bytes.len() > SHOWN_MAX {
        text.extend(["    … ", &bytes.len().to_string(), " bytes in all\n"]);
    }
    text
}

/// Whether `needle` occurs in `haystack`.
pub(crate) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty() && haystack.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn escapes_expand() {
    #[track_caller]
    fn check(text: &str, expected: &[u8]) {
        let names = Names { host: "a.test".into(), id: "c1".into() };
        assert_eq!(expand(text, &names).unwrap(), expected);
    }
    check("Host: $host", b"Host: a.test");
    check("/$id/x", b"/c1/x");
    check(r"a\r\n\t\0\x0b\\\$", b"a\r\n\t\0\x0b\\$");
    check(r"${3*ab\n}c", b"ab\nab\nab\nc");
    let names = Names { host: String::new(), id: String::new() };
    assert!(expand(r"\q", &names).is_err());
    assert!(expand("$other", &names).is_err());
    assert!(expand("${x*y}", &names).is_err());
}
