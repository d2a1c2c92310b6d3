//! Requests run through the rules that a configuration gives their site and route.
//!
//! Site and route are found by the gate's own tables, and the inspection goes the gate's way: the same
//! view of the request, the same limits, phase after phase. What rules remember between requests
//! is not there, and nobody outside is asked.

use std::net::IpAddr;
use std::sync::Arc;

use tidegate_http::target::{self, PathForm, Scheme};
use tidegate_proxy::forwarded::{Origin, Peer, TrustedProxies};
use tidegate_proxy::inspection::view;
use tidegate_proxy::plan::{RouteMatch, RouteTable, SiteTable};
use tidegate_proxy::settings::{HttpsRedirect, Inspect, Settings, Site};
use tidegate_waf::body::End;
use tidegate_waf::inspection::{
    Connection, Effect, Extent, Inspection, Inspector, MatchedRule, Mode, Moment, ResponseHead,
    Trace, Verdict,
};
use tidegate_waf::program::Policy;
use tidegate_waf::seclang::setting::{LimitAction, Switch};
use tidegate_waf::variable::Phase;

use super::subject::{self, Subject};

/// Bytes of a body that are fed at once, as the gate reads them.
const PIECE_BYTES: usize = 16 * 1024;

/// The rules of a configuration, by site and route.
pub(super) struct Rules {
    settings: Settings,
    sites: SiteTable,
    routes: Vec<RouteTable>,
    trusted: TrustedProxies,
}

/// Where a request belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    /// The site, by index.
    pub(super) site: usize,
    /// The route of the site, by index.
    pub(super) route: usize,
}

/// Why no rule looks at a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// The gate answers it by itself before; the words for that.
    Answered(String),
    /// The route has no firewall.
    Off(Place),
}

impl Rules {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            sites: SiteTable::new(settings.sites.iter().map(|site| site.hosts.as_slice())),
            routes: settings.sites.iter().map(|site| RouteTable::new(&site.routes)).collect(),
            trusted: TrustedProxies::new(&settings.trusted_proxies),
            settings,
        }
    }

    pub(super) fn site(&self, place: Place) -> &Site {
        &self.settings.sites[place.site]
    }

    /// The rules for a place that has some.
    fn inspect(&self, place: Place) -> Option<&Inspect> {
        self.site(place).routes[place.route].inspect.as_ref()
    }

    /// Where a request belongs, and the rules that hold there.
    pub(super) fn find(&self, subject: &Subject) -> Result<(Place, &Arc<Policy>), Unseen> {
        let answered = |words: &str| Err(Unseen::Answered(words.to_owned()));
        let request = &subject.request;
        let Some(index) = self.sites.find(&request.host) else {
            return answered("404: no site has this host");
        };
        let site = &self.settings.sites[index];
        if request.headers.look_alike().is_some() {
            return answered("400: a field passes for another one");
        }
        let mut normal = Vec::new();
        let path = match target::normalize_path(request.path(), &mut normal) {
            Ok(PathForm::Normal) => request.path(),
            Ok(PathForm::Rewritten) => normal.as_slice(),
            Err(error) => return answered(&format!("400: {error}")),
        };
        let host = site.canonical_host.as_deref().map(str::as_bytes);
        let is_plain = self.origin(subject).1 == Scheme::Http;
        if matches!(site.https, HttpsRedirect::To(_)) && is_plain {
            return answered("308: the site sends plain HTTP to https");
        }
        if host.is_some_and(|host| *host != *request.host) {
            return answered("308: the site sends this host to its canonical one");
        }
        match self.routes[index].find(path, request.method, request.method_bytes()) {
            RouteMatch::MethodNotAllowed => answered("405: no route takes this method"),
            RouteMatch::NotFound => answered("404: no route covers this path"),
            RouteMatch::Found(route) => {
                let place = Place { site: index, route };
                let inspect = self.inspect(place).ok_or(Unseen::Off(place))?;
                Ok((place, &inspect.policy))
            }
        }
    }

    /// The score from which a request of this place has to come with a pass.
    fn challenge_from(&self, subject: &Subject) -> Option<i64> {
        let (place, _) = self.find(subject).ok()?;
        self.inspect(place)?.challenge.as_ref()?.score_from.map(i64::from)
    }

    /// The client behind trusted proxies, and the scheme it used.
    fn origin(&self, subject: &Subject) -> (IpAddr, Scheme) {
        let peer = Peer::new(subject.peer);
        let origin = Origin::of(&peer, subject.scheme, &subject.request, &self.trusted);
        (origin.client.unwrap_or(view::NOBODY), origin.scheme)
    }

    /// Runs a request through a policy, which may be another one than its place has.
    pub(super) fn run(
        &self,
        subject: &Subject,
        policy: &Arc<Policy>,
        trace: Trace,
        inspector: &mut Inspector,
    ) -> Outcome {
        let mut inspection = Inspection::begin(policy, None, inspector);
        inspection.set_trace(trace);
        inspection.connection(&Connection {
            client: self.origin(subject).0,
            client_port: 0,
            server: view::NOBODY,
            server_port: subject.port,
        });
        let (protocol, id) = (subject.protocol().as_str(), subject.id.as_bytes());
        view::request_head(&mut inspection, &subject.request, protocol, id, &mut Vec::new());
        let moment = Moment { epoch_ms: subject.unix_millis, elapsed_us: 0 };
        let challenge = self.challenge_from(subject);
        let mut run = Running { inspection, inspector, moment, challenge, ended: Ended::No };
        run.request(subject);
        if let Some(answer) = &subject.answer {
            run.response(answer);
        }
        run.phase(Phase::Logging);
        run.outcome()
    }
}

