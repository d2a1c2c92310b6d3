//! Choices under virtual time: who gets how much, and who takes over.

use std::collections::HashMap;
use std::time::Duration;

use super::super::fixture::{at, choice, group, server, settings, weighted, worker};
use super::super::standing::Health;
use super::*;
use crate::settings::{self, HashKey, Sticky};

const ALL: [Balance; 3] =
    [Balance::RoundRobin, Balance::LeastRequests, Balance::Hash(HashKey::Uri)];

/// Chooses this often, each request done before the next, and counts by server.
fn spread(
    group: &Group,
    worker: &mut WorkerBalance,
    requests: u32,
    now: Stamp,
) -> HashMap<String, u32> {
    let mut counts = HashMap::new();
    for number in 0..requests {
        let key = number.to_le_bytes();
        let choice = Choice { hash_input: HashInput::Bytes(&key), ..choice(now, &[]) };
        let pick = group.choose(&choice, worker).unwrap();
        *counts.entry(pick.in_flight.server().name().to_owned()).or_default() += 1;
    }
    counts
}

fn count(counts: &HashMap<String, u32>, number: u32) -> u32 {
    counts.get(&format!("10.0.0.{number}:80")).copied().unwrap_or_default()
}

fn eject(group: &Group, slot: usize, until: Stamp) {
    group.members().list()[slot].server.eject(until, 1);
}

fn set_health(group: &Group, slot: usize, health: Health, now: Stamp) {
    group.members().list()[slot].server.set_health(health, now);
}

#[test]
fn every_balance_follows_the_weights() {
    for balance in ALL {
        let group = group(settings(balance.clone(), weighted(&[1, 2, 5])));
        let counts = spread(&group, &mut worker(), 8_000, at(1));
        for (number, expected) in [(1, 1_000), (2, 2_000), (3, 5_000)] {
            let got = count(&counts, number);
            // Draws and hashes scatter; turns do not.
            let tolerance = if balance == Balance::RoundRobin { 1 } else { expected / 4 };
            assert!(got.abs_diff(expected) <= tolerance, "{balance:?}: {counts:?}");
        }
    }
}

#[test]
fn workers_together_follow_the_weights_from_the_first_requests_on() {
    let group = group(settings(Balance::RoundRobin, weighted(&[1; 8])));
    let mut counts = HashMap::new();
    for number in 0..64 {
        let mut worker = WorkerBalance::new(number, number as u64);
        let pick = group.choose(&choice(at(1), &[]), &mut worker).unwrap();
        *counts.entry(pick.in_flight.server().name().to_owned()).or_insert(0) += 1;
    }
    assert!(counts.len() >= 7 && counts.values().all(|first| *first < 20), "{counts:?}");
}

#[test]
fn a_server_that_is_out_leaves_its_share_to_all() {
    for balance in ALL {
        let group = group(settings(balance.clone(), weighted(&[1; 4])));
        let mut worker = worker();
        spread(&group, &mut worker, 10, at(1));
        for out in ["ejected", "down", "draining", "removed"] {
            let name = "10.0.0.2:80";
            let metrics = super::super::fixture::metrics();
            match out {
                "ejected" => eject(&group, 1, at(20)),
                "down" => set_health(&group, 1, Health::Down, at(1)),
                "draining" => group.drain(name).unwrap(),
                _ => group.remove(name, metrics.labels(), at(1)).unwrap(),
            }
            let counts = spread(&group, &mut worker, 6_000, at(10));
            assert_eq!(count(&counts, 2), 0, "{out} under {balance:?}");
            for number in [1, 3, 4] {
                assert!(
                    count(&counts, number).abs_diff(2_000) < 600,
                    "{out} {balance:?} {counts:?}"
                );
            }
            match out {
                "ejected" => eject(&group, 1, at(2)),
                "down" => set_health(&group, 1, Health::Up, at(1)),
                "draining" => group.undrain(name).unwrap(),
                _ => group.add(server(name), metrics.labels(), at(1)).unwrap(),
            }
            let counts = spread(&group, &mut worker, 4_000, at(10));
            let back = counts.get(name).copied().unwrap_or_default();
            assert!(back.abs_diff(1_000) < 400, "back from {out} under {balance:?}: {counts:?}");
        }
    }
}

#[test]
fn an_ejection_ends_by_the_clock_alone() {
    let group = group(settings(Balance::RoundRobin, weighted(&[1, 1])));
    let mut worker = worker();
    eject(&group, 0, at(20));
    assert_eq!(count(&spread(&group, &mut worker, 100, at(19)), 1), 0);
    assert_eq!(count(&spread(&group, &mut worker, 100, at(20)), 1), 50);
}

