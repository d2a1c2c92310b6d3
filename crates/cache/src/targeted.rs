//! Targeted cache control (RFC 9213): fields that speak to this cache, or to caches of its kind, in
//! the place of `Cache-Control` and `Expires`.
//!
//! They are Dictionaries (RFC 9651), which are read strictly: a field that is none, or an empty one,
//! is as if it were not there. Of the directives in a valid field, one with a value of the wrong kind
//! is not believed where it allows something, and is where it restricts.

use crate::directive::{Argument, Delta, Flag, ResponseDirectives};
use sfv::visitor::{DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor};
use sfv::{BareItemFromInput, KeyRef, Parser};
use std::borrow::Cow;
use std::convert::Infallible;
use tidegate_http::Headers;

/// The fields that speak to this cache, the first valid one counts (RFC 9213, section 2.2).
pub const TARGETS: [&str; 2] = ["Tidegate-Cache-Control", "CDN-Cache-Control"];

/// The directives that hold for a response, and where they are from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// What it says.
    pub directives: ResponseDirectives,
    /// Which field says it.
    pub source: Source,
}

/// Which field speaks to this cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// `Cache-Control`, or none; `Expires` counts, too.
    #[default]
    CacheControl,
    /// One of [`TARGETS`]; `Cache-Control` and `Expires` do not count.
    Targeted,
}

impl Control {
    /// Reads what a response says to this cache.
    pub fn of(response: &Headers) -> Control {
        for target in TARGETS {
            if let Some(directives) = read(response.named(target.as_bytes())) {
                return Control { directives, source: Source::Targeted };
            }
        }
        let directives = ResponseDirectives::of(response);
        Control { directives, source: Source::CacheControl }
    }
}

/// The directives of one targeted field, which may have several lines. `None` if it is not there,
/// empty, or no Dictionary.
pub fn read<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Option<ResponseDirectives> {
    let first = lines.next()?;
    let mut text = Cow::Borrowed(first);
    for line in lines {
        let joined = text.to_mut();
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(line);
    }
    let mut read = Dictionary::default();
    Parser::new(text.as_ref()).parse_dictionary_with_visitor(&mut read).ok()?;
    (!read.is_empty).then(|| read.directives())
}

/// The members that mean something to us; of a key that comes twice the last one stays (RFC 9651,
/// section 4.2.2), and so nothing is concluded before the end.
struct Dictionary {
    is_empty: bool,
    members: [Value; NAMES.len()],
}

const NAMES: [&str; 13] = [
    "max-age",
    "s-maxage",
    "stale-while-revalidate",
    "stale-if-error",
    "no-cache",
    "private",
    "no-store",
    "public",
    "must-revalidate",
    "proxy-revalidate",
    "must-understand",
    "no-transform",
    "immutable",
];

/// A member's value, as far as any directive has such a one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Value {
    #[default]
    Absent,
    True,
    False,
    Integer(i64),
    Text(Box<[u8]>),
    Other,
}

impl Default for Dictionary {
    fn default() -> Self {
        Dictionary { is_empty: true, members: std::array::from_fn(|_| Value::Absent) }
    }
}

impl Dictionary {
    fn directives(&self) -> ResponseDirectives {
        let mut directives = ResponseDirectives::default();
        for (name, value) in NAMES.into_iter().zip(&self.members) {
            match (name, value) {
                (_, Value::Absent | Value::False) => {}
                ("max-age", value) => directives.max_age = delta(value),
                ("s-maxage", value) => directives.s_maxage = delta(value),
                ("stale-while-revalidate", value) => {
                    directives.stale_while_revalidate = delta(value);
                }
                ("stale-if-error", value) => directives.stale_if_error = delta(value),
                ("no-cache" | "private", Value::Text(list)) => {
                    directives.take(name.as_bytes(), Argument::Quoted(list));
                }
                ("public" | "immutable" | "must-understand", Value::True) => {
                    directives.take(name.as_bytes(), Argument::Absent);
                }
                ("public" | "immutable" | "must-understand", _) => {}
                // The rest restricts.
                (_, _) => directives.take(name.as_bytes(), Argument::Absent),
            }
        }
        directives
    }
}

/// A number of seconds is an Integer, and nothing else is made to be one (RFC 9213, section 2.1).
fn delta(value: &Value) -> Delta {
    match value {
        Value::Integer(seconds) => u64::try_from(*seconds).map_or(Delta::Invalid, |seconds| {
            let most = u64::from(crate::directive::DELTA_SECONDS_MAX);
            Delta::Seconds(u32::try_from(seconds.min(most)).unwrap_or(u32::MAX))
        }),
        _ => Delta::Invalid,
    }
}

