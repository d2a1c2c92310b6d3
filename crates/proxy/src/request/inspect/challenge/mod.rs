//! A challenge instead of an answer: the client's browser proves some work and comes again.
//!
//! A route asks for a [`Pass`] where a request's anomaly score lies below what is denied but is not
//! low either, or where the process runs out of connections. Who has none gets a page that finds a
//! proof, keeps it in a cookie and loads again. Nothing is kept here: a pass says by itself whom it was
//! made for and until when.
//!
//! A pass opens no way past a rule that denies: it is asked about only where nothing was denied.

mod pass;

use tidegate_http::Method;
use tidegate_http::field::Known;
use tidegate_http::target::Scheme;
use tidegate_telemetry::record::{WafMode, WafVerdict};
use tidegate_telemetry::{Outcome, Side};
use tidegate_waf::inspection::Mode;

use self::pass::{Bearer, Pass, Ticket};
use super::{Exchange, score};
use crate::request::Surroundings;
use crate::request::answer::Answer;
use crate::request::route::Routed;
use crate::settings::{Challenge, Inspect};
use crate::upstream::sticky::cookie;

/// The cookie that holds a pass.
const COOKIE: &str = "tidegate_pass";
/// The page, with places for what differs: `{nonce}`, `{ticket}`, `{bits}`, `{cookie}`, `{then}`, `{id}`.
const PAGE: &str = include_str!("page.html");
/// What a client gets that shows no pages.
const PLAIN: &[u8] =
    b"This request needs a pass. A browser that opens a page of this site gets one.\n";

/// Whether so many are here that this request needs a pass, and has none.
pub(super) fn under_pressure(
    around: &Surroundings<'_>,
    exchange: &Exchange,
    routed: &Routed<'_>,
    inspect: &Inspect,
) -> bool {
    let Some(challenge) = &inspect.challenge else { return false };
    let Some(percent) = challenge.pressure_from else { return false };
    let (open, max) = (around.worker.connections_open(), around.plan.process.connections_max);
    inspect.policy.mode() == Mode::Block
        && is_pressed(open, max, percent)
        && !has_pass(around, exchange, routed, challenge)
}

/// Whether this many connections are the share, or more.
fn is_pressed(open: usize, max: usize, percent: u8) -> bool {
    open as u64 * 100 >= max as u64 * u64::from(percent)
}

/// Whether rules, which have not denied it, find this request so odd that it needs a pass, and it has
/// none.
pub(super) fn for_score(
    around: &Surroundings<'_>,
    exchange: &Exchange,
    routed: &Routed<'_>,
    inspect: &Inspect,
) -> bool {
    let Some(challenge) = &inspect.challenge else { return false };
    let Some(from) = challenge.score_from else { return false };
    let Some(inspecting) = exchange.inspecting.as_deref() else { return false };
    let Some(inspection) = &inspecting.inspection else { return false };
    inspecting.mode == Mode::Block
        && score(inspection) >= from
        && !has_pass(around, exchange, routed, challenge)
}

fn has_pass(
    around: &Surroundings<'_>,
    exchange: &Exchange,
    routed: &Routed<'_>,
    challenge: &Challenge,
) -> bool {
    let Some(value) = cookie(&exchange.request.headers, COOKIE.as_bytes()) else { return false };
    let now_s = around.worker.unix_millis() / 1000;
    Pass::read(value).is_some_and(|pass| {
        pass.holds(&challenge.key, &bearer(exchange, routed), challenge.bits, now_s)
    })
}

fn bearer<'a>(exchange: &'a Exchange, routed: &'a Routed<'_>) -> Bearer<'a> {
    Bearer {
        site: &routed.site.settings.name,
        address: exchange.client_addr,
        user_agent: exchange.request.headers.first(Known::UserAgent).unwrap_or_default(),
    }
}

/// What the page does once it has a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It loads again.
    Reload,
    /// It asks to send the form again: what was sent is not kept.
    Resend,
}

