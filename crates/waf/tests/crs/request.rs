//! A test's request, as a server would hand it to the engine.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use serde::Deserialize;
use tidegate_waf::body::End;
use tidegate_waf::inspection::{
    Connection, Evaluation, Inspection, Inspector, MatchedRule, Moment, RequestHead, ResponseHead,
    Step, Verdict, Work,
};
use tidegate_waf::program::Policy;
use tidegate_waf::variable::Phase;

#[derive(Deserialize)]
pub(crate) struct Input {
    method: Option<String>,
    uri: Option<String>,
    version: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    data: Option<String>,
    encoded_request: Option<String>,
    autocomplete_headers: Option<bool>,
}

/// What came of a request.
pub(crate) struct Answer {
    pub(crate) matched: Vec<MatchedRule>,
    /// The request is none: a server answers 400 before it asks any rule.
    pub(crate) refused: bool,
}

type Field = (Vec<u8>, Vec<u8>);

struct Request {
    method: Vec<u8>,
    target: Vec<u8>,
    protocol: Vec<u8>,
    fields: Vec<Field>,
    body: Vec<u8>,
}

impl Input {
    fn request(&self) -> Option<Request> {
        if let Some(encoded) = &self.encoded_request {
            use base64::Engine as _;
            let engine = base64::engine::general_purpose::STANDARD;
            let packed: String = encoded.split_whitespace().collect();
            return parse(&engine.decode(packed).unwrap());
        }
        let mut fields: Vec<(Vec<u8>, Vec<u8>)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.clone().into(), value.clone().into()))
            .collect();
        let has = |fields: &[(Vec<u8>, Vec<u8>)], name: &str| {
            fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
        };
        let mut body = self.data.clone().unwrap_or_default().into_bytes();
        if self.autocomplete_headers.unwrap_or(true) {
            if !body.is_empty() && !has(&fields, "Content-Type") {
                fields.push(("Content-Type".into(), "application/x-www-form-urlencoded".into()));
            }
            if !body.is_empty()
                && !has(&fields, "Content-Length")
                && !has(&fields, "Transfer-Encoding")
            {
                fields.push(("Content-Length".into(), body.len().to_string().into()));
            }
            if !has(&fields, "Connection") {
                fields.push(("Connection".into(), "close".into()));
            }
        }
        let length = has(&fields, "Content-Length");
        let chunked = has(&fields, "Transfer-Encoding");
        if (length && chunked) || fields.iter().any(|(_, value)| value.contains(&b'\r')) {
            return None;
        }
        if !length && !chunked {
            // Without either, what follows is no body.
            body.clear();
        }
        Some(Request {
            method: self.method.clone().unwrap_or_else(|| "GET".into()).into(),
            target: self.uri.clone().unwrap_or_else(|| "/".into()).into(),
            protocol: match self.version.as_deref() {
                None => "HTTP/1.1".into(),
                Some("") => "HTTP/0.9".into(),
                Some(version) => version.into(),
            },
            fields,
            body,
        })
    }
}

/// A request from its bytes, as a lenient server reads it.
fn parse(bytes: &[u8]) -> Option<Request> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let mut lines = bytes[..end]
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let line = lines.next()?;
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target, protocol) = (words.next()?, words.next()?, words.next()?);
    let mut fields = Vec::new();
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':')?;
        fields.push((line[..colon].to_vec(), line[colon + 1..].trim_ascii().to_vec()));
    }
    Some(Request {
        method: method.to_vec(),
        target: target.to_vec(),
        protocol: protocol.to_vec(),
        fields,
        body: bytes[end + 4..].to_vec(),
    })
}

/// Runs all phases over a request and over what the suite's backend answers to it.
pub(crate) fn send(
    input: &Input,
    policy: &Arc<Policy>,
    evaluation: Evaluation,
    inspector: &mut Inspector,
) -> Answer {
    let Some(request) = input.request() else {
        return Answer { matched: Vec::new(), refused: true };
    };
    let mut inspection = Inspection::begin(policy, None, inspector);
    inspection.set_evaluation(evaluation);
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    inspection.connection(&Connection {
        client: local,
        client_port: 40_000,
        server: local,
        server_port: 80,
    });
    let host = request.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    let head = RequestHead {
        method: &request.method,
        target: &request.target,
        protocol: &request.protocol,
        host: host.map_or(b"", |(_, value)| value),
        id: b"1",
    };
    inspection.request_head(head, request.fields.iter().map(|(name, value)| (&**name, &**value)));
    let mut verdict = run(&mut inspection, Phase::RequestHeaders, inspector);
    if verdict == Verdict::Pass {
        let _ = inspection.request_body(&request.body);
        inspection.request_body_end(End::Complete);
        verdict = run(&mut inspection, Phase::RequestBody, inspector);
    }
    if verdict == Verdict::Pass {
        let (status, fields, body) = reflect(&request);
        let head = ResponseHead { status, protocol: b"HTTP/1.1" };
        inspection.response_head(head, fields.iter().map(|(name, value)| (&**name, &**value)));
        verdict = run(&mut inspection, Phase::ResponseHeaders, inspector);
        if verdict == Verdict::Pass {
            let _ = inspection.response_body(&body);
            let _ = inspection.response_body_end();
            let _ = run(&mut inspection, Phase::ResponseBody, inspector);
        }
    }
    let _ = run(&mut inspection, Phase::Logging, inspector);
    let matched = inspection.matched_rules().to_vec();
    inspection.end(inspector);
    Answer { matched, refused: false }
}

/// Runs a phase in many small steps: where it stops must not matter.
fn run(inspection: &mut Inspection, phase: Phase, inspector: &mut Inspector) -> Verdict {
    let moment = Moment { epoch_ms: 1_790_000_000_000, elapsed_us: 10 };
    loop {
        match inspection.run_within(Work(2_000), phase, moment, inspector) {
            Step::Done(verdict) => return verdict,
            Step::Paused => {}
        }
    }
}

/// What the backend of the suite answers: `/reflect` gives back what the request's JSON body asks
/// for, everything else nothing.
fn reflect(request: &Request) -> (u16, Vec<Field>, Vec<u8>) {
    let spec: serde_json::Value = if request.target.starts_with(b"/reflect") {
        serde_json::from_slice(&request.body).unwrap_or_default()
    } else {
        serde_json::Value::Null
    };
    let status = spec.get("status").and_then(serde_json::Value::as_u64).unwrap_or(200);
    let mut fields = Vec::new();
    for (name, value) in
        spec.get("headers").and_then(|value| value.as_object()).into_iter().flatten()
    {
        fields.push((name.clone().into(), value.as_str().unwrap_or_default().into()));
    }
    if !fields.iter().any(|(name, _): &(Vec<u8>, _)| name.eq_ignore_ascii_case(b"content-type")) {
        // What the backend's server makes of an answer without one.
        fields.push(("Content-Type".into(), "text/plain; charset=utf-8".into()));
    }
    let body = spec.get("body").and_then(|body| body.as_str()).unwrap_or_default();
    (u16::try_from(status).unwrap(), fields, body.into())
}
