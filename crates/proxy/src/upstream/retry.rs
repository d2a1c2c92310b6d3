//! Whether a failed attempt may be made again: a pure decision.
//!
//! The rule that nothing bends: a request that a server may have seen is sent again only if its
//! method is idempotent (RFC 9110, section 9.2.2). Whether a server can have seen it follows from
//! where the attempt failed, which [`Failure`] says; a POST that was written to a connection is never
//! written again.

use tidegate_http::Method;
use tidegate_telemetry::clock::Stamp;

use super::budget::Budget;
use crate::settings::{self, RetryWhen};

/// Where an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection was refused, reset or unreachable while it was opened.
    ConnectRefused,
    /// The connection was not open in time.
    ConnectTimeout,
    /// TLS could not be established; the request was not written yet.
    Tls,
    /// The server is at its limit of connections.
    AtLimit,
    /// A kept connection was found closed before a byte of the request was written.
    StaleUnwritten,
    /// A kept connection closed after something of the request was written, before a byte of the
    /// response: it had most likely been closed already, but nobody can know.
    StaleWritten,
    /// The server says that it did not process the request (RFC 9113, sections 6.8 and 8.7:
    /// `REFUSED_STREAM`, or a stream above the last of a `GOAWAY`).
    NotProcessed,
    /// A fresh connection failed after something of the request was written, before a byte of the
    /// response.
    Reset,
    /// No byte of the response came in time.
    FirstByteTimeout,
    /// What came is not a valid response head.
    InvalidResponse,
    /// The response failed after its head was passed on.
    ResponseBegun,
}

impl Failure {
    /// What the server can have seen of the request.
    pub const fn exposure(self) -> Exposure {
        match self {
            Failure::ConnectRefused
            | Failure::ConnectTimeout
            | Failure::Tls
            | Failure::AtLimit
            | Failure::StaleUnwritten
            | Failure::NotProcessed => Exposure::Unseen,
            Failure::StaleWritten => Exposure::ProbablyUnseen,
            Failure::Reset | Failure::FirstByteTimeout | Failure::InvalidResponse => Exposure::Seen,
            Failure::ResponseBegun => Exposure::Answered,
        }
    }

    /// Whether the failure speaks against the server, for passive ejection.
    pub const fn blame(self) -> Blame {
        match self {
            Failure::ConnectRefused
            | Failure::ConnectTimeout
            | Failure::Tls
            | Failure::Reset
            | Failure::FirstByteTimeout
            | Failure::InvalidResponse
            | Failure::ResponseBegun => Blame::Server,
            // Servers close idle connections, shut down and have limits without being ill.
            Failure::AtLimit
            | Failure::StaleUnwritten
            | Failure::StaleWritten
            | Failure::NotProcessed => Blame::Nobody,
        }
    }

    /// Which server the next attempt goes to.
    const fn next(self) -> Retry {
        match self {
            // The server is likely well; only the connection was old.
            Failure::StaleUnwritten | Failure::StaleWritten => Retry::Same,
            Failure::ConnectRefused
            | Failure::ConnectTimeout
            | Failure::Tls
            | Failure::AtLimit
            | Failure::NotProcessed
            | Failure::Reset
            | Failure::FirstByteTimeout
            | Failure::InvalidResponse
            | Failure::ResponseBegun => Retry::Next,
        }
    }
}

/// What a server can have seen of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Nothing.
    Unseen,
    /// Very likely nothing.
    ProbablyUnseen,
    /// It may have acted on it.
    Seen,
    /// It acted on it, and the client has seen that.
    Answered,
}

/// Whom a failure speaks against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The server.
    Server,
    /// Nobody.
    Nobody,
}

/// Whether the request's body can be sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// There is none.
    None,
    /// All that was taken from the client so far is still there.
    Buffered,
    /// Part of it has been sent and is gone.
    Streamed,
}

/// A failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Where it failed.
    pub failure: Failure,
    /// The request's method.
    pub method: Method,
    /// Whether its body can be sent once more.
    pub body: Body,
    /// Attempts made before this one.
    pub earlier: u8,
}

/// What to do after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Choose another server.
    Next,
    /// The same server, on a fresh connection.
    Same,
    /// Answer the client.
    GiveUp(GiveUp),
}

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveUp {
    /// The client has part of the response.
    ResponseBegun,
    /// The route allows no retry after such a failure.
    Policy,
    /// The server may have seen the request, and doing it twice is not as good as doing it once.
    NotIdempotent,
    /// The body was streamed and is gone.
    BodyGone,
    /// The route's attempts are used up.
    Attempts,
    /// The group's retry budget is used up.
    Budget,
}

/// Decides what to do after a failed attempt; takes from the budget only what is then used.
pub fn after(attempt: Attempt, settings: &settings::Retry, budget: &Budget, now: Stamp) -> Retry {
    match refusal(attempt, *settings) {
        Some(reason) => Retry::GiveUp(reason),
        None if budget.withdraw(now).is_err() => Retry::GiveUp(GiveUp::Budget),
        None => attempt.failure.next(),
    }
}

