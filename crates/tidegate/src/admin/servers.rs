//! Changes to the servers of a group.

use hyper::{Method, StatusCode};
use serde_json::json;
use tidegate_proxy::settings::{Endpoint, PeerAddress, Role, Server};
use tidegate_proxy::upstream::Group;
use tidegate_proxy::upstream::roster::RosterError;
use tidegate_telemetry::clock::Stamp;

use super::answer::Answer;
use crate::control::Gate;

/// What is to be done with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// No new requests.
    Drain,
    /// Requests again.
    Undrain,
    /// A new server on these terms.
    Add(Terms),
    /// A server less.
    Remove,
}

/// On what terms a server joins a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    weight: u32,
    role: Role,
    connections_max: Option<u32>,
}

impl Change {
    /// What method, rest of the path and query ask for.
    pub(super) fn asked(
        method: &Method,
        rest: &[&str],
        query: Option<&str>,
    ) -> Result<Change, Answer> {
        match (method.as_str(), rest) {
            ("POST", ["drain"]) => Ok(Change::Drain),
            ("POST", ["undrain"]) => Ok(Change::Undrain),
            ("PUT" | "POST", []) => Terms::parse(query).map(Change::Add),
            ("DELETE", []) => Ok(Change::Remove),
            _ => Err(Answer::failure(
                StatusCode::NOT_FOUND,
                "a server can be drained, undrained (POST), added (PUT) and removed (DELETE)",
            )),
        }
    }

    fn past(self) -> &'static str {
        match self {
            Change::Drain => "gets no new requests",
            Change::Undrain => "gets requests again",
            Change::Add(_) => "was added, until the next reload",
            Change::Remove => "was removed, until the next reload",
        }
    }
}

impl Terms {
    /// `weight=2&backup=true&connections_max=100`, all of it optional.
    fn parse(query: Option<&str>) -> Result<Terms, Answer> {
        let mut terms = Terms { weight: 1, role: Role::Primary, connections_max: None };
        let parameters = query.unwrap_or_default().split('&').filter(|one| !one.is_empty());
        for parameter in parameters {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let number = || value.parse().ok().filter(|number| *number > 0);
            match (name, value, number()) {
                ("weight", _, Some(weight @ ..=1000)) => terms.weight = weight,
                ("connections_max", _, Some(max)) => terms.connections_max = Some(max),
                ("backup", "true", _) => terms.role = Role::Backup,
                ("backup", "false", _) => terms.role = Role::Primary,
                ("format", ..) => {}
                _ => {
                    let reason = format!(
                        "`{parameter}` is not understood: `weight` is 1 to 1000, \
                         `connections_max` a number, `backup` true or false"
                    );
                    return Err(Answer::failure(StatusCode::BAD_REQUEST, reason));
                }
            }
        }
        Ok(terms)
    }
}

/// Changes a server of the running plan.
pub(super) async fn answer(gate: &Gate, group: &str, server: &str, change: Change) -> Answer {
    // A reload that is under way would lose the change: it has copied the group already.
    let _changing = gate.changing.lock().await;
    let plan = std::sync::Arc::clone(&gate.running.borrow().plan);
    let Some(found) = plan.group_named(group) else {
        let names: Vec<_> = plan.groups.iter().map(|group| group.name()).collect();
        let reason = format!("there is no group `{group}`; there are: {}", names.join(", "));
        return Answer::failure(StatusCode::NOT_FOUND, reason);
    };
    match apply(gate, found, server, change) {
        Ok(()) => Answer::ok(
            format!("{group}: {server} {}\n", change.past()),
            json!({ "group": group, "server": server, "done": change.past() }),
        ),
        Err(refusal) => refusal,
    }
}

fn apply(gate: &Gate, group: &Group, server: &str, change: Change) -> Result<(), Answer> {
    let labels = gate.metrics.labels();
    let result = match change {
        Change::Drain => group.drain(server),
        Change::Undrain => group.undrain(server),
        Change::Remove => group.remove(server, labels, Stamp::now()),
        Change::Add(terms) => {
            let endpoint = endpoint(server).ok_or_else(|| {
                let reason = format!(
                    "`{server}` is not a server: write `10.0.0.1:80`, `[::1]:80` or `unix:/path`"
                );
                Answer::failure(StatusCode::BAD_REQUEST, reason)
            })?;
            let Terms { weight, role, connections_max } = terms;
            group.add(Server { endpoint, weight, role, connections_max }, labels, Stamp::now())
        }
    };
    result.map_err(|error| {
        let status = match error {
            RosterError::Unknown => StatusCode::NOT_FOUND,
            RosterError::Present | RosterError::TooMany => StatusCode::CONFLICT,
            RosterError::Name => StatusCode::BAD_REQUEST,
        };
        let servers: Vec<_> =
            group.members().list().iter().map(|member| member.server.name().to_owned()).collect();
        let (name, servers) = (group.name(), servers.join(", "));
        Answer::failure(status, format!("{name}: {server}: {error}; the group has {servers}"))
    })
}

fn endpoint(server: &str) -> Option<Endpoint> {
    let endpoint = match server.strip_prefix("unix:") {
        Some(path) if path.starts_with('/') => Endpoint::Unix(path.into()),
        Some(_) => return None,
        None => Endpoint::Address(server.parse().ok()?),
    };
    Some(endpoint)
}

/// A server's name, as the admin API and metrics write it.
pub(crate) fn canonical(server: &str) -> String {
    match endpoint(server) {
        Some(Endpoint::Address(address)) => {
            PeerAddress::Tcp(address.ip(), address.port()).to_string()
        }
        _ => server.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_asked_for_by_method_and_path() {
        let check = |method: &str, rest: &[&str], query: Option<&str>, expected: Option<Change>| {
            let method: Method = method.parse().unwrap();
            assert_eq!(Change::asked(&method, rest, query).ok(), expected, "{method} {rest:?}");
        };
        let terms = |weight, role, connections_max| {
            Some(Change::Add(Terms { weight, role, connections_max }))
        };
        check("POST", &["drain"], None, Some(Change::Drain));
        check("POST", &["undrain"], None, Some(Change::Undrain));
        check("DELETE", &[], None, Some(Change::Remove));
        check("PUT", &[], None, terms(1, Role::Primary, None));
        check("POST", &[], Some("weight=3&format=json"), terms(3, Role::Primary, None));
        check("PUT", &[], Some("backup=true&connections_max=9"), terms(1, Role::Backup, Some(9)));
        check("PUT", &[], Some("weight=0"), None);
        check("PUT", &[], Some("weight=1001"), None);
        check("PUT", &[], Some("wieght=2"), None);
        check("PUT", &["drain"], None, None);
        check("DELETE", &["drain"], None, None);
    }
}
