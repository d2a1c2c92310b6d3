//! Transformations: bytes to bytes, one value at a time.
//!
//! A rule's `t:` actions name a chain of them; each looks at a value the way the attacked program
//! would: decoded, folded, stripped. Every transformation is a pure function that runs in linear time
//! and writes at most [`Transformation::growth_max`] bytes for each byte of input. It first looks for
//! a byte that could make a difference, with `memchr` or comparisons that become vectors, and leaves
//! a value alone that has none; then it copies runs, not bytes, or works without branches. Which
//! chain a value goes through, and that equal chains are computed once, is [`crate::program`]'s
//! matter.
//!
//! The semantics are ModSecurity's: version 3's where versions 2 and 3 agree, odd habits included.
//! These differ on purpose, from one version or from both; each says why where it is written:
//!
//! - `base64Decode` gives what comes before a foreign byte (version 3: nothing) and skips line breaks
//!   (version 2: ends at them); `base64DecodeExt` never gives nothing because of misplaced padding.
//! - `cmdLine` and `sqlHexDecode` go on behind NUL (version 2: end there).
//! - `compressWhitespace` knows the no-break space (version 3: not); `removeWhitespace` removes 0xC2
//!   only as its lead byte (version 2: never, version 3: always).
//! - `htmlEntityDecode` takes numbers of any length and whole names only (some releases of version 3:
//!   short numbers, and names that begin like those).
//! - `normalizePathWin` leaves no backslash (both: one of three in a row).
//! - `sqlHexDecode` decodes a string right behind another (version 2: not).
//! - `urlDecodeUni` always knows the best fits of code page 20127 (both: when `SecUnicodeMapFile`
//!   says so, as their recommended configuration does).
//! - `utf8toUnicode` keeps NUL as the last byte (version 2: not).

mod base64;
mod best_fit;
mod command_line;
mod comment;
mod digest;
mod entity;
mod escape;
pub(crate) mod hex;
mod letter_case;
mod null;
mod parity;
mod path;
mod rewrite;
pub(crate) mod scan;
mod unicode;
mod url;
mod white_space;

use crate::pattern::Makeup;

/// What a transformation made of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the output means nothing unless it was written"]
pub enum Outcome {
    /// The result equals the input; the output buffer holds nothing meaningful.
    Unchanged,
    /// The result differs from the input and is the whole of the output buffer.
    Written,
}

/// Declares every transformation once: its variant, its name as the reference writes it, further
/// names that mean the same, what it does, how much it may grow a value, and what there is in a value
/// that it changes.
macro_rules! transformations {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident = $name:literal $(or $alias:literal)? by $function:path,
            grows $growth:literal, changes $changed:expr;
    )+) => {
        /// One transformation. `t:none` is not among them: it empties the chain written so far,
        /// which the parser does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Transformation {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Transformation {
            /// All of them, in the order of the reference.
            pub const ALL: &'static [Transformation] = &[$(Self::$variant),+];

            /// Every name and what it names.
            const NAMES: &'static [(&'static str, Transformation)] =
                &[$(($name, Self::$variant), $(($alias, Self::$variant),)?)+];

            /// The name as the reference writes it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The most bytes of output for each byte of input, beyond the 20 of a digest.
            pub fn growth_max(self) -> usize {
                match self { $(Self::$variant => $growth,)+ }
            }

            /// What a value has something of if this changes it.
            #[inline]
            pub fn changes(self) -> Makeup {
                const CHANGED: &[Makeup] = &[$($changed),+];
                CHANGED[self as usize]
            }

            /// Writes the transformed `input` into `output`, which is emptied first, or says that
            /// the result equals the input.
            ///
            /// [`Outcome::Unchanged`] comes exactly when the result equals the input. A caller that
            /// keeps one buffer for all values allocates nothing here once it has grown.
            pub fn apply(self, input: &[u8], output: &mut Vec<u8>) -> Outcome {
                output.clear();
                match self { $(Self::$variant => $function(input, output),)+ }
            }
        }
    };
}

