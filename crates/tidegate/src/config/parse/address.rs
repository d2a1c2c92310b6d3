//! Addresses to listen on, servers, upstream URLs and networks.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use tidegate_proxy::settings::{Address, Endpoint};

use super::super::diagnostic::code;
use super::super::options::kind::Fault;
use super::super::reader::Text;
use super::host;

/// The longest path of a Unix socket that the kernel takes (`sun_path` less its NUL, unix(7)).
const UNIX_PATH_BYTES_MAX: usize = 107;

/// An address to listen on: `0.0.0.0:80`, `[::]:443`, `unix:/run/x.sock`.
pub(crate) fn listen(text: &Text) -> Result<Address, Fault> {
    if let Some(path) = text.value.strip_prefix("unix:") {
        return unix_path(path).map(Address::Unix);
    }
    let bad = |message: &str| Fault::new(&code::INVALID_ADDRESS, message);
    let example =
        "write it like `0.0.0.0:80`, `[::]:80`, `127.0.0.1:8080` or `unix:/run/gate.sock`";
    let value = text.value.as_str();
    if let Ok(address) = value.parse::<SocketAddr>() {
        if address.port() == 0 {
            return Err(bad("port 0 lets the kernel choose a port that nobody knows")
                .hint("name a port from 1 to 65535"));
        }
        return Ok(Address::Tcp(address));
    }
    if let Some(port) = value.strip_prefix([':', '*']).map(|rest| rest.trim_start_matches(':'))
        && port.parse::<u16>().is_ok()
    {
        return Err(bad("expected an address and a port, found only a port").hint(format!(
                "for every address of this machine, write two listeners: `0.0.0.0:{port}` and `[::]:{port}`"
            )));
    }
    if let Ok(address) = value.parse::<IpAddr>() {
        return Err(bad("expected an address and a port, found only an address")
            .hint(format!("add a port: `{}`", SocketAddr::new(address, 80))));
    }
    if value.contains("://") {
        return Err(bad("expected an address and a port, found a URL")
            .hint(format!("{example}; TLS is turned on by `[listen.tls]`")));
    }
    if let Some((name, port)) = value.rsplit_once(':') {
        if port.parse::<u16>().is_err() {
            let start = name.len() + 1;
            return Err(bad("a port is a number from 1 to 65535").at(start..value.len()));
        }
        if name == "localhost" {
            return Err(bad("names are not looked up for listeners")
                .at(0..name.len())
                .hint(format!("write `127.0.0.1:{port}` or `[::1]:{port}`")));
        }
        return Err(bad("expected an IP address before the port").at(0..name.len()).hint(example));
    }
    Err(bad("expected an address and a port").hint(example))
}

/// A server of a group: `10.0.0.1:8080`, `app.internal:8080`, `unix:/run/app.sock`.
pub(crate) fn server(text: &Text) -> Result<Endpoint, Fault> {
    if let Some((scheme, _)) = text.value.split_once("://") {
        return Err(Fault::new(
            &code::INVALID_UPSTREAM,
            "a server is an address and a port, without a scheme",
        )
        .at(0..scheme.len() + 3)
        .hint("TLS is a matter of the whole group: `[group.NAME.tls]`"));
    }
    endpoint(&text.value, 0, None)
}

/// What a site's or route's `upstream` says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Upstream {
    /// Where the server is.
    pub(crate) endpoint: Endpoint,
    /// Whether TLS is spoken to it.
    pub(crate) scheme: Scheme,
    /// The host of the URL, for the certificate's name.
    pub(crate) host: Option<String>,
}

/// The scheme of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    /// Plain text.
    Http,
    /// TLS.
    Https,
}

/// A short-form upstream: a server, or its URL without path.
pub(crate) fn upstream(text: &Text) -> Result<Upstream, Fault> {
    let bad = |message: String| Fault::new(&code::INVALID_UPSTREAM, message);
    let value = text.value.as_str();
    let (scheme, start) = match value.split_once("://") {
        None => (Scheme::Http, 0),
        Some(("http", _)) => (Scheme::Http, 7),
        Some(("https", _)) => (Scheme::Https, 8),
        Some((other, _)) => {
            let fault =
                bad("the scheme of an upstream is `http` or `https`".into()).at(0..other.len());
            return Err(match other {
                "h2c" | "grpc" | "h2" | "grpcs" => fault.hint(
                    "make a group with `protocol = \"http2\"`, and `[group.NAME.tls]` for TLS",
                ),
                "ws" | "wss" => fault.hint("WebSocket is an upgrade of `http` or `https`"),
                "unix" => fault.hint("a Unix socket is written `unix:/run/app.sock`"),
                _ => fault,
            });
        }
    };
    let rest = &value[start..];
    if let Some(at) = rest.find('$') {
        return Err(bad("an upstream is fixed: it cannot be taken from the request".into())
            .at(start + at..value.len())
            .hint("a gate that connects where clients say is an open proxy"));
    }
    if let Some(at) = rest.find('@') {
        return Err(bad("an upstream has no user name or password".into())
            .at(start..start + at + 1)
            .hint("send them as a field: `request_headers = { set = { Authorization = \"Basic ${CREDENTIALS}\" } }`"));
    }
    if !rest.starts_with("unix:")
        && let Some(at) = rest.find(['/', '?', '#'])
    {
        let path = rest[at..].split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        let fault = bad("an upstream has no path".into()).at(start + at..value.len());
        return Err(match path {
            "" => fault.hint("leave it out: paths and queries pass as they are"),
            _ => fault
                .hint(format!("to put it in front of each path, add `add_prefix = \"{path}\"`")),
        });
    }
    let default_port = match scheme {
        _ if start == 0 => None,
        Scheme::Http => Some(80),
        Scheme::Https => Some(443),
    };
    let endpoint = endpoint(rest, start, default_port)?;
    let host = match &endpoint {
        Endpoint::Address(address) => Some(address.ip().to_string()),
        Endpoint::Name(name, _) => Some(name.clone()),
        Endpoint::Unix(_) => None,
    };
    if scheme == Scheme::Https && host.is_none() {
        return Err(bad("a Unix socket has no name that its certificate could be for".into())
            .hint("make a group with `[group.NAME.tls]` and its `name`"));
    }
    Ok(Upstream { endpoint, scheme, host })
}

