//! Challenges: who gets one, what a pass opens, and what it does not.

use std::fs;

use super::{Server, exchange, plain, status};
use crate::gate::Gate;

/// The value of the first `NAME="` of a page's script, or of its number.
fn written<'a>(page: &'a str, name: &str) -> &'a str {
    let rest = page.split(&format!("{name} = ")).nth(1).unwrap_or_else(|| panic!("{name}: {page}"));
    rest.trim_start_matches('"').split(['"', ',', ';']).next().unwrap()
}

/// Does a browser's work, slowly.
fn solve(page: &str) -> String {
    let ticket = written(page, "ticket");
    let bits: u32 = written(page, "bits").parse().unwrap();
    assert!(bits <= 8, "this takes too long");
    let passes = (0..u32::MAX).map(|counter| format!("{ticket}.{counter}"));
    let is_proof = |pass: &String| {
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, pass.as_bytes());
        u32::from_be_bytes(hash.as_ref()[..4].try_into().unwrap()).leading_zeros() >= bits
    };
    let pass = passes.into_iter().find(is_proof).unwrap();
    format!("tidegate_pass={pass}")
}

#[test]
fn an_odd_request_is_challenged_until_its_client_has_a_pass() {
    let server = Server::start();
    let gate = Gate::start(&plain(&server));
    let rules = r#"
SecRule ARGS:odd "@ge 1" "id:20001,phase:2,pass,nolog,setvar:tx.blocking_inbound_anomaly_score=%{ARGS.odd}"
SecRule TX:blocking_inbound_anomaly_score "@ge 10" "id:20002,phase:2,deny,status:403,log"
"#;
    fs::write(gate.path("own.conf"), rules).unwrap();
    let site = |host: &str, waf: &str| {
        let upstream = server.address;
        format!(
            "[[site]]\nhost = \"{host}\"\nupstream = \"{upstream}\"\nwaf = {{ {waf} }}\n\
             response_headers = {{ set = {{ Content-Security-Policy = \"script-src 'self'\" }} }}\n"
        )
    };
    let common = "challenge_bits = 8, inbound_threshold = 10";
    let configuration = |more: &str| {
        let head = "[waf]\nrules = \"$DIR/own.conf\"\nbuiltin = false\nmode = \"block\"\n";
        let sites = [
            site("score.example", &format!("challenge_from = 5, {common}")),
            site("press.example", &format!("challenge_pressure = \"1%\", {common}")),
            site("calm.example", &format!("challenge_pressure = \"100%\", {common}")),
            site("detect.example", &format!("mode = \"detect\", challenge_from = 5, {common}")),
        ];
        format!("{head}{more}{}", sites.concat())
    };
    gate.configure_with("connections_max = 32", &configuration(""));
    gate.order(&["reload"]);
    let ask = |method: &str, host: &str, target: &str, fields: &str| {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Browser/1.0\r\n{fields}\
             Connection: close\r\nContent-Length: 0\r\n\r\n"
        );
        String::from_utf8(exchange(gate.address, &[request.as_bytes()])).unwrap()
    };
    let html = "Accept: text/html,*/*;q=0.8\r\n";

    assert_eq!(status(&ask("GET", "score.example", "/?odd=4", html)), "200");
    let page = ask("GET", "score.example", "/?odd=5", html);
    assert_eq!(status(&page), "403");
    for field in [
        "Cache-Control: no-store",
        "Content-Security-Policy: default-src 'none'",
        "Content-Type: text/html",
    ] {
        assert!(page.contains(field), "{field}: {page}");
    }
    assert!(page.contains("then = \"reload\""), "{page}");
    assert_eq!(
        page.matches("Content-Security-Policy").count(),
        1,
        "the site's own would stop the script"
    );
    assert!(ask("POST", "score.example", "/?odd=5", html).contains("then = \"resend\""));
    let plain = ask("GET", "score.example", "/?odd=5", "Accept: application/json\r\n");
    assert_eq!(status(&plain), "403");
    assert!(plain.contains("Tidegate-Challenge: browser") && !plain.contains("ticket"), "{plain}");
    assert_eq!(status(&ask("GET", "detect.example", "/?odd=5", html)), "200", "nothing is stopped");

    let pass = format!("{html}Cookie: a=b; {}\r\n", solve(&page));
    assert_eq!(status(&ask("GET", "score.example", "/?odd=9", &pass)), "200");
    assert_eq!(status(&ask("POST", "score.example", "/?odd=9", &pass)), "200");
    let denied = ask("GET", "score.example", "/?odd=10", &pass);
    assert!(status(&denied) == "403" && !denied.contains("ticket"), "no pass opens what is denied");
    let other = pass.replace("Accept", "X-Accept");
    assert_eq!(status(&ask("GET", "press.example", "/", &other)), "403", "another site's pass");
    let forged = pass.replace("tidegate_pass=", "tidegate_pass=1");
    assert_eq!(status(&ask("GET", "score.example", "/?odd=9", &forged)), "403");

    // One connection of 32 is more than a hundredth of them.
    let page = ask("GET", "press.example", "/", html);
    assert_eq!(status(&page), "403");
    let pass = format!("{html}Cookie: {}\r\n", solve(&page));
    assert_eq!(status(&ask("GET", "press.example", "/", &pass)), "200");
    assert_eq!(status(&ask("GET", "calm.example", "/", html)), "200");

    // A pass outlives a reload, and a change of the secret ends it.
    gate.order(&["reload"]);
    assert_eq!(status(&ask("GET", "press.example", "/", &pass)), "200");
    let secret = "challenge_secret = \"0123456789abcdef0123456789abcdef\"\n";
    gate.configure_with("connections_max = 32", &configuration(secret));
    gate.order(&["reload"]);
    assert_eq!(status(&ask("GET", "press.example", "/", &pass)), "403");

    let (_, metrics) = gate.ask("GET", "/metrics");
    let challenged = metrics.lines().any(|line| {
        line.starts_with("tidegate_waf_inspections_total")
            && line.contains("verdict=\"challenge\"")
            && !line.ends_with(" 0")
    });
    assert!(challenged, "{metrics}");
}
