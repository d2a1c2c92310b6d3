use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::{AuditClient, AuditContext, AuditKeeps};
use crate::inspection::{Connection, Inspection, Inspector, Mode, Moment, RequestHead};
use crate::program::{compile, compile_policy};
use crate::seclang::setting::Switch;
use crate::seclang::{Entry, Memory, parse};
use crate::variable::Phase;

fn audit(format: &str) -> String {
    audit_with(format, AuditKeeps::ALL)
}

fn audit_with(format: &str, keeps: AuditKeeps<'_>) -> String {
    let rules = format!(
        "SecRuleEngine On\nSecAuditEngine RelevantOnly\nSecAuditLogFormat {format}\nSecAuditLogParts ABCFHZ\n\
         SecRequestBodyAccess On\n\
         SecRule ARGS \"@contains evil\" \"id:7,phase:2,deny,log,auditlog,severity:CRITICAL,tag:'a',\
         msg:'Evil',logdata:'in %{{MATCHED_VAR_NAME}}: %{{MATCHED_VAR}}',sanitiseArg:pin\""
    );
    let files = Memory::default();
    let entry = Entry::Text { path: "rules.conf", text: rules.as_bytes() };
    let (document, _) = parse(&files, entry).expect("rules");
    let program = Arc::new(compile(&document, &files).expect("a program").program);
    let policy = Arc::new(compile_policy(&program, Mode::Block, "", "policy").expect("a policy"));
    let mut inspector = Inspector::new();
    let mut inspection = Inspection::begin(&policy, None, &mut inspector);
    let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    inspection.connection(&Connection {
        client: address,
        client_port: 5000,
        server: IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)),
        server_port: 80,
    });
    let head = RequestHead {
        method: b"POST",
        target: b"/pay?user_password=s%65cret&x=1",
        protocol: b"HTTP/1.1",
        host: b"example.org",
        id: b"abc",
    };
    let fields: [(&[u8], &[u8]); 4] = [
        (b"host", b"example.org"),
        (b"authorization", b"Basic Zm9vOmJhcg=="),
        (b"cookie", b"session=topsecret"),
        (b"content-type", b"application/x-www-form-urlencoded"),
    ];
    inspection.request_head(head, fields.into_iter());
    let moment = Moment { epoch_ms: 1_790_000_000_000, elapsed_us: 1 };
    let _ = inspection.run(Phase::RequestHeaders, moment, &mut inspector);
    let _ = inspection.request_body(b"pin=4711&q=evil+4711");
    inspection.request_body_end(crate::body::End::Complete);
    let _ = inspection.run(Phase::RequestBody, moment, &mut inspector);
    assert!(inspection.is_audited(403));
    let mut out = Vec::new();
    let context = AuditContext {
        epoch_ms: 1_790_000_000_000,
        status: 403,
        producer: "Tidegate",
        intercepted: Switch::On,
        keeps,
    };
    inspection.write_audit(context, &mut out);
    String::from_utf8(out).expect("text")
}

#[test]
fn no_secret_is_shown_in_any_format() {
    for format in ["JSON", "Native"] {
        let shown = audit(format);
        for secret in ["4711", "s%65cret", "secret&", "Zm9vOmJhcg", "topsecret"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
        for kept in ["Evil", "ARGS:q", "evil ****", "192.0.2.1", "/pay?user_password=********&x=1"]
        {
            assert!(shown.contains(kept), "{kept} not in {shown}");
        }
    }
}

#[test]
fn what_a_log_does_not_keep_is_nowhere() {
    let client = AuditClient::Masked(b"192.0.2.0");
    let keeps = AuditKeeps { client, query: Switch::Off, dropped_fields: &[b"host"] };
    for format in ["JSON", "Native"] {
        let shown = audit_with(format, keeps);
        for dropped in ["192.0.2.1", "5000", "evil ****", "q=evil", "x=1", "example.org"] {
            assert!(!shown.contains(dropped), "{dropped} in {shown}");
        }
        for kept in ["192.0.2.0", "/pay", "Evil", "ARGS:q", "content-type"] {
            assert!(shown.contains(kept), "{kept} not in {shown}");
        }
    }
}

#[test]
fn a_relevant_status_is_one_that_the_pattern_matches() {
    let statuses = |source: &str| {
        let rules = format!("SecAuditLogRelevantStatus \"{source}\"");
        let files = Memory::default();
        let entry = Entry::Text { path: "rules.conf", text: rules.as_bytes() };
        let (document, _) = parse(&files, entry).expect("rules");
        let program = compile(&document, &files).expect("a program").program;
        let relevant = &program.settings().audit_relevant_statuses;
        (0..1200).filter(|status| relevant.contains(*status)).collect::<Vec<u16>>()
    };
    let errors: Vec<u16> = (400..600).filter(|status| *status != 404).collect();
    assert_eq!(statuses("^(?:5|4(?!04))"), errors);
    assert_eq!(statuses("^403$"), [403]);
}

#[test]
fn json_is_one_line_of_json() {
    let shown = audit("JSON");
    assert_eq!(shown.matches('\n').count(), 1);
    let value: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let transaction = &value["transaction"];
    assert_eq!(transaction["client_port"], 5000);
    assert_eq!(transaction["response"]["http_code"], 403);
    assert_eq!(transaction["messages"][0]["details"]["ruleId"], "7");
    assert_eq!(transaction["messages"][0]["details"]["severity"], "2");
}

#[test]
fn native_sections_stand_in_their_order() {
    let shown = audit("Native");
    let letters: String = shown
        .lines()
        .filter_map(|line| line.strip_prefix("--")?.strip_suffix("--")?.split('-').nth(1))
        .collect();
    assert_eq!(letters, "ABCFHZ");
    assert!(shown.contains("[21/Sep/2026:"), "{shown}");
    assert!(shown.contains("Action: Intercepted (phase 2)"), "{shown}");
}
