//! Variables as lines of text, for bulk loads: JSON objects or comma-separated values.
//!
//! ```text
//! {"collection": "ip", "key": "203.0.113.7", "name": "blocked", "value": 1, "ttl": 3600}
//! ip,203.0.113.7,blocked,1,3600
//! ```
//!
//! A line that begins with `{` is an object, others are values; both may stand in one text. Empty
//! lines and those that begin with `#` are passed over. A value in double quotes may hold commas,
//! and quotes that are doubled (RFC 4180), but no line end. `ttl` is in seconds, or `forever`; without it a
//! variable is kept as long as its record.

use std::ops::Range;

use serde_json::Value as Json;
use tidegate_waf::context::{Collection, Entry, Lifetime, Record, Settings};

/// Mistakes that are told of; whoever has more has made one mistake many times.
const MISTAKES_MAX: usize = 20;

/// Variables as they come in, each in a few bytes more than its text.
#[derive(Debug)]
pub(crate) struct Lines {
    limits: Settings,
    now_ms: u64,
    /// The beginning of a line that is not whole yet.
    rest: Vec<u8>,
    line: u32,
    /// Keys, names and values, one behind the other.
    bytes: Vec<u8>,
    entries: Vec<Packed>,
    mistakes: Vec<Mistake>,
}

#[derive(Debug)]
struct Packed {
    collection: Collection,
    start: usize,
    key: u32,
    name: u32,
    value: u32,
    line: u32,
    lifetime: Lifetime,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Which, from 1.
    pub(crate) line: u32,
    /// Where in it, in bytes from 1.
    pub(crate) column: usize,
    /// What was expected.
    pub(crate) what: String,
}

/// One variable of a line, before it is packed.
struct Fields<'a> {
    collection: Collection,
    key: &'a [u8],
    name: &'a [u8],
    value: &'a [u8],
    lifetime: Lifetime,
}

