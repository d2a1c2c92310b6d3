//! Whether a value is cross-site scripting: the pieces of HTML that run script in some browser.

use memchr::memchr;

use super::html::{Html, Piece, Place};
use super::necessary::xss_possible;

/// What gave a value away as cross-site scripting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// A tag that holds, loads or changes what runs: `script`, `iframe`, `svg` and the like.
    Tag,
    /// An attribute that is a handler of events, binds data, or opens another vocabulary of tags.
    Attribute,
    /// A style.
    Style,
    /// An address that is script or data in itself.
    Address,
    /// A comment that some browsers read as markup.
    Comment,
    /// A document type, which may define entities.
    Doctype,
}

/// What gives `input` away as cross-site scripting, if anything does.
pub fn xss(input: &[u8]) -> Option<Script> {
    if !xss_possible(input) {
        return None;
    }
    find(input, Place::Text).or_else(|| find(input, Place::Tag)).or_else(|| {
        [b'\'', b'"', b'`'].into_iter().find_map(|quote| {
            // Without a quote behind it, all is one value.
            memchr(quote, input)?;
            find(input, Place::Quotes(quote))
        })
    })
}

/// What an attribute's name says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Harmless,
    /// Runs script, whatever the value is.
    Runs,
    Style,
    Address,
    /// The value is the name of another attribute.
    Name,
}

/// Looks at `input` as it would be read in a page at `place`.
fn find(input: &[u8], place: Place) -> Option<Script> {
    let mut html = Html::new(input, place);
    let mut role = Role::Harmless;
    while let Some(piece) = html.next() {
        match piece {
            Piece::Doctype => return Some(Script::Doctype),
            Piece::Tag(name) if is_tag(name) => return Some(Script::Tag),
            Piece::Comment(text) if is_read(text) => return Some(Script::Comment),
            Piece::Tag(_) | Piece::Comment(_) => {}
            Piece::Attribute(name) => role = self::role(name),
            Piece::Value(value) => match role {
                Role::Runs => return Some(Script::Attribute),
                Role::Style => return Some(Script::Style),
                Role::Address if is_script(value) => return Some(Script::Address),
                Role::Name if self::role(value) != Role::Harmless => {
                    return Some(Script::Attribute);
                }
                Role::Harmless | Role::Address | Role::Name => {}
            },
        }
    }
    None
}

/// Whether a tag runs script, or changes what other tags do.
fn is_tag(name: &[u8]) -> bool {
    let Some(first) = name.first_chunk::<3>() else { return false };
    if first.eq_ignore_ascii_case(b"SVG") || first.eq_ignore_ascii_case(b"XSL") {
        return true;
    }
    matches!(
        Capitals::of(name).as_bytes(),
        b"APPLET"
            | b"BASE"
            | b"COMMENT"
            | b"EMBED"
            | b"FRAME"
            | b"FRAMESET"
            | b"HANDLER"
            | b"IFRAME"
            | b"IMPORT"
            | b"ISINDEX"
            | b"LINK"
            | b"LISTENER"
            | b"META"
            | b"NOSCRIPT"
            | b"OBJECT"
            | b"SCRIPT"
            | b"STYLE"
            | b"VMLFRAME"
            | b"XML"
            | b"XSS"
    )
}

/// What an attribute of this name takes.
fn role(name: &[u8]) -> Role {
    if let Some((on, event)) = name.split_first_chunk::<2>()
        && on.eq_ignore_ascii_case(b"ON")
        && begins_with_event(event)
    {
        return Role::Runs;
    }
    if let Some(first) = name.first_chunk::<5>()
        && (first.eq_ignore_ascii_case(b"XMLNS") || first.eq_ignore_ascii_case(b"XLINK"))
    {
        return Role::Runs;
    }
    if name.len() < 2 {
        return Role::Harmless;
    }
    match Capitals::of(name).as_bytes() {
        b"ACTION" | b"BACKGROUND" | b"BY" | b"DYNSRC" | b"FOLDER" | b"FORMACTION" | b"FROM"
        | b"HANDLER" | b"HREF" | b"LOWSRC" | b"POSTER" | b"SRC" | b"TO" | b"VALUES"
        | b"XLINK:HREF" => Role::Address,
        b"FILTER" | b"STYLE" => Role::Style,
        b"DATAFORMATAS" | b"DATASRC" => Role::Runs,
        b"ATTRIBUTENAME" => Role::Name,
        _ => Role::Harmless,
    }
}

/// Whether a comment's text is markup to some browser, past or present.
fn is_read(text: &[u8]) -> bool {
    let begins =
        |word: &[u8]| text.len() >= word.len() && text[..word.len()].eq_ignore_ascii_case(word);
    // A tick ends a comment; conditional comments are tags; <?import, <?xml and <!entity act.
    memchr(b'`', text).is_some()
        || text.len() > 3 && (begins(b"[IF") || begins(b"XML"))
        || begins(b"IMPORT")
        || begins(b"ENTITY")
}