/// An inspection on its way.
struct Running<'a> {
    inspection: Inspection,
    inspector: &'a mut Inspector,
    moment: Moment,
    /// The score from which a browser has to prove some work.
    challenge: Option<i64>,
    ended: Ended,
}

/// Whether something has stopped the transaction.
enum Ended {
    No,
    By(Stop, Phase),
    /// It is answered with a challenge.
    Challenged,
}

impl Running<'_> {
    fn phase(&mut self, phase: Phase) {
        let verdict = self.inspection.run(phase, self.moment, self.inspector);
        let stop = match verdict {
            Verdict::Pass => return,
            Verdict::Deny { status, rule } => Stop { how: How::Deny(status), rule },
            Verdict::Drop { rule } => Stop { how: How::Drop, rule },
            Verdict::Redirect { status, location, rule } => {
                Stop { how: How::Redirect(status, location), rule }
            }
        };
        self.stop(stop, phase);
    }

    fn stop(&mut self, stop: Stop, phase: Phase) {
        if let Ended::No = self.ended {
            self.ended = Ended::By(stop, phase);
        }
    }

    fn goes_on(&self) -> bool {
        matches!(self.ended, Ended::No)
    }

    fn request(&mut self, subject: &Subject) {
        self.phase(Phase::RequestHeaders);
        if !self.goes_on() {
            return;
        }
        let mut end = match subject.extent {
            subject::Extent::Whole => End::Complete,
            subject::Extent::Beginning => End::Truncated,
        };
        if self.inspection.wants_request_body() == Switch::On && !subject.body.is_empty() {
            let (limit, over) = self.inspection.request_body_limit();
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let mut body = subject.body.as_slice();
            if body.len() > limit {
                if over == LimitAction::Reject {
                    let stop = Stop { how: How::Deny(413), rule: 0 };
                    return self.stop(stop, Phase::RequestBody);
                }
                body = &body[..limit];
                end = End::Truncated;
            }
            for piece in body.chunks(PIECE_BYTES) {
                let _ = self.inspection.request_body(piece);
            }
        }
        self.inspection.request_body_end(end);
        self.phase(Phase::RequestBody);
        let odd = self.inbound().zip(self.challenge).is_some_and(|(score, from)| score >= from);
        if self.goes_on() && self.inspection.mode() == Mode::Block && odd {
            self.ended = Ended::Challenged;
        }
    }

    /// The inbound score so far.
    fn inbound(&self) -> Option<i64> {
        let names = ["blocking_inbound_anomaly_score", "anomaly_score"];
        names.iter().find_map(|name| self.inspection.tx_number(name))
    }

    fn response(&mut self, answer: &subject::Answer) {
        if !self.goes_on() {
            return;
        }
        let head = &answer.head;
        let fields = head.headers.iter().map(|field| (field.name, field.value));
        let protocol = head.version.name().as_bytes();
        self.inspection.response_head(ResponseHead { status: head.status, protocol }, fields);
        self.phase(Phase::ResponseHeaders);
        if !self.goes_on() {
            return;
        }
        if !answer.body.is_empty() && self.inspection.wants_response_body() == Switch::On {
            let _ = self.inspection.response_body(&answer.body);
            if self.inspection.response_body_end() == Extent::Exceeds {
                return self.stop(Stop { how: How::Deny(502), rule: 0 }, Phase::ResponseBody);
            }
        }
        self.phase(Phase::ResponseBody);
    }

    fn outcome(self) -> Outcome {
        let inbound = self.inbound();
        let Self { inspection, inspector, ended, .. } = self;
        let number = |names: &[&str]| names.iter().find_map(|name| inspection.tx_number(name));
        let outbound = number(&["blocking_outbound_anomaly_score", "outbound_anomaly_score"]);
        let rules = inspection.matched_rules().to_vec();
        let would = rules.iter().find(|rule| rule.effect == Effect::WouldDecide);
        let decision = match ended {
            Ended::By(stop, phase) => Decision::Stopped(stop, phase),
            Ended::Challenged => Decision::Challenged,
            Ended::No => match would {
                Some(rule) => Decision::Would(rule.rule.id, rule.phase),
                None => Decision::Pass,
            },
        };
        let outcome = Outcome {
            decision,
            mode: inspection.mode(),
            inbound: Score { score: inbound, from: number(&["inbound_anomaly_score_threshold"]) },
            outbound: Score {
                score: outbound,
                from: number(&["outbound_anomaly_score_threshold"]),
            },
            rules,
        };
        inspection.end(inspector);
        outcome
    }
}

