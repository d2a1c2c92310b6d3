use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;
use crate::hash::Seed;
use crate::store::Key;

type TestSink = Sink<&'static str, &'static str>;
type TestReader = Reader<&'static str, &'static str>;

fn key() -> Key<'static> {
    Key::new(b"https://a.example/", &Seed::new([7; 16]))
}

struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn quiet() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn lead(flights: &Arc<Flights<&'static str, &'static str>>) -> (TestSink, TestReader) {
    match flights.begin(&key(), "lost") {
        Begin::Lead(sink, reader) => (sink, reader),
        Begin::Join(_) => panic!("somebody else leads"),
    }
}

fn join(flights: &Arc<Flights<&'static str, &'static str>>) -> TestReader {
    match flights.begin(&key(), "lost") {
        Begin::Lead(..) => panic!("nobody leads"),
        Begin::Join(reader) => reader,
    }
}

fn body(reader: &mut TestReader) -> (Vec<u8>, Poll<Option<&'static str>>) {
    let mut all = Vec::new();
    loop {
        match reader.poll_body(&mut quiet()) {
            Poll::Ready(More::Data(data)) => all.extend_from_slice(&data),
            Poll::Ready(More::End) => return (all, Poll::Ready(None)),
            Poll::Ready(More::Failed(error)) => return (all, Poll::Ready(Some(error))),
            Poll::Pending => return (all, Poll::Pending),
        }
    }
}

#[test]
fn one_fetches_and_all_read() {
    let flights = Arc::default();
    let (mut sink, mut first) = lead(&flights);
    let mut early = join(&flights);
    assert_eq!(early.poll_head(&mut quiet()), Poll::Pending);
    sink.head("200", Audience::All, Some(6));
    assert_eq!(early.poll_head(&mut quiet()), Poll::Ready(Told::Head("200")));
    assert_eq!(first.poll_head(&mut quiet()), Poll::Ready(Told::Head("200")));
    sink.write(b"abc");
    assert_eq!(body(&mut early), (vec![], Poll::Pending), "not published yet");
    sink.publish();
    assert_eq!(body(&mut early), (b"abc".to_vec(), Poll::Pending));
    let mut late = join(&flights);
    assert_eq!(late.poll_head(&mut quiet()), Poll::Ready(Told::Head("200")));
    sink.write(b"def");
    let kept = sink.complete().unwrap();
    assert_eq!(kept.concat(), b"abcdef");
    let mut later = join(&flights);
    drop(sink);
    assert!(matches!(flights.begin(&key(), "lost"), Begin::Lead(..)));
    for (reader, left) in
        [(&mut first, "abcdef"), (&mut early, "def"), (&mut late, "abcdef"), (&mut later, "abcdef")]
    {
        assert_eq!(body(reader), (left.into(), Poll::Ready(None)));
    }
}

#[test]
fn what_is_for_one_is_not_for_others() {
    let flights = Arc::default();
    let (mut sink, mut first) = lead(&flights);
    let mut waiting = join(&flights);
    sink.head("private", Audience::First, None);
    assert_eq!(first.poll_head(&mut quiet()), Poll::Ready(Told::Head("private")));
    assert_eq!(waiting.poll_head(&mut quiet()), Poll::Ready(Told::Alone));
    let (next, _) = lead(&flights);
    drop(sink);
    assert!(flights.is_under_way(&key()), "the end of one fill is not the end of the next");
    drop(next);
    assert!(!flights.is_under_way(&key()));
}

#[test]
fn variants_are_fetched_apart() {
    let flights: Arc<Flights<&str, &str>> = Arc::default();
    // More than there are shards.
    let led: Vec<_> = (0..500)
        .map(|variant| match flights.begin(&key().variant(variant), "lost") {
            Begin::Lead(sink, _) => sink,
            Begin::Join(_) => panic!("variant {variant} is another's"),
        })
        .collect();
    assert_eq!(flights.len(), 500);
    drop(led);
    assert!(flights.is_empty());
}

