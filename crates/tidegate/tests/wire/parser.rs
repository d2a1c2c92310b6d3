//! `.wire` files to cases. A mistake names its line; all mistakes are reported at once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bytes::{Names, expand};
use crate::hpack::Fields;
use crate::script::{
    Afterwards, Answer, Applies, Case, Clause, ClientStep, End, Expectation, OriginStep,
    StatusPattern, Version,
};

const PATIENCE: Duration = Duration::from_secs(4);

/// All cases under a directory, in the order of their files' names.
pub(crate) fn load(directory: &Path) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    let mut mistakes = Vec::new();
    for path in wire_files(directory) {
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let file = path.strip_prefix(directory).unwrap_or(&path).display().to_string();
        for parsed in parse(&file, &text, cases.len()) {
            match parsed {
                Ok(case) => cases.push(case),
                Err(mistake) => mistakes.push(mistake),
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    for case in &cases {
        if !seen.insert(&case.name) {
            mistakes.push(format!("{}: another case has this name", case.place));
        }
    }
    if mistakes.is_empty() { Ok(cases) } else { Err(mistakes.join("\n")) }
}

fn wire_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(wire_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "wire") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A line that says something, and the `|` lines behind it.
struct Line<'a> {
    number: usize,
    words: Vec<&'a str>,
    /// What stands behind the first word, spaces kept.
    rest: &'a str,
    block: Option<Vec<&'a str>>,
}

/// The cases of one file. The first of them has the index `base`.
fn parse(file: &str, text: &str, base: usize) -> Vec<Result<Case, String>> {
    let mut cases: Vec<Result<Case, String>> = Vec::new();
    let mut comment = String::new();
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut heads = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with('#') {
            comment.push_str(trimmed);
        } else if let Some(wire) = trimmed.strip_prefix('|') {
            let wire = wire.strip_prefix(' ').unwrap_or(wire);
            match lines.last_mut() {
                Some(last) => last.block.get_or_insert_default().push(wire),
                None => cases.push(Err(format!("{file}:{}: bytes before a case", number + 1))),
            }
        } else if trimmed.is_empty() {
            comment.clear();
        } else {
            let words: Vec<&str> = trimmed.split_whitespace().collect();
            if words[0] == "case" {
                heads.push((lines.len(), std::mem::take(&mut comment)));
            }
            let rest = trimmed.trim_end().strip_prefix(words[0]).unwrap_or("").trim_start();
            lines.push(Line { number: number + 1, words, rest, block: None });
        }
    }
    for (position, (first, comment)) in heads.iter().enumerate() {
        let last = heads.get(position + 1).map_or(lines.len(), |next| next.0);
        let index = base + position;
        let case = parse_case(file, comment, &lines[*first..last], index);
        cases.push(case.map_err(|(number, mistake)| format!("{file}:{number}: {mistake}")));
    }
    cases
}

#[derive(Clone, Copy, PartialEq)]
enum Section {
    Head,
    Client,
    Origin,
    Expect,
}

