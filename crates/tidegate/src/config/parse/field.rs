//! Field names and values, methods, cookies, log and header templates.

use tidegate_http::Method;
use tidegate_http::field::{self, Known};
use tidegate_proxy::settings::{HashKey, MethodName};
use tidegate_proxy::template::{Template, Variable};

use super::super::diagnostic::code;
use super::super::options::kind::Fault;
use super::super::reader::Text;
use super::super::suggest;

/// A method that a route serves.
pub(crate) fn method(text: &Text) -> Result<MethodName, Fault> {
    let value = text.value.as_str();
    let bad = |message: String| Fault::new(&code::INVALID_METHOD, message);
    if !field::is_name(value.as_bytes()) {
        return Err(bad(format!("{} is not a method", text.shown())));
    }
    let upper = value.to_ascii_uppercase();
    let method = Method::of(value.as_bytes());
    if method == Method::Other && Method::of(upper.as_bytes()) != Method::Other {
        return Err(bad("methods are told apart by case".into()).hint(format!("write `{upper}`")));
    }
    if method == Method::Other
        && let Some(near) = suggest::nearest(value, KNOWN_METHODS)
        && value.len() == near.len()
    {
        return Err(bad(format!("{} is not a method that anybody sends", text.shown()))
            .label(format!("did you mean `{near}`?")));
    }
    if method == Method::Connect {
        return Err(bad("CONNECT is always refused: this gate stands before servers".into()));
    }
    Ok(MethodName { method, text: value.into() })
}

const KNOWN_METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "PURGE"];

/// What a consistent hash is made of.
pub(crate) fn hash_key(text: &Text) -> Result<HashKey, Fault> {
    let value = text.value.as_str();
    match value.split_once(':') {
        None if value == "client_address" => Ok(HashKey::ClientAddress),
        None if value == "uri" => Ok(HashKey::Uri),
        Some(("header", name)) if field::is_name(name.as_bytes()) => {
            Ok(HashKey::Header(name.into()))
        }
        Some(("cookie", name)) if field::is_name(name.as_bytes()) => {
            Ok(HashKey::Cookie(name.into()))
        }
        Some((kind @ ("header" | "cookie"), name)) => Err(Fault::new(
            &code::INVALID_VALUE,
            format!("`{}` is not the name of a {kind}", name.escape_debug()),
        )
        .at(kind.len() + 1..value.len())),
        _ => Err(Fault::new(
            &code::UNKNOWN_CHOICE,
            format!(
                "expected `client_address`, `uri`, `header:NAME` or `cookie:NAME`, found {}",
                text.shown()
            ),
        )
        .label(suggest::did_you_mean(value, ["client_address", "uri"]).unwrap_or_default())),
    }
}

/// The name of a cookie.
pub(crate) fn cookie_name(text: &Text) -> Result<String, Fault> {
    if field::is_name(text.value.as_bytes()) {
        Ok(text.value.clone())
    } else {
        Err(Fault::new(
            &code::INVALID_VALUE,
            format!("{} is not the name of a cookie", text.shown()),
        )
        .hint("it holds letters, digits, `-` and `_`, and no spaces, `=` or `;`"))
    }
}

/// A protocol that a client may upgrade to.
pub(crate) fn protocol(text: &Text) -> Result<String, Fault> {
    let value = text.value.to_ascii_lowercase();
    let name = value.split('/').next().unwrap_or_default();
    if !field::is_name(name.as_bytes()) {
        return Err(Fault::new(
            &code::INVALID_VALUE,
            format!("{} is not the name of a protocol", text.shown()),
        ));
    }
    match name {
        "h2c" | "h2" | "http" | "tls" => Err(Fault::new(
            &code::INVALID_VALUE,
            format!("an upgrade to `{name}` would pass requests by the gate"),
        )
        .hint(
            "HTTP/2 is spoken by the gate itself; upgrades are for protocols such as `websocket`",
        )),
        _ => Ok(value),
    }
}

/// Which side a field is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Of requests, on their way to a server.
    Request,
    /// Of responses, on their way to a client.
    Response,
}

