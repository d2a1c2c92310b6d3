//! Shell commands without their disguises: `cmdLine`.
#![expect(clippy::needless_bitwise_bool, reason = "comparisons without branches become vectors")]

use super::{
    Outcome,
    scan::{first, first_pair},
};

/// What a byte does in a command line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// It stays, in lower case.
    Kept,
    /// A quote, caret or backslash: shells drop it, so it goes.
    Dropped,
    /// A separator: a run of them becomes one space.
    Separator,
    /// A slash or an opening parenthesis: it stays, and the space before it goes.
    Closing,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Kept; 256];
    let groups: [(&[u8], Class); 3] =
        [(b"\"'\\^", Class::Dropped), (b" ,;\t\r\n", Class::Separator), (b"/(", Class::Closing)];
    let mut group = 0;
    while group < groups.len() {
        let (mut bytes, class) = groups[group];
        while let [byte, rest @ ..] = bytes {
            classes[*byte as usize] = class;
            bytes = rest;
        }
        group += 1;
    }
    classes
};

/// Drops quotes, carets and backslashes, makes each run of separators one space, removes the space
/// before `/` and `(`, and folds letters to lower case.
///
/// Version 2 of ModSecurity ends at a NUL byte; here, as in version 3, it is a byte like others.
pub(super) fn plain(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let Some(start) = first_change(input) else {
        return Outcome::Unchanged;
    };
    output.extend_from_slice(input);
    output[start..].make_ascii_lowercase();
    let mut line =
        Line { length: start, after_space: output[..start].ends_with(b" "), bytes: output };
    let mut at = start;
    while let Some(&block) = line.bytes[at..].first_chunk::<BLOCK_BYTES>() {
        line.append_block(block);
        at += BLOCK_BYTES;
    }
    for at in at..input.len() {
        let byte = line.bytes[at];
        line.append(byte);
    }
    let length = line.length;
    output.truncate(length);
    Outcome::Written
}

/// The bytes judged together where the line may stay as it is.
const BLOCK_BYTES: usize = 16;

/// A command line made plain in its own place.
struct Line<'a> {
    bytes: &'a mut [u8],
    /// How many of the bytes are plain and in their place.
    length: usize,
    /// Whether the last of them is a space.
    after_space: bool,
}

impl Line<'_> {
    /// Appends bytes in lower case, together where nothing in them changes.
    #[inline]
    fn append_block(&mut self, block: [u8; BLOCK_BYTES]) {
        let joins = self.after_space && matches!(block[0], b' ' | b'/' | b'(');
        if joins || first_change(&block).is_some() {
            for byte in block {
                self.append(byte);
            }
        } else {
            self.bytes[self.length..self.length + BLOCK_BYTES].copy_from_slice(&block);
            self.length += BLOCK_BYTES;
            self.after_space = block[BLOCK_BYTES - 1] == b' ';
        }
    }

    /// Appends a byte in lower case, without branches, so that no mixture of bytes is slow.
    #[inline]
    fn append(&mut self, byte: u8) {
        let class = CLASSES[usize::from(byte)];
        let separates = class == Class::Separator;
        let closes = class == Class::Closing;
        let drops = class == Class::Dropped;
        self.length -= usize::from(closes & self.after_space);
        self.bytes[self.length] = if separates { b' ' } else { byte };
        self.length += usize::from(!drops & !(separates & self.after_space));
        self.after_space = separates | (drops & self.after_space);
    }
}

/// The first byte that will not stay as it is.
#[inline]
fn first_change(input: &[u8]) -> Option<usize> {
    let changes = |byte: u8| {
        byte.is_ascii_uppercase()
            | (byte == b'"')
            | (byte == b'\'')
            | (byte == b'\\')
            | (byte == b'^')
            | (byte == b',')
            | (byte == b';')
            | (byte == b'\t')
            | (byte == b'\r')
            | (byte == b'\n')
    };
    let space_goes =
        |byte, next| (byte == b' ') & ((next == b' ') | (next == b'/') | (next == b'('));
    let alone = first(input, changes);
    let in_pair = first_pair(&input[..alone.unwrap_or(input.len())], space_goes);
    in_pair.or(alone)
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::CmdLine;
    use super::super::tests::check;

    #[test]
    fn plain_commands_stay() {
        check(CmdLine, b"", b"");
        check(CmdLine, b"cat etc/passwd | grep root", b"cat etc/passwd | grep root");
        check(CmdLine, b" ls ", b" ls ");
    }

    #[test]
    fn disguises_go() {
        check(CmdLine, b"c^a\\t \"et'c\"", b"cat etc");
        check(CmdLine, b"CMD.exe", b"cmd.exe");
        check(CmdLine, b"a,;\t\r\n b", b"a b");
        check(CmdLine, b"a  b", b"a b");
        check(CmdLine, b"cat /etc ( x", b"cat/etc( x");
        check(CmdLine, b"a ;\"/b", b"a/b");
        check(CmdLine, b" \"\" \"b", b" b");
        check(CmdLine, b"a\"\"", b"a");
        check(CmdLine, b"a\0\xc3\x84B", b"a\0\xc3\x84b");
        check(CmdLine, b" /", b"/");
        check(CmdLine, b"//(( ", b"//(( ");
    }

    #[test]
    fn a_change_behind_a_space_sees_the_space() {
        check(CmdLine, b"a ,b", b"a b");
        check(CmdLine, b"a \"/b", b"a/b");
        check(
            CmdLine,
            b"a long command that changes at the end ;",
            b"a long command that changes at the end ",
        );
    }
}