fn parse_case(
    file: &str,
    comment: &str,
    lines: &[Line<'_>],
    index: usize,
) -> Result<Case, (usize, String)> {
    let head = &lines[0];
    if !comment.contains("RFC") && !comment.contains("CVE") {
        return Err((
            head.number,
            "a comment that cites an RFC or a CVE stands above a case".into(),
        ));
    }
    let mut case = Case {
        index,
        place: format!("{file}:{}", head.number),
        name: head.rest.to_owned(),
        names: Names { host: format!("c{index:04}.test"), id: format!("c{index:04}") },
        methods: Vec::new(),
        afterwards: Afterwards::Probe,
        patience: PATIENCE,
        speaks: Version::Http1,
        client: Vec::new(),
        origin: Vec::new(),
        clauses: Vec::new(),
    };
    let mut section = Section::Head;
    let mut either: Option<Vec<Vec<Expectation>>> = None;
    for line in &lines[1..] {
        parse_line(&mut case, &mut section, &mut either, line)
            .map_err(|mistake| (line.number, mistake))?;
    }
    if either.is_some() {
        return Err((head.number, "`either` without `end`".into()));
    }
    if case.client.is_empty() || case.clauses.is_empty() {
        return Err((head.number, "a case has a client and expectations".into()));
    }
    Ok(case)
}

fn parse_line(
    case: &mut Case,
    section: &mut Section,
    either: &mut Option<Vec<Vec<Expectation>>>,
    line: &Line<'_>,
) -> Result<(), String> {
    let names = case.names.clone();
    match line.words[..] {
        ["client" | "http2"] => {
            *section = Section::Client;
            if line.words[0] == "http2" {
                case.speaks = Version::Http2;
            }
            if line.block.is_some() {
                case.client.push(ClientStep::Send(block(line, &names)?));
            }
        }
        ["origin"] | ["origin", "always"] => {
            *section = Section::Origin;
            let applies = if line.words.len() == 2 { Applies::Always } else { Applies::Once };
            let mut steps = Vec::new();
            if line.block.is_some() {
                steps.push(OriginStep::Send(block(line, &names)?));
            }
            case.origin.push(Answer { steps, applies });
        }
        ["expect", ..] => {
            *section = Section::Expect;
            let expectation = parse_expectation(&line.words[1..], line, &names)?;
            match either {
                Some(ways) => ways.last_mut().ok_or("`either` is empty")?.push(expectation),
                None => case.clauses.push(Clause::Must(expectation)),
            }
        }
        ["either"] => *either = Some(vec![Vec::new()]),
        ["or"] => either.as_mut().ok_or("`or` without `either`")?.push(Vec::new()),
        ["end"] if *section == Section::Expect => {
            let ways = either.take().ok_or("`end` without `either`")?;
            case.clauses.push(Clause::Either(ways));
        }
        ["methods", ..] => case.methods = line.words[1..].iter().map(|&m| m.to_owned()).collect(),
        ["leave"] => case.afterwards = Afterwards::Leave,
        ["patience", time] => case.patience = duration(time)?,
        _ => match *section {
            Section::Client => case.client.push(parse_client_step(line, &names)?),
            Section::Origin => {
                let step = parse_origin_step(line, &names)?;
                case.origin.last_mut().ok_or("no origin yet")?.steps.push(step);
            }
            Section::Head | Section::Expect => {
                return Err(format!("{:?} is not known here", line.words.join(" ")));
            }
        },
    }
    Ok(())
}

fn parse_client_step(line: &Line<'_>, names: &Names) -> Result<ClientStep, String> {
    Ok(match line.words[..] {
        ["send"] => ClientStep::Send(block(line, names)?),
        ["trickle"] => ClientStep::Trickle(block(line, names)?),
        ["pause", time] => ClientStep::Pause(duration(time)?),
        ["await", "response"] => ClientStep::AwaitResponse,
        ["await", "origin"] => ClientStep::AwaitOrigin,
        ["await", "close"] => ClientStep::AwaitClose,
        ["await", status] => ClientStep::AwaitInterim(number(status)?),
        ["half-close"] => ClientStep::HalfClose,
        ["reset"] => ClientStep::Reset,
        ["headers", stream, ref end @ ..] => ClientStep::Headers {
            stream: number(stream)?,
            end: end_of_stream(end)?,
            fields: field_lines(line, names)?,
        },
        ["data", stream, ref end @ ..] => ClientStep::Data {
            stream: number(stream)?,
            end: end_of_stream(end)?,
            bytes: if line.block.is_some() { block(line, names)? } else { Vec::new() },
        },
        ["frame", kind, flags, stream] => ClientStep::Frame {
            kind: number(kind)?,
            flags: number(flags)?,
            stream: number(stream)?,
            payload: if line.block.is_some() { block(line, names)? } else { Vec::new() },
        },
        _ => return Err(format!("{:?} is no step of a client", line.words.join(" "))),
    })
}

fn parse_origin_step(line: &Line<'_>, names: &Names) -> Result<OriginStep, String> {
    Ok(match line.words[..] {
        ["send"] => OriginStep::Send(block(line, names)?),
        ["read", "head"] => OriginStep::ReadHead,
        ["read", "all"] => OriginStep::ReadAll,
        ["pause", time] => OriginStep::Pause(duration(time)?),
        ["close"] => OriginStep::Close,
        ["reset"] => OriginStep::Reset,
        ["echo"] => OriginStep::Echo,
        _ => return Err(format!("{:?} is no step of an origin", line.words.join(" "))),
    })
}

fn parse_expectation(
    words: &[&str],
    line: &Line<'_>,
    names: &Names,
) -> Result<Expectation, String> {
    let tail = |skipped: usize| -> Result<Vec<u8>, String> {
        let mut rest = line.rest;
        let outer = line.words.len() - 1 - words.len();
        for word in line.words[1..].iter().take(outer + skipped) {
            rest = rest.strip_prefix(*word).unwrap_or(rest).trim_start();
        }
        expand(rest, names)
    };
    Ok(match *words {
        ["status", ref statuses @ ..] => Expectation::Statuses(vec![patterns(statuses)?]),
        ["statuses", ref each @ ..] => Expectation::Statuses(
            each.iter()
                .map(|word| patterns(&word.split('|').collect::<Vec<_>>()))
                .collect::<Result<_, _>>()?,
        ),
        ["no-response"] => Expectation::NoResponse,
        ["refused"] => Expectation::Refused,
        ["close"] => Expectation::Close,
        ["kept"] => Expectation::Kept,
        ["complete"] => Expectation::Complete,
        ["not-complete"] => Expectation::NotComplete,
        ["interim", ref statuses @ ..] => Expectation::Interim(
            statuses.iter().map(|word| number(word)).collect::<Result<_, _>>()?,
        ),
        ["header", ..] => Expectation::Header(tail(1)?),
        ["no-header", name] => Expectation::NoHeader(name.to_owned()),
        ["body", "contains", ..] => Expectation::BodyContains(tail(2)?),
        ["body"] => Expectation::Body(block(line, names)?),
        ["body", ..] => Expectation::Body(tail(1)?),
        ["tunnel"] => Expectation::Tunnel(block(line, names)?),
        ["origin", "nothing"] => Expectation::OriginNothing,
        ["origin", "requests", count] => Expectation::OriginRequests(number(count)?),
        ["origin", "sees"] => Expectation::OriginSees { nth: 0, request: block(line, names)? },
        ["origin", "sees", nth] => {
            let nth: usize = number(nth)?;
            let nth = nth.checked_sub(1).ok_or("requests are counted from 1")?;
            Expectation::OriginSees { nth, request: block(line, names)? }
        }
        ["origin", "has", ..] => Expectation::OriginHas(tail(2)?),
        ["origin", "lacks", name] => Expectation::OriginLacks(name.to_owned()),
        ["origin", "nowhere", ..] => Expectation::OriginNowhere(tail(2)?),
        ["origin", "cut"] => Expectation::OriginCut,
        ["stream", id, ref inner @ ..] => {
            Expectation::Stream(number(id)?, Box::new(parse_expectation(inner, line, names)?))
        }
        _ => return Err(format!("{:?} is nothing to expect", words.join(" "))),
    })
}

/// The bytes of a block: each line ends in CRLF unless a backslash ends it in the script.
fn block(line: &Line<'_>, names: &Names) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for wire in line.block.as_deref().ok_or("`|` lines with bytes are missing here")? {
        let (text, ending) = match wire.strip_suffix('\\') {
            Some(text) if !text.ends_with('\\') => (text, ""),
            _ => (*wire, "\r\n"),
        };
        bytes.extend(expand(text, names)?);
        bytes.extend_from_slice(ending.as_bytes());
    }
    Ok(bytes)
}

