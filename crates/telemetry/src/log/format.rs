//! Formats of lines, compiled once from names and templates.

use std::fmt;

use super::field::{FIELDS, Field, Line};
use super::time::Times;
use super::{entry, rules};

/// How a log's lines look.
#[derive(Clone, Debug)]
pub struct Format {
    shape: Shape,
    pieces: Vec<Piece>,
    /// What follows the last piece.
    tail: Box<[u8]>,
    name: &'static str,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Text: an absent field is a hyphen.
    Text,
    /// One JSON object: an absent field is left out, with its key.
    Json,
    /// A line of text for each matched rule of the WAF.
    Rules,
    /// The same as JSON objects.
    RulesJson,
    /// The audit log's entry, which the WAF writes.
    Audit,
    /// The request itself.
    Recorded,
}

/// What a log is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Each request.
    Requests,
    /// The rules of the WAF that matched.
    Matches,
    /// What the WAF's audit log takes.
    Audit,
    /// The requests themselves, to be run through rules again.
    Recorded,
}

/// A field and what stands before it: literal text, or a comma and the key.
#[derive(Clone, Debug)]
struct Piece {
    before: Box<[u8]>,
    field: &'static Field,
}

/// Apache's combined log format. The third field, the user, is not known to the gate.
pub(super) const COMBINED: &str = "$client_addr - - [$time_clf] \"$request_line\" $status \
    $body_bytes_clf \"$referer\" \"$user_agent\"";

/// Nothing that tells of a person: no address, query, referrer, agent or certificate.
pub(super) const PRIVACY: &str = "$time $request_id $host \"$method $path $protocol\" $status \
    $bytes_in $bytes_out $request_time $outcome $server";

/// The fields of the `json` format, in order.
pub(super) const JSON: &[&str] = &[
    "time",
    "request_id",
    "client_addr",
    "client_port",
    "protocol",
    "tls_version",
    "method",
    "host",
    "path",
    "query",
    "status",
    "outcome",
    "timed_out",
    "side",
    "reason",
    "bytes_in",
    "bytes_out",
    "duration_ms",
    "site",
    "route",
    "group",
    "server",
    "upstream_connection",
    "upstream_status",
    "retries",
    "cache",
    "cache_reason",
    "fill_wait_ms",
    "pool_wait_ms",
    "connect_ms",
    "upstream_tls_ms",
    "first_byte_ms",
    "body_ms",
    "write_ms",
    "waf_verdict",
    "waf_rule",
    "waf_score",
    "waf_rules",
    "waf_ms",
    "referer",
    "user_agent",
];

/// What is wrong with a template or a list of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// The byte in the template, or the position in the list, counted from zero.
    pub at: usize,
    /// What is wrong there.
    pub problem: FormatProblem,
}

/// A mistake in a template or a list of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatProblem {
    /// No such field.
    UnknownField {
        /// As written.
        name: String,
        /// The field that may be meant.
        suggestion: Option<&'static str>,
    },
    /// A `${` without its `}`.
    Unclosed,
    /// A `$` that is followed by no name; a dollar itself is `$$`.
    NoName,
    /// A control character, which would break the line.
    Control,
    /// No field at all.
    Empty,
    /// A field that the list has already.
    Twice {
        /// As written.
        name: String,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            FormatProblem::UnknownField { name, suggestion: Some(suggestion) } => {
                write!(f, "no log field is called `{name}`; did you mean `{suggestion}`?")
            }
            FormatProblem::UnknownField { name, suggestion: None } => {
                write!(f, "no log field is called `{name}`")
            }
            FormatProblem::Unclosed => f.write_str("`${` is not closed by `}`"),
            FormatProblem::NoName => {
                f.write_str("`$` is followed by no field name; write `$$` for a dollar")
            }
            FormatProblem::Control => f.write_str("a log line cannot hold a control character"),
            FormatProblem::Empty => f.write_str("a log line needs at least one field"),
            FormatProblem::Twice { name } => write!(f, "`{name}` is listed twice"),
        }
    }
}

impl std::error::Error for FormatError {}

impl Format {
    /// Apache's combined log format.
    pub fn combined() -> Format {
        Format { name: "combined", ..Format::predefined(Format::template(COMBINED)) }
    }

    /// A line that tells nothing of a person.
    pub fn privacy() -> Format {
        Format { name: "privacy", ..Format::predefined(Format::template(PRIVACY)) }
    }

    /// A JSON object of the usual fields.
    pub fn json() -> Format {
        Format { name: "json", ..Format::predefined(Format::json_of(JSON)) }
    }

    /// A line for each matched rule of the WAF, as ModSecurity's error log words it.
    pub fn waf() -> Format {
        Format { shape: Shape::Rules, pieces: Vec::new(), tail: Box::default(), name: "waf" }
    }

    /// A JSON object for each matched rule of the WAF.
    pub fn waf_json() -> Format {
        Format { shape: Shape::RulesJson, name: "waf_json", ..Format::waf() }
    }

    /// The audit log of the WAF; the rule set says what it holds and how it is written.
    pub fn audit() -> Format {
        Format { shape: Shape::Audit, name: "audit", ..Format::waf() }
    }

    /// The requests that the WAF has looked at, with their secrets masked.
    pub fn requests() -> Format {
        Format { shape: Shape::Recorded, name: "requests", ..Format::waf() }
    }