#[test]
fn a_window_is_held_open_by_the_slowest_reader() {
    let (mut sink, mut first) = begin::<_, &str>("lost");
    sink.head("200", Audience::First, None);
    let mut sent = 0;
    while sink.poll_ready(&mut quiet()).is_ready() {
        sink.write(&vec![b'x'; CHUNK_BYTES]);
        sent += CHUNK_BYTES;
    }
    assert!((WINDOW_BYTES..WINDOW_BYTES + CHUNK_BYTES).contains(&sent), "{sent}");
    let calls = Arc::new(Calls(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&calls));
    assert!(sink.poll_ready(&mut Context::from_waker(&waker)).is_pending());
    assert!(matches!(first.poll_body(&mut quiet()), Poll::Ready(More::Data(_))));
    assert_eq!(calls.0.load(Ordering::Relaxed), 1);
    assert!(sink.poll_ready(&mut quiet()).is_ready());
    assert_eq!(sink.complete(), None, "not all of it is there any more");
}

#[test]
fn what_grows_too_large_is_kept_no_more() {
    let flights = Arc::default();
    let (mut sink, mut first) = lead(&flights);
    sink.head("200", Audience::All, None);
    sink.write(b"abc");
    sink.publish();
    let mut second = join(&flights);
    assert_eq!(body(&mut first).0, b"abc");
    sink.keep_no_more();
    assert!(!flights.is_under_way(&key()), "nobody joins any more");
    assert_eq!(body(&mut second).0, b"abc", "who is slower misses nothing");
    sink.write(b"def");
    assert_eq!(sink.complete(), None);
    assert_eq!(body(&mut second), (b"def".to_vec(), Poll::Ready(None)));
}

#[test]
fn a_fill_outlives_its_readers_only_while_it_is_kept() {
    let flights = Arc::default();
    let (mut sink, first) = lead(&flights);
    drop(first);
    assert!(sink.poll_unwanted(&mut quiet()).is_pending());
    sink.head("200", Audience::All, None);
    assert!(sink.poll_unwanted(&mut quiet()).is_pending());
    let calls = Arc::new(Calls(AtomicUsize::new(0)));
    let reader = join(&flights);
    sink.keep_no_more();
    assert!(sink.poll_unwanted(&mut Context::from_waker(&Arc::clone(&calls).into())).is_pending());
    drop(reader);
    assert!(calls.0.load(Ordering::Relaxed) > 0);
    assert!(sink.poll_unwanted(&mut quiet()).is_ready());
}

#[test]
fn failures_are_told() {
    let flights = Arc::default();
    let (mut sink, mut first) = lead(&flights);
    sink.fail("refused");
    assert_eq!(sink.complete(), None);
    assert_eq!(first.poll_head(&mut quiet()), Poll::Ready(Told::Failed("refused")));
    drop(sink);
    let (mut sink, mut first) = lead(&flights);
    sink.head("200", Audience::All, Some(9));
    sink.write(b"abc");
    drop(sink);
    assert_eq!(first.poll_head(&mut quiet()), Poll::Ready(Told::Head("200")));
    assert_eq!(body(&mut first).1, Poll::Ready(Some("lost")));
    assert!(flights.is_empty());
}

#[test]
fn readers_are_woken() {
    let (mut sink, mut reader) = begin::<_, &str>("lost");
    let calls = Arc::new(Calls(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&calls));
    let mut cx = Context::from_waker(&waker);
    assert!(reader.poll_head(&mut cx).is_pending());
    sink.head("200", Audience::All, None);
    assert_eq!(calls.0.load(Ordering::Relaxed), 1);
    assert!(reader.poll_body(&mut cx).is_pending());
    sink.write(b"a");
    assert_eq!(calls.0.load(Ordering::Relaxed), 1);
    sink.publish();
    assert_eq!(calls.0.load(Ordering::Relaxed), 2);
    assert!(matches!(reader.poll_body(&mut cx), Poll::Ready(More::Data(_))));
    assert!(reader.poll_body(&mut cx).is_pending());
    drop(sink);
    assert_eq!(calls.0.load(Ordering::Relaxed), 3);
}

#[test]
fn interim_responses_are_for_the_first_reader() {
    let flights = Arc::default();
    let (mut sink, mut first) = lead(&flights);
    let mut second = join(&flights);
    for _ in 0..INTERIMS_MAX + 3 {
        sink.interim("103");
    }
    for _ in 0..INTERIMS_MAX {
        assert_eq!(first.poll_head(&mut quiet()), Poll::Ready(Told::Head("103")));
    }
    assert_eq!(first.poll_head(&mut quiet()), Poll::Pending);
    assert_eq!(second.poll_head(&mut quiet()), Poll::Pending);
    sink.head("200", Audience::All, None);
    assert_eq!(first.poll_head(&mut quiet()), Poll::Ready(Told::Head("200")));
}
