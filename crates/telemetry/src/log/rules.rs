//! Lines for matched rules of the WAF: one for each, as ModSecurity's error log words it, or as JSON.
//!
//! What is in brackets can be told apart by programs that read such logs (`[id "942100"]`); text of
//! clients stands in quotes and is escaped, so that it cannot forge a bracket's end or a line.
//! A log that does not keep queries keeps nothing of what was matched either: it may be a part of one.

use super::escape;
use super::field::Line;
use super::number;
use super::time::Times;
use super::value::Value;
use super::view::{RuleEffect, RuleView};

/// Writes a line for each rule that matched.
pub(super) fn text(line: &Line<'_>, times: &mut Times, out: &mut Vec<u8>) {
    for rule in line.rules() {
        out.push(b'[');
        Value::TimeIso(line.began_millis()).text(out, times);
        out.extend_from_slice(b"] [client ");
        line.client().text(out, times);
        out.extend_from_slice(b"] ");
        match rule.effect {
            RuleEffect::Noted => out.extend_from_slice(b"Warning."),
            RuleEffect::Stopped => {
                out.extend_from_slice(b"Stopped with status ");
                number::decimal(out, line.status().into());
                out.extend_from_slice(b" in phase ");
                number::decimal(out, rule.phase.into());
                out.push(b'.');
            }
            RuleEffect::WouldStop => out.extend_from_slice(b"Would have been stopped."),
        }
        if !rule.operator.is_empty() {
            out.extend_from_slice(b" Matched \"");
            escape::text(out, rule.operator.as_bytes());
            out.extend_from_slice(b"\" at ");
            escape::text(out, rule.variable);
            if !line.matched(rule.value).is_empty() {
                out.extend_from_slice(b" (\"");
                escape::text(out, line.matched(rule.value));
                out.extend_from_slice(b"\")");
            }
            out.push(b'.');
        }
        let mut bracket = |name: &str, value: &[u8]| {
            if !value.is_empty() {
                out.extend_from_slice(b" [");
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b" \"");
                escape::text(out, value);
                out.extend_from_slice(b"\"]");
            }
        };
        let (mut place, mut id) = (Vec::new(), Vec::new());
        number::decimal(&mut place, rule.line.into());
        number::decimal(&mut id, rule.id);
        bracket("file", rule.file.as_bytes());
        bracket("line", &place);
        bracket("id", &id);
        bracket("msg", rule.message);
        bracket("data", line.matched(rule.data));
        bracket("severity", rule.severity.as_bytes());
        bracket("ver", rule.version.as_bytes());
        for tag in rule.tags {
            bracket("tag", tag.as_bytes());
        }
        bracket("hostname", line.host());
        bracket("uri", &line.uri());
        bracket("unique_id", &line.id());
        out.push(b'\n');
    }
}

/// Writes a JSON object for each rule that matched.
pub(super) fn json(line: &Line<'_>, times: &mut Times, out: &mut Vec<u8>) {
    for rule in line.rules() {
        let start = out.len();
        let mut member = |name: &str, value: Value<'_>| {
            if !value.is_absent() {
                out.extend_from_slice(b",\"");
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b"\":");
                value.json(out, times);
            }
        };
        let RuleView { id, line: place, phase, .. } = *rule;
        member("time", Value::TimeIso(line.began_millis()));
        member("request_id", Value::Text(&line.id()));
        member("client_addr", line.client());
        member("host", Value::Text(line.host()));
        member("uri", Value::Text(&line.uri()));
        member("status", Value::Number(line.status().into()));
        member("id", Value::Number(id));
        member("msg", Value::Text(rule.message));
        member("data", Value::Text(line.matched(rule.data)));
        member("severity", Value::Text(rule.severity.as_bytes()));
        member("phase", Value::Number(phase.into()));
        member("effect", Value::Token(rule.effect.as_str()));
        member("operator", Value::Text(rule.operator.as_bytes()));
        member("variable", Value::Text(rule.variable));
        member("value", Value::Text(line.matched(rule.value)));
        member("ver", Value::Text(rule.version.as_bytes()));
        member("file", Value::Text(rule.file.as_bytes()));
        member("line", Value::Number(place.into()));
        out.extend_from_slice(b",\"tags\":[");
        for (at, tag) in rule.tags.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.push(b'"');
            escape::json(out, tag.as_bytes());
            out.push(b'"');
        }
        out.extend_from_slice(b"]}\n");
        // The first member's comma is where the object opens.
        out[start] = b'{';
    }
}

