//! `@inspectFile`: an uploaded file, judged by a program of the operator's choice.
//!
//! Here are the argument and the meaning of what the program prints. Running it, with the path of
//! the file as its only argument, and ending it when its time is up, is for others, outside of every
//! loop.

use std::{path::PathBuf, time::Duration};

use super::Fault;

/// A program that approves of files or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspector {
    /// The program; where relative, to the file of the rule.
    pub program: PathBuf,
    /// How long it may take for one file.
    pub time_max: Duration,
}

/// What a program says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// It approves.
    Approved,
    /// It does not, so the operator matches. The first line of its words, at most
    /// [`Inspector::WORDS_BYTES_MAX`] bytes, for the log.
    Rejected(String),
    /// It says nothing, so nothing is known of the file and the operator does not match.
    Silent,
}

impl Inspector {
    /// How long a program may take unless the configuration says otherwise.
    pub const TIME_MAX: Duration = Duration::from_secs(10);
    /// How much of what a program prints need be read.
    pub const WORDS_BYTES_MAX: usize = 4096;

    /// Reads the argument: the path of the program.
    pub fn parse(argument: &[u8]) -> Result<Self, Fault> {
        let path = super::readable(argument)?.trim();
        if path.is_empty() {
            return Err(Fault::new("there is no program").hint("name the path of a program"));
        }
        if path.contains('\0') {
            return Err(Fault::new("a path cannot hold a NUL byte"));
        }
        if path.to_ascii_lowercase().ends_with(".lua") {
            return Err(Fault::new("Lua scripts are not run here")
                .hint("make it a program that prints 1 for files that it approves of"));
        }
        Ok(Self { program: path.into(), time_max: Self::TIME_MAX })
    }

    /// What it means that the program printed this: `1` first approves, anything else does not.
    ///
    /// So it is in version 2 of ModSecurity; version 3 does not match on a single character either.
    pub fn interpret(printed: &[u8]) -> Opinion {
        match printed {
            [] => Opinion::Silent,
            [b'1', ..] => Opinion::Approved,
            _ => {
                let words = &printed[..printed.len().min(Self::WORDS_BYTES_MAX)];
                let line = words.split(|&byte| byte == b'\n').next().unwrap_or_default();
                Opinion::Rejected(String::from_utf8_lossy(line.trim_ascii()).into_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_is_a_program() {
        let inspector = Inspector::parse(b" /opt/scan files.sh ").expect("a program");
        assert_eq!(inspector.program, PathBuf::from("/opt/scan files.sh"));
        assert_eq!(inspector.time_max, Inspector::TIME_MAX);
        for argument in [&b""[..], b"  ", b"scan.LUA", b"a\0b", b"\xff"] {
            assert!(Inspector::parse(argument).is_err(), "{}", argument.escape_ascii());
        }
    }

    #[test]
    fn one_approves() {
        let rejected = |words: &str| Opinion::Rejected(words.to_owned());
        assert_eq!(Inspector::interpret(b"1"), Opinion::Approved);
        assert_eq!(Inspector::interpret(b"1 clean\n"), Opinion::Approved);
        assert_eq!(Inspector::interpret(b"0 eicar\nmore"), rejected("0 eicar"));
        assert_eq!(Inspector::interpret(b"0"), rejected("0"));
        assert_eq!(Inspector::interpret(b"\n"), rejected(""));
        assert_eq!(Inspector::interpret(b"x\xff"), rejected("x\u{fffd}"));
        assert_eq!(Inspector::interpret(b""), Opinion::Silent);
        let long = Inspector::interpret(&[b'x'; 2 * Inspector::WORDS_BYTES_MAX]);
        assert_eq!(long, rejected(&"x".repeat(Inspector::WORDS_BYTES_MAX)));
    }
}