#[test]
fn backups_serve_only_while_no_primary_is_fit() {
    for balance in ALL {
        let mut servers = weighted(&[1, 1, 1, 1]);
        servers[2].role = Role::Backup;
        servers[3].role = Role::Backup;
        let group = group(settings(balance, servers));
        let mut worker = worker();
        let mut tiers = |now, expected: Tier, slots: [u32; 2]| {
            let counts = spread(&group, &mut worker, 400, now);
            assert!(slots.iter().all(|number| count(&counts, *number) > 50), "{counts:?}");
            let others = (1..=4).filter(|number| !slots.contains(number));
            assert_eq!(others.map(|number| count(&counts, number)).sum::<u32>(), 0);
            let pick = group.choose(&choice(now, &[]), &mut worker).unwrap();
            assert_eq!(pick.tier, expected);
        };
        tiers(at(1), Tier::Primary, [1, 2]);
        set_health(&group, 0, Health::Down, at(1));
        eject(&group, 1, at(30));
        tiers(at(2), Tier::Backup, [3, 4]);
        // All ejected: the primaries again, but not the one that is down.
        eject(&group, 2, at(30));
        eject(&group, 3, at(30));
        tiers(at(3), Tier::Panic, [2, 2]);
        set_health(&group, 1, Health::Down, at(3));
        tiers(at(4), Tier::Panic, [3, 4]);
        tiers(at(30), Tier::Backup, [3, 4]);
        set_health(&group, 0, Health::Up, at(30));
        tiers(at(31), Tier::Primary, [1, 1]);
    }
}

#[test]
fn why_there_is_none() {
    let check = |group: &Group, tried: &[ServerId], expected| {
        let got = group.choose(&choice(at(1), tried), &mut worker());
        assert_eq!(got.map(|pick| pick.tier), Err(expected));
    };
    for balance in ALL {
        check(&group(settings(balance.clone(), vec![])), &[], NoServer::Empty);
        check(&group(settings(balance.clone(), vec![server("a.test:80")])), &[], NoServer::Empty);

        let group = group(settings(balance, weighted(&[1, 1])));
        let ids: Vec<_> = group.members().list().iter().map(|it| it.server.id()).collect();
        check(&group, &ids, NoServer::Tried);
        set_health(&group, 0, Health::Down, at(1));
        check(&group, &ids[1..], NoServer::Tried);
        group.drain("10.0.0.2:80").unwrap();
        check(&group, &[], NoServer::Down);
        set_health(&group, 0, Health::Up, at(1));
        group.drain("10.0.0.1:80").unwrap();
        check(&group, &[], NoServer::Drained);
    }
}

#[test]
fn a_limit_is_kept_over_all_workers() {
    for balance in ALL {
        let servers = [1, 2].map(|number| settings::Server {
            connections_max: Some(number),
            ..server(&format!("10.0.0.{number}:80"))
        });
        let group = group(settings(balance, servers.to_vec()));
        let mut workers = [WorkerBalance::new(0, 1), WorkerBalance::new(1, 2)];
        let mut open = Vec::new();
        for round in 0..3 {
            let pick = group.choose(&choice(at(1), &[]), &mut workers[round % 2]).unwrap();
            open.push(pick.in_flight.seat().open_connection().unwrap());
        }
        let counts: Vec<_> =
            group.members().list().iter().map(|it| it.server.connections()).collect();
        assert_eq!(counts, [1, 2]);
        let full = group.choose(&choice(at(1), &[]), &mut workers[0]);
        assert_eq!(full.map(|pick| pick.way), Err(NoServer::AtLimit));

        // A worker that has an idle connection needs no other.
        let seat = Arc::clone(&workers[1].seats(&group, at(1))[0]);
        assert!(seat.open_connection().is_err());
        seat.set_idle(1);
        let pick = group.choose(&choice(at(1), &[]), &mut workers[1]).unwrap();
        assert_eq!(pick.in_flight.server().id(), seat.server().id());
        let full = group.choose(&choice(at(1), &[]), &mut workers[0]);
        assert_eq!(full.map(|pick| pick.way), Err(NoServer::AtLimit));
        seat.set_idle(0);

        drop(open.remove(0));
        group.choose(&choice(at(1), &[]), &mut workers[0]).unwrap();
    }
}