#[cfg(test)]
mod tests {
    use crate::log::{
        AddressPrivacy, Format, Keep, LogView, Privacy, Recording, RuleEffect, RuleView,
    };
    use crate::record::{Record, RequestId};

    use super::super::field::Line;
    use super::super::time::Times;

    fn lines(format: &str, privacy: &Privacy) -> String {
        let tags = ["attack-sqli".to_owned(), "paranoia-level/1".to_owned()];
        let found = RuleView {
            id: 942_100,
            file: "/crs/rules/REQUEST-942.conf",
            line: 66,
            phase: 2,
            message: b"SQL Injection",
            data: b"s&1\n[id \"1\"] \"c\"",
            severity: "CRITICAL",
            tags: &tags,
            version: "OWASP_CRS/4.25.0",
            variable: b"ARGS:q",
            value: b"1' or 1=1",
            operator: "@detectSQLi",
            effect: RuleEffect::Noted,
        };
        let decided = RuleView {
            id: 949_110,
            message: b"Score 5",
            phase: 2,
            effect: RuleEffect::Stopped,
            ..RuleView::default()
        };
        let view = LogView {
            client_addr: Some([192, 0, 2, 7].into()),
            host: b"shop.example",
            path: b"/find",
            query: b"q=1",
            rules: &[found, decided],
            ..LogView::default()
        };
        let mut record = Record::new(RequestId(42));
        record.status = 403;
        record.unix_millis = 971_186_136_000;
        let mut out = Vec::new();
        let recording = Recording::default();
        let line = Line::new(&record, &view, privacy, &recording);
        Format::named(format).unwrap().write(&line, &mut Times::new(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_matched_rule_has_a_line_that_cannot_be_forged() {
        assert_eq!(
            lines("waf", &Privacy::default()),
            "[2000-10-10T13:55:36.000Z] [client 192.0.2.7] Warning. Matched \"@detectSQLi\" at \
             ARGS:q (\"1' or 1=1\"). [file \"/crs/rules/REQUEST-942.conf\"] [line \"66\"] \
             [id \"942100\"] [msg \"SQL Injection\"] [data \"s&1\\n[id \\\"1\\\"] \\\"c\\\"\"] \
             [severity \"CRITICAL\"] [ver \"OWASP_CRS/4.25.0\"] [tag \"attack-sqli\"] \
             [tag \"paranoia-level/1\"] [hostname \"shop.example\"] [uri \"/find?q=1\"] \
             [unique_id \"000000000000002a\"]\n\
             [2000-10-10T13:55:36.000Z] [client 192.0.2.7] Stopped with status 403 in phase 2. \
             [line \"0\"] [id \"949110\"] [msg \"Score 5\"] [hostname \"shop.example\"] \
             [uri \"/find?q=1\"] [unique_id \"000000000000002a\"]\n"
        );
    }

    #[test]
    fn a_log_without_queries_keeps_nothing_of_what_matched() {
        let privacy =
            Privacy { address: AddressPrivacy::Drop, query: Keep::No, ..Privacy::default() };
        for format in ["waf", "waf_json"] {
            let lines = lines(format, &privacy);
            for secret in ["192.0.2.7", "1=1", "s&1", "q=1"] {
                assert!(!lines.contains(secret), "{secret} in {lines}");
            }
            assert_eq!(lines.lines().count(), 2);
        }
    }

    #[test]
    fn json_says_the_same() {
        let lines = lines("waf_json", &Privacy::default());
        let first = lines.lines().next().unwrap();
        assert!(first.starts_with("{\"time\":\"2000-10-10T13:55:36.000Z\",\"request_id\":"));
        assert!(first.contains("\"id\":942100,\"msg\":\"SQL Injection\""), "{first}");
        assert!(first.ends_with("\"tags\":[\"attack-sqli\",\"paranoia-level/1\"]}"), "{first}");
    }
}
