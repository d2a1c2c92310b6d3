use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;

const SEED: Seed = Seed::new([5; 16]);
const NOW: Time = Time::from_millis(1_000);

fn tag(text: &str) -> Tag {
    Tag::of(text.as_bytes(), &SEED)
}

fn site(name: &str) -> u64 {
    SEED.hash(name.as_bytes())
}

fn hard(scope: Scope<'_>) -> Purge<'_> {
    Purge { scope, force: Force::Hard }
}

fn soft(scope: Scope<'_>) -> Purge<'_> {
    Purge { scope, force: Force::Soft }
}

/// How an object of site `a`, path `/p/q` and tags `t` and `u` stands that was there from `since`.
fn standing(purges: &Purges, since: Sequence) -> Standing {
    let tags = [tag("t"), tag("u")];
    let url = SEED.hash(b"a/p/q");
    let names = Names { site: site("a"), url, path: b"/p/q", tags: &tags };
    purges.standing(&names, &Mark::new(since))
}

#[test]
fn a_purge_meets_what_it_names_and_nothing_else() {
    let (a, b) = (site("a"), site("b"));
    let url = SEED.hash(b"a/p/q");
    let cases = [
        (Scope::Everything, true),
        (Scope::Site(a), true),
        (Scope::Site(b), false),
        (Scope::Url(url), true),
        (Scope::Url(a), false),
        (Scope::Site(url), false),
        (Scope::Prefix { site: a, path: b"/p/" }, true),
        (Scope::Prefix { site: a, path: b"" }, true),
        (Scope::Prefix { site: a, path: b"/p/q" }, true),
        (Scope::Prefix { site: a, path: b"/p/q/" }, false),
        (Scope::Prefix { site: b, path: b"/p/" }, false),
        (Scope::Tag(tag("u")), true),
        (Scope::Tag(tag("v")), false),
        (Scope::SiteTag { site: a, tag: tag("t") }, true),
        (Scope::SiteTag { site: b, tag: tag("t") }, false),
        (Scope::SiteTag { site: a, tag: tag("v") }, false),
    ];
    for (scope, met) in cases {
        let purges = Purges::new(Settings::default());
        let before = purges.sequence();
        assert_eq!(standing(&purges, before), Standing::Current);
        let after = purges.purge(&[soft(scope)], NOW).unwrap();
        let stale = if met { Standing::Stale { since: NOW } } else { Standing::Current };
        assert_eq!(standing(&purges, before), stale, "{scope:?}");
        assert_eq!(standing(&purges, after), Standing::Current, "{scope:?}");
        let after = purges.purge(&[hard(scope)], NOW).unwrap();
        let gone = if met { Standing::Gone } else { Standing::Current };
        assert_eq!(standing(&purges, before), gone, "{scope:?}");
        assert_eq!(standing(&purges, after), Standing::Current, "{scope:?}");
    }
}

#[test]
fn what_was_fetched_before_the_purge_and_stored_after_it_is_purged() {
    let purges = Purges::new(Settings::default());
    let fetch_began = purges.sequence();
    purges.purge(&[hard(Scope::Tag(tag("t")))], NOW).unwrap();
    assert_eq!(standing(&purges, fetch_began), Standing::Gone);
}

#[test]
fn a_later_soft_purge_does_not_bring_back_what_a_hard_one_took() {
    let purges = Purges::new(Settings::default());
    let before = purges.sequence();
    let between = purges.purge(&[hard(Scope::Site(site("a")))], NOW).unwrap();
    purges.purge(&[soft(Scope::Site(site("a")))], NOW).unwrap();
    assert_eq!(standing(&purges, before), Standing::Gone);
    assert_eq!(standing(&purges, between), Standing::Stale { since: NOW });
}

#[test]
fn what_passed_is_marked_and_what_is_stale_is_not() {
    let purges = Purges::new(Settings::default());
    let mark = Mark::new(purges.sequence());
    let tags = [tag("t")];
    let names = Names { site: site("a"), url: 1, path: b"/", tags: &tags };
    let last = purges.purge(&[hard(Scope::Tag(tag("other")))], NOW).unwrap();
    assert_eq!(purges.standing(&names, &mark), Standing::Current);
    assert_eq!(mark.sequence(), last);
    purges.purge(&[soft(Scope::Tag(tag("t")))], NOW).unwrap();
    for _ in 0..2 {
        assert_eq!(purges.standing(&names, &mark), Standing::Stale { since: NOW });
        assert_eq!(mark.sequence(), last);
    }
}

#[test]
fn beyond_the_bound_the_oldest_are_folded_and_nothing_is_forgotten() {
    let settings = Settings { entries_max: 10, prefixes_max: 3 };
    let purges = Purges::new(settings);
    let object = purges.sequence();
    purges.purge(&[hard(Scope::Tag(tag("t")))], NOW).unwrap();
    let later = purges.sequence();
    for number in 0..100 {
        purges.purge(&[hard(Scope::Url(number))], NOW).unwrap();
        let path = format!("/{number}");
        let prefix = Scope::Prefix { site: 7, path: path.as_bytes() };
        purges.purge(&[soft(prefix)], NOW).unwrap();
        assert_eq!(standing(&purges, object), Standing::Gone);
    }
    let stats = purges.stats();
    assert_eq!((stats.entries, stats.prefixes), (10, 3));
    // The last prefix that was folded is younger than the last URL that was.
    assert_eq!(stats.horizon.number(), stats.sequence.number() - 2 * 3);
    assert_eq!(standing(&purges, later), Standing::Gone, "folded: too much rather than too little");
    assert_eq!(standing(&purges, stats.horizon), Standing::Current);
}

#[test]
fn purging_one_thing_again_and_again_takes_no_room() {
    let purges = Purges::new(Settings { entries_max: 10, prefixes_max: 3 });
    for _ in 0..10_000 {
        purges.purge(&[soft(Scope::Tag(tag("t")))], NOW).unwrap();
    }
    assert_eq!((purges.stats().entries, purges.stats().horizon.number()), (1, 0));
    assert!(purges.writing().order.len() < 2000);
}

fn open(path: &Path) -> (Purges, Found) {
    Purges::open(path, &SEED, Settings::default()).unwrap()
}

#[test]
fn purges_hold_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("purges");
    let (purges, found) = open(&path);
    assert_eq!(found, Found::Whole);
    let before = purges.sequence();
    let prefix = Scope::Prefix { site: site("a"), path: b"/p" };
    let after = purges.purge(&[soft(prefix), hard(Scope::Site(site("b")))], NOW).unwrap();
    // As after a kill: nothing is closed or flushed.
    std::mem::forget(purges);
    let (purges, found) = open(&path);
    assert_eq!(found, Found::Whole);
    assert_eq!(standing(&purges, before), Standing::Stale { since: NOW });
    assert_eq!(standing(&purges, after), Standing::Current);
    assert!(purges.sequence() > after, "numbers are never given twice");
}

#[test]
fn a_torn_record_is_cut_off_wherever_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("purges");
    let (purges, _) = open(&path);
    let before = purges.sequence();
    purges.purge(&[hard(Scope::Site(site("a")))], NOW).unwrap();
    let whole = fs::read(&path).unwrap();
    let prefix = Scope::Prefix { site: site("b"), path: b"/some/path" };
    purges.purge(&[hard(prefix)], NOW).unwrap();
    let longer = fs::read(&path).unwrap();
    for end in whole.len()..longer.len() {
        fs::write(&path, &longer[..end]).unwrap();
        let (purges, found) = open(&path);
        assert_eq!(found, Found::Whole, "{end}");
        assert_eq!(standing(&purges, before), Standing::Gone);
        assert_eq!(purges.stats().prefixes, 0);
    }
}

