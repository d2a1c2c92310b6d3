//! From a request to its answer.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{ACCEPT, ALLOW, HeaderValue};
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::json;
use tidegate_telemetry::metrics::TextFormat;

use super::answer::{Answer, Form, Sent, sent};
use super::guard::{self, Way};
use super::servers::{self, Change};
use super::{EXCHANGE_MAX, balance, context, plan, purge, status};
use crate::config::render::{self, Colour};
use crate::control::{Gate, Phase};
use crate::serve::Obstacle;
use crate::upgrade::Successor;

const INDEX: &str = "\
GET  /status       how the gate is doing, worst first
GET  /lb-status    groups and servers
GET  /metrics      for Prometheus
GET  /plan         what is in service
GET  /healthz      200 while serving, 503 while draining
POST /reload       take the configuration anew
POST /upgrade      hand over to a new process
POST /cache/purge?url=U&soft=true            purge a URL, or prefix=U, tag=T, site=S, all=true
POST   /groups/GROUP/servers/SERVER/drain    give a server no new requests
POST   /groups/GROUP/servers/SERVER/undrain  give it requests again
PUT    /groups/GROUP/servers/SERVER          add a server until the next reload
DELETE /groups/GROUP/servers/SERVER          remove a server until the next reload
GET    /context/COLLECTION?prefix=P          variables of records whose keys begin so
GET    /context/COLLECTION/KEY[/NAME]        a record, or one variable
PUT    /context/COLLECTION/KEY/NAME?ttl=S    write a variable; its value is the body
DELETE /context/COLLECTION/KEY[/NAME]        remove it
POST   /context/load?replace=COLLECTION      load lines, all of them or none
GET    /context/watch?collection=C&prefix=P  changes as they are made

Answers are text; JSON with `Accept: application/json` or `?format=json`.
What changes something must carry `Tidegate-Client: ` and any value, or the token.
";

/// How long an exchange may take; `None` if it ends when the client wants.
pub(super) fn patience<B>(request: &Request<B>) -> Option<Duration> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/context/watch") => None,
        (&Method::POST, "/context/load") => Some(context::LOAD_MAX),
        _ => Some(EXCHANGE_MAX),
    }
}

/// Answers a request.
pub(super) async fn answer<B>(gate: &Gate, request: Request<B>, way: Way) -> Sent
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let form = Form::wanted(request.uri().query(), request.headers());
    let uri = request.uri().clone();
    let path: Vec<&str> = uri.path().split('/').skip(1).collect();
    if path == ["healthz"] {
        return healthz(gate).send(form);
    }
    let token = gate.running.borrow().admin.token.clone();
    if let Err(refusal) = guard::admit(&request, way, token.as_deref()) {
        return refusal.send(form);
    }
    let get = matches!(*request.method(), Method::GET | Method::HEAD);
    let post = *request.method() == Method::POST;
    let answer = match *path.as_slice() {
        [""] if get => Answer::ok(INDEX, json!({ "version": env!("CARGO_PKG_VERSION") })),
        ["status"] if get => status::answer(gate),
        ["lb-status"] if get => balance::answer(gate),
        ["plan"] if get => plan::answer(gate),
        ["metrics"] if get => {
            let accept = request.headers().get(ACCEPT).map_or(&[][..], HeaderValue::as_bytes);
            let format = TextFormat::accepted(accept);
            gate.context.tell(&gate.metrics);
            return sent(StatusCode::OK, format.content_type(), gate.metrics.exposition(format));
        }
        ["context", ref rest @ ..] => return context::answer(gate, request, rest, form).await,
        ["cache", "purge"] if post => purge::answer(gate, request).await,
        ["reload"] if post => reload(gate).await,
        ["upgrade"] if post => match binary_named(request.uri().query(), way, token.as_deref()) {
            Ok(binary) => upgrade(gate, binary).await,
            Err(refusal) => refusal,
        },
        ["groups", group, "servers", server, ref rest @ ..] if !get => {
            let (Some(group), Some(server)) = (decoded(group), decoded(server)) else {
                let reason = "a name in the path is not UTF-8";
                return Answer::failure(StatusCode::BAD_REQUEST, reason).send(form);
            };
            match Change::asked(request.method(), rest, request.uri().query()) {
                Ok(change) => servers::answer(gate, &group, &server, change).await,
                Err(refusal) => refusal,
            }
        }
        ["" | "status" | "lb-status" | "plan" | "metrics"] => return not_allowed("GET", form),
        ["reload" | "upgrade"] | ["cache", "purge"] => return not_allowed("POST", form),
        _ => Answer::failure(StatusCode::NOT_FOUND, "no such page; `/` lists them"),
    };
    answer.send(form)
}

