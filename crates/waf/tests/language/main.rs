//! The language, one feature at a time: a few rules, a request, and which of the rules matched.
//!
//! Every case runs prefiltered and plain, whole and in small steps; all four must agree.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod actions;
mod bodies;
mod collections;
mod flow;
mod geography;
mod matching;
mod targets;
mod tracing;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tidegate_waf::body::End;
use tidegate_waf::context::Context;
use tidegate_waf::inspection::{
    Connection, Evaluation, Inspection, Inspector, Mode, Moment, RequestHead, ResponseHead, Step,
    Trace, Traced, Verdict, Work,
};
use tidegate_waf::program::{Policy, compile, compile_policy};
use tidegate_waf::seclang::setting::Switch;
use tidegate_waf::seclang::{Entry, Memory, parse};
use tidegate_waf::variable::Phase;

/// A request under test; the parts that a case does not set are harmless.
#[derive(Clone)]
struct Request<'a> {
    method: &'a str,
    target: &'a str,
    fields: &'a [(&'a str, &'a str)],
    body: &'a str,
    answer: &'a str,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self {
            method: "GET",
            target: "/",
            fields: &[("Host", "example.org")],
            body: "",
            answer: "",
        }
    }
}

fn get(target: &str) -> Request<'_> {
    Request { target, ..Request::default() }
}

/// What came of a request.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    ids: Vec<u64>,
    verdict: Verdict,
    /// The values of the `TX` variables that the case asks for.
    data: Vec<String>,
}

fn policy(rules: &str) -> Arc<Policy> {
    policy_with(rules, "")
}

/// The same with actions that every transaction begins with.
fn policy_with(rules: &str, actions: &str) -> Arc<Policy> {
    policy_over(&Memory::default(), rules, actions)
}

/// The same over files that rules name.
fn policy_over(files: &Memory, rules: &str, actions: &str) -> Arc<Policy> {
    let text = format!(
        "SecRequestBodyAccess On\nSecResponseBodyAccess On\nSecResponseBodyMimeType text/plain\n{rules}"
    );
    let entry = Entry::Text { path: "case.conf", text: text.as_bytes() };
    let (document, _) = parse(files, entry).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let compiled = compile(&document, files).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let program = Arc::new(compiled.program);
    Arc::new(compile_policy(&program, Mode::Block, actions, "case").unwrap())
}

/// What the rules that matched a request without a body tell of themselves.
fn traced(policy: &Arc<Policy>, request: &Request<'_>) -> Vec<(u64, Traced)> {
    let mut inspector = Inspector::new();
    let mut inspection = Inspection::begin(policy, None, &mut inspector);
    inspection.set_trace(Trace::All);
    inspection.request_head(head(request), std::iter::empty());
    for phase in [Phase::RequestHeaders, Phase::RequestBody] {
        let _ = inspection.run(phase, Moment::default(), &mut inspector);
    }
    let matched = inspection.matched_rules().iter();
    matched.map(|rule| (rule.rule.id, *rule.traced.clone().unwrap())).collect()
}

struct Way {
    evaluation: Evaluation,
    work: Work,
}

fn head<'a>(request: &Request<'a>) -> RequestHead<'a> {
    RequestHead {
        method: request.method.as_bytes(),
        target: request.target.as_bytes(),
        protocol: b"HTTP/1.1",
        host: b"example.org",
        id: b"unique",
    }
}

fn send(
    policy: &Arc<Policy>,
    request: &Request<'_>,
    context: Option<&Arc<Context>>,
    epoch_ms: u64,
    way: &Way,
) -> Outcome {
    let mut inspector = Inspector::new();
    let mut inspection = Inspection::begin(policy, context.cloned(), &mut inspector);
    inspection.set_evaluation(way.evaluation);
    inspection.set_trace(Trace::All);
    let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    let server = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
    inspection.connection(&Connection { client, client_port: 4711, server, server_port: 443 });
    inspection.request_head(
        head(request),
        request.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())),
    );
    let moment = Moment { epoch_ms, elapsed_us: 3 };
    let run = |inspection: &mut Inspection, phase, inspector: &mut Inspector| loop {
        if let Step::Done(verdict) = inspection.run_within(way.work, phase, moment, inspector) {
            return verdict;
        }
    };
    let mut verdict = run(&mut inspection, Phase::RequestHeaders, &mut inspector);
    if verdict == Verdict::Pass {
        if inspection.wants_request_body() == Switch::On {
            let _ = inspection.request_body(request.body.as_bytes());
        }
        inspection.request_body_end(End::Complete);
        verdict = run(&mut inspection, Phase::RequestBody, &mut inspector);
    }
    if verdict == Verdict::Pass {
        let fields = [(&b"content-type"[..], &b"text/plain"[..]), (b"server", b"origin")];
        inspection
            .response_head(ResponseHead { status: 200, protocol: b"HTTP/1.1" }, fields.into_iter());
        verdict = run(&mut inspection, Phase::ResponseHeaders, &mut inspector);
    }
    if verdict == Verdict::Pass {
        let _ = inspection.response_body(request.answer.as_bytes());
        let _ = inspection.response_body_end();
        verdict = run(&mut inspection, Phase::ResponseBody, &mut inspector);
    }
    let _ = run(&mut inspection, Phase::Logging, &mut inspector);
    let ids = inspection.matched_rules().iter().map(|matched| matched.rule.id).collect();
    let data = inspection
        .matched_rules()
        .iter()
        .map(|matched| String::from_utf8_lossy(&matched.data).into_owned())
        .filter(|data| !data.is_empty())
        .collect();
    inspection.end(&mut inspector);
    Outcome { ids, verdict, data }
}

const MORNING_MS: u64 = 1_790_000_000_000;

fn outcome(rules: &str, request: &Request<'_>) -> Outcome {
    let policy = policy(rules);
    let mut outcomes =
        [Evaluation::Prefiltered, Evaluation::Plain].into_iter().flat_map(|evaluation| {
            [Work::UNBOUNDED, Work(0)]
                .map(|work| send(&policy, request, None, MORNING_MS, &Way { evaluation, work }))
        });
    let first = outcomes.next().unwrap();
    for other in outcomes {
        assert_eq!(first, other, "the ways disagree over {rules}");
    }
    first
}

/// The rules that match, in order.
fn check(rules: &str, request: &Request<'_>, expected: &[u64]) {
    assert_eq!(outcome(rules, request).ids, expected, "{rules}\n{}", request.target);
}

/// What the rules' `logdata` says, in order.
fn check_data(rules: &str, request: &Request<'_>, expected: &[&str]) {
    assert_eq!(outcome(rules, request).data, expected, "{rules}\n{}", request.target);
}

/// What is decided.
fn check_verdict(rules: &str, request: &Request<'_>, expected: &Verdict) {
    assert_eq!(outcome(rules, request).verdict, *expected, "{rules}\n{}", request.target);
}