/// An endpoint in a text that begins at `start` of what the file holds.
fn endpoint(value: &str, start: usize, default_port: Option<u16>) -> Result<Endpoint, Fault> {
    let bad = |message: &str| Fault::new(&code::INVALID_UPSTREAM, message);
    if let Some(path) = value.strip_prefix("unix:") {
        return unix_path(path)
            .map(Endpoint::Unix)
            .map_err(|fault| Fault { code: &code::INVALID_UPSTREAM, ..fault });
    }
    if value.starts_with('/') || value.starts_with("./") {
        return Err(bad("expected a server, found a path")
            .hint(format!("a Unix socket is written `unix:{value}`")));
    }
    if let Ok(address) = value.parse::<SocketAddr>() {
        return match address {
            _ if address.port() == 0 => Err(bad("a server has no port 0")),
            _ if address.ip().is_unspecified() => Err(bad("no server has this address")
                .hint(format!("for this machine, write `127.0.0.1:{}`", address.port()))),
            _ => Ok(Endpoint::Address(address)),
        };
    }
    let bare = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return match default_port {
            Some(port) => Ok(Endpoint::Address(SocketAddr::new(address, port))),
            None => Err(bad("the server has no port")
                .hint(format!("add it: `{}`", SocketAddr::new(address, 8080)))),
        };
    }
    let (name, port) = match value.rsplit_once(':') {
        Some((name, port)) => {
            let port_range = start + name.len() + 1..start + value.len();
            match port.parse::<u16>() {
                Ok(port @ 1..) if !port.to_string().starts_with('+') => (name, port),
                _ => {
                    return Err(bad("a port is a number from 1 to 65535").at(port_range));
                }
            }
        }
        None => match default_port {
            Some(port) => (value, port),
            None if value.is_empty() => return Err(bad("the server is empty")),
            None => {
                return Err(bad("the server has no port").hint(format!("add it: `{value}:8080`")));
            }
        },
    };
    let name = host::name(name).map_err(|message| {
        bad(&format!("`{name}` is neither an address nor a host name: {message}"))
            .at(start..start + name.len().max(1))
    })?;
    Ok(Endpoint::Name(name, port))
}

fn unix_path(path: &str) -> Result<PathBuf, Fault> {
    let bad = |message: &str| Fault::new(&code::INVALID_ADDRESS, message);
    if !path.starts_with('/') {
        return Err(bad("the path of a Unix socket begins with `/`")
            .hint("write it like `unix:/run/app.sock`"));
    }
    if path.len() > UNIX_PATH_BYTES_MAX {
        return Err(bad("the path of a Unix socket has at most 107 bytes"));
    }
    if path.ends_with('/') || path.contains('\0') {
        return Err(bad("the path of a Unix socket names a file"));
    }
    Ok(path.into())
}

/// A network or a single address: `10.0.0.0/8`, `::1`.
pub(crate) fn network(text: &Text) -> Result<IpNet, Fault> {
    let bad = |message: String| Fault::new(&code::INVALID_NETWORK, message);
    let value = text.value.as_str();
    if let Ok(address) = value.parse::<IpAddr>() {
        return Ok(IpNet::from(address));
    }
    let Some((address, length)) = value.split_once('/') else {
        return Err(bad(format!("expected a network or an address, found {}", text.shown())).hint(
            "write it like `10.0.0.0/8`, `192.0.2.7` or `fd00::/8`; names are not looked up",
        ));
    };
    let Ok(ip) = address.parse::<IpAddr>() else {
        return Err(bad("expected an IP address before the `/`".into()).at(0..address.len()));
    };
    let bits = if ip.is_ipv4() { 32 } else { 128 };
    let Some(net) = length.parse().ok().and_then(|length| IpNet::new(ip, length).ok()) else {
        return Err(bad(format!("expected a length from 0 to {bits} behind the `/`"))
            .at(address.len() + 1..value.len()));
    };
    if net.trunc() != net {
        return Err(bad("the address has bits beyond the network's length".into())
            .hint(format!("for the network, write `{}`; for the address, `{ip}`", net.trunc())));
    }
    Ok(net)
}
