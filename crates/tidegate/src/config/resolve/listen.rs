//! `[[listen]]` and its TLS.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tidegate_proxy::settings::{
    Address, Http2, Listener, ListenerLimits, ListenerTimeouts, Protocols, ProxyProtocol,
};
use tidegate_proxy::tls::{
    ClientAuth, ClientAuthorities, Pem, ServerTls, ServerTlsSettings, UnknownName,
};

use super::super::diagnostic::{Diagnostic, code};
use super::super::options::{self, certificate, http2, listen, listen_tls};
use super::super::reader::{Owner, Reading, Scope};
use super::super::source::Span;
use super::{Outside, tls};

/// A listener and what later checks want to know of it.
pub(super) struct Found {
    pub(super) listener: Listener,
    /// Whether it speaks TLS; so it does even when its certificates cannot be read.
    pub(super) security: Security,
    /// Where it stands; `None` for those that are there without being written.
    pub(super) span: Option<Span>,
}

/// What a listener speaks below HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Security {
    Plain,
    Tls,
}

/// All listeners, or those that hold where none is written.
pub(super) fn resolve(
    root: &Scope<'_>,
    defaults: &Scope<'_>,
    outside: &Outside<'_>,
    reading: &mut Reading<'_>,
) -> Vec<Found> {
    let mut found = Vec::new();
    let mut addresses: HashMap<Address, Span> = HashMap::new();
    for (index, scope) in root.children(&listen::SECTION).into_iter().enumerate() {
        let scope = scope.of(Owner::Listener(index)).under(defaults);
        let address = scope.require(&listen::ADDRESS, reading);
        let place = address.as_ref().and_then(|address| address.span).unwrap_or(scope.place());
        if let Some(address) = &address {
            if let Some(first) = addresses.get(&address.value) {
                reading.report(
                    Diagnostic::new(
                        &code::DUPLICATE_LISTENER,
                        place,
                        "another listener has this address",
                    )
                    .beside(*first, "the other one"),
                );
            }
            addresses.entry(address.value.clone()).or_insert(place);
        }
        // A stand-in keeps the listener, so that what else is wrong with it is found too.
        let address = address.map_or(stand_in(), |address| address.value);
        found.push(listener(&scope, address, place, outside, reading));
    }
    if root.node(listen::SECTION.key).is_none() {
        for (index, address) in default_addresses().into_iter().enumerate() {
            let scope = Scope::new(&listen::SECTION, Owner::Listener(index), None, None);
            let scope = scope.under(defaults);
            let mut listener = listener(&scope, address, scope.place(), outside, reading);
            listener.span = None;
            found.push(listener);
        }
    }
    found
}

fn stand_in() -> Address {
    Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

/// Where the gate listens if the file does not say: on port 80 of every address.
fn default_addresses() -> [Address; 2] {
    [
        Address::Tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 80))),
        Address::Tcp(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 80))),
    ]
}

fn listener(
    scope: &Scope<'_>,
    address: Address,
    place: Span,
    outside: &Outside<'_>,
    reading: &mut Reading<'_>,
) -> Found {
    let protocols = scope.read(&listen::PROTOCOLS, reading);
    let proxy_protocol = scope.read(&listen::PROXY_PROTOCOL, reading);
    let target = scope.read(&listen::TARGET_BYTES_MAX, reading);
    let limits = ListenerLimits {
        head_bytes_max: bytes(scope.read(&listen::HEAD_BYTES_MAX, reading).value),
        target_bytes_max: bytes(target.value),
        fields_max: scope.read(&listen::FIELDS_MAX, reading).value,
        requests_per_connection_max: scope
            .read(&listen::REQUESTS_PER_CONNECTION_MAX, reading)
            .value,
    };
    if let Some(span) = target.span
        && limits.target_bytes_max > limits.head_bytes_max
    {
        reading.report(
            Diagnostic::new(
                &code::NO_EFFECT,
                span,
                "the target is a part of the head, which may not be as long",
            )
            .hint("raise `head_bytes_max` too"),
        );
    }
    let timeouts = timeouts(scope, reading);
    let http2_scope = scope.child(&http2::SECTION);
    if http2_scope.is_written() && protocols.value == Protocols::Http1 {
        reading.report(
            Diagnostic::new(
                &code::NO_EFFECT,
                http2_scope.place(),
                "this listener speaks no HTTP/2",
            )
            .hint("write `protocols = \"both\"`, or leave this section out"),
        );
    }
    let http2 = http2(&http2_scope, reading);

    let tls_scope = scope.child(&listen_tls::SECTION);
    let (tls, security) = if tls_scope.is_written() {
        (server_tls(&tls_scope, protocols.value, outside, reading), Security::Tls)
    } else {
        (None, Security::Plain)
    };
    let is_tcp = matches!(address, Address::Tcp(_));
    if protocols.value == Protocols::Http2
        && security == Security::Plain
        && let Some(span) = protocols.span
        && is_tcp
    {
        reading.report(
            Diagnostic::new(
                &code::PLAIN_HTTP2,
                span,
                "without TLS, only clients that know beforehand speak HTTP/2; browsers do not",
            )
            .hint("add `[listen.tls]`, or write `protocols = \"both\"`"),
        );
    }
    if proxy_protocol.value == ProxyProtocol::Required
        && let Address::Tcp(address) = address
        && address.ip().is_unspecified()
        && let Some(span) = proxy_protocol.span
    {
        reading.report(
            Diagnostic::new(
                &code::OPEN_PROXY_PROTOCOL,
                span,
                "whoever can connect to this address can pretend to be any client",
            )
            .hint(
                "listen on an address that only the balancer reaches, or let a firewall see to it",
            ),
        );
    }
    let listener = Listener {
        name: address_text(&address),
        address,
        tls: tls.map(Arc::new),
        protocols: protocols.value,
        proxy_protocol: proxy_protocol.value,
        backlog: scope.read(&listen::BACKLOG, reading).value,
        limits,
        timeouts,
        http2,
    };
    Found { listener, security, span: Some(place) }
}

