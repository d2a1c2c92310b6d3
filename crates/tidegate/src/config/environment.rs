//! Values from outside the file: environment variables and secrets' files.
//!
//! `${NAME}`, in capitals, is replaced by the variable in any string; `$${NAME}` stays `${NAME}`.
//! Redirects, header values and log formats have placeholders of their own, `$host` or `${host}`, in
//! small letters: these pass untouched, and what a variable brings into such a text is escaped, so
//! that it never becomes a placeholder. An option that holds a secret may also say `file:/path`, whose
//! content, without the line end, is the secret; with systemd's credentials,
//! `file:${CREDENTIALS_DIRECTORY}/token`.

use std::fmt;
use std::ops::Range;

/// Where variables come from: the process, or a table in tests.
pub(crate) trait Environment {
    /// The value of a variable.
    fn variable(&self, name: &str) -> Result<String, Missing>;
}

/// Why a variable has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is not set.
    NotSet,
    /// It is set, and not UTF-8.
    NotText,
}

/// The environment of this process.
pub(crate) struct Process;

impl Environment for Process {
    fn variable(&self, name: &str) -> Result<String, Missing> {
        std::env::var(name).map_err(|error| match error {
            std::env::VarError::NotPresent => Missing::NotSet,
            std::env::VarError::NotUnicode(_) => Missing::NotText,
        })
    }
}

/// A text with its variables replaced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expanded {
    /// The text.
    pub(crate) text: String,
    /// The variables it took; such a text is never shown.
    pub(crate) variables: Vec<String>,
}

/// Whether a text has placeholders of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placeholders {
    /// `$name` and `$$` belong to a template that is parsed later.
    Later,
    /// All that a `$` can begin is a variable.
    None,
}

/// What is wrong with a `${..}`, and where in the text it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) range: Range<usize>,
    pub(crate) kind: ProblemKind,
}

/// What is wrong with a `${..}`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    /// It never closes.
    Unclosed,
    /// What stands in it is not a name.
    BadName(String),
    /// The variable has no value.
    Missing(String, Missing),
}

/// Replaces the variables of a text.
pub(crate) fn expand(
    text: &str,
    placeholders: Placeholders,
    environment: &dyn Environment,
) -> Result<Expanded, Vec<Problem>> {
    let mut out = Expanded { text: String::with_capacity(text.len()), variables: Vec::new() };
    let mut problems = Vec::new();
    let mut rest = 0;
    while let Some(found) = text[rest..].find('$') {
        let dollar = rest + found;
        out.text.push_str(&text[rest..dollar]);
        let after = &text[dollar + 1..];
        if placeholders == Placeholders::Later && after.starts_with('$') {
            out.text.push_str("$$");
            rest = dollar + 2;
        } else if after.starts_with("${") {
            // Only before a brace, so that `$$` alone needs no thought outside templates.
            out.text.push_str("${");
            rest = dollar + 3;
        } else if !after.starts_with('{') {
            out.text.push('$');
            rest = dollar + 1;
        } else {
            let length = after.find('}').map_or(after.len(), |close| close + 1);
            let range = dollar..dollar + 1 + length;
            rest = range.end;
            let name = after[1..length].trim_end_matches('}');
            if placeholders == Placeholders::Later && !is_name(name) {
                out.text.push_str(&text[range]);
                continue;
            }
            match value(name, !after.ends_with('}') && length == after.len(), environment) {
                Ok(value) => {
                    match placeholders {
                        Placeholders::Later => out.text.push_str(&value.replace('$', "$$")),
                        Placeholders::None => out.text.push_str(&value),
                    }
                    out.variables.push(name.into());
                }
                Err(kind) => problems.push(Problem { range, kind }),
            }
        }
    }
    out.text.push_str(&text[rest..]);
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

fn value(name: &str, unclosed: bool, environment: &dyn Environment) -> Result<String, ProblemKind> {
    if unclosed {
        return Err(ProblemKind::Unclosed);
    }
    if !is_name(name) {
        return Err(ProblemKind::BadName(name.into()));
    }
    environment.variable(name).map_err(|missing| ProblemKind::Missing(name.into(), missing))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// A text that must not be shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// Keeps a text from being shown.
    pub(crate) fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The text, for whoever needs it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Environment for Fixed {
        fn variable(&self, name: &str) -> Result<String, Missing> {
            match name {
                "TOKEN" => Ok("s3cret".into()),
                "DOLLAR" => Ok("${TOKEN}".into()),
                "BYTES" => Err(Missing::NotText),
                _ => Err(Missing::NotSet),
            }
        }
    }

    #[test]
    fn variables_are_replaced_once() {
        let check = |text: &str, expected: &str, variables: &[&str]| {
            let found = expand(text, Placeholders::None, &Fixed).expect(text);
            assert_eq!(found.text, expected, "{text}");
            assert_eq!(found.variables, variables, "{text}");
        };
        check("plain", "plain", &[]);
        check("${TOKEN}", "s3cret", &["TOKEN"]);
        check("a${TOKEN}b${TOKEN}", "as3cretbs3cret", &["TOKEN", "TOKEN"]);
        check("${DOLLAR}", "${TOKEN}", &["DOLLAR"]);
        check("https://$host$uri", "https://$host$uri", &[]);
        check("$${TOKEN}", "${TOKEN}", &[]);
        check("$$${TOKEN}", "$${TOKEN}", &[]);
        check("${TOKEN}$${X}${TOKEN}", "s3cret${X}s3cret", &["TOKEN", "TOKEN"]);
        check("$", "$", &[]);
        check("5$$", "5$$", &[]);
    }

    #[test]
    fn placeholders_of_templates_pass() {
        let check = |text: &str, expected: &str| {
            let found = expand(text, Placeholders::Later, &Fixed).expect(text);
            assert_eq!(found.text, expected, "{text}");
        };
        check("https://$host${uri}/${TOKEN}", "https://$host${uri}/s3cret");
        check("5$$ $${TOKEN}", "5$$ $${TOKEN}");
        check("${DOLLAR}", "$${TOKEN}");
        check("${host", "${host");
    }

    #[test]
    fn all_problems_are_found() {
        let check = |text: &str, expected: &[(Range<usize>, ProblemKind)]| {
            let found = expand(text, Placeholders::None, &Fixed).expect_err(text);
            let found: Vec<_> = found.into_iter().map(|p| (p.range, p.kind)).collect();
            assert_eq!(found, expected, "{text}");
        };
        let missing = |name: &str, why| ProblemKind::Missing(name.into(), why);
        check(
            "${NO}-${BYTES}",
            &[(0..5, missing("NO", Missing::NotSet)), (6..14, missing("BYTES", Missing::NotText))],
        );
        check("x${TOKEN", &[(1..8, ProblemKind::Unclosed)]);
        check("${}", &[(0..3, ProblemKind::BadName(String::new()))]);
        check("${host}", &[(0..7, ProblemKind::BadName("host".into()))]);
        check("${a b}", &[(0..6, ProblemKind::BadName("a b".into()))]);
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("s3cret".into())), "(secret)");
    }
}