/// What became of a request.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) decision: Decision,
    /// What was done about matches in the end.
    pub(super) mode: Mode,
    pub(super) inbound: Score,
    pub(super) outbound: Score,
    /// The rules that matched, in the order of their matching.
    pub(super) rules: Vec<MatchedRule>,
}

/// An anomaly score, as the Core Rule Set counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Score {
    /// The score; nothing if no rule counts.
    pub(super) score: Option<i64>,
    /// From which score on there is a denial.
    pub(super) from: Option<i64>,
}

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It passes.
    Pass,
    /// It passes because the mode is `detect`; this rule would have stopped it in this phase.
    Would(u64, Phase),
    /// Its score asks for a pass, which a browser has to earn.
    Challenged,
    /// It is stopped in this phase.
    Stopped(Stop, Phase),
}

/// How a request is stopped, and by which rule; 0 is a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) how: How,
    pub(super) rule: u64,
}

/// How a request is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// It is answered with this status.
    Deny(u16),
    /// Its connection is closed.
    Drop,
    /// It is sent elsewhere, with this status.
    Redirect(u16, Vec<u8>),
}

impl Decision {
    /// The rule that keeps the request from passing, or would; 0 is a limit or a challenge.
    pub(super) fn rule(&self) -> Option<u64> {
        match self {
            Self::Pass => None,
            Self::Would(rule, _) => Some(*rule),
            Self::Challenged => Some(0),
            Self::Stopped(stop, _) => Some(stop.rule),
        }
    }

    /// The status that the client gets for it, if the gate answers.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Pass | Self::Would(..) | Self::Challenged => None,
            Self::Stopped(stop, _) => match stop.how {
                How::Deny(status) | How::Redirect(status, _) => Some(status),
                How::Drop => None,
            },
        }
    }

    /// The word, and the status if there is one.
    pub(super) fn words(&self) -> String {
        match self.status() {
            Some(status) => format!("{} {status}", self.word()),
            None => self.word().to_owned(),
        }
    }

    /// As the access log has it.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Would(..) => "would_deny",
            Self::Challenged => "challenge",
            Self::Stopped(stop, _) => match stop.how {
                How::Deny(_) => "deny",
                How::Drop => "drop",
                How::Redirect(..) => "redirect",
            },
        }
    }
}
