//! An action list cut into its items.
//!
//! Items are parted by commas; each is a name, and a value behind a colon if it takes one. A value
//! in single quotes may hold commas; `\'` stands for the quote itself.

use super::passage::{Passage, Snippet};
use super::text::name_len;
use crate::seclang::diagnostic::{Code, Diagnostic};

/// One item of an action list.
pub(super) struct Item<'p> {
    pub(super) name: Snippet<'p>,
    pub(super) value: Option<Value<'p>>,
}

/// The value of an item.
pub(super) enum Value<'p> {
    /// Without quotes, and without white space at its ends.
    Bare(Snippet<'p>),
    /// What was between the quotes.
    Quoted(Passage),
}

impl Value<'_> {
    pub(super) fn text(&self) -> Snippet<'_> {
        match self {
            Self::Bare(text) => *text,
            Self::Quoted(passage) => passage.whole(),
        }
    }
}

/// The items of a list.
pub(super) struct Items<'p> {
    rest: Snippet<'p>,
}

impl<'p> Items<'p> {
    pub(super) fn new(list: Snippet<'p>) -> Self {
        Self { rest: list }
    }

    /// The next item; none at the end. Behind a mistake, the list cannot be read on.
    pub(super) fn next(&mut self) -> Result<Option<Item<'p>>, Diagnostic> {
        // Commas too many do no harm: every engine passes over them.
        let is_filler = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
        let filler = self.rest.bytes().iter().position(|byte| !is_filler(byte));
        self.rest = self.rest.from(filler.unwrap_or(self.rest.len()));
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (name, behind) = self.rest.split_at(name_len(self.rest.bytes()));
        if name.is_empty() {
            let message = format!("expected an action, found {}", self.rest.shown());
            return Err(Diagnostic::new(self.rest.location(), Code::Syntax, message));
        }
        let behind = behind.trim_start();
        let Some(value) = behind.strip_prefix(b':') else {
            self.rest = behind;
            self.separator("an action")?;
            return Ok(Some(Item { name, value: None }));
        };
        let value = self.value(value.trim_start())?;
        Ok(Some(Item { name, value: Some(value) }))
    }

    fn value(&mut self, text: Snippet<'p>) -> Result<Value<'p>, Diagnostic> {
        let Some(inside) = text.strip_prefix(b'\'') else {
            let (value, rest) = text.split_at(bare_end(text.bytes()));
            self.rest = rest;
            return Ok(Value::Bare(value.trim()));
        };
        let Some(end) = inside.closing(b'\'') else {
            let message = "the single quote that opens here is never closed";
            return Err(Diagnostic::new(text.location(), Code::Syntax, message)
                .hint("inside of single quotes, a single quote is written `\\'`"));
        };
        self.rest = inside.from(end + 1).trim_start();
        self.separator("a value in quotes")?;
        Ok(Value::Quoted(inside.slice(0..end).unescaped(b'\'')))
    }

    /// Sees to it that the list ends here or goes on with a comma.
    fn separator(&self, behind: &str) -> Result<(), Diagnostic> {
        if matches!(self.rest.bytes(), [] | [b',', ..]) {
            return Ok(());
        }
        let message = format!("expected a comma behind {behind}, found {}", self.rest.shown());
        let diagnostic = Diagnostic::new(self.rest.location(), Code::Syntax, message);
        Err(if behind == "an action" {
            diagnostic
        } else {
            diagnostic.hint("inside of single quotes, a single quote is written `\\'`")
        })
    }
}

/// Where a value without quotes ends: at a comma, unless it stands in a quoted part (the selector of
/// `ctl:ruleRemoveTargetById=1;ARGS:'a,b'`).
fn bare_end(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() && bytes[at] != b',' {
        let opens = matches!(bytes[at], b':' | b'=') && bytes.get(at + 1) == Some(&b'\'');
        if opens && let Some(end) = memchr::memchr(b'\'', &bytes[at + 2..]) {
            at += 2 + end;
        }
        at += 1;
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn check(source: &str, expected: &[&str], mistake: Option<&str>) {
        let mut passage = Passage::new(&Arc::from("f"));
        passage.push(source.as_bytes(), 1, 1);
        let mut items = Items::new(passage.whole());
        let mut found = Vec::new();
        let failure = loop {
            match items.next() {
                Ok(Some(Item { name, value })) => found.push(match value {
                    None => String::from_utf8_lossy(name.bytes()).into_owned(),
                    Some(value) => format!(
                        "{}={}@{}",
                        String::from_utf8_lossy(name.bytes()),
                        String::from_utf8_lossy(value.text().bytes()),
                        value.text().location().column
                    ),
                }),
                Ok(None) => break None,
                Err(diagnostic) => break Some(diagnostic.to_string()),
            }
        };
        assert_eq!(found, expected, "{source}");
        assert_eq!(failure.as_deref(), mistake, "{source}");
    }

    #[test]
    fn lists_are_cut() {
        check("", &[], None);
        check("id:1,deny", &["id=1@4", "deny"], None);
        check(" id : 1 , deny , ", &["id=1@7", "deny"], None);
        check("msg:'a, b',t:none", &["msg=a, b@6", "t=none@14"], None);
        check(r"msg:'it\'s\d\\',deny", &[r"msg=it's\d\\@6", "deny"], None);
        check("msg:it's,deny", &["msg=it's@5", "deny"], None);
        check("ctl:a=1;ARGS:'b,c',deny", &["ctl=a=1;ARGS:'b,c'@5", "deny"], None);
        check("tag:a b,,deny", &["tag=a b@5", "deny"], None);
        check("msg:,deny", &["msg=@5", "deny"], None);
        check("msg:''", &["msg=@6"], None);
        check("setvar:tx.a=%{tx.b}", &["setvar=tx.a=%{tx.b}@8"], None);
    }

    #[test]
    fn lists_that_are_not_well_formed_are_told() {
        check("id:1,!deny", &["id=1@4"], Some("f:1:6: [syntax] expected an action, found `!deny`"));
        check(
            "deny log",
            &[],
            Some("f:1:6: [syntax] expected a comma behind an action, found `log`"),
        );
        check(
            "id:'1' log",
            &[],
            Some(
                "f:1:8: [syntax] expected a comma behind a value in quotes, found `log`; inside of single quotes, a single quote is written `\\'`",
            ),
        );
        check(
            "msg:'it's'",
            &[],
            Some(
                "f:1:9: [syntax] expected a comma behind a value in quotes, found `s'`; inside of single quotes, a single quote is written `\\'`",
            ),
        );
        check(
            "log,msg:'it",
            &["log"],
            Some(
                "f:1:9: [syntax] the single quote that opens here is never closed; inside of single quotes, a single quote is written `\\'`",
            ),
        );
    }
}
