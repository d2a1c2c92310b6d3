//! What holds for every text, however odd: nothing panics, and what is loaded is whole.

use std::path::Path;
use std::sync::Arc;

use tidegate_proxy::settings::{Action, Settings};
use tidegate_proxy::tls::TicketKeys;

use super::diagnostic::Severity;
use super::environment::{Environment, Missing};
use super::{Outside, load, render};

struct Fixed;

impl Environment for Fixed {
    fn variable(&self, name: &str) -> Result<String, Missing> {
        if name == "NONE" {
            Err(Missing::NotSet)
        } else {
            Ok("00112233445566778899aabbccddeeff".into())
        }
    }
}

/// A small generator (splitmix64), so that a failure can be run again from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).unwrap_or(0)
    }
}

/// Values that are odd somewhere.
const ODD: [&str; 22] = [
    "\"\"",
    "-1",
    "0",
    "99999999999999999999",
    "1.5",
    "true",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    "\"${\"",
    "\"${NONE}\"",
    "\"${X}\"",
    "\"$${X}ü\"",
    "\"ä€😀\"",
    "\"a\\u0000b\"",
    "'''\nx'''",
    "1979-05-27",
    "\"*.\"",
    "\"unix:/\"",
    "\"http://\"",
    "{ address = 1, path = [], to = \"$\" }",
];

fn mutate(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(3) {
        if lines.is_empty() {
            break;
        }
        let at = random.below(lines.len());
        match random.below(5) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(random.below(lines.len()), lines[at].clone()),
            2 => lines[at] = lines[at].chars().take(random.below(lines[at].len())).collect(),
            3 => lines[at] = lines[at].replacen(['"', '[', '=', '.'], "", 1),
            _ => {
                let key = lines[at].split('=').next().unwrap_or_default().trim_end().to_owned();
                lines[at] = format!("{key} = {}", ODD[random.below(ODD.len())]);
            }
        }
    }
    lines.join("\n")
}

fn assert_whole(settings: &Settings, text: &str) {
    for site in &settings.sites {
        assert!(!site.hosts.is_empty(), "{text}");
        assert!(site.logs.iter().all(|log| *log < settings.logs.len()), "{text}");
        for route in &site.routes {
            if let Action::Group(index) = route.action {
                let group = settings.groups.get(index);
                assert!(group.is_some_and(|group| !group.servers.is_empty()), "{text}");
            }
        }
    }
    assert!(settings.listeners.iter().all(|listener| !listener.name.ends_with(":0")), "{text}");
}

#[test]
fn odd_texts_are_refused_or_whole() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tidegate.toml");
    for beside in ["tls", "good"] {
        std::os::unix::fs::symlink(cases.join(beside), directory.path().join(beside)).unwrap();
    }
    let tickets = Arc::new(TicketKeys::new().unwrap());
    let outside = Outside { environment: &Fixed, tickets: &tickets };
    let mut names: Vec<_> = std::fs::read_dir(&cases)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    names.sort();
    let mut loaded = 0;
    // Half of the texts come from the one that is right and has something of everything.
    let good = cases.join("good.toml");
    for seed in 0..2000_u64 {
        let mut random = Random(seed);
        let name = match random.below(2) {
            0 => &good,
            _ => &names[random.below(names.len())],
        };
        let text = mutate(&std::fs::read_to_string(name).unwrap(), &mut random);
        std::fs::write(&file, &text).unwrap();
        match load(&file, &outside) {
            Ok(found) => {
                loaded += 1;
                assert_whole(&found.settings, &text);
                assert_eq!(found.warnings.count(Severity::Error), 0, "seed {seed}:\n{text}");
            }
            Err(diagnostics) => {
                assert!(diagnostics.count(Severity::Error) > 0, "seed {seed}:\n{text}");
                let told = render::text(&diagnostics, render::Colour::Off);
                assert!(told.starts_with("error["), "seed {seed}:\n{text}\n{told}");
            }
        }
    }
    assert!(loaded > 100, "only {loaded} were loaded");
}
