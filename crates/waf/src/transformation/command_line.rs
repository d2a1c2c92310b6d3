//! Shell commands without their disguises: `cmdLine`.

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
#[expect(clippy::needless_bitwise_bool, reason = "a branch for each byte would cost more")]
pub(super) fn plain(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let Some(start) = first_change(input) else {
        return Outcome::Unchanged;
    };
    output.extend_from_slice(input);
    // Compacted in place and without branches, so that no mixture of bytes is slow.
    let mut length = start;
    let mut after_space = output[..start].ends_with(b" ");
    for at in start..output.len() {
        let byte = output[at];
        let class = CLASSES[usize::from(byte)];
        let separates = class == Class::Separator;
        let closes = class == Class::Closing;
        let drops = class == Class::Dropped;
        length -= usize::from(closes & after_space);
        output[length] = if separates { b' ' } else { byte.to_ascii_lowercase() };
        length += usize::from(!drops & !(separates & after_space));
        after_space = separates | (drops & after_space);
    }
    output.truncate(length);
    Outcome::Written
}

/// The first byte that will not stay as it is.
#[expect(clippy::needless_bitwise_bool, reason = "comparisons without branches become vectors")]
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
    let space_goes = |byte, next| byte == b' ' && (next == b' ' || next == b'/' || next == b'(');
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