#[test]
fn a_retry_goes_elsewhere() {
    for balance in ALL {
        let group = group(settings(balance, weighted(&[1; 5])));
        let mut worker = worker();
        for number in 0..100_u32 {
            let key = number.to_le_bytes();
            let mut tried = Vec::new();
            for _ in 0..5 {
                let choice = Choice { hash_input: HashInput::Bytes(&key), ..choice(at(1), &tried) };
                let pick = group.choose(&choice, &mut worker).unwrap();
                let id = pick.in_flight.server().id();
                assert!(!tried.contains(&id));
                tried.push(id);
            }
        }
    }
}

#[test]
fn guards_count_and_leak_nothing() {
    for balance in ALL {
        let group = group(settings(balance, weighted(&[1, 1, 1])));
        let total = || -> u32 {
            group.members().list().iter().map(|member| member.server.in_flight()).sum()
        };
        let mut workers: Vec<_> = (0..4).map(|number| WorkerBalance::new(number, 7)).collect();
        let mut picks = Vec::new();
        for number in 0..60 {
            picks.push(group.choose(&choice(at(1), &[]), &mut workers[number % 4]).unwrap());
            assert_eq!(total() as usize, number + 1);
        }
        // Also from another thread, and after the workers are gone.
        drop(workers);
        let rest = picks.split_off(30);
        std::thread::spawn(move || drop(rest)).join().unwrap();
        assert_eq!(total(), 30);
        picks.clear();
        assert_eq!(total(), 0);
    }
}

#[test]
fn least_requests_avoids_a_slow_server() {
    // Each request on server 1 takes 100 ticks, on the others 5; arrivals one per tick.
    let group = group(settings(Balance::LeastRequests, weighted(&[1; 4])));
    let mut workers = [WorkerBalance::new(0, 1), WorkerBalance::new(1, 2)];
    let mut open: Vec<(u64, Pick)> = Vec::new();
    let mut slow = 0;
    for tick in 0..20_000_u64 {
        open.retain(|(until, _)| *until > tick);
        let pick = group.choose(&choice(at(1), &[]), &mut workers[(tick % 2) as usize]).unwrap();
        let is_slow = pick.in_flight.server().name() == "10.0.0.1:80";
        slow += u32::from(is_slow);
        open.push((tick + if is_slow { 100 } else { 5 }, pick));
    }
    // In turn it would be 5,000, with a hundred requests waiting on it most of the time.
    assert!(slow < 1_500, "{slow} requests went to the slow server");
}

#[test]
fn a_hash_keeps_its_keys_when_another_server_goes_and_comes() {
    let group = group(settings(Balance::Hash(HashKey::Uri), weighted(&[1; 10])));
    let mut worker = worker();
    let mut owners = |now| -> Vec<String> {
        (0..2_000_u32)
            .map(|number| {
                let key = number.to_le_bytes();
                let choice = Choice { hash_input: HashInput::Bytes(&key), ..choice(now, &[]) };
                let pick = group.choose(&choice, &mut worker).unwrap();
                assert_eq!(pick.way, Way::Hash);
                pick.in_flight.server().name().to_owned()
            })
            .collect()
    };
    let before = owners(at(1));
    eject(&group, 3, at(10));
    let during = owners(at(5));
    let after = owners(at(10));
    assert_eq!(before, after);
    let moved = before.iter().zip(&during).filter(|(old, new)| old != new).count();
    let owned = before.iter().filter(|name| *name == "10.0.0.4:80").count();
    assert_eq!(moved, owned);
    assert!(owned.abs_diff(200) < 80, "{owned}");
}

#[test]
fn without_a_key_a_hash_takes_turns() {
    let group = group(settings(Balance::Hash(HashKey::Uri), weighted(&[1; 4])));
    let mut worker = worker();
    let mut names = std::collections::HashSet::new();
    for _ in 0..4 {
        let pick = group.choose(&choice(at(1), &[]), &mut worker).unwrap();
        assert_eq!(pick.way, Way::Turn);
        names.insert(pick.in_flight.server().name().to_owned());
    }
    assert_eq!(names.len(), 4);
}

#[test]
fn a_server_that_comes_back_climbs() {
    for balance in ALL {
        let mut settings = settings(balance.clone(), weighted(&[1, 1]));
        settings.slow_start = Duration::from_secs(100);
        let group = group(settings);
        let mut worker = worker();
        set_health(&group, 0, Health::Down, at(10));
        set_health(&group, 0, Health::Up, at(1_000));
        let mut share = |now, weight: f64| {
            let counts = spread(&group, &mut worker, 10_000, at(now));
            let got = f64::from(count(&counts, 1)) / 10_000.0;
            // A climbing server takes a part of its own keys, or as many turns as its weight says.
            let share = match balance {
                Balance::Hash(_) => weight / 2.0,
                Balance::RoundRobin | Balance::LeastRequests => weight / (weight + 1.0),
            };
            assert!((got - share).abs() < 0.06, "{balance:?} at {now}: {got} for {share}");
        };
        share(1_000, 0.1);
        share(1_025, 0.25);
        share(1_050, 0.5);
        share(1_075, 0.75);
        share(1_100, 1.0);
        share(2_000, 1.0);
    }
}