transformations! {
    /// Decodes Base64 up to the first byte that is not of its alphabet.
    Base64Decode = "base64Decode" by base64::decode,
        grows 1, changes Makeup::ANYTHING;
    /// Decodes Base64 and skips the bytes that are not of its alphabet.
    Base64DecodeExt = "base64DecodeExt" by base64::decode_lenient,
        grows 1, changes Makeup::ANYTHING;
    /// Encodes in Base64 with padding, on one line.
    Base64Encode = "base64Encode" by base64::encode,
        grows 4, changes Makeup::ANYTHING;
    /// Undoes the disguises of shell commands: quotes, carets and backslashes go, separators become
    /// one space, none before `/` and `(`, and letters become lower case.
    CmdLine = "cmdLine" by command_line::plain,
        grows 1, changes Makeup::of_each(b"\"'\\^,;\t\n/(").or(Makeup::UPPER).or(Makeup::SPACES);
    /// Makes each run of white space one space.
    CompressWhitespace = "compressWhitespace" by white_space::compress,
        grows 1, changes Makeup::of_each(b"\t\n").or(Makeup::SPACES).or(Makeup::BEYOND_ASCII);
    /// Decodes the escapes of CSS 2: a backslash and up to six hexadecimal digits.
    CssDecode = "cssDecode" by escape::decode_css,
        grows 1, changes Makeup::of_each(b"\\");
    /// Decodes the escapes of ANSI C: `\n`, `\x41`, `\101`.
    EscapeSeqDecode = "escapeSeqDecode" by escape::decode_ansi_c,
        grows 1, changes Makeup::of_each(b"\\");
    /// Decodes pairs of hexadecimal digits.
    HexDecode = "hexDecode" by hex::decode,
        grows 1, changes Makeup::ANYTHING;
    /// Encodes each byte as two lower-case hexadecimal digits.
    HexEncode = "hexEncode" by hex::encode,
        grows 2, changes Makeup::ANYTHING;
    /// Decodes HTML's numeric references and `quot`, `amp`, `lt`, `gt`, `nbsp`.
    HtmlEntityDecode = "htmlEntityDecode" by entity::decode,
        grows 1, changes Makeup::of_each(b"&");
    /// Decodes JavaScript's escapes: `\u0041`, `\x41`, `\101`, `\n`.
    JsDecode = "jsDecode" by escape::decode_js,
        grows 1, changes Makeup::of_each(b"\\");
    /// Replaces the value by its length in bytes, in decimal.
    Length = "length" by digest::length,
        grows 1, changes Makeup::ANYTHING;
    /// Makes ASCII letters lower case.
    Lowercase = "lowercase" by letter_case::lower,
        grows 1, changes Makeup::UPPER;
    /// Replaces the value by its MD5 digest, 16 raw bytes.
    Md5 = "md5" by digest::md5,
        grows 1, changes Makeup::ANYTHING;
    /// Removes empty, `.` and `..` segments from a path.
    NormalizePath = "normalizePath" or "normalisePath" by path::normalize,
        grows 1, changes Makeup::of_each(b"/").or(Makeup::LAST_DOT);
    /// As [`Self::NormalizePath`], with backslashes taken for slashes.
    NormalizePathWin = "normalizePathWin" or "normalisePathWin" by path::normalize_windows,
        grows 1, changes Makeup::of_each(b"/\\").or(Makeup::LAST_DOT);
    /// Sets the highest bit of each byte so that its parity is even.
    ParityEven7bit = "parityEven7bit" by parity::even,
        grows 1, changes Makeup::ANYTHING;
    /// Sets the highest bit of each byte so that its parity is odd.
    ParityOdd7bit = "parityOdd7bit" by parity::odd,
        grows 1, changes Makeup::ANYTHING;
    /// Clears the highest bit of each byte.
    ParityZero7bit = "parityZero7bit" by parity::zero,
        grows 1, changes Makeup::BEYOND_ASCII;
    /// Removes `/* */` and `<!-- -->` comments, and what follows `--` or `#`.
    RemoveComments = "removeComments" by comment::remove,
        grows 1, changes Makeup::of_each(b"#*<-");
    /// Removes the marks of comments: `/*`, `*/`, `<!--`, `-->`, `--`, `#`.
    RemoveCommentsChar = "removeCommentsChar" by comment::remove_marks,
        grows 1, changes Makeup::of_each(b"#*<-");
    /// Removes NUL bytes.
    RemoveNulls = "removeNulls" by null::remove,
        grows 1, changes Makeup::NUL;
    /// Removes white space, the no-break space too.
    RemoveWhitespace = "removeWhitespace" by white_space::remove,
        grows 1, changes Makeup::of_each(b" \t\n").or(Makeup::BEYOND_ASCII);
    /// Makes each `/* */` comment one space; one that does not end reaches to the end.
    ReplaceComments = "replaceComments" by comment::replace,
        grows 1, changes Makeup::of_each(b"*");
    /// Makes each NUL byte a space.
    ReplaceNulls = "replaceNulls" by null::replace,
        grows 1, changes Makeup::NUL;
    /// Replaces the value by its SHA-1 digest, 20 raw bytes.
    Sha1 = "sha1" by digest::sha1,
        grows 1, changes Makeup::ANYTHING;
    /// Decodes SQL's hexadecimal strings, `0x414243`.
    SqlHexDecode = "sqlHexDecode" by hex::sql_decode,
        grows 1, changes Makeup::of_each(b"0");
    /// Removes white space at both ends.
    Trim = "trim" by white_space::trim,
        grows 1, changes Makeup::of_each(b" \t\n");
    /// Removes white space at the beginning.
    TrimLeft = "trimLeft" by white_space::trim_left,
        grows 1, changes Makeup::of_each(b" \t\n");
    /// Removes white space at the end.
    TrimRight = "trimRight" by white_space::trim_right,
        grows 1, changes Makeup::of_each(b" \t\n");
    /// Makes ASCII letters upper case.
    Uppercase = "uppercase" by letter_case::upper,
        grows 1, changes Makeup::LOWER;
    /// Decodes `%41` and `+`.
    UrlDecode = "urlDecode" by url::decode,
        grows 1, changes Makeup::of_each(b"%+");
    /// Decodes `%41`, `+` and `%u0041`, the last to its best fit in ASCII.
    UrlDecodeUni = "urlDecodeUni" by url::decode_unicode,
        grows 1, changes Makeup::of_each(b"%+");
    /// Encodes every byte but letters, digits and `*` as `%41`, and the space as `+`.
    UrlEncode = "urlEncode" by url::encode,
        grows 3, changes Makeup::ANYTHING;
    /// Encodes the characters of UTF-8 beyond ASCII as `%u0041`.
    Utf8toUnicode = "utf8toUnicode" by unicode::encode,
        grows 4, changes Makeup::BEYOND_ASCII.or(Makeup::NUL);
}

