//! Host names and the wildcards of sites.

use tidegate_http::target;
use tidegate_proxy::settings::Host;

use super::super::diagnostic::code;
use super::super::options::kind::Fault;
use super::super::reader::Text;

/// A host of a site: `example.org`, `*.example.org`, `*`.
pub(crate) fn pattern(text: &Text) -> Result<Host, Fault> {
    let value = text.value.as_str();
    let bad = |message: String| Fault::new(&code::INVALID_HOST, message);
    if value == "*" {
        return Ok(Host::Any);
    }
    check_shape(value)?;
    if let Some(parent) = value.strip_prefix("*.") {
        if let Some(at) = parent.find('*') {
            return Err(bad("a wildcard stands once, as the first label".into())
                .at(at + 2..at + 3)
                .hint("`*.example.org` holds every name below `example.org`, at any depth"));
        }
        if parent.parse::<std::net::IpAddr>().is_ok() {
            return Err(bad("an address has no names below it".into()));
        }
        return name(parent).map(Host::Below).map_err(bad);
    }
    if let Some(at) = value.find('*') {
        return Err(bad("a wildcard is a whole label, the first".into()).at(at..at + 1).hint(
            "`*.example.org` holds every name below `example.org`, and `*` is the default site",
        ));
    }
    exact(value).map(Host::Exact).map_err(bad)
}

/// One host without wildcards.
pub(crate) fn single(text: &Text) -> Result<String, Fault> {
    check_shape(&text.value)?;
    exact(&text.value).map_err(|message| Fault::new(&code::INVALID_HOST, message))
}

/// What people write where a host belongs.
fn check_shape(value: &str) -> Result<(), Fault> {
    let bad = |message: &str| Fault::new(&code::INVALID_HOST, message);
    if value.is_empty() {
        return Err(bad("the host is empty").hint("for the default site, write `\"*\"`"));
    }
    if let Some((scheme, rest)) = value.split_once("://") {
        let host = rest.split('/').next().unwrap_or(rest);
        return Err(bad("a host has no scheme")
            .at(0..scheme.len() + 3)
            .hint(format!("write `{host}`")));
    }
    if let Some(at) = value.find('/') {
        return Err(bad("a host has no path")
            .at(at..value.len())
            .hint("paths are told apart by routes: `[[site.route]]` with `path`"));
    }
    let is_address = value.starts_with('[') || value.parse::<std::net::Ipv6Addr>().is_ok();
    if let Some(at) = value.find(':')
        && !is_address
    {
        return Err(bad("a host has no port")
            .at(at..value.len())
            .hint("sites are told apart by name only; every site is served on every listener"));
    }
    if value.starts_with('.') {
        return Err(bad("a host does not begin with a dot")
            .at(0..1)
            .hint(format!("for every name below it, write `*{value}`")));
    }
    if value.starts_with('~') || value.contains(['(', '^', '\\', '$']) {
        return Err(bad("hosts are names or wildcards, not patterns")
            .hint("list the names, or use `*.example.org`"));
    }
    Ok(())
}

fn exact(value: &str) -> Result<String, String> {
    match value.parse::<std::net::Ipv6Addr>() {
        Ok(address) => Ok(format!("[{address}]")),
        Err(_) => name(value),
    }
}

/// A host name in the spelling that requests are compared in; the words of what is wrong otherwise.
pub(crate) fn name(value: &str) -> Result<String, String> {
    if !value.is_ascii() {
        return Err("names beyond ASCII are written in Punycode (`xn--..`)".into());
    }
    if let Some(label) = value.split('.').find(|label| label.len() > 63) {
        return Err(format!("the label `{}..` is longer than 63 characters", &label[..16]));
    }
    if let Some(odd) = value
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.' | '[' | ']' | ':'))
    {
        return Err(format!("a host name holds no `{}`", odd.escape_debug()));
    }
    let mut out = Vec::new();
    match target::host(value.as_bytes(), &mut out) {
        Ok(None) => String::from_utf8(out).map_err(|_| "it is not a host name".into()),
        _ if value.contains("..") || value.is_empty() => Err("a label is empty".into()),
        _ => Err("it is neither a host name nor an address".into()),
    }
}
