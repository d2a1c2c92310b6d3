//! Names resolved by a real DNS server: a small one on loopback that answers from a table.

#![expect(clippy::disallowed_types, reason = "a test's table is locked for moments")]

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use hickory_resolver::config::{ConnectionConfig, NameServerConfig};
use tokio::net::UdpSocket;

use super::super::fixture::{metrics, server, settings};
use super::super::watch::Watch;
use super::*;
use crate::settings::Balance;

const A: u16 = 1;
const AAAA: u16 = 28;

#[derive(Clone)]
enum Reply {
    Addresses(Vec<&'static str>),
    NoData,
    NoName,
    Failure,
}

#[derive(Default)]
struct Table {
    replies: HashMap<(&'static str, u16), Reply>,
    ttl: u32,
    asked: usize,
}

/// A DNS server on loopback, as long as the test runs.
struct NameServer {
    table: Arc<Mutex<Table>>,
    address: SocketAddr,
}

impl NameServer {
    async fn start(ttl: u32) -> NameServer {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let table = Arc::new(Mutex::new(Table { ttl, ..Table::default() }));
        tokio::spawn(serve(socket, Arc::clone(&table)));
        NameServer { table, address }
    }

    fn set(&self, name: &'static str, kind: u16, reply: Reply) {
        self.table.lock().unwrap().replies.insert((name, kind), reply);
    }

    fn asked(&self) -> usize {
        self.table.lock().unwrap().asked
    }

    fn resolver(&self) -> Arc<Resolver> {
        let mut connection = ConnectionConfig::udp();
        connection.port = self.address.port();
        let mut server = NameServerConfig::udp(self.address.ip());
        server.connections = vec![connection];
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
        Arc::new(Resolver::with_config(config).unwrap())
    }
}

async fn serve(socket: UdpSocket, table: Arc<Mutex<Table>>) {
    let mut query = [0; 512];
    loop {
        let (length, client) = socket.recv_from(&mut query).await.unwrap();
        let answer = answer(&query[..length], &mut table.lock().unwrap());
        socket.send_to(&answer, client).await.unwrap();
    }
}

/// RFC 1035, section 4: the head, the question again, and records that point back to its name.
fn answer(query: &[u8], table: &mut Table) -> Vec<u8> {
    table.asked += 1;
    let mut name = String::new();
    let mut at = 12;
    while query[at] != 0 {
        let label = &query[at + 1..=at + usize::from(query[at])];
        name.push_str(std::str::from_utf8(label).unwrap());
        name.push('.');
        at += 1 + label.len();
    }
    let question = &query[12..at + 5];
    let kind = u16::from_be_bytes([query[at + 1], query[at + 2]]);
    let name = name.trim_end_matches('.').to_lowercase();
    let known = table.replies.iter().find(|((other, its), _)| *other == name && *its == kind);
    let reply = known.map_or(Reply::NoName, |(_, reply)| reply.clone());
    let (code, addresses) = match reply {
        Reply::Addresses(addresses) => (0, addresses),
        Reply::NoData => (0, Vec::new()),
        Reply::Failure => (2, Vec::new()),
        Reply::NoName => (3, Vec::new()),
    };
    let mut answer = query[..2].to_vec();
    answer.extend([0x81, 0x80 | code, 0, 1]);
    answer.extend(u16::try_from(addresses.len()).unwrap().to_be_bytes());
    answer.extend([0, 0, 0, 0]);
    answer.extend(question);
    for address in addresses {
        answer.extend([0xC0, 12]);
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1]);
        answer.extend(table.ttl.to_be_bytes());
        let octets = match address.parse().unwrap() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        answer.extend(u16::try_from(octets.len()).unwrap().to_be_bytes());
        answer.extend(octets);
    }
    answer
}

fn group(servers: &[&str]) -> Arc<Group> {
    let servers = servers.iter().map(|address| server(address)).collect();
    Arc::new(super::super::fixture::group(settings(Balance::RoundRobin, servers)))
}

