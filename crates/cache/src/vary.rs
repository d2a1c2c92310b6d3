//! Which of several responses under one key a request selects (RFC 9111, section 4.1).
//!
//! What a response varies by is read once. From it and a request follows a text, the same for all
//! requests that select the response, and of the text a hash: the variant. Values are brought into
//! one form, as far as their meaning allows: lists lose their white space, languages their order and
//! case, and of the codings a client accepts only those count that the gate tells apart.

use crate::coding::{Codings, weighted};
use crate::hash::Seed;
use crate::key;
use tidegate_http::Headers;
use tidegate_http::field::{self, Known};

/// How many fields a response may vary by.
pub const FIELDS_MAX: usize = 16;
/// How many different `Vary` are remembered for one key.
pub const SPECS_MAX: usize = 8;
/// How many languages are put in order; a longer list counts as it stands.
const LANGUAGES_MAX: usize = 32;

/// What a response varies by. Empty where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vary {
    /// In ascending order of their names, each once.
    fields: Box<[Field]>,
}

/// A field of the request that a response varies by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    /// In small letters.
    name: Box<[u8]>,
    form: Form,
}

/// The form in which values of a field are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Form {
    /// As the set of [`Codings`] it accepts.
    Codings = b'e',
    /// As weighted languages in one order.
    Languages = b'l',
    /// As a list without white space around its commas.
    List = b'v',
}

/// Why a response cannot be selected by any other request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaryError {
    /// It varies by more than its request's fields: `*`, or what is no field's name.
    Anything,
    /// It varies by more than [`FIELDS_MAX`] fields.
    TooMany,
}

impl Vary {
    /// Reads the `Vary` of a response to a request.
    ///
    /// If the response has a coding that the request, as we understand it, does not accept, the
    /// origin understood it otherwise, and codings are compared as they stand.
    pub fn of(response: &Headers, request: &Headers) -> Result<Vary, VaryError> {
        let mut names: Vec<Box<[u8]>> = Vec::new();
        for name in response.all(Known::Vary).flat_map(field::list) {
            // `*` is a name by the grammar of tokens.
            if name == b"*" || !field::is_name(name) {
                return Err(VaryError::Anything);
            }
            let name = name.to_ascii_lowercase().into_boxed_slice();
            if let Err(place) = names.binary_search(&name) {
                if names.len() == FIELDS_MAX {
                    return Err(VaryError::TooMany);
                }
                names.insert(place, name);
            }
        }
        let form = |name: &[u8]| match Known::of(name) {
            Known::AcceptEncoding if Codings::accepted(request).hold_coding_of(response) => {
                Form::Codings
            }
            Known::AcceptLanguage => Form::Languages,
            _ => Form::List,
        };
        let fields = names.into_iter().map(|name| Field { form: form(&name), name }).collect();
        Ok(Vary { fields })
    }

    /// Whether the response is the same for all requests.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The names of the fields, in small letters.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.fields.iter().map(|field| &*field.name)
    }

    /// The variant that a request selects. `text` is a place to work in; it holds the variant's text
    /// afterwards.
    pub fn variant(&self, request: &Headers, seed: &Seed, text: &mut Vec<u8>) -> u64 {
        self.write(request, text);
        seed.hash(text)
    }

    /// Whether two requests select the same response.
    pub fn is_same(&self, one: &Headers, other: &Headers) -> bool {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        self.write(one, &mut first);
        self.write(other, &mut second);
        first == second
    }

    fn write(&self, request: &Headers, text: &mut Vec<u8>) {
        text.clear();
        for field in &self.fields {
            // The form is part of the text: what is equal in one is not what is equal in another.
            key::push(text, &field.name);
            text.extend_from_slice(&[0, field.form as u8]);
            match field.form {
                Form::Codings => text.push(b'0' | Codings::accepted(request).bits()),
                Form::Languages => write_languages(request, text),
                Form::List => write_list(request.named(&field.name), text),
            }
            text.push(0);
        }
    }

    /// Its bytes, to be kept.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for field in &self.fields {
            out.push(field.form as u8);
            out.extend_from_slice(&field.name);
            out.push(0);
        }
    }

    /// What [`Vary::encode`] wrote; `None` if it did not.
    pub fn decode(bytes: &[u8]) -> Option<Vary> {
        let mut fields = Vec::new();
        let mut rest = bytes;
        while let [form, behind @ ..] = rest {
            let form = match form {
                b'e' => Form::Codings,
                b'l' => Form::Languages,
                b'v' => Form::List,
                _ => return None,
            };
            let end = behind.iter().position(|&byte| byte == 0)?;
            let name = &behind[..end];
            if !field::is_name(name) || fields.len() == FIELDS_MAX {
                return None;
            }
            fields.push(Field { name: name.into(), form });
            rest = &behind[end + 1..];
        }
        let fields = fields.into_boxed_slice();
        fields.is_sorted_by(|one, other| one.name < other.name).then_some(Vary { fields })
    }
}