impl Lines {
    /// Nothing yet; what comes is held against these limits.
    pub(crate) fn new(limits: &Settings, now_ms: u64) -> Lines {
        Lines {
            limits: limits.clone(),
            now_ms,
            rest: Vec::new(),
            line: 0,
            bytes: Vec::new(),
            entries: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    /// Takes a piece of the text, cut anywhere.
    pub(crate) fn feed(&mut self, mut piece: &[u8]) {
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            if self.rest.is_empty() {
                self.take(&piece[..end]);
            } else {
                let mut line = std::mem::take(&mut self.rest);
                line.extend_from_slice(&piece[..end]);
                self.take(&line);
                line.clear();
                self.rest = line;
            }
            piece = &piece[end + 1..];
        }
        // A line without an end is held no further than the longest that could be right.
        let room = self.line_bytes_max().saturating_add(1).saturating_sub(self.rest.len());
        self.rest.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Ends the text. The mistakes, if there are any.
    pub(crate) fn finish(&mut self) -> &[Mistake] {
        if !self.rest.is_empty() {
            let line = std::mem::take(&mut self.rest);
            self.take(&line);
        }
        &self.mistakes
    }

    /// How many variables there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }

    /// The line of an entry, by its number.
    pub(crate) fn line_of(&self, entry: usize) -> u32 {
        self.entries.get(entry).map_or(0, |packed| packed.line)
    }

    /// The variables, in their order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> + Clone {
        self.entries.iter().map(|packed| {
            let (key, name) = (packed.key as usize, packed.name as usize);
            let part = |range: Range<usize>| {
                &self.bytes[packed.start + range.start..packed.start + range.end]
            };
            Entry {
                record: Record::new(packed.collection, part(0..key)),
                name: part(key..key + name),
                value: part(key + name..key + name + packed.value as usize),
                lifetime: packed.lifetime,
            }
        })
    }

    /// JSON may write a byte as `\u00xx`.
    fn line_bytes_max(&self) -> usize {
        let limits = &self.limits;
        (limits.key_bytes_max + limits.name_bytes_max + limits.value_bytes_max) * 6 + 256
    }

    fn take(&mut self, line: &[u8]) {
        self.line = self.line.saturating_add(1);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let begin = line.iter().position(|byte| !matches!(byte, b' ' | b'\t'));
        let Some(begin) = begin.filter(|begin| line[*begin] != b'#') else { return };
        if self.mistakes.len() == MISTAKES_MAX {
            return;
        }
        let taken = if line.len() > self.line_bytes_max() {
            Err((self.line_bytes_max(), "the line is longer than any variable may be".to_owned()))
        } else if line[begin] == b'{' {
            self.take_json(line)
        } else {
            self.take_values(line)
        };
        if let Err((at, what)) = taken {
            self.mistakes.push(Mistake { line: self.line, column: at + 1, what });
        }
    }

    fn take_json(&mut self, line: &[u8]) -> Result<(), (usize, String)> {
        let wrong = |error: &serde_json::Error| {
            let text = error.to_string();
            let text = text.split(" at line ").next().unwrap_or_default().to_owned();
            (error.column().saturating_sub(1), text)
        };
        let object: Json = serde_json::from_slice(line).map_err(|error| wrong(&error))?;
        let known = ["collection", "key", "name", "value", "ttl"];
        let all = object.as_object().into_iter().flatten();
        if let Some((other, _)) = all.into_iter().find(|(key, _)| !known.contains(&key.as_str())) {
            return Err((
                place(line, other),
                format!("`{other}` is not known: {}", known.join(", ")),
            ));
        }
        let text = |key: &str| match &object[key] {
            Json::String(text) => Ok(text.clone()),
            Json::Number(number) if number.is_i64() => Ok(number.to_string()),
            Json::Null => Err((0, format!("`{key}` is missing"))),
            _ => Err((place(line, key), format!("`{key}` must be a text or a whole number"))),
        };
        let (collection, key, name, value) =
            (text("collection")?, text("key")?, text("name")?, text("value")?);
        let collection = collection_named(collection.as_bytes())
            .map_err(|what| (place(line, "collection"), what))?;
        let lifetime = match &object["ttl"] {
            Json::Null => Lifetime::Record,
            _ => {
                self.lifetime(text("ttl")?.as_bytes()).map_err(|what| (place(line, "ttl"), what))?
            }
        };
        let (key, name, value) = (key.as_bytes(), name.as_bytes(), value.as_bytes());
        self.pack(&Fields { collection, key, name, value, lifetime }, |what| place(line, what))
    }

    fn take_values(&mut self, line: &[u8]) -> Result<(), (usize, String)> {
        let mut values: Vec<(usize, Vec<u8>)> = Vec::with_capacity(5);
        let mut at = 0;
        loop {
            let (value, end) = value(line, at)?;
            values.push((at, value));
            match line.get(end) {
                Some(_) if values.len() < 5 => at = end + 1,
                Some(_) => return Err((end, "there are more than five values".into())),
                None => break,
            }
        }
        let [(_, collection), (key_at, key), (name_at, name), (value_at, value), ttl @ ..] =
            values.as_slice()
        else {
            let what = "expected `collection,key,name,value` and perhaps `,ttl`";
            return Err((line.len(), what.into()));
        };
        let collection = collection_named(collection.trim_ascii()).map_err(|what| (0, what))?;
        let lifetime = match ttl {
            [(at, ttl)] if !ttl.is_empty() => self.lifetime(ttl).map_err(|what| (*at, what))?,
            _ => Lifetime::Record,
        };
        self.pack(&Fields { collection, key, name, value, lifetime }, |what| match what {
            "key" => *key_at,
            "name" => *name_at,
            _ => *value_at,
        })
    }

    fn lifetime(&self, ttl: &[u8]) -> Result<Lifetime, String> {
        lifetime(ttl, self.now_ms)
    }

    fn pack(
        &mut self,
        fields: &Fields<'_>,
        place: impl Fn(&'static str) -> usize,
    ) -> Result<(), (usize, String)> {
        let limits = &self.limits;
        let parts = [
            ("key", fields.key, limits.key_bytes_max),
            ("name", fields.name, limits.name_bytes_max),
            ("value", fields.value, limits.value_bytes_max),
        ];
        for (what, bytes, max) in parts {
            if bytes.len() > max {
                let what_is_wrong = format!(
                    "the {what} has {} bytes, and `{what}_max` of [context] allows {max}",
                    bytes.len()
                );
                return Err((place(what), what_is_wrong));
            }
        }
        if fields.key.is_empty() || fields.name.is_empty() {
            let what = if fields.key.is_empty() { "key" } else { "name" };
            return Err((place(what), format!("the {what} is empty")));
        }
        if self.entries.len() >= limits.entries_max || self.bytes.len() > limits.bytes_max {
            // Told once: there is no room for what follows either.
            self.mistakes.truncate(MISTAKES_MAX - 1);
            let what =
                "there are more variables than `entries_max` or `memory_max` of [context] allows";
            return Err((0, what.into()));
        }
        let start = self.bytes.len();
        let small = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let (key, name, value) = (small(fields.key), small(fields.name), small(fields.value));
        self.bytes.extend_from_slice(fields.key);
        // Rules do not care for the case of names.
        self.bytes.extend(fields.name.iter().map(u8::to_ascii_lowercase));
        self.bytes.extend_from_slice(fields.value);
        let (collection, lifetime, line) = (fields.collection, fields.lifetime, self.line);
        self.entries.push(Packed { collection, start, key, name, value, line, lifetime });
        Ok(())
    }
}

/// A collection by its name.
pub(crate) fn collection_named(name: &[u8]) -> Result<Collection, String> {
    Collection::named(name).ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        let names = Collection::ALL.map(Collection::name).join(", ");
        format!("`{}` is not a collection: there are {names}", name.escape_debug())
    })
}