/// An address as it is written.
fn address_text(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => format!("unix:{}", path.display()),
    }
}

fn timeouts(scope: &Scope<'_>, reading: &mut Reading<'_>) -> ListenerTimeouts {
    /// Beyond this, a client that sends a byte now and then holds a connection for nothing.
    const HEAD_LONG: Duration = Duration::from_mins(5);
    let head = scope.read(&listen::HEAD_TIMEOUT, reading);
    if head.value > HEAD_LONG
        && let Some(span) = head.span
    {
        reading.report(
            Diagnostic::new(
                &code::NO_TIMEOUT,
                span,
                "a client may take this long for a few hundred bytes: slow senders can hold every connection",
            )
            .hint("10 seconds are enough for any honest client"),
        );
    }
    ListenerTimeouts {
        handshake: scope.read(&listen::HANDSHAKE_TIMEOUT, reading).value,
        head: head.value,
        idle: scope.read(&listen::IDLE_TIMEOUT, reading).value,
        body_read: scope.read(&listen::BODY_READ_TIMEOUT, reading).value,
        write: scope.read(&listen::WRITE_TIMEOUT, reading).value,
    }
}

fn http2(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Http2 {
    Http2 {
        streams_max: scope.read(&http2::STREAMS_MAX, reading).value,
        stream_window_bytes: narrow(scope.read(&http2::STREAM_WINDOW, reading).value),
        connection_window_bytes: narrow(scope.read(&http2::CONNECTION_WINDOW, reading).value),
        resets_max: scope.read(&http2::RESETS_MAX, reading).value,
        header_bytes_max: narrow(scope.read(&http2::HEADER_BYTES_MAX, reading).value),
    }
}

/// Sizes are bounded by their options far below what these types hold.
pub(super) fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

fn narrow(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn server_tls(
    scope: &Scope<'_>,
    protocols: Protocols,
    outside: &Outside<'_>,
    reading: &mut Reading<'_>,
) -> Option<ServerTls> {
    let versions = scope.read(&listen_tls::VERSIONS, reading);
    let versions = tls::versions(&versions, reading);
    let unknown_name = match scope.read(&listen_tls::UNKNOWN_NAME, reading).value {
        options::UnknownNameOption::Default => UnknownName::Default,
        options::UnknownNameOption::Refuse => UnknownName::Refuse,
    };
    let client_auth = client_auth(scope, reading);
    let scopes = scope.children(&certificate::SECTION);
    if scopes.is_empty() {
        reading.report_missing(
            scope,
            Diagnostic::new(&code::MISSING_OPTION, scope.place(), "TLS has no certificate")
                .hint(format!("add `{}`", certificate::SECTION.example)),
        );
    }
    let mut certificates = Vec::new();
    let mut complete = !scopes.is_empty();
    for scope in scopes {
        let chain = scope.require(&certificate::CHAIN, reading);
        let key = scope.require(&certificate::KEY, reading);
        match (chain, key) {
            (Some(chain), Some(key)) => certificates.push(tls::Pair::new(&chain, &key, reading)),
            _ => complete = false,
        }
    }
    let settings = ServerTlsSettings {
        certificates: certificates.iter().map(tls::Pair::settings).collect(),
        protocols,
        versions: versions?,
        unknown_name,
        client_auth: client_auth?,
        tickets: Arc::clone(outside.tickets),
    };
    if !complete {
        tls::check_pairs(&settings, &certificates, reading);
        return None;
    }
    tls::build_server(&settings, &certificates, scope, reading)
}

/// `None` if it cannot be what was asked for.
fn client_auth(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Option<ClientAuth> {
    let auth = scope.read(&listen_tls::CLIENT_AUTH, reading);
    let ca = scope.find(&listen_tls::CLIENT_CA, reading);
    let crl = scope.find(&listen_tls::CLIENT_CRL, reading);
    let place = auth.span.unwrap_or(scope.place());
    if auth.value == options::ClientAuthOption::Off {
        for unused in [&ca, &crl].into_iter().flatten() {
            let span = unused.span.unwrap_or(place);
            reading.report(
                Diagnostic::new(&code::NO_EFFECT, span, "clients are not asked for certificates")
                    .hint("write `client_auth = \"required\"` or `\"optional\"`"),
            );
        }
        return Some(ClientAuth::Off);
    }
    let Some(ca) = ca else {
        reading.report(
            Diagnostic::new(
                &code::CLIENT_CA_MISSING,
                place,
                "clients are asked for certificates, and no authority is named that certifies them",
            )
            .hint("add `client_ca = \"clients-ca.pem\"`"),
        );
        return None;
    };
    let authorities = ClientAuthorities {
        certificates: Pem::File(tls::path(&ca, reading)),
        revoked: crl.map(|crl| Pem::File(tls::path(&crl, reading))),
    };
    Some(match auth.value {
        options::ClientAuthOption::Required => ClientAuth::Required(authorities),
        options::ClientAuthOption::Optional | options::ClientAuthOption::Off => {
            ClientAuth::Optional(authorities)
        }
    })
}