fn decoded(segment: &str) -> Option<String> {
    percent_decode_str(segment).decode_utf8().ok().map(Into::into)
}

fn not_allowed(allowed: &'static str, form: Form) -> Sent {
    let reason = format!("this wants {allowed}");
    let mut response = Answer::failure(StatusCode::METHOD_NOT_ALLOWED, reason).send(form);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// For whoever balances over several gates. It tells nothing but that, so it wants no token.
fn healthz(gate: &Gate) -> Answer {
    match gate.phase.get() {
        Phase::Serving => Answer::ok("serving\n", json!({ "state": "serving" })),
        Phase::Draining => Answer::detailed_failure(
            StatusCode::SERVICE_UNAVAILABLE,
            "draining\n".into(),
            json!({ "state": "draining" }),
        ),
    }
}

async fn reload(gate: &Gate) -> Answer {
    match gate.reload().await {
        Ok(reloaded) => {
            let (generation, contents) = (reloaded.generation, reloaded.contents);
            let mut text = render::text(&reloaded.warnings, Colour::Off);
            // Writing to a string cannot fail.
            for what in &reloaded.postponed {
                let _ = writeln!(text, "note: {what}");
            }
            let _ = writeln!(text, "plan {generation} is in service: {contents}");
            Answer::ok(
                text,
                json!({
                    "generation": generation,
                    "sites": contents.sites,
                    "routes": contents.routes,
                    "groups": contents.groups,
                    "listeners": contents.listeners,
                    "warnings": render::json(&reloaded.warnings),
                    "postponed": reloaded.postponed,
                }),
            )
        }
        Err(obstacle) => refused(gate, &obstacle),
    }
}

/// The running plan stays, and that is said, too.
fn refused(gate: &Gate, obstacle: &Obstacle) -> Answer {
    let generation = gate.running.borrow().plan.generation;
    let mut text = obstacle.at_length(Colour::Off);
    let _ = writeln!(text, "not reloaded: plan {generation} stays in service");
    let diagnostics = match obstacle {
        Obstacle::Configuration { diagnostics, .. } => render::json(diagnostics),
        _ => json!([]),
    };
    let json = json!({
        "error": obstacle.to_string(),
        "generation": generation,
        "diagnostics": diagnostics,
    });
    Answer::detailed_failure(StatusCode::UNPROCESSABLE_ENTITY, text, json)
}

/// Who may name a program may run it as the gate's user. Over TCP without a token that could be
/// anybody on this machine.
fn binary_named(
    query: Option<&str>,
    way: Way,
    token: Option<&str>,
) -> Result<Option<PathBuf>, Answer> {
    let mut parameters = query.unwrap_or_default().split('&');
    let Some(binary) = parameters.find_map(|parameter| parameter.strip_prefix("binary=")) else {
        return Ok(None);
    };
    if way == Way::Network && token.is_none() {
        return Err(Answer::failure(
            StatusCode::FORBIDDEN,
            "naming the program wants an admin listener on a Unix socket, or a token",
        ));
    }
    let path = decoded(binary).map(PathBuf::from).filter(|path| path.is_absolute());
    path.map(Some).ok_or_else(|| {
        Answer::failure(StatusCode::BAD_REQUEST, "`binary` must be an absolute path")
    })
}

async fn upgrade(gate: &Gate, binary: Option<PathBuf>) -> Answer {
    match gate.upgrade(binary).await {
        Ok(Successor { pid, binary }) => {
            let binary = binary.display();
            Answer::ok(
                format!(
                    "upgraded: process {pid} serves ({binary}), this one finishes its requests\n"
                ),
                json!({ "pid": pid, "binary": binary.to_string() }),
            )
        }
        Err(failed) => Answer::detailed_failure(
            StatusCode::CONFLICT,
            format!("{failed}\nnot upgraded: this process goes on\n"),
            json!({ "error": failed.to_string() }),
        ),
    }
}