/// What the responses under one key vary by: usually one thing, sometimes several, as origins forget
/// the field on some answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VarySet {
    /// The latest first.
    specs: Vec<Vary>,
}

impl VarySet {
    /// A set of one.
    pub fn new(vary: Vary) -> VarySet {
        VarySet { specs: vec![vary] }
    }

    /// The set with another `Vary` in front, or `None` where it is there already. The oldest of
    /// more than [`SPECS_MAX`] is forgotten; what varied by it is not found again.
    pub fn with(&self, vary: &Vary) -> Option<VarySet> {
        if self.specs.first() == Some(vary) {
            return None;
        }
        let others = self.specs.iter().filter(|spec| *spec != vary);
        let specs = std::iter::once(vary).chain(others).take(SPECS_MAX).cloned().collect();
        Some(VarySet { specs })
    }

    /// What is in it, the latest first.
    pub fn specs(&self) -> &[Vary] {
        &self.specs
    }

    /// Its bytes, to be kept.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for vary in &self.specs {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            vary.encode(out);
            // A head is limited to a few hundred KB long before this could saturate.
            let len = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
            out[start..start + 4].copy_from_slice(&len.to_le_bytes());
        }
    }

    /// What [`VarySet::encode`] wrote; `None` if it did not.
    pub fn decode(bytes: &[u8]) -> Option<VarySet> {
        let mut specs = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() && specs.len() < SPECS_MAX {
            let (len, behind) = rest.split_first_chunk()?;
            let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
            let (vary, behind) = behind.split_at_checked(len)?;
            specs.push(Vary::decode(vary)?);
            rest = behind;
        }
        rest.is_empty().then_some(VarySet { specs })
    }

    /// The variants under which responses to a request may lie, the latest `Vary` first. Of several
    /// that are there the one with the most recent `Date` is to be used: see [`most_recent`].
    pub fn variants(
        &self,
        request: &Headers,
        seed: &Seed,
        text: &mut Vec<u8>,
    ) -> impl Iterator<Item = u64> {
        self.specs.iter().map(move |vary| vary.variant(request, seed, text))
    }
}

/// Of several responses that a request selects, the one with the most recent `Date`, and of those the
/// one that came last (RFC 9111, section 4).
pub fn most_recent<T>(
    candidates: impl IntoIterator<Item = T>,
    stored: impl Fn(&T) -> &crate::stored::Stored,
) -> Option<T> {
    candidates.into_iter().max_by_key(|candidate| {
        let stored = stored(candidate);
        (stored.date(), stored.received())
    })
}

/// All lines of a list as one, without empty members and white space around commas.
fn write_list<'a>(lines: impl Iterator<Item = &'a [u8]>, text: &mut Vec<u8>) {
    let mut before = b':';
    for line in lines {
        // One that is there and empty is not one that is not there.
        if before == b':' {
            text.push(before);
            before = 0;
        }
        for member in field::list(line) {
            if before == b',' {
                text.push(before);
            }
            before = b',';
            key::push(text, member);
        }
    }
}