impl<'de> DictionaryVisitor<'de> for &mut Dictionary {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Infallible> {
        self.is_empty = false;
        let place = NAMES.iter().position(|name| *name == key.as_str());
        Ok(place.and_then(|place| self.members.get_mut(place)).map(Member))
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

struct Member<'a>(&'a mut Value);

impl<'de> EntryVisitor<'de> for Member<'_> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Infallible> {
        Ok(|item: BareItemFromInput<'de>| {
            *self.0 = match item {
                BareItemFromInput::Boolean(true) => Value::True,
                BareItemFromInput::Boolean(false) => Value::False,
                BareItemFromInput::Integer(number) => Value::Integer(number.into()),
                BareItemFromInput::String(text) => Value::Text(text.as_str().as_bytes().into()),
                BareItemFromInput::Token(text) => Value::Text(text.as_str().as_bytes().into()),
                _ => Value::Other,
            };
            Ok::<_, Infallible>(Ignored)
        })
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Infallible> {
        *self.0 = Value::Other;
        Ok(Ignored)
    }
}

// The flags that a targeted field may set are those that `Cache-Control` may.
const _: () = assert!(NAMES.len() == 6 + Flag::ALL.len());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directive::Scope;
    use tidegate_http::field::Known;

    fn check(lines: &[&str], expected: Option<&ResponseDirectives>) {
        let read = read(lines.iter().map(|line| line.as_bytes()));
        assert_eq!(read.as_ref(), expected, "{lines:?}");
    }

    fn age(seconds: u32) -> ResponseDirectives {
        ResponseDirectives { max_age: Delta::Seconds(seconds), ..Default::default() }
    }

    fn flag(flag: Flag) -> ResponseDirectives {
        let mut directives = ResponseDirectives::default();
        directives.flags.set(flag);
        directives
    }

    #[test]
    fn a_dictionary_is_read() {
        // RFC 9213, section 2.1
        check(&["max-age=3600"], Some(&age(3600)));
        check(&["foobar, max-age=3600"], Some(&age(3600)));
        check(&["max-age=3600;x=1;y"], Some(&age(3600)));
        check(&["max-age=2147483648"], Some(&age(1 << 31)));
        check(&["max-age=99999999999"], Some(&age(1 << 31)));
        check(&["a=1", "max-age=3600"], Some(&age(3600)));
        check(&["max-age=1, max-age=2"], Some(&age(2)));
        check(&["foo"], Some(&ResponseDirectives::default()));
        check(&["no-store"], Some(&flag(Flag::NoStore)));
        let fields = |names: &[&str]| {
            Scope::Fields(names.iter().map(|name| Box::from(name.as_bytes())).collect())
        };
        check(
            &["no-cache=\"a, B\", private"],
            Some(&ResponseDirectives {
                no_cache: fields(&["a", "b"]),
                private: Scope::Response,
                ..Default::default()
            }),
        );
    }

    #[test]
    fn what_is_no_dictionary_is_not_there() {
        check(&[], None);
        for text in [
            "",
            " ",
            "&&&&&",
            "max-age=10000, &&&&&",
            "MaX-aGe=3600",
            "max-age =100",
            "max-age= 100",
            "max-age=1,",
            ",max-age=1",
            "max-age=1 max-age=2",
            "max-age=\"1",
        ] {
            check(&[text], None);
        }
        check(&["max-age=1", ""], None);
    }

    #[test]
    fn values_of_the_wrong_kind_allow_nothing() {
        let stale = ResponseDirectives { max_age: Delta::Invalid, ..Default::default() };
        for text in [
            "max-age=\"10000\"",
            "max-age=1.5",
            "max-age=-1",
            "max-age=a",
            "max-age",
            "max-age=(1 2)",
            "max-age=:YQ==:",
        ] {
            check(&[text], Some(&stale));
        }
        check(
            &["public=1, immutable=\"a\", must-understand=2"],
            Some(&ResponseDirectives::default()),
        );
        check(&["no-store=1"], Some(&flag(Flag::NoStore)));
        check(&["no-store=?0, max-age=?0"], Some(&ResponseDirectives::default()));
        let private = ResponseDirectives { private: Scope::Response, ..Default::default() };
        check(&["private=1"], Some(&private));
    }

    #[test]
    fn the_first_valid_field_counts_alone() {
        // RFC 9213, section 2.2
        let check = |fields: &[(&str, &str)], source, directives: ResponseDirectives| {
            let mut headers = Headers::new();
            for (name, value) in fields {
                headers.push(name.as_bytes(), value.as_bytes());
            }
            assert_eq!(Control::of(&headers), Control { directives, source }, "{fields:?}");
        };
        let (own, cdn, all) = (TARGETS[0], TARGETS[1], Known::CacheControl.name());
        check(&[(all, "no-store"), (cdn, "max-age=1")], Source::Targeted, age(1));
        check(&[(cdn, "no-store"), (own, "max-age=2")], Source::Targeted, age(2));
        check(&[(cdn, "max-age=3"), (own, "")], Source::Targeted, age(3));
        check(&[(cdn, "max-age=3"), (own, "&")], Source::Targeted, age(3));
        check(&[(cdn, "&"), (all, "max-age=4")], Source::CacheControl, age(4));
        check(&[(cdn, ""), (all, "max-age=4")], Source::CacheControl, age(4));
        check(
            &[("Other-Cache-Control", "no-store"), (all, "max-age=4")],
            Source::CacheControl,
            age(4),
        );
        check(&[(&cdn.to_lowercase(), "max-age=5")], Source::Targeted, age(5));
        check(&[], Source::CacheControl, ResponseDirectives::default());
    }
}