/// Whether an address begins with a scheme that is script or data, in whatever disguise browsers see
/// through.
fn is_script(address: &[u8]) -> bool {
    const SCHEMES: [&[u8]; 4] = [b"DATA", b"JAVA", b"VBSCRIPT", b"VIEW-SOURCE"];
    let start = address.iter().position(|&byte| matches!(byte, b'!'..=b'~'));
    let mut rest = &address[start.unwrap_or(address.len())..];
    let mut seen = Capitals::of(b"");
    while !rest.is_empty() && !seen.is_full() {
        let (code, len) = decode(rest);
        rest = &rest[len..];
        // White space and controls before the scheme are passed over, NUL and line feeds anywhere.
        if seen.as_bytes().is_empty() && code <= 32 || code == 0 || code == 10 {
            continue;
        }
        let code = if (97..=122).contains(&code) { code - 32 } else { code };
        // libinjection compares the lowest byte of a character.
        seen.push((code & 0xff) as u8);
        if !SCHEMES.iter().any(|scheme| scheme.starts_with(seen.as_bytes())) {
            return false;
        }
        if SCHEMES.contains(&seen.as_bytes()) {
            return true;
        }
    }
    false
}

/// The character at the beginning of `text`, which is not empty: a byte, or a character reference in
/// figures, whose semicolon may be missing. The length that it takes up comes with it.
fn decode(text: &[u8]) -> (u32, usize) {
    const LARGEST: u32 = 0x10_00ff;
    let (radix, from) = match text {
        [b'&', b'#', b'x' | b'X', figure, ..] if figure.is_ascii_hexdigit() => (16, 3),
        [b'&', b'#', b'0'..=b'9', ..] => (10, 2),
        _ => return (u32::from(text[0]), 1),
    };
    let mut code = 0;
    for (at, &byte) in text.iter().enumerate().skip(from) {
        match char::from(byte).to_digit(radix) {
            Some(figure) => code = code * radix + figure,
            None => return (code, at + usize::from(byte == b';')),
        }
        if code > LARGEST {
            return (u32::from(b'&'), 1);
        }
    }
    (code, text.len())
}

/// A name in capitals and without NUL, up to its sixteenth byte. No name that matters is as long.
struct Capitals {
    bytes: [u8; 16],
    len: usize,
}

impl Capitals {
    fn of(name: &[u8]) -> Self {
        let mut capitals = Self { bytes: [0; 16], len: 0 };
        for &byte in name {
            if capitals.is_full() {
                break;
            }
            if byte != 0 {
                capitals.push(byte.to_ascii_uppercase());
            }
        }
        capitals
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn is_full(&self) -> bool {
        self.len == self.bytes.len()
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

static LIST: &[u8] = include_bytes!("../../data/libinjection/events.txt");
const COUNT: usize = events(&mut [b""; EVENTS_MAX]);
const EVENTS_MAX: usize = 512;
/// The events that no other event is the beginning of, in order.
static EVENTS: [&[u8]; COUNT] = {
    let mut all: [&[u8]; EVENTS_MAX] = [b""; EVENTS_MAX];
    events(&mut all);
    let mut events: [&[u8]; COUNT] = [b""; COUNT];
    let mut at = 0;
    while at < COUNT {
        events[at] = all[at];
        at += 1;
    }
    events
};

/// Whether `name` begins with an event, in any case.
fn begins_with_event(name: &[u8]) -> bool {
    // Of names none of which begins another, only the last one not behind `name` can begin it.
    let behind = EVENTS.partition_point(|event| {
        let capitals = name.iter().map(u8::to_ascii_uppercase);
        event.iter().copied().le(capitals)
    });
    behind > 0 && {
        let event = EVENTS[behind - 1];
        name.len() >= event.len() && name[..event.len()].eq_ignore_ascii_case(event)
    }
}

/// Reads the list into `events`, but for those that begin with another event. How many there are.
const fn events(events: &mut [&'static [u8]; EVENTS_MAX]) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < LIST.len() {
        let mut end = at;
        while LIST[end] != b'\n' {
            end += 1;
        }
        let event = LIST.split_at(end).0.split_at(at).1;
        if event[0] != b'#' && (count == 0 || !begins(event, events[count - 1])) {
            events[count] = event;
            count += 1;
        }
        at = end + 1;
    }
    count
}

const fn begins(text: &[u8], with: &[u8]) -> bool {
    let mut at = 0;
    while at < with.len() {
        if at == text.len() || text[at] != with[at] {
            return false;
        }
        at += 1;
    }
    true
}