/// Languages by their weight and then by their name: their order says nothing (RFC 9110, section
/// 12.5.4).
fn write_languages(request: &Headers, text: &mut Vec<u8>) {
    let mut languages = [(0_u16, &[][..]); LANGUAGES_MAX];
    let mut count = 0;
    for member in request.all(Known::AcceptLanguage).flat_map(field::tokens) {
        let Some(place) = languages.get_mut(count) else {
            text.extend_from_slice(&[0, b'=']);
            write_list(request.all(Known::AcceptLanguage), text);
            return;
        };
        let (language, quality) = weighted(member);
        *place = (1000 - quality, language);
        count += 1;
    }
    let languages = &mut languages[..count];
    let lower = |byte: &u8| byte.to_ascii_lowercase();
    languages.sort_unstable_by(|(weight, one), (other_weight, other)| {
        let names = one.iter().map(lower).cmp(other.iter().map(lower));
        weight.cmp(other_weight).then(names)
    });
    for (weight, language) in languages {
        let start = text.len();
        key::push(text, language);
        text[start..].make_ascii_lowercase();
        text.push(b';');
        tidegate_http::write::decimal(text, (1000 - *weight).into());
        text.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in lines {
            headers.push(name.as_bytes(), value.as_bytes());
        }
        headers
    }

    fn vary(lines: &[&str]) -> Result<Vec<String>, VaryError> {
        let lines: Vec<_> = lines.iter().map(|line| ("Vary", *line)).collect();
        let vary = Vary::of(&headers(&lines), &Headers::new())?;
        Ok(vary.names().map(|name| String::from_utf8(name.to_vec()).unwrap()).collect())
    }

    /// Whether a response to `first` with this `Vary` is selected by `second`.
    fn check(names: &str, first: &[(&str, &str)], second: &[(&str, &str)], expected: bool) {
        let (first, second) = (headers(first), headers(second));
        let vary = Vary::of(&headers(&[("Vary", names)]), &first).unwrap();
        assert_eq!(vary.is_same(&first, &second), expected, "{names}: {first:?} {second:?}");
        let seed = Seed::new([1; 16]);
        let (mut one, mut two) = (Vec::new(), Vec::new());
        let same = vary.variant(&first, &seed, &mut one) == vary.variant(&second, &seed, &mut two);
        assert_eq!(same, expected);
    }

    #[test]
    fn a_star_anywhere_is_anything() {
        for lines in [
            &["*"][..],
            &["*, *"],
            &["*", "*"],
            &[", *"],
            &["", "*"],
            &["*, Foo"],
            &["Foo, *"],
            &["Foo", "Bar", "*"],
            &["Foo Bar"],
            &["\"Foo\""],
        ] {
            assert_eq!(vary(lines), Err(VaryError::Anything), "{lines:?}");
        }
    }

    #[test]
    fn names_are_a_set() {
        let check = |lines: &[&str], expected: &[&str]| {
            assert_eq!(vary(lines).unwrap(), expected, "{lines:?}");
        };
        check(&[], &[]);
        check(&[""], &[]);
        check(&[", ,"], &[]);
        check(&["Foo, Bar", "bar, FOO"], &["bar", "foo"]);
        let many: Vec<_> = (0..=FIELDS_MAX).map(|number| format!("a{number}")).collect();
        assert_eq!(vary(&[&many.join(",")]), Err(VaryError::TooMany));
        assert_eq!(vary(&[&many[1..].join(",")]).unwrap().len(), FIELDS_MAX);
    }

    #[test]
    fn requests_are_the_same_in_all_named_fields() {
        // RFC 9111, section 4.1
        check("Foo", &[("Foo", "1")], &[("Foo", "1")], true);
        check("Foo", &[("Foo", "1")], &[("Foo", "2")], false);
        check("Foo", &[], &[("Foo", "1")], false);
        check("Foo", &[("Foo", "1")], &[], false);
        check("Foo", &[], &[], true);
        check("Foo", &[], &[("Foo", "")], false);
        check("foo", &[("FOO", "1")], &[("Foo", "1")], true);
        check("Foo", &[("Foo", "1"), ("Other", "2")], &[("Foo", "1"), ("Other", "3")], true);
        let two = [("Foo", "1"), ("Bar", "abc")];
        check("Foo, Bar", &two, &two, true);
        check("Foo, Bar", &two, &[("Foo", "2"), ("Bar", "abc")], false);
        check("Foo, Bar", &two, &[], false);
        check("Foo, Bar", &[("Foo", "abc"), ("Bar", "1")], &two, false);
        let three = [("Foo", "1"), ("Bar", "abc"), ("Baz", "789")];
        check("Foo, Bar, Baz", &three, &three, true);
        check("Foo, Bar, Baz", &three, &[("Foo", "1"), ("Baz", "789"), ("Bar", "abcde")], false);
        let omitted = [("Foo", "1"), ("Baz", "789")];
        check("Foo, Bar, Baz", &omitted, &omitted, true);
    }

    #[test]
    fn lists_lose_their_white_space() {
        check("Foo", &[("Foo", "1, 2")], &[("Foo", "1"), ("Foo", "2")], true);
        check("Foo", &[("Foo", "1,2")], &[("Foo", " 1, 2 ")], true);
        check("Foo", &[("Foo", "1,2")], &[("Foo", "1,, 2,")], true);
        check("Foo", &[("Foo", "1,2")], &[("Foo", "2,1")], false);
        check("Foo", &[("Foo", "a b")], &[("Foo", "ab")], false);
        check("Foo", &[("Foo", "a")], &[("Foo", "A")], false);
        check("Foo", &[("Foo", "\"1, 2\"")], &[("Foo", "\"1,2\"")], false);
        check("Foo, Goo", &[("Foo", "1")], &[("Goo", "1")], false);
    }

    #[test]
    fn languages_lose_order_and_case() {
        let check = |one: &str, other: &str, expected| {
            check(
                "Accept-Language",
                &[("Accept-Language", one)],
                &[("Accept-Language", other)],
                expected,
            );
        };
        check("en, de", "de, en", true);
        check("en, de", "eN, De", true);
        check("en, de", " en ,   de", true);
        check("en;q=0.5, de", "de;q=1, en;Q=0.50", true);
        check("en;q=0.5, de", "en, de;q=0.5", false);
        check("en;q=0", "en", false);
        check("en", "en-GB", false);
        check("", "en", false);
        let many = |first: &str| format!("{first}{}", ",x".repeat(LANGUAGES_MAX));
        check(&many("a,b"), &many("a, b"), true);
        check(&many("a,b"), &many("b,a"), false);
    }

    #[test]
    fn codings_share_variants_where_all_are_understood() {
        let check = |coding: &str, one: &str, other: &str, expected: bool| {
            let mut response = headers(&[("Vary", "Accept-Encoding")]);
            if !coding.is_empty() {
                response.push(b"Content-Encoding", coding.as_bytes());
            }
            let (one, other) =
                (headers(&[("Accept-Encoding", one)]), headers(&[("Accept-Encoding", other)]));
            let vary = Vary::of(&response, &one).unwrap();
            assert_eq!(vary.is_same(&one, &other), expected, "{coding} {one:?} {other:?}");
        };
        check("gzip", "gzip, deflate, br", "br;q=0.9, gzip", true);
        check("gzip", "gzip", "br, gzip", false);
        check("", "gzip", "deflate, gzip", true);
        check("deflate", "deflate, gzip", "gzip", false);
        check("deflate", "deflate, gzip", "deflate,gzip", true);
        check("gzip", "br", "br, zstd;q=0", false);
        check("", "identity;q=0, gzip", "gzip, identity;q=0", false);
    }

    #[test]
    fn what_is_kept_comes_back() {
        let request = headers(&[("Accept-Encoding", "gzip")]);
        for names in ["", "Foo", "Foo, Accept-Encoding, Accept-Language, Bar"] {
            let vary = Vary::of(&headers(&[("Vary", names)]), &request).unwrap();
            let mut bytes = Vec::new();
            vary.encode(&mut bytes);
            assert_eq!(Vary::decode(&bytes), Some(vary), "{names}");
        }
        for bytes in [&b"x"[..], b"v", b"va", b"v\0", b"vb\0va\0", b"va\0va\0", b"v \0"] {
            assert_eq!(Vary::decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_set_keeps_the_latest() {
        let spec = |name: &str| Vary::of(&headers(&[("Vary", name)]), &Headers::new()).unwrap();
        let set = VarySet::new(spec("a")).with(&spec("b")).unwrap();
        assert_eq!(set.specs(), [spec("b"), spec("a")]);
        assert_eq!(set.with(&spec("b")), None);
        let set = set.with(&spec("a")).unwrap();
        assert_eq!(set.specs(), [spec("a"), spec("b")]);
        let full = (0..20).fold(set, |set, number| set.with(&spec(&format!("x{number}"))).unwrap());
        assert_eq!(full.specs().len(), SPECS_MAX);
        for set in [VarySet::default(), VarySet::new(Vary::default()), full.clone()] {
            let mut bytes = Vec::new();
            set.encode(&mut bytes);
            assert_eq!(VarySet::decode(&bytes), Some(set));
            bytes.push(1);
            assert_eq!(VarySet::decode(&bytes), None);
        }
        assert_eq!(full.specs()[0], spec("x19"));
    }
}
