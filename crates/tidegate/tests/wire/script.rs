//! A case as the runner holds it: steps of both ends and what must come of them.

use std::time::Duration;

use crate::bytes::Names;
use crate::hpack::Fields;

/// One named case of a `.wire` file.
#[derive(Debug)]
pub(crate) struct Case {
    /// Position among all cases; names its site and its origin.
    pub index: usize,
    /// `file:line`.
    pub place: String,
    pub name: String,
    pub names: Names,
    /// The methods of the requests sent, in order, where they change how a response is read.
    pub methods: Vec<String>,
    /// What to make of the client's connection once the steps are done.
    pub afterwards: Afterwards,
    /// How long the client waits for responses.
    pub patience: Duration,
    pub speaks: Version,
    pub client: Vec<ClientStep>,
    pub origin: Vec<Answer>,
    pub clauses: Vec<Clause>,
}

/// What the client does with a connection that is still open at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// Sends one more request, whose answer must be that request's.
    Probe,
    /// Nothing: the case leaves it inside a message or inside a tunnel.
    Leave,
}

/// What the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

#[derive(Debug)]
pub(crate) enum ClientStep {
    Send(Vec<u8>),
    /// The same, a byte at a time.
    Trickle(Vec<u8>),
    Pause(Duration),
    /// Until this many more final responses are complete.
    AwaitResponse,
    /// Until an interim response with this status is there.
    AwaitInterim(u16),
    /// Until the origin has the head of one more request.
    AwaitOrigin,
    /// Until the gate closes.
    AwaitClose,
    /// FIN from the client.
    HalfClose,
    /// RST from the client.
    Reset,
    Headers {
        stream: u32,
        end: End,
        fields: Fields,
    },
    Data {
        stream: u32,
        end: End,
        bytes: Vec<u8>,
    },
    Frame {
        kind: u8,
        flags: u8,
        stream: u32,
        payload: Vec<u8>,
    },
}

/// Whether a frame ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Stream,
    Open,
}

/// What the origin does with one request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub steps: Vec<OriginStep>,
    pub applies: Applies,
}

/// Which requests an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applies {
    /// The next one.
    Once,
    /// All from here on.
    Always,
}

#[derive(Clone, Debug)]
pub(crate) enum OriginStep {
    /// Goes on although the body is not there yet; without it the whole request is read first.
    ReadHead,
    /// Reads the rest of the request.
    ReadAll,
    Send(Vec<u8>),
    Pause(Duration),
    /// FIN, then the connection is left.
    Close,
    /// RST.
    Reset,
    /// Sends back whatever comes, in capitals, until the connection ends.
    Echo,
}

/// What must hold, or several ways in which it may hold.
#[derive(Debug)]
pub(crate) enum Clause {
    Must(Expectation),
    Either(Vec<Vec<Expectation>>),
}

#[derive(Debug)]
pub(crate) enum Expectation {
    /// The final responses, all of them, in order; each one of a few statuses.
    Statuses(Vec<Vec<StatusPattern>>),
    /// No final response at all.
    NoResponse,
    /// Refused without a trace at the origin: status 4xx or 5xx and close, or closed, or reset.
    Refused,
    Close,
    Kept,
    /// Every response is whole.
    Complete,
    /// The client can tell that the (last) response is not whole.
    NotComplete,
    Interim(Vec<u16>),
    Header(Vec<u8>),
    NoHeader(String),
    Body(Vec<u8>),
    BodyContains(Vec<u8>),
    /// What came behind a 101.
    Tunnel(Vec<u8>),
    OriginNothing,
    OriginRequests(usize),
    /// The nth request (from 0): line, fields in any order, body. The gate's own fields may be there.
    OriginSees {
        nth: usize,
        request: Vec<u8>,
    },
    /// Some request holds this field line, its name in any case.
    OriginHas(Vec<u8>),
    /// No request has a field of this name.
    OriginLacks(String),
    /// The raw bytes of the origin's connections hold this nowhere.
    OriginNowhere(Vec<u8>),
    /// Nothing whole: what was begun at the origin ended with its connection.
    OriginCut,
    /// Holds for the response on this stream.
    Stream(u32, Box<Expectation>),
}

/// A status or a class of statuses, such as `4xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusPattern {
    Exactly(u16),
    Class(u16),
}

impl StatusPattern {
    pub(crate) fn matches(self, status: u16) -> bool {
        match self {
            StatusPattern::Exactly(exactly) => exactly == status,
            StatusPattern::Class(class) => status / 100 == class,
        }
    }
}

impl Case {
    /// Every expectation, whichever alternative it stands in.
    pub(crate) fn expectations(&self) -> impl Iterator<Item = &Expectation> {
        self.clauses.iter().flat_map(|clause| match clause {
            Clause::Must(expectation) => {
                std::slice::from_ref(expectation).iter().collect::<Vec<_>>()
            }
            Clause::Either(ways) => ways.iter().flatten().collect(),
        })
    }

    /// The number of final responses after which the client need not wait for more.
    pub(crate) fn responses_awaited(&self) -> usize {
        let awaited = self.expectations().map(|expectation| match expectation {
            Expectation::Statuses(statuses) => statuses.len(),
            _ => 0,
        });
        awaited.max().unwrap_or(0)
    }
}
