//! Comments: `removeComments`, `removeCommentsChar` and `replaceComments`.
#![expect(clippy::needless_bitwise_bool, reason = "comparisons without branches become vectors")]

use super::{
    Outcome,
    rewrite::Rewrite,
    scan::{self, first_pair},
};

/// Makes each `/* */` comment one space; one that does not end reaches to the end.
pub(super) fn replace(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let mut rewrite = Rewrite::new(input, output);
    let mut at = 0;
    while let Some(start) = next_pair(input, at, *b"/*") {
        at = next_pair(input, start + 2, *b"*/").map_or(input.len(), |end| end + 2);
        rewrite.replace(start, at, b" ");
    }
    rewrite.finish()
}

/// Where these two bytes stand next from `at` on. The second is searched for, which should be the
/// rarer one.
#[inline]
fn next_pair(input: &[u8], at: usize, [first, second]: [u8; 2]) -> Option<usize> {
    let mut from = at + 1;
    loop {
        let found = scan::next(input, from, second)?;
        if input[found - 1] == first {
            return Some(found - 1);
        }
        from = found + 1;
    }
}

/// Removes `/* */` and `<!-- -->` comments, either end closing either, and what follows `--` or `#`.
///
/// Three habits of ModSecurity are kept, which rules and their tests may count on: the byte behind
/// a comment is copied without a look whether it begins another, it is NUL if the value ends there,
/// and a comment that does not end becomes a space.
pub(super) fn remove(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let mut rewrite = Rewrite::new(input, output);
    let mut at = 0;
    while let Some((start, mark)) = next_mark(input, at) {
        match mark {
            Mark::BlockStart | Mark::MarkupStart => {
                let Some(end) = comment_end(input, start + mark.length()) else {
                    rewrite.replace(start, input.len(), b" ");
                    break;
                };
                let behind: &[u8] = if end == input.len() { b"\0" } else { b"" };
                rewrite.replace(start, end, behind);
                at = input.len().min(end + 1);
            }
            Mark::Dashes | Mark::MarkupEnd | Mark::Hash => {
                rewrite.replace(start, input.len(), b"");
                break;
            }
            Mark::BlockEnd => at = start + 1,
        }
    }
    rewrite.finish()
}

/// Where the comment ends whose text begins at `inside`: behind the first `*/` or `-->`.
fn comment_end(input: &[u8], inside: usize) -> Option<usize> {
    let mut at = inside;
    loop {
        let found = scan::next_of(input, at, b'/', b'>')?;
        at = found + 1;
        let closing: &[u8] = if input[found] == b'/' { b"*" } else { b"--" };
        if input[inside..found].ends_with(closing) {
            return Some(at);
        }
    }
}

/// Removes the marks of comments and leaves what is between them: `/*`, `*/`, `<!--`, `-->`, `--`,
/// `#`.
pub(super) fn remove_marks(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let mut rewrite = Rewrite::new(input, output);
    let mut at = 0;
    while let Some((start, mark)) = next_mark(input, at) {
        at = start + mark.length();
        rewrite.replace(start, at, b"");
    }
    rewrite.finish()
}

/// What begins or ends a comment.
#[derive(Clone, Copy)]
enum Mark {
    BlockStart,
    BlockEnd,
    MarkupStart,
    MarkupEnd,
    Dashes,
    Hash,
}

impl Mark {
    /// The mark at the beginning of `input`.
    fn at_start(input: &[u8]) -> Option<Self> {
        match input {
            [b'/', b'*', ..] => Some(Self::BlockStart),
            [b'*', b'/', ..] => Some(Self::BlockEnd),
            [b'<', b'!', b'-', b'-', ..] => Some(Self::MarkupStart),
            [b'-', b'-', b'>', ..] => Some(Self::MarkupEnd),
            [b'-', b'-', ..] => Some(Self::Dashes),
            [b'#', ..] => Some(Self::Hash),
            _ => None,
        }
    }