    /// The names of formats.
    pub const NAMES: &'static [&'static str] =
        &["combined", "json", "privacy", "waf", "waf_json", "audit", "requests"];

    /// The format of a name among [`NAMES`](Self::NAMES).
    pub fn named(name: &str) -> Option<Format> {
        match name {
            "combined" => Some(Format::combined()),
            "json" => Some(Format::json()),
            "privacy" => Some(Format::privacy()),
            "waf" => Some(Format::waf()),
            "waf_json" => Some(Format::waf_json()),
            "audit" => Some(Format::audit()),
            "requests" => Some(Format::requests()),
            _ => None,
        }
    }

    /// The format's name; `template` or `fields` for those that users make.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What a log of this format is about.
    pub fn content(&self) -> Content {
        match self.shape {
            Shape::Text | Shape::Json => Content::Requests,
            Shape::Rules | Shape::RulesJson => Content::Matches,
            Shape::Audit => Content::Audit,
            Shape::Recorded => Content::Recorded,
        }
    }

    /// A line of text with fields, as in `$client_addr - ${status}s $$1`.
    pub fn template(template: &str) -> Result<Format, FormatError> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut at = 0;
        while let Some(char) = template[at..].chars().next() {
            let after = at + char.len_utf8();
            let fail = |problem| Err(FormatError { at, problem });
            if char.is_control() {
                return fail(FormatProblem::Control);
            }
            if char != '$' {
                literal.extend_from_slice(&template.as_bytes()[at..after]);
                at = after;
                continue;
            }
            let rest = &template[after..];
            if rest.starts_with('$') {
                literal.push(b'$');
                at = after + 1;
                continue;
            }
            let (name, end) = if let Some(braced) = rest.strip_prefix('{') {
                let Some(length) = braced.find('}') else {
                    return fail(FormatProblem::Unclosed);
                };
                (&braced[..length], after + length + 2)
            } else {
                let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
                let length = rest.find(|char| !is_name(char)).unwrap_or(rest.len());
                (&rest[..length], after + length)
            };
            if name.is_empty() {
                return fail(FormatProblem::NoName);
            }
            let Some(field) = Field::named(name) else {
                return fail(unknown(name));
            };
            pieces.push(Piece { before: std::mem::take(&mut literal).into(), field });
            at = end;
        }
        if pieces.is_empty() {
            return Err(FormatError { at: 0, problem: FormatProblem::Empty });
        }
        Ok(Format { shape: Shape::Text, pieces, tail: literal.into(), name: "template" })
    }

    /// A JSON object of these fields, in this order.
    pub fn json_of(names: &[impl AsRef<str>]) -> Result<Format, FormatError> {
        let mut pieces: Vec<Piece> = Vec::with_capacity(names.len());
        for (at, name) in names.iter().map(AsRef::as_ref).enumerate() {
            let fail = |problem| Err(FormatError { at, problem });
            let Some(field) = Field::named(name) else {
                return fail(unknown(name));
            };
            if pieces.iter().any(|piece| piece.field.name == name) {
                return fail(FormatProblem::Twice { name: name.to_owned() });
            }
            pieces.push(Piece { before: format!(",\"{name}\":").into_bytes().into(), field });
        }
        if pieces.is_empty() {
            return Err(FormatError { at: 0, problem: FormatProblem::Empty });
        }
        Ok(Format { shape: Shape::Json, pieces, tail: (*b"}").into(), name: "fields" })
    }

    /// A format of ours, which a test compiles.
    fn predefined(format: Result<Format, FormatError>) -> Format {
        format.expect("the predefined formats compile")
    }

    /// Appends what a request leaves in the log, with its line feed: a line, or one for each matched
    /// rule.
    pub(super) fn write(&self, line: &Line<'_>, times: &mut Times, out: &mut Vec<u8>) {
        match self.shape {
            Shape::Text => {
                for piece in &self.pieces {
                    out.extend_from_slice(&piece.before);
                    piece.field.value(line).text(out, times);
                }
            }
            Shape::Json => {
                let start = out.len();
                for piece in &self.pieces {
                    let value = piece.field.value(line);
                    if !value.is_absent() {
                        out.extend_from_slice(&piece.before);
                        value.json(out, times);
                    }
                }
                // The first key's comma is where the object opens.
                match out.get_mut(start) {
                    Some(comma) => *comma = b'{',
                    None => out.push(b'{'),
                }
            }
            Shape::Rules => return rules::text(line, times, out),
            Shape::RulesJson => return rules::json(line, times, out),
            Shape::Audit => return entry::write(line.audit(), line, times, out),
            Shape::Recorded => return entry::write(line.recorded(), line, times, out),
        }
        out.extend_from_slice(&self.tail);
        out.push(b'\n');
    }
}

/// Two formats are the same if they write the same lines.
impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        let same = |(one, two): (&Piece, &Piece)| {
            one.before == two.before && one.field.name == two.field.name
        };
        self.shape == other.shape
            && self.tail == other.tail
            && self.pieces.len() == other.pieces.len()
            && self.pieces.iter().zip(&other.pieces).all(same)
    }
}

impl Eq for Format {}

fn unknown(name: &str) -> FormatProblem {
    // Two slips in a short name, three in a long one: further away it is another word.
    let slips_max = 2 + name.len() / 10;
    let suggestion = FIELDS
        .iter()
        .map(|field| (strsim::damerau_levenshtein(name, field.name), field.name))
        .filter(|(slips, _)| *slips <= slips_max)
        .min()
        .map(|(_, name)| name);
    // A name comes from a configuration; an error shows a readable part of it.
    FormatProblem::UnknownField { name: name.chars().take(64).collect(), suggestion }
}
