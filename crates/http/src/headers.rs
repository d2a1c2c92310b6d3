//! Header fields of one message, in order, in one arena.
//!
//! All names and values of a message lie in one buffer that is recycled with the message, so a head
//! costs no allocation per field. Well-known names are recognised once, when a field is added; from
//! then on a look-up compares a byte, and a bit set answers "not there" without looking at all.
//!
//! The arena does not judge its content: [`crate::field`] does, and the parsers and the translation
//! from HTTP/2 call it before a field is added.

use crate::field::{self, Known};
use crate::write;
use std::ops::Range;

/// The fields of one message, in the order in which they came.
#[derive(Debug, Default)]
pub struct Headers {
    text: Vec<u8>,
    fields: Vec<Field>,
    present: u64,
    names: Names,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    known: Known,
    line: Line,
    name_len: u16,
    name_at: u32,
    value_at: u32,
    value_len: u32,
}

impl Field {
    /// The place behind the line's CRLF; only of [`Line::AsWritten`].
    fn line_end(&self) -> usize {
        (self.value_at + self.value_len) as usize + b"\r\n".len()
    }
}

/// What the names of a message's fields are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Names {
    /// Letters, digits and `-`.
    #[default]
    Plain,
    /// Other signs, too, or they were there once.
    Odd,
}

/// How a field lies in the arena. Fields that are added one by one lie as written, so that those which
/// stay together leave together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// As the line that would be written for it: `name: value` and CRLF.
    AsWritten,
    /// In any other way.
    Parts,
}

/// One field, borrowed from its [`Headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRef<'a> {
    /// The recognised name, or [`Known::Other`].
    pub known: Known,
    /// The name as it came; compare it case-insensitively.
    pub name: &'a [u8],
    /// The value without surrounding white space.
    pub value: &'a [u8],
}

impl Headers {
    /// An empty set of fields; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.fields.clear();
        self.present = 0;
        self.names = Names::Plain;
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Bytes of memory held for names and values, in use or not.
    pub fn capacity_bytes(&self) -> usize {
        self.text.capacity() + self.fields.capacity() * size_of::<Field>()
    }

    /// Adds a field at the end. The caller has checked name and value with [`crate::field`].
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_as(Known::of(name), name, value);
    }

    /// Adds a field with a well-known name at the end.
    pub fn push_known(&mut self, known: Known, value: &[u8]) {
        self.push_as(known, known.name().as_bytes(), value);
    }

    /// Adds a field that lies in lines which are going to be adopted; the places count from their
    /// start, and the name is no longer than [`field::NAME_BYTES_MAX`].
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a head is limited to a few hundred KB, and asking each time costs"
    )]
    pub(crate) fn push_within(
        &mut self,
        known: Known,
        line: Line,
        name: Range<usize>,
        value: Range<usize>,
    ) {
        let base = self.text.len();
        self.present |= known.place();
        self.fields.push(Field {
            known,
            line,
            name_len: (name.end - name.start) as u16,
            name_at: (base + name.start) as u32,
            value_at: (base + value.start) as u32,
            value_len: (value.end - value.start) as u32,
        });
    }

    /// Takes the text of field lines whose fields [`Headers::push_within`] has added.
    pub(crate) fn adopt(&mut self, lines: &[u8]) {
        self.text.extend_from_slice(lines);
    }

    /// Remembers that a name holds signs that [`crate::field::is_plain`] does not know.
    pub(crate) fn note_odd_name(&mut self) {
        self.names = Names::Odd;
    }

    fn push_as(&mut self, known: Known, name: &[u8], value: &[u8]) {
        if known == Known::Other && !field::is_plain(name) {
            self.note_odd_name();
        }
        self.text.reserve(name.len() + value.len() + 4);
        let name_at = offset(self.text.len());
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(b": ");
        let value_at = offset(self.text.len());
        self.text.extend_from_slice(value);
        self.text.extend_from_slice(b"\r\n");
        self.present |= known.bit();
        self.fields.push(Field {
            known,
            line: Line::AsWritten,
            name_len: name_len(name.len()),
            name_at,
            value_at,
            value_len: offset(value.len()),
        });
    }

    /// The known name that the name of a field here looks like; see [`field::look_alike`]. Costs
    /// nothing where all names are of letters, digits and `-`.
    pub fn look_alike(&self) -> Option<Known> {
        match self.names {
            Names::Plain => None,
            Names::Odd => self.iter().find_map(|field| field::look_alike(field.name)),
        }
    }

    /// Writes the lines of all fields that `keeps` says, in order; of those with a name that is not
    /// well known, `keeps_name` has its say, too.
    ///
    /// Lines that came in the very form in which they leave are copied together.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        keeps: impl Fn(Known) -> bool,
        keeps_name: impl Fn(&[u8]) -> bool,
    ) {
        let mut run = 0..0;
        for field in &self.fields {
            let known = field.known;
            if !keeps(known) || (known == Known::Other && !keeps_name(name_in(&self.text, field))) {
                continue;
            }
            let start = field.name_at as usize;
            debug_assert!(field::is_name(name_in(&self.text, field)));
            debug_assert!(field::is_value(self.value(field)));
            if field.line == Line::AsWritten && start == run.end {
                run.end = field.line_end();
                continue;
            }
            if !run.is_empty() {
                out.extend_from_slice(&self.text[run]);
            }
            if field.line == Line::AsWritten {
                run = start..field.line_end();
            } else {
                run = 0..0;
                write::field(out, name_in(&self.text, field), self.value(field));
            }
        }
        out.extend_from_slice(&self.text[run]);
    }

    /// Whether a field with this name is there.
    pub fn has(&self, known: Known) -> bool {
        self.present & known.bit() != 0
    }

    /// The first value of a well-known field.
    pub fn first(&self, known: Known) -> Option<&[u8]> {
        if !self.has(known) {
            return None;
        }
        self.fields.iter().find(|field| field.known == known).map(|field| self.value(field))
    }

    /// All values of a well-known field, in order.
    pub fn all(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        let fields = if self.has(known) { self.fields.as_slice() } else { &[] };
        fields.iter().filter(move |field| field.known == known).map(|field| self.value(field))
    }

    /// All values of the field with this name, whatever its case.
    pub fn named<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// All fields in order.
    pub fn iter(&self) -> impl Iterator<Item = FieldRef<'_>> {
        self.fields.iter().map(|field| self.field(field))
    }

    /// Removes all fields with a well-known name.
    pub fn remove(&mut self, known: Known) {
        if self.has(known) {
            self.fields.retain(|field| field.known != known);
            self.present &= !known.bit();
        }
    }

    /// Removes all fields with this name, whatever its case.
    pub fn remove_named(&mut self, name: &[u8]) {
        match Known::of(name) {
            Known::Other => {
                let text = &self.text;
                self.fields.retain(|field| {
                    field.known != Known::Other || !name_in(text, field).eq_ignore_ascii_case(name)
                });
            }
            known => self.remove(known),
        }
    }

    /// Puts one field in the place of all that have this name.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.remove_named(name);
        self.push(name, value);
    }

    /// Puts one well-known field in the place of all that have this name.
    pub fn set_known(&mut self, known: Known, value: &[u8]) {
        self.remove(known);
        self.push_known(known, value);
    }

    fn field(&self, field: &Field) -> FieldRef<'_> {
        FieldRef { known: field.known, name: name_in(&self.text, field), value: self.value(field) }
    }

    fn value(&self, field: &Field) -> &[u8] {
        within(&self.text, field.value_at, field.value_len as usize)
    }
}

