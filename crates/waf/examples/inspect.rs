//! What an inspection costs, in process: the requests that the benchmarks send, run over and over.
//!
//! `cargo run --release -p tidegate-waf --example inspect -- RULES-DIRECTORY [LEVEL [CASE]]`, where
//! the directory holds the Core Rule Set's `*.conf` files. Prints microseconds for each request, the
//! least of several rounds.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "it measures, and prints what it measured"
)]

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use tidegate_waf::body::End;
use tidegate_waf::inspection::{
    Connection, Inspection, Inspector, Mode, Moment, RequestHead, ResponseHead, Verdict,
};
use tidegate_waf::program::{Policy, compile, compile_policy};
use tidegate_waf::seclang::{Disk, Entry, parse};
use tidegate_waf::variable::Phase;
use tidegate_waf::{Builtin, CoreRuleSet, Sources};

/// The gate's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Case {
    name: &'static str,
    method: &'static str,
    target: String,
    fields: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

const BROWSER: &[(&str, &str)] = &[
    ("Host", "www.example.org"),
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "en-US,en;q=0.5"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Referer", "https://www.example.org/catalogue/shoes/?page=3&sort=price"),
    ("Connection", "keep-alive"),
    (
        "Cookie",
        "session=8f14e45fceea167a5a36dedd4bea2543; _ga=GA1.2.1033501218.1368477899; theme=dark; consent=analytics%3Dyes%26ads%3Dno",
    ),
    ("Upgrade-Insecure-Requests", "1"),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Site", "same-origin"),
];

const WORDS: &str = "harbour morning the gate opens and every boat waits for its turn bridge of tide \
    candle garden lamp river letter winter stone kitchen yellow paper market over under quiet copper \
    window to in a with summer basket feather mountain silver thread carries between before after \
    early late wooden table round small large blue";

/// Words that no other seed has in this order: no value is like another, as in real bodies.
fn prose(seed: usize, words: usize) -> String {
    let known: Vec<&str> = WORDS.split_whitespace().collect();
    let mut state = (seed as u64).wrapping_mul(2_654_435_761) + words as u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        known[(state >> 33) as usize % known.len()]
    };
    (0..words).map(|_| next()).collect::<Vec<_>>().join(" ")
}

/// About 130 bytes for each value, as orders and articles have them.
fn json(bytes: usize) -> Vec<u8> {
    let mut text = String::from("{\"items\":[");
    let mut n = 0;
    while text.len() < bytes {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{comma}{{\"id\":{n},\"name\":\"{}\",\"price\":{}.{:02},\"tags\":[\"{}\",\"{}\"],\"note\":\"{}\",\"ok\":true}}",
            prose(n, 3),
            n * 3,
            n % 100,
            prose(n + 1, 1),
            prose(n + 2, 1),
            prose(n, 130)
        );
        n += 1;
    }
    text.push_str("]}");
    text.into_bytes()
}

fn multipart(bytes: usize) -> Vec<u8> {
    let mut body = b"--XbOuNdArYx\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nHoliday\r\n--XbOuNdArYx\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"beach.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n".to_vec();
    let mut state = 12345_u32;
    while body.len() < bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        body.push((state >> 24) as u8);
    }
    body.extend_from_slice(b"\r\n--XbOuNdArYx--\r\n");
    body
}

fn cases() -> Vec<Case> {
    let browser =
        || BROWSER.iter().map(|&(name, value)| (name, value.to_owned())).collect::<Vec<_>>();
    let with = |kind: &str, body: &[u8]| {
        let mut fields = browser();
        fields.push(("Content-Type", kind.to_owned()));
        fields.push(("Content-Length", body.len().to_string()));
        fields
    };
    let form: String = (0..20)
        .map(|n| format!("field{n}={}", prose(n, 14).replace(' ', "+")))
        .collect::<Vec<_>>()
        .join("&");
    let post = |name, kind: &str, body: Vec<u8>| Case {
        name,
        method: "POST",
        target: "/api/orders".into(),
        fields: with(kind, &body),
        body,
    };
    let get = |name, target: &str, fields| Case {
        name,
        method: "GET",
        target: target.into(),
        fields,
        body: Vec::new(),
    };
    let tiny = vec![
        ("Host", "example.org".to_owned()),
        ("User-Agent", "curl/8".to_owned()),
        ("Accept", "*/*".to_owned()),
    ];
    vec![
        get("tiny", "/", tiny),
        get("browser", "/catalogue/shoes/?page=4&sort=price&q=running+shoes+for+rain", browser()),
        post("form-2k", "application/x-www-form-urlencoded", form.into_bytes()),
        post("json-15k", "application/json", json(15_000)),
        post("json-100k", "application/json", json(100_000)),
        post("multipart-200k", "multipart/form-data; boundary=XbOuNdArYx", multipart(200_000)),
        get(
            "sqli",
            "/catalogue/shoes/?id=1%27%20UNION%20SELECT%20username,password%20FROM%20users--%20-",
            browser(),
        ),
        post(
            "quotes-40k",
            "application/x-www-form-urlencoded",
            [b"q=".as_slice(), &b"'\"".repeat(20_000)].concat(),
        ),
        post("json-deep", "application/json", [vec![b'['; 500], vec![b']'; 500]].concat()),
        post(
            "args-1000",
            "application/x-www-form-urlencoded",
            (0..999)
                .map(|n| format!("a{n}=%27;select+{n}--"))
                .collect::<Vec<_>>()
                .join("&")
                .into_bytes(),
        ),
        post(
            "braces-128k",
            "application/x-www-form-urlencoded",
            [b"q=".as_slice(), &b"{{".repeat(65_000)].concat(),
        ),
        post(
            "json-128k-hostile",
            "application/json",
            [
                b"{\"a\":\"".as_slice(),
                &b"<script>alert(1) or 1=1 -- ../../etc/passwd ;cat ".repeat(2_600),
                b"\"}",
            ]
            .concat(),
        ),
    ]
}