/// A lifetime as people write it: seconds, or `forever`.
pub(crate) fn lifetime(ttl: &[u8], now_ms: u64) -> Result<Lifetime, String> {
    let text = str::from_utf8(ttl).map(str::trim).unwrap_or_default();
    if text == "forever" {
        return Ok(Lifetime::Forever);
    }
    match text.parse::<u64>() {
        Ok(seconds) if seconds > 0 => {
            Ok(Lifetime::Until(now_ms.saturating_add(seconds.saturating_mul(1000))))
        }
        _ => Err("`ttl` must be a number of seconds from 1 on, or `forever`".into()),
    }
}

/// Where a key of an object stands in its line.
fn place(line: &[u8], key: &str) -> usize {
    let quoted = format!("\"{key}\"");
    line.windows(quoted.len()).position(|window| window == quoted.as_bytes()).unwrap_or(0)
}

/// A value at a place of a line, and the place behind it: that of a comma, or the end.
fn value(line: &[u8], at: usize) -> Result<(Vec<u8>, usize), (usize, String)> {
    let rest = &line[at..];
    if rest.first() != Some(&b'"') {
        let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
        if let Some(quote) = rest[..end].iter().position(|byte| *byte == b'"') {
            return Err((at + quote, "a quote within a value: put all of it in quotes".into()));
        }
        return Ok((rest[..end].to_vec(), at + end));
    }
    let mut value = Vec::new();
    let mut next = 1;
    loop {
        let Some(length) = rest[next..].iter().position(|byte| *byte == b'"') else {
            return Err((at, "a quote is never closed".into()));
        };
        value.extend_from_slice(&rest[next..next + length]);
        next += length + 1;
        match rest.get(next) {
            Some(b'"') => {
                value.push(b'"');
                next += 1;
            }
            None | Some(b',') => return Ok((value, at + next)),
            Some(_) => return Err((at + next, "expected a comma behind the closing quote".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], piece: usize) -> Lines {
        let limits = Settings { key_bytes_max: 16, entries_max: 4, ..Settings::default() };
        let mut lines = Lines::new(&limits, 1_000);
        text.chunks(piece).for_each(|piece| lines.feed(piece));
        lines.finish();
        lines
    }

    #[test]
    fn both_forms_are_read_however_they_are_cut() {
        let text =
            b"# a list\n\n{\"collection\":\"ip\",\"key\":\"192.0.2.1\",\"name\":\"Blocked\",\
              \"value\":1,\"ttl\":60}\r\nIP,192.0.2.2,why,\"spam, \"\"ham\"\"\",forever\n  \n\
              global,g,empty,,\nuser,u,n,last";
        for piece in [1, 7, 1000] {
            let lines = read(text, piece);
            assert_eq!(lines.mistakes, []);
            let found: Vec<_> = lines
                .entries()
                .map(|entry| {
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    let Record { collection, key } = entry.record;
                    let (key, name, value) = (text(key), text(entry.name), text(entry.value));
                    (format!("{collection} {key} {name} {value}"), entry.lifetime)
                })
                .collect();
            let expected = [
                ("ip 192.0.2.1 blocked 1", Lifetime::Until(61_000)),
                ("ip 192.0.2.2 why spam, \"ham\"", Lifetime::Forever),
                ("global g empty ", Lifetime::Record),
                ("user u n last", Lifetime::Record),
            ];
            assert_eq!(found, expected.map(|(text, lifetime)| (text.to_owned(), lifetime)));
            assert_eq!((lines.len(), lines.line_of(0), lines.line_of(3)), (4, 3, 7));
        }
    }

    #[test]
    fn mistakes_have_their_place() {
        let check = |line: &str, column: usize, part: &str| {
            let lines = read(format!("\n{line}\n").as_bytes(), 10);
            let found = lines.mistakes.first().unwrap_or_else(|| panic!("{line} is wrong"));
            assert_eq!((found.line, found.column), (2, column), "{line}: {found:?}");
            assert!(found.what.contains(part), "{line}: {found:?}");
            assert_eq!(lines.len(), 0);
        };
        check("tx,a,b,c", 1, "`tx` is not a collection: there are global, ip");
        check("ip,a,b", 7, "expected `collection,key,name,value`");
        check("ip,a,b,c,5,6", 11, "more than five");
        check("ip,,b,c", 4, "the key is empty");
        check("ip,a,,c", 6, "the name is empty");
        check("ip,a,b,c,soon", 10, "number of seconds");
        check("ip,a,b,c,0", 10, "number of seconds");
        check("ip,\"a,b,c", 4, "never closed");
        check("ip,\"a\"x,b,c", 7, "a comma");
        check("ip,a\"x,b,c", 5, "all of it in quotes");
        check("ip,12345678901234567,b,c", 4, "has 17 bytes, and `key_max` of [context] allows 16");
        check("{\"collection\":\"ip\",\"key\":\"a\",\"name\":\"b\"}", 1, "`value` is missing");
        check("{\"collection\":\"ip\",\"kye\":\"a\"}", 20, "`kye` is not known");
        check("{\"collection\":\"ip\"", 18, "EOF");
        check("{\"collection\":\"ip\",\"key\":[],\"name\":\"b\",\"value\":1}", 20, "a text or a");
    }

    #[test]
    fn too_much_is_told_and_held_nowhere() {
        let many = read("ip,a,b,c\n".repeat(100).as_bytes(), 1000);
        assert_eq!(many.len(), 4);
        assert!(many.mistakes[0].what.contains("more variables"), "{:?}", many.mistakes[0]);
        assert_eq!(many.mistakes.len(), MISTAKES_MAX);
        let long = read(&vec![b'x'; 1 << 20], 4096);
        assert!(long.mistakes[0].what.contains("longer than any"), "{:?}", long.mistakes);
        assert!(long.rest.capacity() < 1 << 19);
    }
}
