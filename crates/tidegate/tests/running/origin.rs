//! A small server behind the gate.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Answers every request with its name; `/wait/MILLISECONDS` takes that long. It lives as long as
/// the test program.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    served: Arc<AtomicUsize>,
}

impl Origin {
    pub(crate) fn start(name: &'static str) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&served);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counter = Arc::clone(&counter);
                thread::spawn(move || serve(&stream, name, &counter));
            }
        });
        Origin { address, served }
    }

    /// How many requests it was given.
    pub(crate) fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }
}

/// Serves a connection until the gate closes it.
fn serve(stream: &TcpStream, name: &str, served: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut path = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if path.is_empty() {
                line.split(' ').nth(1).unwrap_or_default().clone_into(&mut path);
            }
            if line == "\r\n" {
                break;
            }
        }
        served.fetch_add(1, Ordering::SeqCst);
        if let Some(millis) = path.strip_prefix("/wait/") {
            thread::sleep(Duration::from_millis(millis.parse().unwrap_or(0)));
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
        let mut stream = stream;
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
    }
}