fn run(case: &Case, policy: &Arc<Policy>, inspector: &mut Inspector) -> (Verdict, usize) {
    let mut inspection = Inspection::begin(policy, None, inspector);
    let client = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));
    inspection.connection(&Connection {
        client,
        client_port: 40_000,
        server: client,
        server_port: 443,
    });
    let head = RequestHead {
        method: case.method.as_bytes(),
        target: case.target.as_bytes(),
        protocol: b"HTTP/1.1",
        host: b"www.example.org",
        id: b"4f1c",
    };
    inspection.request_head(
        head,
        case.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())),
    );
    let moment = Moment { epoch_ms: 1_790_000_000_000, elapsed_us: 10 };
    let mut verdict = inspection.run(Phase::RequestHeaders, moment, inspector);
    if verdict == Verdict::Pass {
        for piece in case.body.chunks(16_384) {
            let _ = inspection.request_body(piece);
        }
        inspection.request_body_end(End::Complete);
        verdict = inspection.run(Phase::RequestBody, moment, inspector);
    }
    if verdict == Verdict::Pass {
        inspection.response_head(
            ResponseHead { status: 200, protocol: b"HTTP/1.1" },
            [(&b"content-type"[..], &b"application/octet-stream"[..])].into_iter(),
        );
        verdict = inspection.run(Phase::ResponseHeaders, moment, inspector);
    }
    let _ = inspection.run(Phase::Logging, moment, inspector);
    let matched = inspection.matched_rules().len();
    inspection.end(inspector);
    (verdict, matched)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| panic!("the directory of the rules"));
    let level = arguments.next().unwrap_or_else(|| "1".into());
    let only = arguments.next();
    let sources = Sources {
        core: Some(CoreRuleSet {
            rules: format!("{directory}/*.conf"),
            plugins: None,
            variables: vec![("blocking_paranoia_level".into(), level)],
        }),
        builtin: Builtin::Off,
        before: Vec::new(),
        after: Vec::new(),
    };
    let before = resident("VmRSS");
    let began = Instant::now();
    let text = sources.text();
    let entry = Entry::Text { path: "measure.conf", text: text.as_bytes() };
    let (document, _) =
        parse(&Disk::default(), entry).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let parsed = began.elapsed();
    let compiled =
        compile(&document, &Disk::default()).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    println!("parsed in {parsed:?}, compiled by {:?}", began.elapsed());
    println!(
        "resident memory: {before:.1} MiB at first, {:.1} at most, {:.1} now",
        resident("VmHWM"),
        resident("VmRSS")
    );
    let policy = Arc::new(
        compile_policy(&Arc::new(compiled.program), Mode::Block, "", "measure")
            .unwrap_or_else(|mistakes| panic!("{mistakes:#?}")),
    );
    let mut inspector = Inspector::new();
    for case in cases() {
        if only.as_ref().is_some_and(|only| *only != case.name) {
            continue;
        }
        let began = Instant::now();
        let first = run(&case, &policy, &mut inspector);
        let once = began.elapsed();
        let times = (200_000 / once.as_micros().max(1)).clamp(3, 5_000) as u32;
        let least = (0..5)
            .map(|_| {
                let began = Instant::now();
                for _ in 0..times {
                    run(&case, &policy, &mut inspector);
                }
                began.elapsed() / times
            })
            .min()
            .unwrap_or_default();
        println!(
            "{:20} {:>10.1} us   first {:>8} us   {first:?}",
            case.name,
            least.as_nanos() as f64 / 1000.0,
            once.as_micros()
        );
    }
}

/// Memory of this process, in MiB, as the kernel has it in /proc/self/status.
fn resident(what: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap_or_default();
    let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}
