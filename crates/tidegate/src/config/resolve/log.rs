//! `[[log]]`.

use std::collections::HashMap;
use std::sync::OnceLock;

use tidegate_telemetry::log::{
    AddressPrivacy, Content, Facility, Format, FormatError, FormatProblem, HashKey, Keep,
    LogSettings, Privacy, Recording, Sample, Target,
};

use super::super::diagnostic::{Diagnostic, code};
use super::super::options::{self, kind, log};
use super::super::reader::{Located, Owner, Reading, Scope};
use super::super::source::Span;
use super::{process, tls};

/// The logs, by index and by name.
pub(super) struct Logs {
    list: Vec<Found>,
    names: HashMap<String, usize>,
}

struct Found {
    settings: LogSettings,
    span: Span,
    /// How many sites write to it.
    sites: usize,
}

impl Logs {
    pub(super) fn resolve(root: &Scope<'_>, reading: &mut Reading<'_>) -> Logs {
        let mut logs = Logs { list: Vec::new(), names: HashMap::new() };
        let mut files: Vec<(Target, Span)> = Vec::new();
        for (index, scope) in root.children(&log::SECTION).into_iter().enumerate() {
            if scope.is_table() {
                logs.add(&scope.of(Owner::Log(index)), &mut files, reading);
            }
        }
        logs
    }

    fn add(
        &mut self,
        scope: &Scope<'_>,
        files: &mut Vec<(Target, Span)>,
        reading: &mut Reading<'_>,
    ) {
        let name = scope.require(&log::NAME, reading);
        let place = name.as_ref().and_then(|name| name.span).unwrap_or(scope.place());
        let name = name.map_or_else(String::new, |name| name.value);
        if let Some(first) = self.names.get(&name).and_then(|index| self.list.get(*index)) {
            let message = format!("another log has the name {}", reading.shown(&name, place));
            reading.report(
                Diagnostic::new(&code::DUPLICATE_NAME, place, message)
                    .beside(first.span, "the other one"),
            );
        }
        let target = target(scope, reading);
        if let Some(Located { value: target @ Target::File(_), span: Some(span) }) = &target {
            if let Some((_, first)) = files.iter().find(|(other, _)| other == target) {
                let message = "another log writes to this file: their lines would mix";
                reading.report(
                    Diagnostic::new(&code::CONTRADICTION, *span, message)
                        .beside(*first, "the other one"),
                );
            }
            files.push((target.clone(), *span));
        }
        let format = format(scope, reading);
        let privacy = privacy(scope, &format, reading);
        let recording = recording(scope, &format, reading);
        let sample = Sample { one_in: scope.read(&log::SAMPLE, reading).value };
        let settings = LogSettings {
            name: name.clone(),
            target: target.map_or(Target::Stderr, |target| target.value),
            format,
            privacy,
            flush: scope.read(&log::FLUSH, reading).value,
            sample,
            recording,
        };
        self.names.entry(name).or_insert(self.list.len());
        self.list.push(Found { settings, span: place, sites: 0 });
    }

    /// All of them, for a site that does not name any.
    pub(super) fn all(&mut self) -> Vec<usize> {
        for found in &mut self.list {
            found.sites += 1;
        }
        (0..self.list.len()).collect()
    }

    /// The log of a name, for a site.
    pub(super) fn named(&mut self, name: &str) -> Option<usize> {
        let index = *self.names.get(name)?;
        self.list[index].sites += 1;
        Some(index)
    }

    /// The names there are, in the order of the file.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|found| found.settings.name.as_str())
    }

    /// Names of those that no site writes to, and where they stand.
    pub(super) fn unused(&self) -> impl Iterator<Item = (&str, Span)> {
        let unused = self.list.iter().filter(|found| found.sites == 0);
        unused.map(|found| (found.settings.name.as_str(), found.span))
    }

    pub(super) fn into_settings(self) -> Vec<LogSettings> {
        self.list.into_iter().map(|found| found.settings).collect()
    }
}

fn target(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Option<Located<Target>> {
    let path = scope.require(&log::PATH, reading)?;
    let facility = scope.find(&log::FACILITY, reading);
    if let Some(span) = facility.as_ref().and_then(|facility| facility.span)
        && path.value != "syslog"
    {
        let message = "only syslog has facilities";
        reading.report(
            Diagnostic::new(&code::NO_EFFECT, span, message).hint("write `path = \"syslog\"`"),
        );
    }
    let value = match path.value.as_str() {
        "stdout" => Target::Stdout,
        "stderr" => Target::Stderr,
        "syslog" => Target::Syslog {
            socket: "/dev/log".into(),
            facility: facility.map_or(Facility::default(), |facility| facility.value),
        },
        _ => Target::File(tls::path(&path, reading)),
    };
    if let Target::File(file) = &value
        && let Some(span) = path.span
    {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        if path.value.is_empty() || path.value.ends_with('/') || file.is_dir() {
            let message = format!("`{}` is not the path of a file", file.display());
            reading.report(Diagnostic::new(&code::INVALID_VALUE, span, message));
        } else if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
            let message = format!("there is no directory `{}`", parent.display());
            reading.report(
                Diagnostic::new(&code::LOG_DIRECTORY, span, message)
                    .hint("make it, and let the user that runs the gate write there"),
            );
        }
    }
    Some(Located { value, span: path.span })
}

