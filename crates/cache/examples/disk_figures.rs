//! What a restart of the disk tier costs: a million objects of 10 KB are written, the process is
//! killed, and another opens the directory.
//!
//! `cargo run --release -p tidegate-cache --example disk_figures`
//!
//! Needs 11 GB of free disk below the temporary directory, and removes what it wrote. With
//! `load DIRECTORY` or `open DIRECTORY` it does one half, so that the page cache can be dropped
//! between them.

#![expect(clippy::print_stdout, reason = "an example's output is its purpose")]
#![expect(clippy::disallowed_methods, reason = "an example measures real time")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tidegate_cache::hash::Seed;
use tidegate_cache::store::Key;
use tidegate_cache::store::disk::{Content, Disk, Put, Refused, Settings};
use tidegate_cache::store::purge::Sequence;
use tidegate_cache::time::Time;

const OBJECTS: u64 = 1_000_000;
const BODY_BYTES: usize = 10_000;
const NOW: Time = Time::from_millis(1_800_000_000_000);

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let directory = tempfile::tempdir()?;
            load_and_kill(directory.path())?;
            open(directory.path())
        }
        ["load", directory] => load_and_kill(Path::new(directory)),
        ["write", directory] => write(Path::new(directory)),
        ["open", directory] => open(Path::new(directory)),
        _ => Err("load DIRECTORY, open DIRECTORY, or nothing".into()),
    }
}

/// Lets a child write until everything is in its queue and most of it on disk, and kills it.
fn load_and_kill(directory: &Path) -> Outcome {
    let started = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .arg("write")
        .arg(directory)
        .stdout(Stdio::piped())
        .spawn()?;
    let said = child.stdout.take().ok_or("no output")?;
    let loaded = BufReader::new(said).lines().any(|line| line.is_ok_and(|line| line == "loaded"));
    child.kill()?;
    child.wait()?;
    if !loaded {
        return Err("the child ended early".into());
    }
    println!("| written and killed after | {:.1} s |", started.elapsed().as_secs_f64());
    Ok(())
}

fn opened(directory: &Path) -> Result<Disk, Box<dyn Error>> {
    let settings = Settings::for_bytes(16 << 30);
    let (disk, loaded) = Disk::open(directory, &Seed::new([1; 16]), settings, NOW)?;
    println!("| found | {loaded:?} |");
    Ok(disk)
}

fn write(directory: &Path) -> Outcome {
    let disk = opened(directory)?;
    let body = Bytes::from(vec![b'x'; BODY_BYTES]);
    for number in 0..OBJECTS {
        let name = name(number);
        let put = Put {
            key: Key::new(name.as_bytes(), disk.seed()),
            metadata: vec![b'm'; 400].into(),
            content: Content::Whole(vec![body.clone()]),
            expires: Time::NEVER,
            sequence: Sequence::default(),
        };
        while let Err(refused) = disk.put(put.clone(), NOW) {
            if refused != Refused::QueueFull {
                return Err(format!("{refused:?}").into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // The segment that is open stays without a footer, as the kill comes now.
    disk.flush();
    println!("loaded");
    std::thread::sleep(Duration::from_mins(1));
    Err("it was to be killed".into())
}

fn open(directory: &Path) -> Outcome {
    let before = resident_bytes()?;
    let started = Instant::now();
    let disk = opened(directory)?;
    let warm = started.elapsed();
    let stats = disk.stats();
    let resident = resident_bytes()?.saturating_sub(before);
    println!("| until warm | {:.3} s |", warm.as_secs_f64());
    println!("| objects | {} in {} segments |", stats.entries, stats.segments);
    println!("| files | {:.2} GB |", stats.bytes as f64 / 1e9);
    let each = |bytes: u64| bytes as f64 / stats.entries as f64;
    println!("| index, by its own count | {:.1} B an object |", each(stats.index_bytes));
    println!("| grown resident memory | {:.1} B an object |", each(resident));
    let (mut hits, mut body) = (0, Vec::new());
    let started = Instant::now();
    let sample = 20_000;
    for turn in 0..sample {
        let name = name(turn * 7919 % OBJECTS);
        let key = Key::new(name.as_bytes(), disk.seed());
        let Some(at) = disk.look_up(&key, NOW) else { continue };
        let mut stored = disk.read(&key, &at).map_err(|missing| format!("{missing:?}"))?;
        disk.check(&mut stored).map_err(|missing| format!("{missing:?}"))?;
        body.clear();
        disk.read_body(&stored, 0..u64::MAX, &mut body)
            .map_err(|missing| format!("{missing:?}"))?;
        hits += u64::from(body.len() == BODY_BYTES);
    }
    let each = started.elapsed() / u32::try_from(sample)?;
    println!("| of {sample} looked up, found whole | {hits} |");
    println!("| look-up, read, check, read the body | {each:?} |");
    let started = Instant::now();
    let mut found = 0_u64;
    for turn in 0..sample {
        let name = name(turn * 7919 % OBJECTS);
        let key = Key::new(name.as_bytes(), disk.seed());
        found += u64::from(disk.look_up(&key, NOW).is_some());
    }
    let each = started.elapsed() / u32::try_from(sample)?;
    println!("| look-up alone ({found} found) | {each:?} |");
    Ok(())
}

fn name(number: u64) -> String {
    format!("https://www.example.org/articles/{number}?page=1")
}

/// Memory of this process that is in use, as the kernel sees it.
fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages.split(' ').nth(1).ok_or("no pages")?.parse()?;
    Ok(pages * 4096)
}
