//! Groups for tests: everything at a usual value, to be changed where a test looks.

use std::time::Duration;

use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::{Metrics, Settings as MetricsSettings};

use super::balance::{Choice, HashInput, WorkerBalance};
use super::group::Group;
use super::server::ServerId;
use crate::settings::{
    self, Balance, Endpoint, KeepAlive, Role, SendProxyProtocol, UpstreamProtocol,
};

pub(super) fn at(seconds: u64) -> Stamp {
    Stamp::from_nanos(seconds * 1_000_000_000)
}

pub(super) fn metrics() -> Metrics {
    Metrics::new(MetricsSettings::default(), 0)
}

pub(super) fn server(address: &str) -> settings::Server {
    settings::Server {
        endpoint: match address.strip_prefix("unix:") {
            Some(path) => Endpoint::Unix(path.into()),
            None => match (address.parse(), address.rsplit_once(':')) {
                (Ok(address), _) => Endpoint::Address(address),
                (Err(_), Some((name, port))) => Endpoint::Name(name.into(), port.parse().unwrap()),
                (Err(_), None) => panic!("{address} has no port"),
            },
        },
        weight: 1,
        role: Role::Primary,
        connections_max: None,
    }
}

/// Servers `10.0.0.1:80`, `10.0.0.2:80` and so on, with these weights.
pub(super) fn weighted(weights: &[u32]) -> Vec<settings::Server> {
    let numbered = weights.iter().enumerate();
    numbered
        .map(|(number, weight)| {
            let address = format!("10.0.{}.{}:80", number / 250, number % 250 + 1);
            settings::Server { weight: *weight, ..server(&address) }
        })
        .collect()
}

pub(super) fn settings(balance: Balance, servers: Vec<settings::Server>) -> settings::Group {
    settings::Group {
        name: "app".into(),
        servers,
        balance,
        sticky: None,
        protocol: UpstreamProtocol::Http1,
        tls: None,
        proxy_protocol: SendProxyProtocol::Off,
        connect_timeout: Duration::from_secs(1),
        keep_alive: KeepAlive {
            connections_max: 16,
            idle: Duration::from_mins(1),
            requests_max: 1000,
        },
        health: None,
        ejection: None,
        slow_start: Duration::ZERO,
        retry_budget: 0.2,
        head_bytes_max: 65536,
    }
}

pub(super) fn group(settings: settings::Group) -> Group {
    Group::new(settings, metrics().labels(), 4, None, at(1))
}

pub(super) fn worker() -> WorkerBalance {
    WorkerBalance::new(0, 42)
}

pub(super) fn choice(now: Stamp, tried: &[ServerId]) -> Choice<'_> {
    Choice { hash_input: HashInput::None, sticky: None, tried, now }
}