/// By hand, for [`Clone::clone_from`]: what is derived would not keep the memory.
impl Clone for Headers {
    fn clone(&self) -> Self {
        Self {
            text: self.text.clone(),
            fields: self.fields.clone(),
            present: self.present,
            names: self.names,
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.text.clone_from(&source.text);
        self.fields.clone_from(&source.fields);
        self.present = source.present;
        self.names = source.names;
    }
}

fn name_in<'a>(text: &'a [u8], field: &Field) -> &'a [u8] {
    within(text, field.name_at, field.name_len as usize)
}

/// A part of the arena. All parts are in it; where one is not asked for, saying what would become of
/// one that is not costs nothing, unlike a panic.
fn within(text: &[u8], at: u32, len: usize) -> &[u8] {
    let at = at as usize;
    text.get(at..at + len).unwrap_or_default()
}

/// Heads are limited to a few hundred KB long before this could saturate.
fn offset(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Names are limited by [`crate::field::NAME_BYTES_MAX`].
fn name_len(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_and_their_case() {
        let mut headers = Headers::new();
        headers.push(b"X-One", b"1");
        headers.push(b"HOST", b"a");
        headers.push(b"x-one", b"2");
        let seen: Vec<_> = headers.iter().map(|field| (field.name, field.value)).collect();
        assert_eq!(seen, [(&b"X-One"[..], &b"1"[..]), (b"HOST", b"a"), (b"x-one", b"2")]);
        assert_eq!(headers.first(Known::Host), Some(&b"a"[..]));
        assert_eq!(headers.named(b"X-ONE").collect::<Vec<_>>(), [b"1", b"2"]);
    }

    #[test]
    fn set_replaces_and_remove_forgets() {
        let mut headers = Headers::new();
        headers.push(b"X-One", b"1");
        headers.push(b"x-one", b"2");
        headers.set(b"X-one", b"3");
        headers.set_known(Known::Host, b"a");
        assert_eq!(headers.named(b"x-one").collect::<Vec<_>>(), [b"3"]);
        headers.remove(Known::Host);
        assert!(!headers.has(Known::Host));
        assert_eq!(headers.len(), 1);
    }
}
