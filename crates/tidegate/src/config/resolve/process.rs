//! `[process]`, `[admin]` and `[trust]`.

use ipnet::IpNet;
use tidegate_proxy::settings::{Address, Admin, Process};

use super::super::diagnostic::{Diagnostic, code};
use super::super::options::kind::{FoundSecret, Written};
use super::super::options::{admin, process, trust};
use super::super::reader::{Located, Reading, Scope};

pub(super) fn process(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Process {
    let workers = scope.find(&process::WORKERS, reading).map(|found| found.value);
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Process {
        workers: workers.unwrap_or_else(cores),
        connections_max: scope.read(&process::CONNECTIONS_MAX, reading).value,
        drain_timeout: scope.read(&process::DRAIN_TIMEOUT, reading).value,
    }
}

pub(super) fn admin(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Admin {
    let listen = scope.read(&admin::LISTEN, reading);
    let token = scope.find(&admin::TOKEN, reading);
    if let Some(token) = &token {
        check_readable(token, reading);
    }
    let token_written = scope.node(admin::TOKEN.key).is_some();
    let place = listen.span.unwrap_or(scope.place());
    match &listen.value {
        Some(Address::Tcp(address)) if !address.ip().is_loopback() => {
            if token_written {
                reading.report(
                    Diagnostic::new(
                        &code::ADMIN_REACHABLE,
                        place,
                        "the admin listener is reachable from other machines, and speaks no TLS: its \
                         token travels in plain text",
                    )
                    .hint("listen on `127.0.0.1:9180` or `unix:/run/tidegate/admin.sock`, and reach it by SSH"),
                );
            } else {
                reading.report(
                    Diagnostic::new(
                        &code::ADMIN_EXPOSED,
                        place,
                        "the admin listener is reachable from other machines and wants no token",
                    )
                    .hint(
                        "add `token = \"${TIDEGATE_ADMIN_TOKEN}\"`, or listen on `127.0.0.1:9180`",
                    ),
                );
            }
        }
        None if token_written => {
            let span = token.as_ref().and_then(|token| token.span).unwrap_or(place);
            let message = "there is no admin listener that would want it";
            reading.report(Diagnostic::new(&code::NO_EFFECT, span, message));
        }
        _ => {}
    }
    Admin {
        address: listen.value,
        token: token.map(|found| found.value.secret.reveal().to_owned()),
    }
}

/// Warns of a secret in a file that everybody on this machine may read.
pub(super) fn check_readable(found: &Located<FoundSecret>, reading: &mut Reading<'_>) {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(span) = found.span.filter(|_| found.value.written == Written::Here) else {
        return;
    };
    let path = &reading.diagnostics.sources.of(span).path;
    let readable = std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o004 != 0);
    if readable {
        let message = "this secret stands in a file that everybody on this machine may read";
        reading.report(
            Diagnostic::new(&code::READABLE_SECRET, span, message)
                .hint("write `${NAME}` or `file:/path` instead, or take the permission away"),
        );
    }
}

pub(super) fn trust(scope: &Scope<'_>, reading: &mut Reading<'_>) -> Vec<IpNet> {
    let Some(found) = scope.find(&trust::PROXIES, reading) else {
        return Vec::new();
    };
    for network in &found.value {
        if network.value.prefix_len() == 0
            && let Some(span) = network.span
        {
            reading.report(
                Diagnostic::new(
                    &code::TRUSTS_EVERYBODY,
                    span,
                    "every client is believed to be whoever it says it is",
                )
                .hint("list the addresses of the proxies in front of the gate, and no others"),
            );
        }
    }
    found.value.into_iter().map(|network| network.value).collect()
}
