//! Whether a case's outcome is what it expects, and what holds for every case.

use std::time::Duration;

use crate::bytes::contains;
use crate::client::Outcome;
use crate::message::{Message, Progress, Side};
use crate::now;
use crate::origin::{Exchange, Log};
use crate::script::{Case, Clause, Expectation, Version};

/// How long the origin's side may lag behind the client's.
const LAG_MAX: Duration = Duration::from_millis(700);

/// What no case's origin may get as a target and no client as a response.
const HIDDEN: &[u8] = b"HIDDEN";

/// Fields that a gate may add to a request by itself.
const GATE_FIELDS: &[&str] = &[
    "connection",
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-real-ip",
    "x-request-id",
];

/// Everything that is wrong; empty if the case holds.
pub(crate) fn judge(case: &Case, outcome: &Outcome, log: &Log) -> Vec<String> {
    let deadline = now() + LAG_MAX;
    loop {
        let mut faults = judge_clauses(case, outcome, log);
        if faults.is_empty() || now() > deadline {
            faults.extend(judge_always(outcome, log));
            return faults;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
}

fn judge_clauses(case: &Case, outcome: &Outcome, log: &Log) -> Vec<String> {
    let mut faults = Vec::new();
    for clause in &case.clauses {
        match clause {
            Clause::Must(expectation) => {
                faults.extend(check(case, expectation, outcome, log).err());
            }
            Clause::Either(ways) => {
                let mut failed = Vec::new();
                for way in ways {
                    let mut results = way.iter().map(|e| check(case, e, outcome, log));
                    match results.find_map(Result::err) {
                        Some(fault) => failed.push(fault),
                        None => break,
                    }
                }
                if failed.len() == ways.len() {
                    faults.push(format!("no alternative holds: {}", failed.join("; or: ")));
                }
            }
        }
    }
    faults
}

/// What holds whatever a case says.
fn judge_always(outcome: &Outcome, log: &Log) -> Vec<String> {
    let mut faults = outcome.faults.clone();
    for Exchange { message, .. } in log.requests() {
        let target = message.target().escape_ascii().to_string();
        faults.extend(
            message
                .faults
                .iter()
                .map(|fault| format!("the origin got an ambiguous request: {fault}")),
        );
        if contains(message.target(), HIDDEN) {
            faults.push(format!("a hidden request reached the origin: {target}"));
        }
    }
    for response in &outcome.finals {
        faults.extend(
            response
                .faults
                .iter()
                .map(|fault| format!("the client got an ambiguous response: {fault}")),
        );
    }
    if contains(&outcome.received, HIDDEN) {
        faults.push("the client got bytes that it must never see".into());
    }
    let tunnel = outcome.finals.last().is_some_and(|response| response.status() == 101);
    if !outcome.leftover.is_empty() && !tunnel {
        let leftover = outcome.leftover[..outcome.leftover.len().min(200)].escape_ascii();
        faults.push(format!("the client got bytes that are no response: {leftover}"));
    }
    faults
}

fn check(
    case: &Case,
    expectation: &Expectation,
    outcome: &Outcome,
    log: &Log,
) -> Result<(), String> {
    match expectation {
        Expectation::OriginNothing
        | Expectation::OriginRequests(_)
        | Expectation::OriginSees { .. }
        | Expectation::OriginHas(_)
        | Expectation::OriginLacks(_)
        | Expectation::OriginNowhere(_)
        | Expectation::OriginCut => check_origin(expectation, log),
        Expectation::Stream(id, inner) => {
            let position = outcome.streams.iter().position(|stream| stream == id);
            let only: Vec<&Message> = position.map(|at| &outcome.finals[at]).into_iter().collect();
            check_client(case, inner, &only, outcome)
        }
        Expectation::Refused => {
            check_client(case, expectation, &outcome.finals.iter().collect::<Vec<_>>(), outcome)?;
            check_origin(&Expectation::OriginNothing, log)
        }
        _ => check_client(case, expectation, &outcome.finals.iter().collect::<Vec<_>>(), outcome),
    }
}

fn check_client(
    case: &Case,
    expectation: &Expectation,
    finals: &[&Message],
    outcome: &Outcome,
) -> Result<(), String> {
    let last = finals.last();
    let statuses: Vec<u16> = finals.iter().map(|message| message.status()).collect();
    match expectation {
        Expectation::Statuses(expected) => ensure(
            expected.len() == statuses.len()
                && expected.iter().zip(&statuses).all(|(patterns, status)| {
                    patterns.iter().any(|pattern| pattern.matches(*status))
                }),
            || format!("expected the statuses {expected:?}, got {statuses:?}"),
        ),
        Expectation::NoResponse => {
            ensure(statuses.is_empty(), || format!("expected no response, got {statuses:?}"))
        }
        Expectation::Refused => {
            let refusing = |message: &&Message| message.reset.is_some() || message.status() >= 400;
            let over = outcome.ended.is_some() || outcome.goaway.is_some();
            ensure(
                finals.iter().all(refusing)
                    && finals.len() <= 1
                    && (over || (case.speaks == Version::Http2 && finals.len() == 1)),
                || format!("expected a refusal, got {statuses:?} and {:?}", outcome.ended),
            )
        }
        Expectation::Close => ensure(outcome.ended.is_some() || outcome.goaway.is_some(), || {
            "expected a close".into()
        }),
        Expectation::Kept => ensure(outcome.ended.is_none() && outcome.goaway.is_none(), || {
            "expected the connection to be kept".into()
        }),
        Expectation::Complete => ensure(
            !finals.is_empty() && finals.iter().all(|m| m.progress == Progress::Complete),
            || "expected whole responses".into(),
        ),
        Expectation::NotComplete => {
            let whole = last.is_some_and(|message| message.progress == Progress::Complete);
            let over = outcome.ended.is_some() || last.is_some_and(|m| m.reset.is_some());
            ensure(!finals.is_empty() && !whole && over, || {
                format!("expected a visibly cut response (ended: {:?})", outcome.ended)
            })
        }
        Expectation::Interim(expected) => ensure(outcome.interims == *expected, || {
            format!("expected the interim statuses {expected:?}, got {:?}", outcome.interims)
        }),
        Expectation::Header(line) => {
            let found = last.is_some_and(|message| holds_field(message, line));
            ensure(found, || format!("expected the field {}", line.escape_ascii()))
        }
        Expectation::NoHeader(name) => {
            let found = last.is_some_and(|message| message.values(name).next().is_some());
            ensure(!found, || format!("expected no field {name}"))
        }
        Expectation::Body(expected) => {
            let body = last.map(|message| message.body.as_slice()).unwrap_or_default();
            ensure(body == expected.as_slice(), || {
                format!("expected the body {}, got {}", brief(expected), brief(body))
            })
        }
        Expectation::BodyContains(part) => {
            let found = last.is_some_and(|message| contains(&message.body, part));
            ensure(found, || format!("expected {} in the body", brief(part)))
        }
        Expectation::Tunnel(expected) => ensure(outcome.leftover == *expected, || {
            format!("expected {} in the tunnel, got {}", brief(expected), brief(&outcome.leftover))
        }),
        _ => Err("this can be expected of the origin only".into()),
    }
}

fn check_origin(expectation: &Expectation, log: &Log) -> Result<(), String> {
    let requests = log.requests();
    let messages = || requests.iter().map(|exchange| &exchange.message);
    match expectation {
        Expectation::OriginNothing => ensure(requests.is_empty(), || {
            let lines: Vec<String> =
                messages().map(|message| message.line.escape_ascii().to_string()).collect();
            format!("expected nothing at the origin, which got {lines:?}")
        }),
        Expectation::OriginRequests(count) => ensure(requests.len() == *count, || {
            format!("expected {count} requests at the origin, which got {}", requests.len())
        }),
        Expectation::OriginSees { nth, request } => match requests.get(*nth) {
            Some(exchange) => same_request(&exchange.message, request),
            None => Err(format!("request {} did not reach the origin", nth + 1)),
        },
        Expectation::OriginHas(line) => {
            let found = messages().any(|message| holds_field(message, line));
            ensure(found, || format!("expected the field {} at the origin", line.escape_ascii()))
        }
        Expectation::OriginLacks(name) => {
            let found = messages().any(|message| message.values(name).next().is_some());
            ensure(!found, || format!("expected no field {name} at the origin"))
        }
        Expectation::OriginNowhere(bytes) => {
            let found = log.received().iter().any(|received| contains(received, bytes));
            ensure(!found, || format!("expected {} nowhere at the origin", brief(bytes)))
        }
        Expectation::OriginCut => {
            let cut = requests
                .iter()
                .all(|exchange| exchange.message.progress != Progress::Complete && exchange.ended);
            ensure(cut, || {
                "expected no whole request at the origin, and its connection ended".into()
            })
        }
        _ => Err("this can be expected of the client only".into()),
    }
}

/// Same request line, same fields but for the gate's own, same body.
fn same_request(request: &Message, expected: &[u8]) -> Result<(), String> {
    let expected = Message::read(Side::Request, expected);
    ensure(request.line == expected.line, || {
        format!(
            "expected the request line {}, got {}",
            expected.line.escape_ascii(),
            request.line.escape_ascii()
        )
    })?;
    let normal = |message: &Message| {
        let fields =
            message.fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        let mut fields: Vec<_> = fields.collect();
        fields.sort();
        fields
    };
    let mut fields = normal(request);
    for field in normal(&expected) {
        let Some(position) = fields.iter().position(|other| *other == field) else {
            let (name, value) = (field.0.escape_ascii(), field.1.escape_ascii());
            return Err(format!("expected the field {name}: {value} at the origin"));
        };
        fields.remove(position);
    }
    fields.retain(|(name, _)| !GATE_FIELDS.iter().any(|own| own.as_bytes() == name.as_slice()));
    ensure(fields.is_empty(), || {
        let names: Vec<String> =
            fields.iter().map(|(name, _)| name.escape_ascii().to_string()).collect();
        format!("the origin got more fields than expected: {names:?}")
    })?;
    ensure(request.body == expected.body && request.progress == expected.progress, || {
        let (expected, got) = (brief(&expected.body), brief(&request.body));
        format!("expected the body {expected} at the origin, got {got} ({:?})", request.progress)
    })
}

/// Whether a message holds a field line, the name in any case.
fn holds_field(message: &Message, line: &[u8]) -> bool {
    let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
    let value = line.get(colon + 1..).unwrap_or_default().trim_ascii();
    let name = String::from_utf8_lossy(&line[..colon]);
    message.values(&name).any(|other| other == value)
}

fn brief(bytes: &[u8]) -> String {
    let shown = bytes[..bytes.len().min(120)].escape_ascii();
    if bytes.len() > 120 {
        format!("\"{shown}…\" ({} bytes)", bytes.len())
    } else {
        format!("\"{shown}\"")
    }
}

fn ensure(holds: bool, fault: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(fault()) }
}

#[test]
fn requests_compare_but_for_the_gate_s_own_fields() {
    let got = b"GET / HTTP/1.1\r\nvia: x\r\nhost: a\r\nB: 1\r\n\r\n";
    let got = Message::read(Side::Request, got);
    assert!(same_request(&got, b"GET / HTTP/1.1\r\nHost: a\r\nb: 1\r\n\r\n").is_ok());
    assert!(same_request(&got, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").is_err());
    assert!(same_request(&got, b"GET / HTTP/1.1\r\nHost: a\r\nb: 1\r\nc: 1\r\n\r\n").is_err());
    assert!(same_request(&got, b"GET /x HTTP/1.1\r\nHost: a\r\nb: 1\r\n\r\n").is_err());
}
