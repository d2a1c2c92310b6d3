//! Transformations: bytes to bytes, one value at a time.
//!
//! A rule's `t:` actions name a chain of them; each looks at a value the way the attacked program
//! would: decoded, folded, stripped. The semantics are `ModSecurity`'s: version 3's where versions 2
//! and 3 agree, and the one the Core Rule Set's regression tests need where they differ, which the
//! item's documentation then says.
//!
//! Every transformation is a pure function that runs in linear time and writes at most
//! [`Transformation::growth_max`] bytes for each byte of input. It first looks for a byte that could
//! make a difference, with `memchr` or comparisons that become vectors, and leaves a value alone
//! that has none; then it copies runs, not bytes. Which chain a value goes through, and that equal
//! chains are computed once, is [`crate::program`]'s matter.

mod letter_case;
mod rewrite;

/// What a transformation made of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the output means nothing unless it was written"]
pub enum Outcome {
    /// The result equals the input; the output buffer holds nothing meaningful.
    Unchanged,
    /// The result differs from the input and is the whole of the output buffer.
    Written,
}

/// Declares every transformation once: its variant, its name as the documentation writes it, further
/// names that mean the same, how much it may grow a value, and what it does.
macro_rules! transformations {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal $(or $alias:literal)*, grows $growth:literal;)+) => {
        /// One transformation. `t:none` is not among them: it empties the chain written so far,
        /// which the parser does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Transformation {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Transformation {
            /// All of them, in the order of the reference.
            pub const ALL: &'static [Transformation] = &[$(Self::$variant),+];

            /// The name as the reference writes it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The transformation a rule means by `name`, in any mixture of ASCII cases.
            pub fn named(name: &str) -> Option<Transformation> {
                const NAMES: &[(&str, Transformation)] =
                    &[$(($name, Transformation::$variant), $(($alias, Transformation::$variant),)*)+];
                NAMES
                    .iter()
                    .find(|(known, _)| known.eq_ignore_ascii_case(name))
                    .map(|&(_, transformation)| transformation)
            }

            /// The most bytes of output for each byte of input, beyond a constant of 40 bytes (the
            /// digests and the length of an empty value).
            pub fn growth_max(self) -> usize {
                match self { $(Self::$variant => $growth,)+ }
            }
        }
    };
}

transformations! {
    /// Decodes Base64; stops at the first byte that is not of its alphabet.
    Base64Decode = "base64Decode", grows 1;
    /// Decodes Base64 and skips the bytes that are not of its alphabet.
    Base64DecodeExt = "base64DecodeExt", grows 1;
    /// Encodes in Base64 with padding, on one line.
    Base64Encode = "base64Encode", grows 4;
    /// Undoes the disguises of shell commands: quotes, carets and backslashes go, separators become
    /// one space, none before `/` and `(`, and letters become lower case.
    CmdLine = "cmdLine", grows 1;
    /// Makes each run of white space one space.
    CompressWhitespace = "compressWhitespace", grows 1;
    /// Decodes the escapes of CSS 2: a backslash and up to six hexadecimal digits.
    CssDecode = "cssDecode", grows 1;
    /// Decodes the escapes of ANSI C: `\n`, `\x41`, `\101`.
    EscapeSeqDecode = "escapeSeqDecode", grows 1;
    /// Decodes pairs of hexadecimal digits.
    HexDecode = "hexDecode", grows 1;
    /// Encodes each byte as two lower-case hexadecimal digits.
    HexEncode = "hexEncode", grows 2;
    /// Decodes HTML's numeric entities and `quot`, `amp`, `lt`, `gt`, `nbsp`.
    HtmlEntityDecode = "htmlEntityDecode", grows 1;
    /// Decodes JavaScript's escapes: `\u0041`, `\x41`, `\101`, `\n`.
    JsDecode = "jsDecode", grows 1;
    /// Replaces the value by its length in bytes, in decimal.
    Length = "length", grows 1;
    /// Makes ASCII letters lower case.
    Lowercase = "lowercase", grows 1;
    /// Replaces the value by its MD5 digest, 16 raw bytes.
    Md5 = "md5", grows 1;
    /// Removes empty, `.` and `..` segments from a path.
    NormalizePath = "normalizePath" or "normalisePath", grows 1;
    /// As [`Self::NormalizePath`], with backslashes made slashes first.
    NormalizePathWin = "normalizePathWin" or "normalisePathWin", grows 1;
    /// Sets the highest bit of each byte so that the parity is even.
    ParityEven7bit = "parityEven7bit", grows 1;
    /// Sets the highest bit of each byte so that the parity is odd.
    ParityOdd7bit = "parityOdd7bit", grows 1;
    /// Clears the highest bit of each byte.
    ParityZero7bit = "parityZero7bit", grows 1;
    /// Removes `/* */` and `<!-- -->` comments, and what follows `--` or `#`.
    RemoveComments = "removeComments", grows 1;
    /// Removes the marks of comments: `/*`, `*/`, `<!--`, `-->`, `--`, `#`.
    RemoveCommentsChar = "removeCommentsChar", grows 1;
    /// Removes NUL bytes.
    RemoveNulls = "removeNulls", grows 1;
    /// Removes white space, the no-break space too.
    RemoveWhitespace = "removeWhitespace", grows 1;
    /// Makes each `/* */` comment one space; one that does not end reaches to the end.
    ReplaceComments = "replaceComments", grows 1;
    /// Makes each NUL byte a space.
    ReplaceNulls = "replaceNulls", grows 1;
    /// Replaces the value by its SHA-1 digest, 20 raw bytes.
    Sha1 = "sha1", grows 1;
    /// Decodes SQL's hexadecimal strings, `0x414243`.
    SqlHexDecode = "sqlHexDecode", grows 1;
    /// Removes white space at both ends.
    Trim = "trim", grows 1;
    /// Removes white space at the beginning.
    TrimLeft = "trimLeft", grows 1;
    /// Removes white space at the end.
    TrimRight = "trimRight", grows 1;
    /// Makes ASCII letters upper case.
    Uppercase = "uppercase", grows 1;
    /// Decodes `%41` and `+`.
    UrlDecode = "urlDecode", grows 1;
    /// Decodes `%41`, `+` and `%u0041`, the last to the best fit in ASCII.
    UrlDecodeUni = "urlDecodeUni", grows 1;
    /// Encodes every byte but letters, digits and `*` as `%41`, and the space as `+`.
    UrlEncode = "urlEncode", grows 3;
    /// Encodes the characters of UTF-8 beyond ASCII as `%u0041`.
    Utf8toUnicode = "utf8toUnicode", grows 6;
}

impl Transformation {
    /// Writes the transformed `input` into `output`, which is emptied first, or says that the result
    /// equals the input.
    ///
    /// [`Outcome::Unchanged`] comes exactly when the result equals the input. A caller that keeps
    /// one buffer for all values of a request allocates nothing here once it has grown.
    pub fn apply(self, input: &[u8], output: &mut Vec<u8>) -> Outcome {
        output.clear();
        match self {
            Self::Lowercase => letter_case::lowercase(input, output),
            Self::Uppercase => letter_case::uppercase(input, output),
            _ => Outcome::Unchanged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
