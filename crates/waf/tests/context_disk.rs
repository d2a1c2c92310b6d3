//! Context on disk: it starts from where it was, survives being killed, and never trusts its file.
#![expect(
    clippy::cast_possible_truncation,
    reason = "numbers are drawn below the bounds of what they become"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tidegate_waf::context::{
    Collection, Context, Damaged, Entry, Fault, Lifetime, Record, Scope, Settings,
};

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tidegate-context-{name}-{}", std::process::id()));
        // What an earlier test process with this number left behind.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    fn open(&self) -> Arc<Context> {
        self.open_at(1_000)
    }

    fn open_at(&self, now_ms: u64) -> Arc<Context> {
        Context::open(&self.0, &Settings::default(), now_ms).expect("the store opens")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Everything that is kept, as text.
fn all(context: &Context, now_ms: u64) -> Vec<String> {
    let mut all = Vec::new();
    context.snapshot(now_ms, |record, name, update| {
        let about = context.about(record, now_ms);
        all.push(format!("{record:?} {name:?} {update:?} {about:?}"));
        ControlFlow::Continue(())
    });
    all
}

fn fill(context: &Context) {
    for number in 0..500_u64 {
        let key = format!("10.0.{}.{}", number / 250, number % 250);
        let record = Record::new(Collection::Ip, key.as_bytes());
        context.add(record, b"hits", 7, 1_000 + number).expect("room");
        let text = vec![b'x'; (number as usize * 31) % 12_000];
        context.set(record, b"a name that does not fit in its place", &text, 1_000).expect("room");
        if number % 3 == 0 {
            context.expire(record, b"hits", Lifetime::Until(5_000_000 + number), 1_000);
        }
        context.set_timeout(record, 100_000, 1_000);
    }
}

#[test]
fn a_store_starts_from_where_it_was() {
    let directory = Directory::new("warm");
    let context = directory.open();
    assert_eq!(all(&context, 1_000), [""; 0]);
    fill(&context);
    let before = all(&context, 2_000);
    assert_eq!(before.len(), 1_000);
    drop(context);

    let context = directory.open();
    assert_eq!(all(&context, 2_000), before);
    // Changed again, everything in one batch: made, changed, removed, made again.
    let record = Record::new(Collection::Ip, b"10.0.1.7");
    context.add(record, b"hits", 1, 3_000).expect("room");
    for number in 0..250_u64 {
        let key = format!("10.0.0.{number}");
        let record = Record::new(Collection::Ip, key.as_bytes());
        context.remove(record, b"hits", 3_000);
        context.remove(record, b"a name that does not fit in its place", 3_000);
        if number % 2 == 0 {
            context.set(record, b"hits", b"again", 3_000).expect("room");
        }
    }
    let before = all(&context, 3_000);
    assert_eq!(before.len(), 500 + 125);
    context.flush().expect("written");
    assert_eq!(context.counters().unwritten, 0);
    drop(context);
    let context = directory.open();
    assert_eq!(all(&context, 3_000), before);
}

#[test]
fn what_expired_while_nothing_ran_is_not_seen_and_leaves_the_disk() {
    let directory = Directory::new("expired");
    let context = directory.open();
    let record = Record::new(Collection::Session, b"s");
    context.set(record, b"short", b"1", 1_000).expect("room");
    context.expire(record, b"short", Lifetime::Until(10_000), 1_000);
    context.set(record, b"long", b"1", 1_000).expect("room");
    context.expire(record, b"long", Lifetime::Forever, 1_000);
    let other = Record::new(Collection::Session, b"other");
    context.set(other, b"n", b"1", 1_000).expect("room");
    drop(context);
    for round in 0..3 {
        let context = directory.open_at(9_000_000);
        assert_eq!(all(&context, 9_000_000).len(), 1, "only `long` is left");
        assert_eq!(context.counters().records, 1);
        context.flush().expect("written");
        // The first start writes down what is gone; then there is nothing more to write.
        assert_eq!(context.counters().batches, u64::from(round == 0));
    }
    // Not even for who opens it in the past.
    assert_eq!(all(&directory.open_at(1_000), 1_000).len(), 1);
}

#[test]
fn a_second_process_is_refused() {
    let directory = Directory::new("held");
    let context = directory.open();
    let second = Context::open(&directory.0, &Settings::default(), 1_000);
    assert!(matches!(second, Err(Fault::Held { .. })), "{second:?}");
    drop(context);
    directory.open();
}

#[test]
fn a_store_that_was_let_go_can_be_opened_and_be_taken_back() {
    let directory = Directory::new("handover");
    let old = directory.open();
    fill(&old);
    let before = all(&old, 2_000);
    old.let_go().expect("written");
    old.let_go().expect("nothing is left to do");
    let new = directory.open();
    assert_eq!(all(&new, 2_000), before);
    // The old one goes on in memory, and nobody else hears of it.
    let record = Record::new(Collection::Ip, b"10.0.0.1");
    old.add(record, b"hits", 1, 2_000).expect("room");
    old.flush().expect("there is no file to write to");
    let refused = old.take_back();
    assert!(matches!(refused, Err(Fault::Held { .. })), "{refused:?}");
    // The new one writes and fails: the old one's state is what counts.
    new.set(record, b"new", b"x", 2_000).expect("room");
    new.remove(Record::new(Collection::Ip, b"10.0.0.2"), b"hits", 2_000);
    drop(new);
    old.take_back().expect("nobody holds it");
    old.take_back().expect("it is there already");
    old.set(record, b"later", b"x", 2_000).expect("room");
    let before = all(&old, 2_000);
    assert_eq!(number(&old, record, b"hits"), Some(8));
    drop(old);
    assert_eq!(all(&directory.open(), 2_000), before);

    // Not even damage is in the way of who has it all in memory.
    let old = directory.open();
    old.let_go().expect("written");
    fs::write(data(&directory), b"something else entirely").expect("a file");
    old.take_back().expect("the file is made anew");
    drop(old);
    assert_eq!(all(&directory.open(), 2_000), before);
}

fn data(directory: &Directory) -> PathBuf {
    directory.0.join("data.mdb")
}

/// Opens a store on these bytes; how it went.
fn open_bytes(directory: &Directory, bytes: &[u8]) -> Result<Arc<Context>, Fault> {
    let _ = fs::remove_file(directory.0.join("lock.mdb"));
    fs::write(data(directory), bytes).expect("a file");
    Context::open(&directory.0, &Settings::default(), 2_000)
}

#[test]
fn a_damaged_file_is_named_and_only_set_aside_if_that_is_allowed() {
    let directory = Directory::new("damaged");
    let context = directory.open();
    fill(&context);
    let before = all(&context, 2_000);
    drop(context);
    let whole = fs::read(data(&directory)).expect("a file");

    let check = |bytes: &[u8], expected: &str| {
        let fault = open_bytes(&directory, bytes).expect_err(expected);
        let text = fault.to_string();
        assert!(text.contains("data.mdb") && text.contains(expected), "{text}");
        assert_eq!(fs::read(data(&directory)).expect("a file"), bytes, "the file is left alone");
    };
    check(b"something else entirely", "the file ends within it");
    check(&vec![b'x'; 20_000], "it does not have LMDB's mark");
    check(&vec![0; 20_000], "does not say that it is a meta page");
    check(&whole[..whole.len() / 2], "the file ends before it");
    check(&whole[..6_000], "the file ends before it");
    let mut newer = whole.clone();
    newer[20] = 2;
    newer[4096 + 20] = 2;
    check(&newer, "format 2");
    let mut bit = whole.clone();
    let text = b"a name that does not fit in its place";
    let at = bit.windows(text.len()).position(|window| window == text).expect("a name");
    bit[at] ^= 1;
    check(&bit, "checksum");

    let aside = Settings { damaged: Damaged::SetAside, ..Settings::default() };
    let context = Context::open(&directory.0, &aside, 2_000).expect("an empty store");
    assert!(matches!(context.set_aside(), Some(Fault::Damaged { .. })));
    assert_eq!(all(&context, 2_000), [""; 0]);
    drop(context);
    assert_eq!(fs::read(directory.0.join("data.mdb.aside")).expect("a file"), bit);
    // The whole file still opens.
    let context = open_bytes(&directory, &whole).expect("nothing is wrong with it");
    assert_eq!(all(&context, 2_000), before);
}

#[test]
fn a_file_that_was_never_finished_is_made_anew() {
    let directory = Directory::new("unfinished");
    drop(directory.open());
    let made = fs::read(data(&directory)).expect("a file");
    // Zero bytes, and one of the two first pages of a file that has seen no transaction.
    assert!(open_bytes(&directory, b"").is_ok());
    let mut first = made[..4096].to_vec();
    first[144..152].fill(0);
    assert!(open_bytes(&directory, &first).is_ok());
}

#[test]
fn no_damage_brings_the_process_down() {
    let directory = Directory::new("flips");
    let context = directory.open();
    fill(&context);
    context.flush().expect("written");
    // Leave free pages behind, too.
    for number in 0..200 {
        let key = format!("10.0.0.{number}");
        let record = Record::new(Collection::Ip, key.as_bytes());
        context.remove(record, b"a name that does not fit in its place", 2_000);
    }
    drop(context);
    let whole = fs::read(data(&directory)).expect("a file");
    let pages = whole.len() / 4096;
    let (mut opened, mut refused) = (0, 0);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % limit
    };
    for round in 0..200 {
        let mut bytes = whole.clone();
        // Mostly where structure is: meta pages, headers of pages, the newest pages.
        let page = if round % 3 == 0 { below(2) } else { below(pages) };
        for _ in 0..=below(3) {
            let within = match below(4) {
                0 => below(4096),
                1 => below(24),
                2 => 16 + below(140),
                _ => 4096 - 1 - below(200),
            };
            let at = page * 4096 + within;
            match below(3) {
                0 => bytes[at] ^= 1 << below(8),
                1 => bytes[at] = 0xff,
                _ => bytes[at] = below(256) as u8,
            }
        }
        match open_bytes(&directory, &bytes) {
            Ok(context) => {
                opened += 1;
                // What opens can be written.
                let record = Record::new(Collection::User, b"someone");
                let text = [b'x'; 9_000];
                for number in 0..50_u64 {
                    let name = number.to_string();
                    context.set(record, name.as_bytes(), &text, 3_000).expect("room");
                    let key = format!("10.0.1.{number}");
                    let record = Record::new(Collection::Ip, key.as_bytes());
                    context.remove(record, b"a name that does not fit in its place", 3_000);
                }
                drop(context);
            }
            Err(Fault::Damaged { .. } | Fault::Newer { .. } | Fault::Disk { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    println!("{opened} opened, {refused} refused");
    assert!(refused > 50 && opened > 10, "{opened} opened, {refused} refused");
}

const CHILD: &str = "TIDEGATE_CONTEXT_CHILD";

/// What the child keeps doing until it is killed: step `n` is an increment, a text of its own, a
/// removal, and at times a load.
fn child_step(context: &Context, n: u64) {
    let now_ms = 1_000 + n;
    let counter = Record::new(Collection::Global, b"counter");
    context.add(counter, b"n", 1, now_ms).expect("room");
    let key = (n % 50).to_string();
    let record = Record::new(Collection::Ip, key.as_bytes());
    context.set(record, b"last", format!("step {n}").as_bytes(), now_ms).expect("room");
    let key = ((n + 25) % 50).to_string();
    context.remove(Record::new(Collection::Ip, key.as_bytes()), b"other", now_ms);
    context.set(record, b"other", b"x", now_ms).expect("room");
    if n.is_multiple_of(10) {
        let list = Record::new(Collection::Resource, b"list");
        let version = n.to_string();
        let names: Vec<String> = (0..40).map(|name| format!("{name}")).collect();
        let entries = names.iter().map(|name| Entry {
            record: list,
            name: name.as_bytes(),
            value: version.as_bytes(),
            lifetime: Lifetime::Forever,
        });
        context.replace(Scope::Record(list), entries, now_ms).expect("room");
    }
}

fn number(context: &Context, record: Record<'_>, name: &[u8]) -> Option<i64> {
    context.get(record, name, 1_000, |value| value.number())
}

fn steps_kept(context: &Context) -> u64 {
    let counter = Record::new(Collection::Global, b"counter");
    number(context, counter, b"n").map_or(0, |n| u64::try_from(n).expect("it only rises"))
}

/// Not a test: the process that `nothing_is_lost_to_a_kill_but_the_last_batch` kills.
#[test]
#[ignore = "run by the test that kills it"]
fn child() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let settings = Settings { batch_interval: Duration::from_millis(20), ..Settings::default() };
    let context = Context::open(Path::new(&directory), &settings, 1_000).expect("always opens");
    let mut n = steps_kept(&context);
    let (mut batches, mut before_batch) = (0, n);
    let mut out = std::io::stdout();
    loop {
        n += 1;
        child_step(&context, n);
        // The step before this one was done while this batch had not been counted yet, so it is in
        // the next one at the latest. This step may have been cut in two: that next batch may begin
        // between the end of this one and our looking.
        let now = context.counters().batches;
        if now > batches {
            writeln!(out, "kept {before_batch}").expect("the parent reads");
            (batches, before_batch) = (now, n - 1);
        }
    }
}

#[test]
fn nothing_is_lost_to_a_kill_but_the_last_batch() {
    let directory = Directory::new("kill");
    let (mut total, mut lasts) = (0, [0; 50]);
    for round in 0..20_u64 {
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env(CHILD, &directory.0)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let out = child.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        // Killed at any moment after its third batch, in the middle of the next or of a later one.
        let kept = lines.by_ref().filter(|line| line.starts_with("kept ")).nth(2);
        assert!(kept.is_some(), "the child wrote no batches");
        std::thread::sleep(Duration::from_micros(round * 7_919 % 60_000));
        child.kill().expect("killed");
        child.wait().expect("gone");
        let said = lines.filter_map(|line| line.strip_prefix("kept ").map(str::to_owned)).last();
        let said = said.or(kept.and_then(|line| line.strip_prefix("kept ").map(str::to_owned)));
        let said: u64 = said.and_then(|number| number.parse().ok()).expect("a number");

        let context = directory.open();
        let steps = steps_kept(&context);
        println!("round {round}: {said} steps were said to be kept, {steps} are");
        assert!(steps >= said, "round {round}: {steps} of {said} steps are left");
        for (key, before) in (0..50_u64).zip(&mut lasts) {
            let text = key.to_string();
            let record = Record::new(Collection::Ip, text.as_bytes());
            let mut last = Vec::new();
            context.get(record, b"last", 1_000, |value| value.append_to(&mut last));
            let last = String::from_utf8(last).expect("text");
            let last: u64 = last.strip_prefix("step ").and_then(|n| n.parse().ok()).unwrap_or(0);
            // The last step until `said` that wrote this key, or a later one. The first steps of
            // this child were perhaps the last that it wrote: the counter on disk may be ahead of
            // what its steps wrote beside it, and the next child begins behind the counter.
            let step = said.saturating_sub((said + 50 - key) % 50);
            let least = if step > total { step } else { *before };
            assert!(last == 0 || last % 50 == key, "key {key}: {last}");
            assert!(last >= least, "round {round}, key {key}: {last}, and {least} was kept");
            *before = last;
        }
        // A load is on disk whole.
        let list = Record::new(Collection::Resource, b"list");
        let mut versions = Vec::new();
        context.each(list, 1_000, |_, value| {
            versions.push(value.number());
            ControlFlow::Continue(())
        });
        let is_loaded = said >= 10 || !versions.is_empty();
        assert_eq!(versions.len(), if is_loaded { 40 } else { 0 });
        assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
        assert!(said > total, "round {round} began before where the last one ended");
        total = steps;
    }
}