fn names(group: &Group) -> Vec<String> {
    let members = group.members();
    members.list().iter().map(|member| member.server.name().to_owned()).collect()
}

async fn until(group: &Group, expected: &[&str]) {
    let waiting = async {
        while names(group) != expected {
            time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = time::timeout(Duration::from_secs(10), waiting).await;
    assert!(waited.is_ok(), "{:?} instead of {expected:?}", names(group));
}

#[tokio::test]
async fn servers_follow_their_names() {
    let dns = NameServer::start(1).await;
    dns.set("app.test", A, Reply::Addresses(vec!["10.0.0.2", "10.0.0.1"]));
    let (group, metrics) = (group(&["app.test:80"]), Arc::new(metrics()));
    let _watch = Watch::start(&[Arc::clone(&group)], &dns.resolver(), &metrics);
    until(&group, &["10.0.0.1:80", "10.0.0.2:80"]).await;
    let stays = group.member("10.0.0.2:80").unwrap().server.id();

    dns.set("app.test", A, Reply::Addresses(vec!["10.0.0.3", "10.0.0.2"]));
    until(&group, &["10.0.0.2:80", "10.0.0.3:80"]).await;
    assert_eq!(group.member("10.0.0.2:80").unwrap().server.id(), stays);

    // The last good addresses stay while the name is out of order.
    for broken in [Reply::NoName, Reply::Failure] {
        dns.set("app.test", A, broken);
        let before = dns.asked();
        while dns.asked() == before {
            time::sleep(Duration::from_millis(10)).await;
        }
        time::sleep(Duration::from_millis(50)).await;
        assert_eq!(names(&group), ["10.0.0.2:80", "10.0.0.3:80"]);
    }
    dns.set("app.test", A, Reply::Addresses(vec!["10.0.0.4"]));
    until(&group, &["10.0.0.4:80"]).await;
}

#[tokio::test]
async fn no_address_is_a_failure() {
    let dns = NameServer::start(60).await;
    let resolver = dns.resolver();
    let check = async |reply, expected: &str| {
        dns.set("app.test", A, reply);
        let failed = resolver.resolve("app.test").await.unwrap_err().to_string();
        assert!(failed.contains(expected), "{failed}");
    };
    check(Reply::NoName, "does not exist").await;
    check(Reply::NoData, "does not exist").await;
    dns.set("app.test", AAAA, Reply::NoData);
    check(Reply::NoData, "no address").await;
    check(Reply::Addresses(Vec::new()), "no address").await;
    check(Reply::Failure, "erver").await;
    let failed = resolver.resolve(&"x".repeat(64)).await.unwrap_err();
    assert!(matches!(failed, Failed::NotAName), "{failed}");
}

#[tokio::test]
async fn a_name_without_ipv4_addresses_has_its_ipv6_ones() {
    let dns = NameServer::start(60).await;
    dns.set("both.test", A, Reply::Addresses(vec!["10.0.0.1"]));
    dns.set("both.test", AAAA, Reply::Addresses(vec!["2001:db8::1"]));
    dns.set("six.test", A, Reply::NoData);
    dns.set("six.test", AAAA, Reply::Addresses(vec!["2001:db8::6"]));
    let (group, metrics) = (group(&["both.test:80", "six.test:80"]), Arc::new(metrics()));
    let groups = [Arc::clone(&group)];
    let left = resolve_first(&groups, &dns.resolver(), &metrics, Duration::from_secs(5)).await;
    assert_eq!(left, []);
    assert_eq!(names(&group), ["10.0.0.1:80", "[2001:db8::6]:80"]);
}

#[tokio::test]
async fn a_name_is_not_asked_for_before_its_time() {
    let dns = NameServer::start(60).await;
    dns.set("app.test", A, Reply::Addresses(vec!["10.0.0.1"]));
    let (group, metrics) = (group(&["app.test:80"]), Arc::new(metrics()));
    let _watch = Watch::start(&[Arc::clone(&group)], &dns.resolver(), &metrics);
    until(&group, &["10.0.0.1:80"]).await;
    time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(dns.asked(), 1);
}

#[tokio::test]
async fn a_name_that_never_resolved_is_asked_for_again() {
    let dns = NameServer::start(60).await;
    let (group, metrics) = (group(&["10.0.0.9:80", "late.test:80"]), Arc::new(metrics()));
    let groups = [Arc::clone(&group)];
    let resolver = dns.resolver();
    let left = resolve_first(&groups, &resolver, &metrics, Duration::from_secs(5)).await;
    assert_eq!(left, [("app".to_owned(), "late.test".to_owned())]);
    assert_eq!(names(&group), ["10.0.0.9:80"]);
    let watch = Watch::start(&groups, &resolver, &metrics);
    time::sleep(Duration::from_millis(300)).await;
    dns.set("late.test", A, Reply::Addresses(vec!["10.0.0.1"]));
    until(&group, &["10.0.0.9:80", "10.0.0.1:80"]).await;

    // Nothing goes on once the watch is gone.
    drop(watch);
    time::sleep(Duration::from_millis(50)).await;
    let asked = dns.asked();
    dns.table.lock().unwrap().ttl = 1;
    time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(dns.asked(), asked);
}

#[tokio::test]
async fn the_hosts_file_comes_first() {
    // Every machine that runs these tests has this line.
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap();
    assert!(hosts.lines().any(|line| line.starts_with("127.0.0.1") && line.contains("localhost")));
    let dns = NameServer::start(60).await;
    let (group, metrics) = (group(&["localhost:8080"]), Arc::new(metrics()));
    let groups = [Arc::clone(&group)];
    let left = resolve_first(&groups, &dns.resolver(), &metrics, Duration::from_secs(5)).await;
    assert_eq!((left, dns.asked()), (vec![], 0));
    assert_eq!(names(&group), ["127.0.0.1:8080"]);
}

#[tokio::test]
async fn a_start_does_not_wait_for_a_dead_name_server() {
    // Bound and never read.
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = silent.local_addr().unwrap();
    let dns = NameServer { table: Arc::default(), address };
    let (group, metrics) = (group(&["app.test:80"]), Arc::new(metrics()));
    let before = Stamp::now();
    let limit = Duration::from_millis(300);
    let left = resolve_first(&[group], &dns.resolver(), &metrics, limit).await;
    assert_eq!(left.len(), 1);
    assert!(before.elapsed() < Duration::from_secs(3));
}

#[test]
fn pauses_grow_to_a_longest() {
    let seconds: Vec<_> = (0..9).map(|failures| pause(failures).as_secs()).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(pause(u32::MAX), PAUSE_MAX);
}

#[tokio::test]
async fn block_lists_are_asked_for_addresses_alone() {
    let server = NameServer::start(300).await;
    let listed = "2.0.0.127.list.example";
    server.set(listed, A, Reply::Addresses(vec!["127.0.0.2", "127.0.0.4"]));
    server.set("3.0.0.127.list.example", A, Reply::NoData);
    server.set("4.0.0.127.list.example", A, Reply::Failure);
    let resolver = server.resolver();
    let check = async |name: &str| {
        let (addresses, lasts) = resolver.addresses_of(name).await.ok()?;
        Some((addresses.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>().join(" "), lasts))
    };
    let (addresses, lasts) = check(listed).await.unwrap();
    assert_eq!(addresses, "127.0.0.2 127.0.0.4");
    assert!(lasts > Duration::from_secs(200) && lasts <= Duration::from_mins(5), "{lasts:?}");
    assert_eq!(check("1.0.0.127.list.example").await, Some((String::new(), Duration::ZERO)));
    assert_eq!(check("3.0.0.127.list.example").await, Some((String::new(), Duration::ZERO)));
    assert_eq!(check("4.0.0.127.list.example").await, None);
}
