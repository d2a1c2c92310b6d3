//! Servers that are names: resolved again whenever their time to live has passed.
//!
//! Each address of a name is a server of its own. A name has the IPv4 addresses it has or, if there
//! are none, the IPv6 ones: a machine with both would otherwise count twice. `/etc/hosts` comes
//! first and is read anew each time.
//!
//! A name that stops resolving keeps its last addresses, and says so once: servers whose names are
//! out of order mostly still serve, and no answer is no reason to stop. A name that never resolved
//! leaves its group without that server and is asked for again and again, at growing intervals.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver};
use tidegate_telemetry::clock::Stamp;
use tidegate_telemetry::metrics::Metrics;
use tokio::time;

use super::group::Group;
use super::roster::Resolution;
use super::schedule::Random;

/// How long an answer is used at least, whatever its time to live.
const LIFE_MIN: Duration = Duration::from_secs(1);
/// How long an answer is used at most; also how long a line of `/etc/hosts` is.
const LIFE_MAX: Duration = Duration::from_mins(5);
const HOSTS_LIFE: Duration = Duration::from_secs(30);
/// The pause after a failure; doubled with each further one.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// Resolves names by the system's configuration.
pub struct Resolver {
    dns: Option<TokioResolver>,
}

/// What a name resolves to.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    addresses: Vec<IpAddr>,
    lasts: Duration,
}

/// Why a name does not resolve.
#[derive(Debug)]
enum Failed {
    /// It is not a DNS name.
    NotAName,
    /// The system names no DNS server.
    NoNameServer,
    /// DNS has no address for it, or no answer.
    Dns(NetError),
}

impl Resolver {
    /// A resolver after `/etc/resolv.conf`. Without one, `/etc/hosts` has to do.
    pub fn system() -> Resolver {
        let dns = TokioResolver::builder_tokio().and_then(|mut builder| {
            let options = builder.options_mut();
            options.use_hosts_file = ResolveHosts::Never;
            options.cache_size = 0;
            builder.build()
        });
        let dns = dns.inspect_err(|error| {
            tracing::warn!(%error, "no DNS server is configured: only /etc/hosts is used");
        });
        Resolver { dns: dns.ok() }
    }

    /// A resolver that asks these servers.
    pub fn with_config(config: ResolverConfig) -> Result<Resolver, NetError> {
        let provider = TokioRuntimeProvider::default();
        let mut builder = TokioResolver::builder_with_config(config, provider);
        let options = builder.options_mut();
        options.use_hosts_file = ResolveHosts::Never;
        // Failures would be kept, too, and for longer than we want to wait.
        options.cache_size = 0;
        Ok(Resolver { dns: Some(builder.build()?) })
    }