#[test]
fn a_lone_server_at_the_foot_of_its_ramp_takes_everything() {
    for balance in ALL {
        let mut settings = settings(balance, weighted(&[1]));
        settings.slow_start = Duration::from_secs(100);
        let group = group(settings);
        set_health(&group, 0, Health::Down, at(10));
        set_health(&group, 0, Health::Up, at(1_000));
        assert_eq!(count(&spread(&group, &mut worker(), 100, at(1_000)), 1), 100);
    }
}

mod stickiness {
    use super::*;

    fn sticky_group() -> Group {
        let mut servers = weighted(&[1; 4]);
        servers[3].role = Role::Backup;
        let mut settings = settings(Balance::RoundRobin, servers);
        settings.sticky = Some(Sticky { cookie: "gate".into(), max_age: None, secret: None });
        group(settings)
    }

    /// The server that a cookie leads to, and whether a new cookie is set.
    fn follow(group: &Group, cookie: &Tag, now: Stamp) -> (String, Way, bool) {
        let choice = Choice { sticky: Some(cookie.as_bytes()), ..choice(now, &[]) };
        let pick = group.choose(&choice, &mut worker()).unwrap();
        (pick.in_flight.server().name().into(), pick.way, pick.set_cookie.is_some())
    }

    fn first(group: &Group) -> (String, Tag) {
        let pick = group.choose(&choice(at(1), &[]), &mut worker()).unwrap();
        (pick.in_flight.server().name().into(), pick.set_cookie.unwrap())
    }

    #[test]
    fn a_client_stays_and_is_not_given_its_cookie_again() {
        let group = sticky_group();
        let (name, cookie) = first(&group);
        for _ in 0..20 {
            assert_eq!(follow(&group, &cookie, at(2)), (name.clone(), Way::Sticky, false));
        }
        let again = sticky_group();
        assert_eq!(follow(&again, &cookie, at(2)).0, name, "another gate agrees");
    }

    #[test]
    fn a_client_stays_on_a_draining_server_but_on_no_worse_one() {
        let group = sticky_group();
        let (name, cookie) = first(&group);
        let slot = group.members().list().iter().position(|it| it.server.name() == name).unwrap();
        let server = Arc::clone(&group.members().list()[slot].server);

        group.drain(&name).unwrap();
        assert_eq!(follow(&group, &cookie, at(2)), (name.clone(), Way::Sticky, false));
        server.set_health(Health::Down, at(2));
        assert_ne!(follow(&group, &cookie, at(2)).0, name);
        server.set_health(Health::Up, at(2));
        group.undrain(&name).unwrap();

        server.eject(at(10), 1);
        let (other, way, set) = follow(&group, &cookie, at(5));
        assert!(other != name && way == Way::Turn && set);
        assert_eq!(follow(&group, &cookie, at(10)).0, name);

        let metrics = super::super::super::fixture::metrics();
        group.remove(&name, metrics.labels(), at(11)).unwrap();
        assert_ne!(follow(&group, &cookie, at(11)).0, name);
    }

    #[test]
    fn a_backup_keeps_clients_only_while_backups_serve() {
        let group = sticky_group();
        for slot in 0..3 {
            set_health(&group, slot, Health::Down, at(1));
        }
        let (name, cookie) = first(&group);
        assert_eq!(name, "10.0.0.4:80");
        assert_eq!(follow(&group, &cookie, at(2)).1, Way::Sticky);
        set_health(&group, 0, Health::Up, at(3));
        assert_eq!(follow(&group, &cookie, at(3)), ("10.0.0.1:80".into(), Way::Turn, true));
    }

    #[test]
    fn a_cookie_of_nobody_is_replaced() {
        let group = sticky_group();
        for value in [&b""[..], b"0123456789abcdef", b"10.0.0.1:80", &[b'0'; 4_000]] {
            let choice = Choice { sticky: Some(value), ..choice(at(1), &[]) };
            let pick = group.choose(&choice, &mut worker()).unwrap();
            assert!(pick.way == Way::Turn && pick.set_cookie.is_some());
        }
    }
}
