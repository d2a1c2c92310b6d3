//! The header of a part: lines to fields.

use memchr::memchr;

use super::fault::Fault;
use super::flags::Flags;

/// The header of the current part so far.
#[derive(Debug)]
pub(super) struct Header {
    /// All fields behind each other, folded ones joined.
    text: Vec<u8>,
    /// Where each ends in `text`.
    ends: Vec<usize>,
    fields_max: usize,
    field_bytes_max: usize,
}

impl Header {
    pub(super) fn new(fields_max: u32, field_bytes_max: usize) -> Self {
        Self {
            text: Vec::new(),
            ends: Vec::new(),
            fields_max: fields_max as usize,
            field_bytes_max,
        }
    }

    pub(super) fn field_bytes_max(&self) -> usize {
        self.field_bytes_max
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// The fields as they came, without line ends.
    pub(super) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.field(index))
    }

    /// The value of the field of that name, in any case.
    pub(super) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields().find_map(|field| {
            let (found, value) = split(field);
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// Takes a line without its end, no longer than a field may be.
    pub(super) fn line(&mut self, line: &[u8], flags: &mut Flags) -> Result<(), Fault> {
        if memchr(0, line).is_some() {
            return Err(Fault::HeaderNul);
        }
        // Some readers end a line at a lone CR.
        if memchr(b'\r', line).is_some() {
            return Err(Fault::HeaderCharacter);
        }
        let content = line.iter().position(|byte| !is_space(*byte)).unwrap_or(line.len());
        if content > 0 { self.folded(line, content, flags) } else { self.field_line(line) }
    }

    fn folded(&mut self, line: &[u8], content: usize, flags: &mut Flags) -> Result<(), Fault> {
        let (space, content) = line.split_at(content);
        flags.header_folding = true;
        flags.invalid_header_folding |= space.iter().any(|byte| !matches!(byte, b' ' | b'\t'));
        let last = self.ends.len().checked_sub(1).ok_or(Fault::HeaderFolding)?;
        if self.field(last).len() + 1 + content.len() > self.field_bytes_max {
            return Err(Fault::HeaderLength);
        }
        self.text.push(b' ');
        self.text.extend_from_slice(content);
        self.ends[last] = self.text.len();
        Ok(())
    }

    fn field_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        let colon = memchr(b':', line).ok_or(Fault::HeaderColon)?;
        let name = &line[..colon];
        if name.is_empty() {
            return Err(Fault::HeaderName);
        }
        if !name.iter().all(u8::is_ascii_graphic) {
            return Err(Fault::HeaderCharacter);
        }
        if self.value(name).is_some() {
            return Err(Fault::HeaderRepeated);
        }
        if self.ends.len() == self.fields_max {
            return Err(Fault::HeaderCount);
        }
        self.text.extend_from_slice(line);
        self.ends.push(self.text.len());
        Ok(())
    }

    fn field(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

/// Name and value of a field, which has a colon.
fn split(field: &[u8]) -> (&[u8], &[u8]) {
    let colon = memchr(b':', field).unwrap_or(field.len());
    let value = field.get(colon + 1..).unwrap_or_default();
    let blanks = value.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    (&field[..colon], &value[blanks..])
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> (Header, Result<(), Fault>, Flags) {
        let mut header = Header::new(3, 16);
        let mut flags = Flags::default();
        let result = lines.iter().try_for_each(|line| header.line(line.as_bytes(), &mut flags));
        (header, result, flags)
    }

    #[test]
    fn fields() {
        let (header, result, flags) = read(&["A: b", "Content-X:\t c ", "d:"]);
        assert_eq!(result, Ok(()));
        assert_eq!(flags, Flags::default());
        let fields: Vec<_> = header.fields().collect();
        assert_eq!(fields, [&b"A: b"[..], b"Content-X:\t c ", b"d:"]);
        assert_eq!(header.value(b"a"), Some(&b"b"[..]));
        assert_eq!(header.value(b"content-x"), Some(&b"c "[..]));
        assert_eq!(header.value(b"D"), Some(&b""[..]));
        assert_eq!(header.value(b"e"), None);
    }

    #[test]
    fn folding() {
        let (header, result, flags) = read(&["A: b", " \tc", "d: e", "\x0bf"]);
        assert_eq!(result, Ok(()));
        assert!(flags.header_folding && flags.invalid_header_folding);
        assert_eq!(header.fields().collect::<Vec<_>>(), [b"A: b c", b"d: e f"]);

        let (_, result, flags) = read(&["A: b", " c"]);
        assert_eq!(result, Ok(()));
        assert!(flags.header_folding && !flags.invalid_header_folding);
    }

    #[test]
    fn what_no_header_has() {
        for (lines, fault) in [
            (&["a: b\0"][..], Fault::HeaderNul),
            (&["a: b\rc: d"], Fault::HeaderCharacter),
            (&["a"], Fault::HeaderColon),
            (&[": b"], Fault::HeaderName),
            (&["a b: c"], Fault::HeaderCharacter),
            (&["a\x0e: c"], Fault::HeaderCharacter),
            (&["a\x7f: c"], Fault::HeaderCharacter),
            (&["\u{e9}: c"], Fault::HeaderCharacter),
            (&[" a: b"], Fault::HeaderFolding),
            (&["a: b", "A: c"], Fault::HeaderRepeated),
            (&["a: b", "c:", "d:", "e:"], Fault::HeaderCount),
            (&["a: bcdefgh", " ijklmno"], Fault::HeaderLength),
        ] {
            assert_eq!(read(lines).1, Err(fault), "{lines:?}");
        }
    }
}