#[test]
fn damage_takes_everything_that_was_stored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("purges");
    let (purges, _) = open(&path);
    for number in 0..20 {
        purges.purge(&[hard(Scope::Url(number))], NOW).unwrap();
    }
    let last = purges.sequence();
    let whole = fs::read(&path).unwrap();
    for at in (32..whole.len()).step_by(11) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        fs::write(&path, &damaged).unwrap();
        let (purges, found) = open(&path);
        assert_eq!(found, Found::Damaged, "{at}");
        assert_eq!(standing(&purges, last), Standing::Gone, "{at}");
        assert_eq!(standing(&purges, purges.sequence()), Standing::Current);
        std::mem::drop(purges);
        let (purges, found) = open(&path);
        assert_eq!(found, Found::Whole, "it was mended");
        assert_eq!(standing(&purges, last), Standing::Gone, "{at}");
    }
}

#[test]
fn what_is_no_journal_of_ours_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("purges");
    fs::write(&path, [b'x'; 100]).unwrap();
    let refused = |seed: Seed| Purges::open(&path, &seed, Settings::default()).unwrap_err();
    assert!(matches!(refused(SEED), Fault::Foreign { .. }));
    fs::remove_file(&path).unwrap();
    drop(open(&path));
    assert!(matches!(refused(Seed::new([6; 16])), Fault::Foreign { .. }));
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 2;
    fs::write(&path, &bytes).unwrap();
    let fault = refused(SEED);
    assert!(matches!(fault, Fault::Newer { format: 2, .. }));
    assert!(fault.to_string().ends_with("its format is 2, and this version reads 1"), "{fault}");
    let nowhere = Path::new("/nonexistent/purges");
    assert!(matches!(Purges::open(nowhere, &SEED, Settings::default()), Err(Fault::Disk { .. })));
}

