//! Answers as text for people or JSON for programs.

use std::io;

use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::body::Body;

/// What is sent back.
pub(super) type Sent = Response<Body>;

/// What a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Plain text.
    Text,
    /// JSON.
    Json,
}

impl Form {
    /// What a client wants: what `?format=` says, JSON if `Accept` names it, else text. curl, which
    /// accepts everything, gets what a person can read.
    pub(super) fn wanted(query: Option<&str>, headers: &HeaderMap) -> Form {
        let mut parameters = query.unwrap_or_default().split('&');
        let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let json = match parameters.find_map(|parameter| parameter.strip_prefix("format=")) {
            Some(format) => format == "json",
            None => accept.is_some_and(|accept| accept.contains("application/json")),
        };
        if json { Form::Json } else { Form::Text }
    }
}

/// An answer in both forms.
#[derive(Debug)]
pub(super) struct Answer {
    status: StatusCode,
    text: String,
    json: Value,
}

impl Answer {
    /// What was asked for.
    pub(super) fn ok(text: impl Into<String>, json: Value) -> Answer {
        Answer { status: StatusCode::OK, text: text.into(), json }
    }

    /// Why it was not done, in a sentence.
    pub(super) fn failure(status: StatusCode, reason: impl Into<String>) -> Answer {
        let reason = reason.into();
        Answer::detailed_failure(status, format!("{reason}\n"), json!({ "error": reason }))
    }

    /// What of the request is not understood, in a sentence.
    pub(super) fn bad_request(reason: impl Into<String>) -> Answer {
        Answer::failure(StatusCode::BAD_REQUEST, reason)
    }

    /// Why it was not done, at length.
    pub(super) fn detailed_failure(status: StatusCode, text: String, json: Value) -> Answer {
        Answer { status, text, json }
    }

    /// The status code.
    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// The response in the form that the client reads.
    pub(super) fn send(self, form: Form) -> Sent {
        match form {
            Form::Text => sent(self.status, "text/plain; charset=utf-8", self.text),
            Form::Json => sent(self.status, "application/json", format!("{:#}\n", self.json)),
        }
    }
}

/// A response; nothing here is to be kept by anybody on the way.
pub(super) fn sent(status: StatusCode, content_type: &'static str, body: String) -> Sent {
    let mut response = with(content_type, Body::whole(body));
    *response.status_mut() = status;
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// An answer that goes on for as long as the other end of the channel is there.
pub(super) fn streamed(
    content_type: &'static str,
    pieces: mpsc::Receiver<io::Result<Bytes>>,
) -> Sent {
    with(content_type, Body::Pieces(pieces))
}

fn with(content_type: &'static str, body: Body) -> Sent {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_text_and_programs_what_they_ask_for() {
        let check = |query: &str, accept: Option<&'static str>, expected| {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(Form::wanted(Some(query), &headers), expected, "{query} {accept:?}");
        };
        check("", None, Form::Text);
        check("", Some("*/*"), Form::Text);
        check("", Some("text/plain"), Form::Text);
        check("", Some("application/json"), Form::Json);
        check("format=json", Some("*/*"), Form::Json);
        check("a=b&format=json", None, Form::Json);
        check("format=text", Some("application/json"), Form::Text);
    }
}
