//! The parameters of a request, held against those that its page knows.

use percent_encoding::percent_decode_str;
use tidegate_waf::context::Collection;

use super::answer::Answer;
use crate::config::suggest::{did_you_mean, one_of};
use crate::context::lines::collection_named;

/// What every page knows; [`super::answer::Form`] reads it.
const FORMAT: &str = "format";

/// The parameters of a request, decoded. Values are bytes, as keys and names are.
pub(super) struct Query(Vec<(String, Vec<u8>)>);

impl Query {
    /// Reads the query of a page that knows these parameters. Another, or one that is given twice, is
    /// a mistake: what is left unread may be what matters, such as a misspelt `ttl`.
    pub(super) fn of(query: Option<&str>, known: &[&str]) -> Result<Query, Answer> {
        let mut read: Vec<(String, Vec<u8>)> = Vec::new();
        for parameter in query.unwrap_or_default().split('&').filter(|one| !one.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let name = percent_decode_str(name).decode_utf8_lossy().into_owned();
            if name != FORMAT && !known.contains(&name.as_str()) {
                return Err(unknown(&name, known));
            }
            if read.iter().any(|(other, _)| *other == name) {
                return Err(Answer::bad_request(format!("`{name}` is given twice")));
            }
            read.push((name, percent_decode_str(value).collect()));
        }
        Ok(Query(read))
    }

    /// What a parameter says, if it is given.
    pub(super) fn find(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    /// The collection that a parameter names, if it is given.
    pub(super) fn collection(&self, name: &str) -> Result<Option<Collection>, Answer> {
        self.find(name)
            .map(|value| {
                collection_named(value)
                    .map_err(|what| Answer::bad_request(format!("`{name}`: {what}")))
            })
            .transpose()
    }
}

fn unknown(name: &str, known: &[&str]) -> Answer {
    let all = || known.iter().copied().chain([FORMAT]);
    let name_shown = name.escape_debug();
    let hint =
        did_you_mean(name, all()).unwrap_or_else(|| format!("this page knows {}", one_of(all())));
    Answer::bad_request(format!("`{name_shown}` is not a parameter here: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_bytes_and_those_that_are_not_known_are_mistakes() {
        let read = |query| Query::of(Some(query), &["prefix", "limit"]);
        let query = read("prefix=a%2Fb%FF&format=json&limit=").ok().unwrap();
        assert_eq!(query.find("prefix"), Some(&b"a/b\xff"[..]));
        assert_eq!(query.find("limit"), Some(&b""[..]));
        assert!(Query::of(None, &[]).ok().unwrap().find("prefix").is_none());
        let check = |query, expected: &str| {
            let refusal = format!("{:?}", read(query).err().unwrap());
            assert!(refusal.contains(expected), "{query}: {refusal}");
        };
        check("prefiks=a", "did you mean `prefix`?");
        check("ttl=5", "this page knows `prefix`, `limit` or `format`");
        check("limit=1&limit=2", "`limit` is given twice");
    }
}