/// Field lines of an HTTP/2 head: `name: value`, where a name may begin with a colon.
fn field_lines(line: &Line<'_>, names: &Names) -> Result<Fields, String> {
    let mut fields = Vec::new();
    for text in line.block.as_deref().ok_or("`|` lines with fields are missing here")? {
        let colon = text.get(1..).and_then(|tail| tail.find(':')).map(|position| position + 1);
        let colon = colon.or_else(|| text.find(':')).ok_or("a field without a colon")?;
        let value = &text[colon + 1..];
        let value = value.strip_prefix(' ').unwrap_or(value);
        fields.push((expand(&text[..colon], names)?, expand(value, names)?));
    }
    Ok(fields)
}

fn end_of_stream(words: &[&str]) -> Result<End, String> {
    match words {
        [] => Ok(End::Open),
        ["end"] => Ok(End::Stream),
        _ => Err("`end` or nothing stands behind a stream's number".into()),
    }
}

fn patterns(words: &[&str]) -> Result<Vec<StatusPattern>, String> {
    words
        .iter()
        .map(|word| match word.strip_suffix("xx") {
            Some(class) => Ok(StatusPattern::Class(number(class)?)),
            None => Ok(StatusPattern::Exactly(number(word)?)),
        })
        .collect()
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word:?} is no number that fits here"))
}

fn duration(word: &str) -> Result<Duration, String> {
    if let Some(milliseconds) = word.strip_suffix("ms") {
        return Ok(Duration::from_millis(number(milliseconds)?));
    }
    let seconds = word.strip_suffix('s').ok_or("a time ends in `ms` or `s`")?;
    Ok(Duration::from_secs(number(seconds)?))
}

#[test]
fn a_case_is_read() {
    let text = "# RFC 9112, section 6.1: both.\ncase both framings\nclient\n  | GET / HTTP/1.1\n  |\n  \
                | x\\\n  pause 10ms\n\norigin\n  read head\n  send\n  | no\n\nexpect status 400 4xx\neither\n  \
                expect close\nor\n  expect origin requests 2\nend\n";
    let case = parse("a.wire", text, 7).pop().unwrap().unwrap();
    assert_eq!((case.place.as_str(), case.name.as_str()), ("a.wire:2", "both framings"));
    assert!(
        matches!(&case.client[..], [ClientStep::Send(bytes), ClientStep::Pause(_)] if bytes == b"GET / HTTP/1.1\r\n\r\nx")
    );
    assert!(matches!(&case.origin[0].steps[..], [OriginStep::ReadHead, OriginStep::Send(_)]));
    assert!(matches!(&case.clauses[1], Clause::Either(ways) if ways.len() == 2));
}

#[test]
fn mistakes_are_named() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mistake = parse("a.wire", text, 0).pop().unwrap().unwrap_err();
        assert_eq!(mistake, expected);
    }
    check("case x\n", "a.wire:1: a comment that cites an RFC or a CVE stands above a case");
    check("# RFC 1\ncase x\nclient\n  | a\n", "a.wire:2: a case has a client and expectations");
    check("# RFC 1\ncase x\nclient\n  jump\n", "a.wire:4: \"jump\" is no step of a client");
    check("# RFC 1\ncase x\nexpect luck\n", "a.wire:3: \"luck\" is nothing to expect");
    check("# RFC 1\ncase x\nclient\n pause 3\n", "a.wire:4: a time ends in `ms` or `s`");
}