/// The challenge itself: a page for whom can show one, a word for others.
pub(super) fn answer(
    around: &Surroundings<'_>,
    exchange: &mut Exchange,
    routed: &Routed<'_>,
    inspect: &Inspect,
) -> Answer {
    exchange.record.end(Outcome::Denied, Side::Downstream, "waf_challenge");
    exchange.record.waf.mode = WafMode::Block;
    exchange.record.waf.verdict = WafVerdict::Challenge;
    let mut fields = vec![("Cache-Control", "no-store".to_owned())];
    let shown = inspect.challenge.as_ref().filter(|_| takes_html(exchange)).and_then(|challenge| {
        let expiry_s = around.worker.unix_millis() / 1000 + challenge.lifetime.as_secs();
        Ticket::issue(&challenge.key, &bearer(exchange, routed), challenge.bits, expiry_s)
            .map(|ticket| (challenge, ticket))
    });
    let Some((challenge, ticket)) = shown else {
        fields.push(("Tidegate-Challenge", "browser".to_owned()));
        return Answer::challenge("text/plain; charset=utf-8", PLAIN.to_vec(), fields);
    };
    let then = if exchange.request.method == Method::Get { Then::Reload } else { Then::Resend };
    // The ticket's own nonce is as good as another: who can read it can read the page.
    let nonce = ticket.nonce();
    fields.push((
        "Content-Security-Policy",
        format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
        ),
    ));
    fields.push(("X-Robots-Tag", "noindex".to_owned()));
    let lifetime_s = challenge.lifetime.as_secs();
    let secure = if exchange.scheme == Scheme::Https { "; Secure" } else { "" };
    let cookie = format!("Path=/; Max-Age={lifetime_s}; SameSite=Lax{secure}");
    let page = PAGE
        .replace("{nonce}", &nonce)
        .replace("{ticket}", &ticket.text())
        .replace("{bits}", &challenge.bits.to_string())
        .replace("{name}", COOKIE)
        .replace("{cookie}", &cookie)
        .replace(
            "{then}",
            match then {
                Then::Reload => "reload",
                Then::Resend => "resend",
            },
        )
        .replace("{id}", &String::from_utf8_lossy(&exchange.record.id.hex()));
    Answer::challenge("text/html; charset=utf-8", page.into_bytes(), fields)
}

/// Whether the client shows pages, and would load this one in the place of what it asked for.
fn takes_html(exchange: &Exchange) -> bool {
    let request = &exchange.request;
    matches!(request.method, Method::Get | Method::Post)
        && request.headers.all(Known::Accept).any(|value| {
            value.split(|&byte| byte == b',').any(|kind| {
                kind.trim_ascii_start()
                    .get(..9)
                    .is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/html"))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_connections_is_pressure() {
        let check =
            |open, max, percent, expected| assert_eq!(is_pressed(open, max, percent), expected);
        check(0, 100, 1, false);
        check(79, 100, 80, false);
        check(80, 100, 80, true);
        check(1, 1, 100, true);
        check(usize::MAX / 200, usize::MAX / 100, 49, true);
    }

    #[test]
    fn only_those_who_show_pages_get_one() {
        let check = |method: &[u8], accept: Option<&str>, expected: bool| {
            let mut exchange = Exchange::default();
            exchange.request.set_method(method);
            if let Some(accept) = accept {
                exchange.request.headers.push(b"Accept", accept.as_bytes());
            }
            assert_eq!(takes_html(&exchange), expected, "{accept:?}");
        };
        check(b"GET", Some("text/html,application/xhtml+xml,*/*;q=0.8"), true);
        check(b"GET", Some("application/xhtml+xml, TEXT/HTML;q=0.9"), true);
        check(b"POST", Some("text/html"), true);
        check(b"PUT", Some("text/html"), false);
        check(b"GET", Some("*/*"), false);
        check(b"GET", Some("application/json"), false);
        check(b"GET", None, false);
    }

    #[test]
    fn the_page_has_a_place_for_all_that_differs() {
        for place in ["nonce", "ticket", "bits", "name", "cookie", "then", "id"] {
            assert!(PAGE.contains(&format!("{{{place}}}")), "{place}");
        }
    }
}
