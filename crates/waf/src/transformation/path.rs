//! Paths: `normalizePath` and `normalizePathWin`.
#![expect(clippy::needless_bitwise_bool, reason = "comparisons without branches become vectors")]

use super::{Outcome, rewrite::compared, scan::first_pair};

/// Removes empty, `.` and `..` segments.
///
/// A path that begins with a slash keeps it and never climbs above it; another keeps the `..` that
/// climb out of it. A slash stands at the end only if one did before. As in ModSecurity, a segment
/// that only *ends* in `..` goes too, and an absolute path whose last `..` climbs to the root becomes
/// empty.
pub(super) fn normalize(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    let may_change = first_pair(input, |a, b| (b == b'/') & ((a == b'/') | (a == b'.'))).is_some()
        || input.ends_with(b".");
    if !may_change {
        return Outcome::Unchanged;
    }
    write(input, output, |byte| byte == b'/');
    compared(input, output)
}

/// As [`normalize`], with every backslash taken for a slash and written as one.
///
/// ModSecurity leaves one backslash of three in a row; here none stays.
pub(super) fn normalize_windows(input: &[u8], output: &mut Vec<u8>) -> Outcome {
    if memchr::memchr(b'\\', input).is_none() {
        return normalize(input, output);
    }
    write(input, output, |byte| byte == b'/' || byte == b'\\');
    Outcome::Written
}

/// Writes the normalized path into the empty `output`.
#[inline]
fn write(input: &[u8], output: &mut Vec<u8>, is_slash: impl Fn(u8) -> bool) {
    let (Some(&first), Some(&last)) = (input.first(), input.last()) else {
        return;
    };
    output.reserve(input.len());
    let mut walk = Walk { output, is_absolute: is_slash(first), is_outside: false };
    for part in input.split_inclusive(|&byte| is_slash(byte)) {
        match part.split_last() {
            Some((&end, segment)) if is_slash(end) => {
                walk.segment(segment);
                walk.slash();
            }
            _ => walk.segment(part),
        }
    }
    if !is_slash(last) && output.ends_with(b"/") {
        output.pop();
    }
}

/// A walk down a path. Between two segments, `output` is empty or ends with a slash.
struct Walk<'a> {
    output: &'a mut Vec<u8>,
    is_absolute: bool,
    /// Whether a `..` has climbed to where the path begins or out of it, and no segment has gone
    /// down since.
    is_outside: bool,
}

impl Walk<'_> {
    #[inline]
    fn segment(&mut self, segment: &[u8]) {
        match segment {
            [] | [b'.'] => {}
            [before @ .., b'.', b'.'] => self.climb(before),
            [before @ .., last] => {
                // ModSecurity does not see that a single byte at the very beginning goes down, nor
                // that a segment with a dot at its end does.
                if *last != b'.' && !(before.is_empty() && self.output.is_empty()) {
                    self.is_outside = false;
                }
                self.output.extend_from_slice(segment);
            }
        }
    }

    /// Takes `..` and the segment above it away, or the segment of `before` and `..` alone.
    fn climb(&mut self, before: &[u8]) {
        let dots_start = self.output.len() + before.len();
        if !self.is_absolute && (self.is_outside || dots_start <= 1) {
            self.is_outside = true;
            self.output.extend_from_slice(before);
            self.output.extend_from_slice(b"..");
            return;
        }
        let above = match (self.output.split_last(), before) {
            (Some((_slash, above)), []) => above,
            _ => &self.output[..],
        };
        let kept = memchr::memrchr(b'/', above).unwrap_or(0);
        self.is_outside |= kept == 0;
        self.output.truncate(kept);
    }

    /// Ends a segment, unless there is nothing to end.
    #[inline]
    fn slash(&mut self) {
        let needed = match self.output.last() {
            Some(&last) => last != b'/',
            None => self.is_absolute,
        };
        if needed {
            self.output.push(b'/');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Transformation::{NormalizePath, NormalizePathWin};
    use super::super::tests::check;

    #[test]
    fn empty_and_self_segments_go() {
        check(NormalizePath, b"", b"");
        check(NormalizePath, b"/a/b.c/d", b"/a/b.c/d");
        check(NormalizePath, b"/a//b///c/", b"/a/b/c/");
        check(NormalizePath, b"/./a/././b/.", b"/a/b");
        check(NormalizePath, b"./a/./", b"a/");
        check(NormalizePath, b".", b"");
        check(NormalizePath, b"./", b"");
        check(NormalizePath, b"//", b"/");
    }

    #[test]
    fn parent_segments_climb_within_the_path() {
        check(NormalizePath, b"/a/b/../c", b"/a/c");
        check(NormalizePath, b"/a/b/..", b"/a");
        check(NormalizePath, b"/a/b/../", b"/a/");
        check(NormalizePath, b"/a/b/../../c", b"/c");
        check(NormalizePath, b"a/b/../../c", b"c");
        check(NormalizePath, b"/../../etc/passwd", b"/etc/passwd");
        check(NormalizePath, b"../../etc/passwd", b"../../etc/passwd");
        check(NormalizePath, b"ab/../../c", b"../c");
        check(NormalizePath, b"../a/../b", b"../b");
    }

    #[test]
    fn the_habits_of_modsecurity_are_kept() {
        check(NormalizePath, b"/..", b"");
        check(NormalizePath, b"/a/b../c", b"/a/c");
        check(NormalizePath, b"/a/.../c", b"/a/c");
        check(NormalizePath, b"a../b", b"a../b");
        check(NormalizePath, b"/a./b.", b"/a./b.");
        check(NormalizePath, b"ab/../c/..", b"c/..");
    }

    #[test]
    fn backslashes_are_slashes_for_windows_only() {
        check(NormalizePath, b"a\\..\\b", b"a\\..\\b");
        check(NormalizePathWin, b"", b"");
        check(NormalizePathWin, b"/a/b", b"/a/b");
        check(NormalizePathWin, b"/a/../b", b"/b");
        check(NormalizePathWin, b"\\a\\..\\b\\", b"/b/");
        check(NormalizePathWin, b"a\\/\\\\b", b"a/b");
        check(NormalizePathWin, b"c:\\x\\..\\y", b"c:/y");
    }
}