    /// The IPv4 addresses of a whole name, as DNS alone has them, with their time to live; none if
    /// there is no such name. For block lists, which `/etc/hosts` and the system's search domains
    /// have nothing to say about.
    pub async fn addresses_of(&self, name: &str) -> io::Result<(Vec<Ipv4Addr>, Duration)> {
        let mut parsed = Name::from_utf8(name).map_err(io::Error::other)?;
        parsed.set_fqdn(true);
        let dns =
            self.dns.as_ref().ok_or_else(|| io::Error::other(Failed::NoNameServer.to_string()))?;
        match dns.lookup(parsed, RecordType::A).await {
            Ok(lookup) => {
                let addresses = lookup.answers().iter().filter_map(|record| record.data.ip_addr());
                let addresses = addresses.filter_map(|address| match address {
                    IpAddr::V4(address) => Some(address),
                    IpAddr::V6(_) => None,
                });
                let lasts = Stamp::at(lookup.valid_until()).since(Stamp::now());
                Ok((addresses.collect(), lasts))
            }
            Err(error) if error.is_no_records_found() => Ok((Vec::new(), Duration::ZERO)),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    async fn resolve(&self, name: &str) -> Result<Answer, Failed> {
        let parsed = Name::from_utf8(name).map_err(|_| Failed::NotAName)?;
        if let Some(addresses) = in_hosts(&parsed) {
            return Ok(Answer { addresses, lasts: HOSTS_LIFE });
        }
        let dns = self.dns.as_ref().ok_or(Failed::NoNameServer)?;
        match lookup(dns, &parsed, RecordType::A).await {
            Err(error) if error.is_no_records_found() && !error.is_nx_domain() => {
                lookup(dns, &parsed, RecordType::AAAA).await.map_err(Failed::Dns)
            }
            result => result.map_err(Failed::Dns),
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Resolver").field("dns", &self.dns.is_some()).finish()
    }
}

async fn lookup(dns: &TokioResolver, name: &Name, kind: RecordType) -> Result<Answer, NetError> {
    let lookup = dns.lookup(name.clone(), kind).await?;
    let mut addresses: Vec<IpAddr> =
        lookup.answers().iter().filter_map(|record| record.data.ip_addr()).collect();
    // Answers come in turns; servers should not change places with each.
    addresses.sort_unstable();
    addresses.dedup();
    if addresses.is_empty() {
        return Err(NetError::Message("the answer holds no address"));
    }
    Ok(Answer { addresses, lasts: Stamp::at(lookup.valid_until()).since(Stamp::now()) })
}

/// The addresses of a name in `/etc/hosts`.
fn in_hosts(name: &Name) -> Option<Vec<IpAddr>> {
    let hosts = Hosts::from_system().ok()?;
    let of = |kind| {
        let lookup = hosts.lookup_static_host(&Query::query(name.clone(), kind))?;
        let addresses: Vec<IpAddr> =
            lookup.answers().iter().filter_map(|record| record.data.ip_addr()).collect();
        (!addresses.is_empty()).then_some(addresses)
    };
    of(RecordType::A).or_else(|| of(RecordType::AAAA))
}

/// Resolves the names of these groups once, for at most so long; later is not too late, but a start
/// with servers is better than one without. Returns the names without an address, with their groups.
pub async fn resolve_first(
    groups: &[Arc<Group>],
    resolver: &Arc<Resolver>,
    metrics: &Arc<Metrics>,
    time_max: Duration,
) -> Vec<(String, String)> {
    let mut lookups = tokio::task::JoinSet::new();
    for group in groups {
        for (position, _) in group.names().filter(|(position, _)| !group.is_resolved(*position)) {
            let mut keeper = Keeper::new(group, position, resolver, metrics);
            lookups.spawn(async move { keeper.step().await });
        }
    }
    // Those that are late are asked for again by their keepers.
    let _: Result<(), _> =
        time::timeout(time_max, async { while lookups.join_next().await.is_some() {} }).await;
    let unresolved = |group: &Arc<Group>| {
        let names = group.names().filter(|(position, _)| !group.is_resolved(*position));
        let with_group = names.map(|(_, name)| (group.name().to_owned(), name.to_owned()));
        with_group.collect::<Vec<_>>()
    };
    groups.iter().flat_map(unresolved).collect()
}

/// Keeps the addresses of one name of a group up to date for as long as it is polled.
pub(super) async fn keep(
    group: Arc<Group>,
    position: usize,
    resolver: Arc<Resolver>,
    metrics: Arc<Metrics>,
) {
    let mut keeper = Keeper::new(&group, position, &resolver, &metrics);
    let mut random = Random::seeded(Stamp::now().as_nanos());
    loop {
        let pause = keeper.step().await;
        // A little later than due, or all names of one answer would be asked for together.
        time::sleep(pause + random.part_of(pause / 10)).await;
    }
}

/// What keeps one name.
struct Keeper {
    group: Arc<Group>,
    position: usize,
    name: String,
    resolver: Arc<Resolver>,
    metrics: Arc<Metrics>,
    failures: u32,
}

impl Keeper {
    fn new(
        group: &Arc<Group>,
        position: usize,
        resolver: &Arc<Resolver>,
        metrics: &Arc<Metrics>,
    ) -> Keeper {
        let name = group.names().find(|(other, _)| *other == position);
        Keeper {
            name: name.map(|(_, name)| name.to_owned()).unwrap_or_default(),
            group: Arc::clone(group),
            position,
            resolver: Arc::clone(resolver),
            metrics: Arc::clone(metrics),
            failures: 0,
        }
    }

    /// Resolves once; returns when to do so again.
    async fn step(&mut self) -> Duration {
        let result = self.resolver.resolve(&self.name).await;
        let (group, name) = (self.group.name(), self.name.as_str());
        match result {
            Ok(answer) => {
                let labels = self.metrics.labels();
                let now = Stamp::now();
                let changed =
                    self.group.set_addresses(self.position, &answer.addresses, labels, now);
                if changed == Resolution::Changed {
                    tracing::info!(group, name, addresses = ?answer.addresses, "name resolved");
                } else if self.failures > 0 {
                    tracing::info!(group, name, "name resolves again, to the same addresses");
                }
                self.failures = 0;
                answer.lasts.clamp(LIFE_MIN, LIFE_MAX)
            }
            Err(reason) => {
                if self.failures == 0 {
                    let kept = self.group.is_resolved(self.position);
                    let consequence = if kept { "its last addresses stay" } else { "it has none" };
                    tracing::warn!(group, name, %reason, consequence, "name does not resolve");
                }
                let pause = pause(self.failures);
                self.failures = self.failures.saturating_add(1);
                pause
            }
        }
    }
}

fn pause(failures: u32) -> Duration {
    PAUSE_MIN.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX)).min(PAUSE_MAX)
}

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::NotAName => formatter.write_str("it is not a DNS name"),
            Failed::NoNameServer => formatter.write_str("no DNS server is configured"),
            Failed::Dns(error) if error.is_nx_domain() => {
                formatter.write_str("the name does not exist")
            }
            Failed::Dns(error) if error.is_no_records_found() => {
                formatter.write_str("the name has no address")
            }
            Failed::Dns(error) => write!(formatter, "{error}"),
        }
    }
}

#[cfg(test)]
mod tests;