fn refusal(attempt: Attempt, settings: settings::Retry) -> Option<GiveUp> {
    let idempotent = attempt.method.is_idempotent();
    let exposure = match (attempt.failure.exposure(), settings.when) {
        (Exposure::Answered, _) => Some(GiveUp::ResponseBegun),
        (_, RetryWhen::Never) | (Exposure::Seen, RetryWhen::Unseen) => Some(GiveUp::Policy),
        (Exposure::Unseen, _) => None,
        (Exposure::ProbablyUnseen | Exposure::Seen, _) if idempotent => None,
        (Exposure::ProbablyUnseen | Exposure::Seen, _) => Some(GiveUp::NotIdempotent),
    };
    exposure
        .or_else(|| (attempt.body == Body::Streamed).then_some(GiveUp::BodyGone))
        .or_else(|| (attempt.earlier >= settings.attempts_max).then_some(GiveUp::Attempts))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILURES: [Failure; 11] = [
        Failure::ConnectRefused,
        Failure::ConnectTimeout,
        Failure::Tls,
        Failure::AtLimit,
        Failure::StaleUnwritten,
        Failure::StaleWritten,
        Failure::NotProcessed,
        Failure::Reset,
        Failure::FirstByteTimeout,
        Failure::InvalidResponse,
        Failure::ResponseBegun,
    ];

    fn decide(failure: Failure, method: Method, body: Body, earlier: u8, when: RetryWhen) -> Retry {
        let settings = settings::Retry { when, attempts_max: 2 };
        let attempt = Attempt { failure, method, body, earlier };
        after(attempt, &settings, &Budget::new(0.2), Stamp::from_nanos(1))
    }

    #[test]
    fn what_was_unseen_goes_again_and_what_was_seen_only_if_idempotent() {
        use Failure::*;
        use GiveUp::{NotIdempotent, Policy};
        use RetryWhen::{Idempotent, Unseen};
        let check = |failure, method, when, expected| {
            let got = decide(failure, method, Body::None, 0, when);
            assert_eq!(got, expected, "{failure:?} of {method:?} under {when:?}");
        };
        let (get, post) = (Method::Get, Method::Post);
        for when in [Unseen, Idempotent] {
            for method in [get, post, Method::Patch, Method::Other] {
                check(ConnectRefused, method, when, Retry::Next);
                check(ConnectTimeout, method, when, Retry::Next);
                check(Tls, method, when, Retry::Next);
                check(AtLimit, method, when, Retry::Next);
                check(NotProcessed, method, when, Retry::Next);
                check(StaleUnwritten, method, when, Retry::Same);
            }
            check(StaleWritten, get, when, Retry::Same);
            check(StaleWritten, Method::Put, when, Retry::Same);
            check(StaleWritten, Method::Delete, when, Retry::Same);
            check(StaleWritten, post, when, Retry::GiveUp(NotIdempotent));
            check(StaleWritten, Method::Other, when, Retry::GiveUp(NotIdempotent));
        }
        for failure in [Reset, FirstByteTimeout, InvalidResponse] {
            check(failure, get, Unseen, Retry::GiveUp(Policy));
            check(failure, get, Idempotent, Retry::Next);
            check(failure, post, Idempotent, Retry::GiveUp(NotIdempotent));
        }
    }

    #[test]
    fn a_post_that_was_written_is_never_written_again() {
        for failure in FAILURES.into_iter().filter(|it| it.exposure() != Exposure::Unseen) {
            for when in [RetryWhen::Never, RetryWhen::Unseen, RetryWhen::Idempotent] {
                for body in [Body::None, Body::Buffered, Body::Streamed] {
                    for method in [Method::Post, Method::Patch, Method::Connect, Method::Other] {
                        let got = decide(failure, method, body, 0, when);
                        assert!(matches!(got, Retry::GiveUp(_)), "{failure:?} {when:?} {got:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_is_retried_after_the_response_began_or_under_never() {
        for failure in FAILURES {
            let got = decide(failure, Method::Get, Body::None, 0, RetryWhen::Never);
            assert!(matches!(got, Retry::GiveUp(_)), "{failure:?}");
        }
        let got = decide(Failure::ResponseBegun, Method::Get, Body::None, 0, RetryWhen::Idempotent);
        assert_eq!(got, Retry::GiveUp(GiveUp::ResponseBegun));
    }

    #[test]
    fn a_body_has_to_be_there_still() {
        let check = |body, expected| {
            let got = decide(Failure::ConnectRefused, Method::Post, body, 0, RetryWhen::Unseen);
            assert_eq!(got, expected);
        };
        check(Body::None, Retry::Next);
        check(Body::Buffered, Retry::Next);
        check(Body::Streamed, Retry::GiveUp(GiveUp::BodyGone));
    }

    #[test]
    fn attempts_and_budget_have_an_end() {
        let attempt = |earlier| {
            decide(Failure::ConnectRefused, Method::Get, Body::None, earlier, RetryWhen::Unseen)
        };
        assert_eq!(attempt(1), Retry::Next);
        assert_eq!(attempt(2), Retry::GiveUp(GiveUp::Attempts));

        let budget = Budget::new(0.0);
        let settings = settings::Retry { when: RetryWhen::Unseen, attempts_max: 2 };
        let attempt = Attempt {
            failure: Failure::ConnectRefused,
            method: Method::Get,
            body: Body::None,
            earlier: 0,
        };
        let now = Stamp::from_nanos(1);
        let allowed =
            (0..100).take_while(|_| after(attempt, &settings, &budget, now) == Retry::Next).count();
        assert_eq!(allowed, 10);
        assert_eq!(after(attempt, &settings, &budget, now), Retry::GiveUp(GiveUp::Budget));
    }

    #[test]
    fn old_connections_are_nobodys_fault() {
        assert_eq!(Failure::StaleWritten.blame(), Blame::Nobody);
        assert_eq!(Failure::ConnectRefused.blame(), Blame::Server);
        assert_eq!(Failure::ResponseBegun.blame(), Blame::Server);
    }
}