impl Transformation {
    /// The transformation that a rule means by `name`, in any mixture of ASCII cases.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|&(_, transformation)| transformation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds the result of `transformation` for `input`, and its outcome, against what is expected.
    pub(super) fn check(transformation: Transformation, input: &[u8], expected: &[u8]) {
        let mut output = b"what was there before".to_vec();
        let outcome = transformation.apply(input, &mut output);
        let shown = || String::from_utf8_lossy(input).escape_debug().to_string();
        match outcome {
            Outcome::Unchanged => assert_eq!(
                input.escape_ascii().to_string(),
                expected.escape_ascii().to_string(),
                "{transformation:?} leaves {} alone",
                shown()
            ),
            Outcome::Written => {
                let changes = transformation.changes();
                assert!(Makeup::of(input).meets(changes), "{transformation:?} of {}", shown());
                assert_eq!(
                    output.escape_ascii().to_string(),
                    expected.escape_ascii().to_string(),
                    "{transformation:?} of {}",
                    shown()
                );
                assert_ne!(output, input, "{transformation:?} of {} is not a change", shown());
            }
        }
    }

    #[test]
    fn names_lead_back_to_their_transformation() {
        for &transformation in Transformation::ALL {
            let name = transformation.name();
            assert_eq!(Transformation::named(name), Some(transformation));
            assert_eq!(Transformation::named(&name.to_uppercase()), Some(transformation));
        }
        assert_eq!(Transformation::named("normalisePath"), Some(Transformation::NormalizePath));
        assert_eq!(
            Transformation::named("normalisepathwin"),
            Some(Transformation::NormalizePathWin)
        );
        assert_eq!(Transformation::named("none"), None);
        assert_eq!(Transformation::named("urlDecodeUn"), None);
    }
}