    fn length(self) -> usize {
        match self {
            Self::Hash => 1,
            Self::BlockStart | Self::BlockEnd | Self::Dashes => 2,
            Self::MarkupEnd => 3,
            Self::MarkupStart => 4,
        }
    }
}

/// The next mark from `at` on and where it begins.
fn next_mark(input: &[u8], at: usize) -> Option<(usize, Mark)> {
    let mut at = at;
    loop {
        let rest = &input[at..];
        // Marks come in rows, so the bytes at `at` are tried first.
        if let Some(mark) = Mark::at_start(rest) {
            return Some((at, mark));
        }
        let may_be_mark = |a, b| {
            (a == b'#')
                | ((a == b'/') & (b == b'*'))
                | ((a == b'*') & (b == b'/'))
                | ((a == b'<') & (b == b'!'))
                | ((a == b'-') & (b == b'-'))
        };
        match first_pair(rest, may_be_mark) {
            // What was found at the very place was tried already.
            Some(0) => at += 1,
            Some(found) => at += found,
            None if rest.len() > 1 && rest.ends_with(b"#") => at = input.len() - 1,
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{RemoveComments, RemoveCommentsChar, ReplaceComments};
    use super::super::tests::check;

    #[test]
    fn block_comments_become_a_space() {
        check(ReplaceComments, b"", b"");
        check(ReplaceComments, b"a / * b */ c", b"a / * b */ c");
        check(ReplaceComments, b"un/**/ion/* all */select", b"un ion select");
        check(ReplaceComments, b"/*a/*b*/c*/", b" c*/");
        check(ReplaceComments, b"/*/ a */b", b" b");
        check(ReplaceComments, b"a/*b", b"a ");
        check(ReplaceComments, b"a/*", b"a ");
        check(ReplaceComments, b"a <!-- b --> -- c # d", b"a <!-- b --> -- c # d");
    }

    #[test]
    fn comments_of_all_kinds_go() {
        check(RemoveComments, b"", b"");
        check(RemoveComments, b"a - b / c * d < e ! f", b"a - b / c * d < e ! f");
        check(RemoveComments, b"un/* x */ion<!-- y -->select", b"unionselect");
        check(RemoveComments, b"a/* x --> b <!-- y */ c", b"a b  c");
        check(RemoveComments, b"select 1 -- rest", b"select 1 ");
        check(RemoveComments, b"select 1 --> rest", b"select 1 ");
        check(RemoveComments, b"select 1 # rest", b"select 1 ");
        check(RemoveComments, b"end#", b"end");
        check(RemoveComments, b"#", b"");
        check(RemoveComments, b"a */ b <!- c <! d", b"a */ b <!- c <! d");
    }

    #[test]
    fn the_habits_of_modsecurity_are_kept() {
        check(RemoveComments, b"a/*b*/", b"a\0");
        check(RemoveComments, b"a/*b*/#c", b"a#c");
        check(RemoveComments, b"a/*b*//*c*/", b"a/*c*/");
        check(RemoveComments, b"a/*b*/x/*c*/", b"ax\0");
        check(RemoveComments, b"a/*b", b"a ");
        check(RemoveComments, b"a<!--", b"a ");
        check(RemoveComments, b"a<!-->b", b"a ");
        check(RemoveComments, b"a/*->b--->c", b"ac");
    }

    #[test]
    fn marks_go_and_their_contents_stay() {
        check(RemoveCommentsChar, b"", b"");
        check(RemoveCommentsChar, b"a - b / c * d < e", b"a - b / c * d < e");
        check(RemoveCommentsChar, b"un/**/ion/*x*/", b"unionx");
        check(RemoveCommentsChar, b"<!--a-->b--c#d", b"abcd");
        check(RemoveCommentsChar, b"------>-", b"-");
        check(RemoveCommentsChar, b"/*/*//#*//", b"///");
        check(RemoveCommentsChar, b"<!-a<!b#", b"<!-a<!b");
    }
}
