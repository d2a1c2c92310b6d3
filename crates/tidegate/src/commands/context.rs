//! `tidegate context`: what rules remember, from a terminal or a script.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidegate_proxy::settings::Admin;
use tokio::sync::mpsc;

use super::{admin, terminal};
use crate::admin::body::Body;
use crate::admin::client::{self, Ask, Patience};
use crate::cli;

/// What is read from a file at once, and how many such pieces wait for the network.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_MAX: usize = 4;

const TEXT: &str = "text/plain";

type Pieces = mpsc::Sender<io::Result<hyper::body::Bytes>>;

/// Does what is asked for.
pub(crate) fn run(arguments: &cli::Context) -> ExitCode {
    let (cli::Context::Get { admin: which, .. }
    | cli::Context::Put { admin: which, .. }
    | cli::Context::Del { admin: which, .. }
    | cli::Context::Watch { admin: which, .. }
    | cli::Context::Load { admin: which, .. }) = arguments;
    let listener = match admin::find(which) {
        Ok(listener) => listener,
        Err(code) => return code,
    };
    match arguments {
        cli::Context::Get {
            collection, key, name, json, prefix, limit, after, after_name, ..
        } => {
            let accept = if *json { "application/json" } else { TEXT };
            let path = match (key, name) {
                (Some(key), Some(name)) => path(collection, key, Some(name)),
                (key, _) => {
                    let limit = limit.to_string();
                    let key = key.as_ref().map(|key| format!("/{}", encoded(key)));
                    let query = query(&[
                        ("limit", Some(&limit)),
                        ("prefix", prefix.as_deref()),
                        ("after", after.as_deref()),
                        ("after_name", after_name.as_deref()),
                    ]);
                    format!("/context/{}{}{query}", encoded(collection), key.unwrap_or_default())
                }
            };
            admin::ask(&listener, "GET", &path, accept)
        }
        cli::Context::Put { collection, key, name, value, ttl, .. } => {
            let path = path(collection, key, Some(name)) + &query(&[("ttl", ttl.as_deref())]);
            let body = Body::whole(value.clone());
            admin::told(client::ask(&listener, Ask { body, ..Ask::new("PUT", &path, TEXT) }))
        }
        cli::Context::Del { collection, key, name, .. } => {
            admin::ask(&listener, "DELETE", &path(collection, key, name.as_deref()), TEXT)
        }
        cli::Context::Watch { collection, prefix, .. } => {
            watch(&listener, collection.as_deref(), prefix.as_deref())
        }
        cli::Context::Load { file, replace, .. } => load(&listener, file, replace.as_deref()),
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn path(collection: &str, key: &str, name: Option<&str>) -> String {
    let name = name.map(|name| format!("/{}", encoded(name))).unwrap_or_default();
    format!("/context/{}/{}{name}", encoded(collection), encoded(key))
}

/// The parameters that are given, as they stand behind a path.
fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    let given: Vec<_> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
}

fn watch(listener: &Admin, collection: Option<&str>, prefix: Option<&str>) -> ExitCode {
    let wanted = query(&[("collection", collection), ("prefix", prefix)]);
    let path = format!("/context/watch{wanted}");
    admin::told(client::follow(listener, &path, |piece| {
        // An empty line only asks whether somebody is there.
        if piece != b"\n" {
            terminal::print(&String::from_utf8_lossy(piece));
        }
        ControlFlow::Continue(())
    }))
}

fn load(listener: &Admin, file: &Path, replace: Option<&str>) -> ExitCode {
    let name =
        if file == Path::new("-") { "standard input".into() } else { file.display().to_string() };
    let source: Box<dyn Read + Send> = if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        match File::open(file) {
            Ok(file) => Box::new(file),
            Err(error) => return failed(&name, &error),
        }
    };
    let (sender, pieces) = mpsc::channel(PIECES_MAX);
    let reading = std::thread::spawn(move || send(source, &sender));
    let path = format!("/context/load{}", query(&[("replace", replace)]));
    let body = Body::Pieces(pieces);
    let ask = Ask { body, patience: Patience::Gates, ..Ask::new("POST", &path, TEXT) };
    let answer = client::ask(listener, ask);
    if let Ok(Err(error)) = reading.join() {
        return failed(&name, &error);
    }
    admin::told(answer.map(|mut reply| {
        // The gate knows lines and columns, and the name of the file is ours.
        let places = |line: &str| line.starts_with(|first: char| first.is_ascii_digit());
        if reply.status.as_u16() == 422 {
            let lines = reply.text.lines().map(|line| {
                if places(line) { format!("{name}:{line}\n") } else { format!("{line}\n") }
            });
            reply.text = lines.collect::<String>() + "nothing is loaded\n";
        }
        reply
    }))
}

/// Reads a file to its end. An error breaks the request off, so that nothing is loaded.
fn send(mut source: Box<dyn Read + Send>, pieces: &Pieces) -> Result<(), String> {
    let mut room = vec![0; PIECE_BYTES];
    loop {
        let piece = match source.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(count) => Ok(room[..count].to_vec().into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let broken = piece.as_ref().err().map(io::Error::to_string);
        // The gate may have refused already; it says so itself.
        let gone = pieces.blocking_send(piece).is_err();
        match broken {
            Some(error) => return Err(error),
            None if gone => return Ok(()),
            None => {}
        }
    }
}

fn failed(name: &str, error: &dyn std::fmt::Display) -> ExitCode {
    terminal::print_error(&format!("tidegate: {name}: {error}\n"));
    ExitCode::FAILURE
}