/// The name of a field that may be changed on this side.
pub(crate) fn name(value: &str, side: Side) -> Result<(), Fault> {
    if let Some(name) = value.strip_suffix(':').or(value.strip_prefix(':')) {
        return Err(Fault::new(&code::INVALID_HEADER_NAME, "a field's name has no colon")
            .hint(format!("write `{name}`")));
    }
    if !field::is_name(value.as_bytes()) {
        return Err(Fault::new(
            &code::INVALID_HEADER_NAME,
            format!("`{}` is not a field's name", value.escape_debug()),
        )
        .hint("names hold letters, digits and `-`, and no spaces"));
    }
    let known = match Known::of(value.as_bytes()) {
        Known::Other => field::look_alike(value.as_bytes()).unwrap_or(Known::Other),
        known => known,
    };
    let protected = |why: &str| {
        let message = format!("`{value}` belongs to the gate: {why}");
        Err(Fault::new(&code::PROTECTED_HEADER, message))
    };
    match known {
        Known::ContentLength | Known::TransferEncoding => {
            protected("it says where a message ends, and a second opinion lets requests hide")
        }
        Known::Connection
        | Known::KeepAlive
        | Known::ProxyConnection
        | Known::Te
        | Known::Trailer
        | Known::Upgrade
        | Known::Http2Settings => protected("it is about one connection and ends here"),
        Known::Expect => protected("it answers for the body itself"),
        Known::Host if side == Side::Request => protected("the server would see two meanings")
            .map_err(|fault: Fault| fault.hint("use `upstream_host`")),
        Known::Host => protected("it is a field of requests"),
        Known::Forwarded
        | Known::XForwardedFor
        | Known::XForwardedProto
        | Known::XForwardedHost
        | Known::XForwardedPort
        | Known::XRealIp
            if side == Side::Request =>
        {
            protected("it is built from the connection, so that no client can forge it").map_err(
                |fault: Fault| {
                    fault.hint("for proxies in front of the gate, list them in `[trust]`")
                },
            )
        }
        Known::Date if side == Side::Response => protected("it says when the response was made"),
        _ => Ok(()),
    }
}

/// The value of a field, with placeholders.
pub(crate) fn value(text: &Text) -> Result<String, Fault> {
    if let Some(at) = text.value.find(|c: char| c.is_control() && c != '\t') {
        let message = "a field's value holds no line ends or controls";
        return Err(Fault::new(&code::INVALID_HEADER_VALUE, message)
            .at(at..at + 1)
            .hint("a response with a line end in a field becomes two"));
    }
    if text.value.trim() != text.value {
        return Err(Fault::new(
            &code::INVALID_HEADER_VALUE,
            "a field's value does not begin or end with spaces",
        ));
    }
    let known: Vec<&str> = Variable::ALL.iter().map(|(_, name, _)| *name).collect();
    placeholders(text, &known)?;
    Ok(text.value.clone())
}

/// Refuses placeholders that are none of these.
pub(crate) fn placeholders(text: &Text, known: &[&'static str]) -> Result<(), Fault> {
    let mut unknown: Vec<(String, usize)> =
        Template::check(&text.value).into_iter().map(|found| (found.name, found.at)).collect();
    // A placeholder may exist and still mean nothing here.
    for (_, name, _) in Variable::ALL.iter().filter(|(_, name, _)| !known.contains(name)) {
        for form in [format!("${name}"), format!("${{{name}}}")] {
            unknown.extend(find_placeholder(&text.value, &form).map(|at| ((*name).to_owned(), at)));
        }
    }
    let Some((name, at)) = unknown.into_iter().min_by_key(|(_, at)| *at) else {
        return Ok(());
    };
    let message = match name.as_str() {
        "" => "a lone `$` begins a placeholder".to_owned(),
        _ => format!("there is no placeholder `${name}` here"),
    };
    let guess = suggest::nearest(&name, known.iter().copied());
    let label = guess.map(|near| format!("did you mean `${near}`?")).unwrap_or_default();
    let dollars: Vec<String> = known.iter().map(|name| format!("${name}")).collect();
    let list = suggest::one_of(dollars.iter().map(String::as_str));
    Err(Fault::new(&code::UNKNOWN_PLACEHOLDER, message)
        .at(at..(at + 1 + name.len()).min(text.value.len()))
        .label(label)
        .hint(format!("known are {list}; a dollar sign itself is `$$`")))
}

fn find_placeholder(text: &str, form: &str) -> Option<usize> {
    let continues = |c: u8| c.is_ascii_lowercase() || c == b'_';
    let after = |at: usize| text.as_bytes().get(at + form.len()).copied().unwrap_or(0);
    text.match_indices(form)
        .map(|(at, _)| at)
        .find(|at| (form.ends_with('}') || !continues(after(*at))) && !text[..*at].ends_with('$'))
}
