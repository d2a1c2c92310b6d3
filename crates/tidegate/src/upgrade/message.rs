//! What two processes say to each other at an upgrade.
//!
//! The two may be of different versions. A message begins with its kind; kinds that the receiver
//! does not know are skipped, so that a later version may hand over more than this one takes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use tidegate_proxy::settings::Address;
use zeroize::Zeroizing;

use crate::serve::sockets::Shown;

/// From the old process to the new one.
#[derive(Debug)]
pub(super) enum Handed {
    /// Listening sockets on these addresses come along.
    Sockets(Vec<Address>),
    /// The admin listener's socket comes along.
    Admin(Address),
    /// The keys of session tickets.
    TicketKeys(Zeroizing<Vec<u8>>),
    /// What is known of a server and stands in no configuration.
    Server(Known),
    /// This process has the copy of context in this directory and leaves it on demand; said again, it
    /// has left it.
    Context(PathBuf),
    /// That was all.
    Done,
    /// From a version after this one.
    Unknown,
}

/// What is known of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) group: String,
    pub(super) server: String,
    /// The operator drained it.
    pub(super) draining: bool,
    /// Checks found it down.
    pub(super) down: bool,
}

/// From the new process to the old one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It wants the copy of context.
    Context,
    /// It serves.
    Ready,
    /// It does not, and why.
    Refused(String),
}

const SOCKETS: u8 = b'S';
const ADMIN: u8 = b'A';
const TICKET_KEYS: u8 = b'T';
const SERVER: u8 = b'V';
const CONTEXT: u8 = b'C';
const DONE: u8 = b'.';
const READY: u8 = b'R';
const REFUSED: u8 = b'F';

impl Handed {
    pub(super) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(match self {
            Handed::Sockets(addresses) => {
                let addresses: Vec<_> =
                    addresses.iter().map(|address| Shown(address).to_string()).collect();
                with_json(SOCKETS, &json!(addresses))
            }
            Handed::Admin(address) => with_json(ADMIN, &json!(Shown(address).to_string())),
            Handed::TicketKeys(keys) => [&[TICKET_KEYS], keys.as_slice()].concat(),
            Handed::Server(known) => with_json(
                SERVER,
                &json!({
                    "group": known.group,
                    "server": known.server,
                    "draining": known.draining,
                    "down": known.down,
                }),
            ),
            Handed::Context(directory) => {
                [&[CONTEXT], directory.as_os_str().as_encoded_bytes()].concat()
            }
            Handed::Done | Handed::Unknown => vec![DONE],
        })
    }

    /// `None` if a known kind holds something else than it should.
    pub(super) fn parse(bytes: &[u8]) -> Option<Handed> {
        let (kind, rest) = bytes.split_first()?;
        let json = || serde_json::from_slice::<Value>(rest).ok();
        Some(match *kind {
            SOCKETS => {
                let json = json()?;
                let addresses = json.as_array()?.iter().map(|address| parse(address.as_str()?));
                Handed::Sockets(addresses.collect::<Option<_>>()?)
            }
            ADMIN => Handed::Admin(parse(json()?.as_str()?)?),
            TICKET_KEYS => Handed::TicketKeys(Zeroizing::new(rest.to_vec())),
            SERVER => {
                let json = json()?;
                Handed::Server(Known {
                    group: json["group"].as_str()?.to_owned(),
                    server: json["server"].as_str()?.to_owned(),
                    draining: json["draining"].as_bool().unwrap_or_default(),
                    down: json["down"].as_bool().unwrap_or_default(),
                })
            }
            CONTEXT => Handed::Context(OsStr::from_bytes(rest).into()),
            DONE => Handed::Done,
            _ => Handed::Unknown,
        })
    }
}

impl Reply {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Reply::Context => vec![CONTEXT],
            Reply::Ready => vec![READY],
            Reply::Refused(reason) => {
                let end = reason.floor_char_boundary(super::channel::BYTES_MAX - 1);
                [&[REFUSED], &reason.as_bytes()[..end]].concat()
            }
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Reply> {
        match bytes.split_first()? {
            (&CONTEXT, _) => Some(Reply::Context),
            (&READY, _) => Some(Reply::Ready),
            (&REFUSED, reason) => {
                Some(Reply::Refused(String::from_utf8_lossy(reason).into_owned()))
            }
            _ => None,
        }
    }
}

fn with_json(kind: u8, value: &Value) -> Vec<u8> {
    [&[kind], value.to_string().as_bytes()].concat()
}

/// The other way of [`Shown`].
fn parse(address: &str) -> Option<Address> {
    match address.strip_prefix("unix:") {
        Some(path) => Some(Address::Unix(PathBuf::from(path))),
        None => address.parse().ok().map(Address::Tcp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_over_arrives() {
        let check = |handed: Handed| {
            let bytes = handed.to_bytes();
            let parsed = Handed::parse(&bytes).unwrap();
            assert_eq!(format!("{parsed:?}"), format!("{handed:?}"));
        };
        check(Handed::Sockets(vec![
            Address::Tcp("[::1]:443".parse().unwrap()),
            Address::Tcp("0.0.0.0:80".parse().unwrap()),
            Address::Unix("/run/a b".into()),
        ]));
        check(Handed::Admin(Address::Unix("/run/admin".into())));
        check(Handed::TicketKeys(Zeroizing::new(vec![0, 1, 255])));
        let (group, server) = ("app".to_owned(), "10.0.0.1:80".to_owned());
        check(Handed::Server(Known { group, server, draining: true, down: false }));
        check(Handed::Context("/var/lib/a b".into()));
        check(Handed::Done);
    }

    #[test]
    fn later_kinds_are_skipped_and_broken_ones_refused() {
        assert!(matches!(Handed::parse(b"?{}"), Some(Handed::Unknown)));
        assert!(Handed::parse(b"").is_none());
        assert!(Handed::parse(b"S[1]").is_none());
        assert!(Handed::parse(b"S[\"nowhere\"]").is_none());
        assert!(Handed::parse(b"V{}").is_none());
        assert_eq!(Reply::parse(b"?"), None);
    }

    #[test]
    fn a_refusal_fits_into_a_message() {
        let long = "ü".repeat(super::super::channel::BYTES_MAX);
        let bytes = Reply::Refused(long).to_bytes();
        assert!(bytes.len() <= super::super::channel::BYTES_MAX);
        let Some(Reply::Refused(reason)) = Reply::parse(&bytes) else { panic!("a refusal") };
        assert!(reason.chars().all(|character| character == 'ü'));
        assert_eq!(Reply::parse(&Reply::Ready.to_bytes()), Some(Reply::Ready));
        assert_eq!(Reply::parse(&Reply::Context.to_bytes()), Some(Reply::Context));
    }
}