#[test]
fn two_processes_learn_what_the_other_purged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("purges");
    let (old, new) = (open(&path).0, open(&path).0);
    old.refresh().unwrap();
    let before = old.sequence().max(new.sequence());
    let first = old.purge(&[hard(Scope::Url(1))], NOW).unwrap();
    let second = new.purge(&[hard(Scope::Site(site("a")))], NOW).unwrap();
    assert!(first < second);
    assert_eq!(standing(&old, before), Standing::Current);
    assert_eq!((old.refresh().unwrap(), old.refresh().unwrap()), (1, 0));
    assert_eq!(standing(&old, before), Standing::Gone);
    assert_eq!(old.stats(), new.stats());
}

#[test]
fn a_long_journal_is_written_anew_under_the_eyes_of_another() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("purges");
    let (old, new) = (open(&path).0, open(&path).0);
    let before = old.sequence().max(new.sequence());
    new.purge(&[hard(Scope::Tag(tag("t")))], NOW).unwrap();
    let again: Vec<_> = (0..1000).map(|number| soft(Scope::Url(number % 10))).collect();
    let mut longest = 0;
    for _ in 0..12 {
        old.purge(&again, NOW).unwrap();
        longest = longest.max(fs::metadata(&path).unwrap().len());
    }
    let length = fs::metadata(&path).unwrap().len();
    assert!(length < longest && longest < 512 << 10, "{length} {longest}");
    new.refresh().unwrap();
    assert_eq!(old.stats(), new.stats());
    let third = open(&path).0;
    for purges in [&old, &new, &third] {
        assert_eq!(purges.stats().entries, 11);
        assert_eq!(standing(purges, before), Standing::Gone);
    }
}

#[test]
fn a_purge_that_cannot_be_written_holds_all_the_same_and_is_written_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("purges");
    let (purges, _) = open(&path);
    let before = purges.sequence();
    // Whatever leads nowhere: here, a file behind the name that is another's.
    let other = directory.path().join("other");
    fs::write(&other, [b'x'; 64]).unwrap();
    let aside = directory.path().join("aside");
    fs::rename(&path, &aside).unwrap();
    fs::rename(&other, &path).unwrap();
    let fault = purges.purge(&[hard(Scope::Site(site("a")))], NOW).unwrap_err();
    assert!(matches!(fault, Fault::Foreign { .. }), "{fault}");
    assert_eq!(standing(&purges, before), Standing::Gone);
    fs::rename(&aside, &path).unwrap();
    purges.refresh().unwrap();
    std::mem::forget(purges);
    assert_eq!(standing(&open(&path).0, before), Standing::Gone);
}

/// Whoever asks sees each purge from its number on, and none of them half.
#[test]
fn those_who_ask_are_not_disturbed_by_those_who_purge() {
    let purges = Arc::new(Purges::new(Settings { entries_max: 50, prefixes_max: 5 }));
    let done = Arc::new(AtomicBool::new(false));
    let asking: Vec<_> = (0..2)
        .map(|_| {
            let (purges, done) = (Arc::clone(&purges), Arc::clone(&done));
            std::thread::spawn(move || {
                let mut asked = 0;
                while asked < 1000 || !done.load(Ordering::Acquire) {
                    let now = purges.sequence();
                    // What was there before the first purge of its tag is gone from then on.
                    if now > Sequence(0) {
                        assert_eq!(standing(&purges, Sequence(0)), Standing::Gone);
                    }
                    asked += 1;
                }
            })
        })
        .collect();
    for number in 0..2000 {
        let scope = if number % 100 == 0 { Scope::Tag(tag("t")) } else { Scope::Url(number) };
        purges.purge(&[hard(scope)], NOW).unwrap();
    }
    done.store(true, Ordering::Release);
    for thread in asking {
        thread.join().unwrap();
    }
}
