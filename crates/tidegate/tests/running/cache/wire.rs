//! Both sides of the gate: an origin that a test scripts, and a client that reads whole answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use crate::eventually;
use crate::gate::Gate;

/// A request as the origin has it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) target: String,
    pub(super) head: String,
    /// How many requests with this target there were, this one included.
    pub(super) number: usize,
}

impl Asked {
    /// The value of a field, in whatever case its name is written.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }
}

/// Answers a request; `None` ends the connection there.
type Script = dyn Fn(&Asked, &mut TcpStream) -> Option<()> + Send + Sync;

/// A server that does what a test wants and remembers what it was asked.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) address: SocketAddr,
    asked: Arc<RwLock<Vec<Asked>>>,
}

impl Origin {
    pub(super) fn start(
        script: impl Fn(&Asked, &mut TcpStream) -> Option<()> + Send + Sync + 'static,
    ) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = Origin { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let (asked, script): (_, Arc<Script>) = (Arc::clone(&origin.asked), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, script) = (Arc::clone(&asked), Arc::clone(&script));
                thread::spawn(move || serve(stream, &asked, &*script));
            }
        });
        origin
    }

    /// How often a target was asked for.
    pub(super) fn count(&self, target: &str) -> usize {
        self.asked.read().unwrap().iter().filter(|asked| asked.target == target).count()
    }

    /// Waits until a target was asked for so often.
    pub(super) fn is_asked(&self, target: &str, count: usize) {
        eventually("the origin is asked", || self.count(target) >= count);
    }
}

fn serve(mut stream: TcpStream, asked: &RwLock<Vec<Asked>>, script: &Script) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let head = head(&mut reader)?;
        let length: Option<usize> = field(&head, "content-length").and_then(|it| it.parse().ok());
        reader.read_exact(&mut vec![0; length.unwrap_or(0)]).ok()?;
        let target = head.split(' ').nth(1)?.to_owned();
        let request = {
            let mut asked = asked.write().unwrap();
            let before = asked.iter().filter(|before| before.target == target).count();
            let request = Asked { target, head, number: before + 1 };
            asked.push(request.clone());
            request
        };
        script(&request, &mut stream)?;
    }
}

/// Sends a response with its length.
pub(super) fn send(stream: &mut TcpStream, status: u16, fields: &str, body: &str) -> Option<()> {
    let length = body.len();
    write(stream, &format!("HTTP/1.1 {status} X\r\n{fields}Content-Length: {length}\r\n\r\n{body}"))
}

pub(super) fn write(stream: &mut TcpStream, text: &str) -> Option<()> {
    stream.write_all(text.as_bytes()).ok()
}

/// Something that an origin waits for.
#[derive(Clone, Default)]
pub(super) struct Signal(Arc<AtomicBool>);

impl Signal {
    pub(super) fn give(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_given(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    pub(super) fn wait(&self) {
        // Whoever has failed to give it has failed by then.
        for _ in 0..6000 {
            if self.is_given() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What a client got.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The heads before the final one.
    pub(super) interim: String,
    pub(super) head: String,
    pub(super) body: String,
    /// Whether it came to its end.
    pub(super) whole: bool,
}

impl Answer {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// What the cache says of it, without its name and the lifetime.
    pub(super) fn cache(&self) -> String {
        let said = self.field("cache-status").unwrap_or_default();
        let parts = said.split("; ").skip(1).filter(|part| !part.starts_with("ttl="));
        parts.collect::<Vec<_>>().join("; ")
    }
}

/// A request under way.
pub(super) struct Client(BufReader<TcpStream>);

impl Client {
    /// Asks; `fields` may say another `Host`.
    pub(super) fn ask(gate: &Gate, method: &str, target: &str, fields: &str) -> Client {
        let stream = TcpStream::connect(gate.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let host = if fields.contains("Host:") { "" } else { "Host: a.example\r\n" };
        let text = format!("{method} {target} HTTP/1.1\r\n{host}Connection: close\r\n{fields}\r\n");
        (&stream).write_all(text.as_bytes()).unwrap();
        Client(BufReader::new(stream))
    }

    /// Waits for the head and so many bytes of the body, and returns how many came.
    pub(super) fn read(&mut self, bytes: usize) -> usize {
        head(&mut self.0).unwrap();
        let mut body = vec![0; bytes];
        self.0.read_exact(&mut body).map_or(0, |()| bytes)
    }

    /// Reads to the end.
    pub(super) fn answer(mut self, method: &str) -> Answer {
        let mut interim = String::new();
        let (status, head) = loop {
            let head = head(&mut self.0).expect("an answer");
            let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
            if status >= 200 {
                break (status, head);
            }
            interim += &head;
        };
        let mut rest = Vec::new();
        let ended = self.0.read_to_end(&mut rest).is_ok();
        let chunked = field(&head, "transfer-encoding").is_some();
        let length: Option<usize> = field(&head, "content-length").and_then(|it| it.parse().ok());
        let (body, complete) = match length {
            _ if method == "HEAD" || status == 304 || status == 204 => {
                (rest.clone(), rest.is_empty())
            }
            _ if chunked => unchunked(&rest),
            Some(length) => (rest.clone(), rest.len() == length),
            None => (rest, true),
        };
        let body = String::from_utf8(body).unwrap();
        Answer { status, interim, head, body, whole: ended && complete }
    }
}

/// One request on a connection of its own.
pub(super) fn ask(gate: &Gate, method: &str, target: &str, fields: &str) -> Answer {
    Client::ask(gate, method, target, fields).answer(method)
}

pub(super) fn get(gate: &Gate, target: &str) -> Answer {
    ask(gate, "GET", target, "")
}

/// A chunked body, and whether it has its end.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
        if size == 0 {
            return (body, rest[at..] == *b"\r\n\r\n");
        }
        let end = at + 2 + size;
        if rest.len() < end + 2 {
            break;
        }
        body.extend_from_slice(&rest[at + 2..end]);
        rest = &rest[end + 2..];
    }
    (body, false)
}

/// A head up to its empty line.
fn head(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        if reader.read_line(&mut text).ok()? == 0 {
            return None;
        }
    }
    Some(text)
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    lines
        .into_iter()
        .find(|(named, _)| named.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// A gate with a cache in front of an origin; `options` go into `[cache]`, `rest` behind the site.
pub(super) fn gate(origin: &Origin, options: &str, rest: &str) -> Gate {
    Gate::start(&settings(origin, options, rest))
}

pub(super) fn settings(origin: &Origin, options: &str, rest: &str) -> String {
    format!(
        "[cache]\nmode = \"on\"\n{options}\n[[site]]\nhost = \"*\"\nupstream = \"{}\"\n{rest}",
        origin.address
    )
}