fn format(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Format {
    let fields = scope.find(&log::FIELDS, reading);
    let format = scope.read(&log::FORMAT, reading);
    let Some(fields) = fields else { return format.value };
    let place = fields.span.unwrap_or(scope.place());
    if format.value.name() != "json" && format.span.is_some() {
        reading.report(
            Diagnostic::new(
                &code::NO_EFFECT,
                place,
                "`fields` makes a JSON object, and `format` is another",
            )
            .hint("write `format = \"json\"`"),
        );
        return format.value;
    }
    let mut report = |error: &FormatError, at: usize| {
        let span = fields.value.get(at).and_then(|field| field.span).unwrap_or(place);
        let (message, label) = complaint(error);
        reading.report(
            Diagnostic::new(&code::LOG_FORMAT, span, message)
                .label(label)
                .hint("docs/logs.md lists the fields"),
        );
    };
    // Each alone first: the list as a whole ends at the first mistake.
    let names: Vec<&str> = fields.value.iter().map(|field| field.value.as_str()).collect();
    let alone = names
        .iter()
        .enumerate()
        .filter_map(|(at, name)| Format::json_of(&[name]).err().map(|error| (error, at)));
    let unknown: Vec<_> = alone.collect();
    for (error, at) in &unknown {
        report(error, *at);
    }
    match Format::json_of(&names) {
        Ok(format) => format,
        Err(error) => {
            if unknown.is_empty() {
                report(&error, error.at);
            }
            format.value
        }
    }
}

/// What is wrong with a format, and what may be meant.
pub(crate) fn complaint(error: &FormatError) -> (String, String) {
    match &error.problem {
        FormatProblem::UnknownField { name, suggestion } => (
            format!("no log field is called `{}`", name.escape_debug()),
            suggestion.map(|name| format!("did you mean `{name}`?")).unwrap_or_default(),
        ),
        FormatProblem::Unclosed
        | FormatProblem::NoName
        | FormatProblem::Control
        | FormatProblem::Empty
        | FormatProblem::Twice { .. } => (error.to_string(), String::new()),
    }
}

/// What is kept of recorded requests.
fn recording(scope: &Scope<'_>, format: &Format, reading: &mut Reading<'_>) -> Recording {
    let mask = scope.find(&log::MASK, reading);
    let body = scope.read(&log::BODY_MAX, reading);
    if format.content() != Content::Recorded {
        let written = [
            (log::MASK.key, mask.as_ref().and_then(|mask| mask.span)),
            (log::BODY_MAX.key, body.span),
        ];
        for (key, span) in written {
            if let Some(span) = span {
                let message = format!("`{key}` is for recorded requests");
                reading.report(
                    Diagnostic::new(&code::NO_EFFECT, span, message)
                        .hint("write `format = \"requests\"`"),
                );
            }
        }
    }
    let mask = mask.into_iter().flat_map(|mask| mask.value).map(|name| name.value);
    Recording { mask: mask.collect(), body_bytes_max: body.value }
}

fn privacy(scope: &Scope<'_>, format: &Format, reading: &mut Reading<'_>) -> Privacy {
    let mut choice = scope.read(&log::CLIENT_ADDRESS, reading);
    if choice.span.is_none() && format.content() == Content::Recorded {
        choice.value = options::ClientAddress::Truncate;
    }
    let key = scope.find(&log::HASH_KEY, reading);
    if let Some(key) = &key {
        process::check_readable(key, reading);
    }
    let address = match choice.value {
        options::ClientAddress::Keep => AddressPrivacy::Keep,
        options::ClientAddress::Drop => AddressPrivacy::Drop,
        options::ClientAddress::Truncate => AddressPrivacy::Truncate,
        options::ClientAddress::Hash => hash(scope, choice.span, key.as_ref(), reading),
    };
    if let Some(Located { span: Some(span), .. }) = key
        && choice.value != options::ClientAddress::Hash
    {
        reading.report(
            Diagnostic::new(&code::NO_EFFECT, span, "no address is hashed")
                .hint("write `client_address = \"hash\"`"),
        );
    }
    let keep = |choice| match choice {
        options::Keep::Keep => Keep::Yes,
        options::Keep::Drop => Keep::No,
    };
    Privacy {
        address,
        query: keep(scope.read(&log::QUERY, reading).value),
        user_agent: keep(scope.read(&log::USER_AGENT, reading).value),
        referer: keep(scope.read(&log::REFERRER, reading).value),
    }
}

fn hash(
    scope: &Scope<'_>,
    place: Option<Span>,
    key: Option<&Located<options::FoundSecret>>,
    reading: &mut Reading<'_>,
) -> AddressPrivacy {
    /// The key of a log that names none: one for the life of the process, so that a reload does not
    /// part the hashes of a client.
    static OWN: OnceLock<HashKey> = OnceLock::new();

    let Some(key) = key else {
        if let Some(key) = OWN.get() {
            return AddressPrivacy::Hash(key.clone());
        }
        return match HashKey::random() {
            Ok(key) => AddressPrivacy::Hash(OWN.get_or_init(|| key).clone()),
            Err(error) => {
                let span = place.unwrap_or(scope.place());
                let message = format!("no key could be drawn: {}", kind::reason(&error));
                reading.report(
                    Diagnostic::new(&code::LOG_HASH_KEY, span, message)
                        .hint("add `hash_key = \"${LOG_KEY}\"`"),
                );
                AddressPrivacy::Drop
            }
        };
    };
    if let Some(key) = HashKey::from_hex(key.value.secret.reveal()) {
        AddressPrivacy::Hash(key)
    } else {
        let span = key.span.unwrap_or(scope.place());
        reading.report(
            Diagnostic::new(&code::LOG_HASH_KEY, span, "the key is 32 hexadecimal digits")
                .hint("make one with `openssl rand -hex 16`"),
        );
        AddressPrivacy::Drop
    }
}
