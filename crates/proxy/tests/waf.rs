//! The inspection pool as requests meet it: a worker in this process, and rules that ask somebody who
//! does as the test says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tidegate_proxy::caching::Cache;
use tidegate_proxy::inspection::{Facilities, Pool};
use tidegate_proxy::plan::Plan;
use tidegate_proxy::settings::{
    Action, Address, Admin, Busy, Host, Http2, HttpsRedirect, Inspect, Listener, ListenerLimits,
    ListenerTimeouts, PathRule, Process, Protocols, ProxyProtocol, Retry, RetryWhen, Route,
    RouteTimeouts, Settings, Site, Trace, UpstreamHost, Waf,
};
use tidegate_proxy::worker::accept::Bound;
use tidegate_proxy::worker::{self, Command, Parts, Shared};
use tidegate_telemetry::Stamp;
use tidegate_telemetry::log::{LogWriter, WriterSettings};
use tidegate_telemetry::metrics::{self, Metrics};
use tidegate_telemetry::record::{WafMode, WafVerdict};
use tidegate_waf::Outside;
use tidegate_waf::inspection::Mode;
use tidegate_waf::operator::inspect_file::{self, Opinion};
use tidegate_waf::program::{compile, compile_policy};
use tidegate_waf::seclang::{Disk, Entry, parse};
use tokio::sync::mpsc;

/// One rule asks a block list; what it is told, it denies.
const RULES: &str = r#"
SecRequestBodyAccess On
SecRule ARGS:from "@rbl bl.example" "id:1,phase:1,deny,status:403,log"
SecRule ARGS:do "@streq deny" "id:2,phase:2,deny,status:418,log"
"#;

/// Whom the rule asks: it counts its callers, and lets them wait, or fails.
#[derive(Default)]
struct BlockList {
    asked: AtomicUsize,
    let_go: AtomicUsize,
}

impl Outside for BlockList {
    fn addresses(&self, name: &str) -> Vec<Ipv4Addr> {
        assert!(!name.starts_with("9.9.9.9."), "this is what the test wants");
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        while self.let_go.load(Ordering::SeqCst) <= number {
            thread::sleep(Duration::from_millis(2));
        }
        Vec::new()
    }

    fn judge(&self, _inspector: &inspect_file::Inspector, _file: &Path) -> Opinion {
        Opinion::Silent
    }
}

struct Gate {
    address: SocketAddr,
    block_list: Arc<BlockList>,
    metrics: Arc<Metrics>,
    _commands: mpsc::Sender<Command>,
}

impl Gate {
    /// One worker, one thread in the pool, room for one more inspection.
    fn start(mode: Mode, busy: Busy) -> Gate {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let metrics = Arc::new(Metrics::new(metrics::Settings::default(), 0));
        let writer = LogWriter::start(WriterSettings::default()).unwrap();
        let block_list = Arc::new(BlockList::default());
        let pool = Pool::new(1, Arc::clone(metrics.control().pool()));
        pool.start(1).unwrap();
        let outside: Arc<dyn Outside> = Arc::<BlockList>::clone(&block_list);
        let facilities = Facilities { pool, context: None, outside: Some(outside) };
        let settings = settings(address, inspect(mode, busy));
        let plan = Plan::build(settings, None, Vec::new(), metrics.labels(), Stamp::now());
        let (commands, receiver) = mpsc::channel(1);
        let cache = Arc::new(Cache::open(&plan.cache).unwrap());
        let parts = Parts {
            id: 0,
            metrics: metrics.worker(0),
            logs: writer.worker(),
            shared: Shared { connections: Arc::default(), facilities, cache },
            commands: receiver,
        };
        let bound = Bound::bind(&Address::Tcp(address), 64).unwrap();
        thread::spawn(move || worker::run(parts, Arc::new(plan), vec![bound]).unwrap());
        Gate { address, block_list, metrics, _commands: commands }
    }

    /// A request under way.
    fn ask(&self, target: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn get(&self, target: &str) -> String {
        answer(self.ask(target))
    }

    fn verdicts(&self, mode: WafMode, verdict: WafVerdict) -> u64 {
        self.metrics.snapshot().basics.inspections[mode.index()][verdict.index()]
    }

    /// One request that a thread works on, and one that waits for it.
    fn fill(&self) -> [TcpStream; 2] {
        let first = self.ask("/?from=1.1.1.1");
        eventually(|| self.block_list.asked.load(Ordering::SeqCst) == 1);
        let second = self.ask("/?from=1.1.1.2");
        eventually(|| self.metrics.snapshot().control.pool_queued == 1);
        [first, second]
    }
}

fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or("none").to_owned()
}

#[expect(clippy::disallowed_methods, reason = "a test is outside the gate and its clock")]
fn eventually(is_so: impl Fn() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(15);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "this never came true");
        thread::sleep(Duration::from_millis(2));
    }
}

fn inspect(mode: Mode, busy: Busy) -> Inspect {
    let files = Disk::default();
    let entry = Entry::Text { path: "test.conf", text: RULES.as_bytes() };
    let (document, _) = parse(&files, entry).unwrap();
    let program = Arc::new(compile(&document, &files).unwrap().program);
    Inspect::new(Arc::new(compile_policy(&program, mode, "", "test").unwrap()), busy)
}

fn settings(address: SocketAddr, inspect: Inspect) -> Settings {
    let second = Duration::from_secs(20);
    let route = Route {
        name: "/".into(),
        path: PathRule::Prefix("/".into()),
        methods: Vec::new(),
        action: Action::Answer { status: 200, body: "fine".into(), content_type: "a/b".into() },
        strip_prefix: None,
        add_prefix: None,
        upstream_host: UpstreamHost::Client,
        request_headers: Vec::new(),
        response_headers: Vec::new(),
        timeouts: RouteTimeouts {
            first_byte: second,
            between_bytes: second,
            whole: None,
            tunnel_idle: second,
        },
        body_bytes_max: None,
        retry: Retry { when: RetryWhen::Never, attempts_max: 0 },
        upgrades: Vec::new(),
        trace: Trace::Refuse,
        inspect: Some(inspect),
        caching: None,
    };
    let site = Site {
        name: "a".into(),
        hosts: vec![Host::Any],
        https: HttpsRedirect::Off,
        canonical_host: None,
        hsts: None,
        routes: vec![route],
        logs: Vec::new(),
    };
    let listener = Listener {
        name: "test".into(),
        address: Address::Tcp(address),
        tls: None,
        protocols: Protocols::Both,
        proxy_protocol: ProxyProtocol::Off,
        backlog: 64,
        limits: ListenerLimits {
            head_bytes_max: 16 << 10,
            target_bytes_max: 8 << 10,
            fields_max: 100,
            requests_per_connection_max: 1000,
        },
        timeouts: ListenerTimeouts {
            handshake: second,
            head: second,
            idle: second,
            body_read: second,
            write: second,
        },
        http2: Http2 {
            streams_max: 100,
            stream_window_bytes: 65_535,
            connection_window_bytes: 65_535,
            resets_max: 100,
            header_bytes_max: 16 << 10,
        },
    };
    Settings {
        process: Process { workers: 1, connections_max: 100, drain_timeout: second },
        listeners: vec![listener],
        sites: vec![site],
        groups: Vec::new(),
        trusted_proxies: Vec::new(),
        logs: Vec::new(),
        admin: Admin { address: None, token: None },
        cache: tidegate_proxy::settings::Cache { memory_bytes_max: 1 << 20, disk: None },
        waf: Waf {
            pool_threads: 1,
            pool_queue_max: 1,
            pool_from_bytes: 16 << 10,
            body_memory_bytes_max: 16 << 10,
            rule_times: 1,
        },
    }
}

#[test]
fn a_worker_serves_others_while_the_pool_works_and_waits() {
    let gate = Gate::start(Mode::Block, Busy::Wait);
    let under_way = gate.fill();
    // Both of these need the pool for phase 1, so they wait behind the others.
    let third = gate.ask("/?from=1.1.1.3");
    eventually(|| gate.metrics.snapshot().basics.waf_busy[Busy::Wait.index()] == 1);
    gate.block_list.let_go.store(usize::MAX, Ordering::SeqCst);
    for stream in under_way.into_iter().chain([third]) {
        assert_eq!(answer(stream), "200");
    }
    assert_eq!(gate.get("/?do=deny"), "418");
    assert_eq!(gate.verdicts(WafMode::Block, WafVerdict::Pass), 3);
    assert_eq!(gate.verdicts(WafMode::Block, WafVerdict::Deny), 1);
    let totals = gate.metrics.snapshot().control;
    assert_eq!((totals.pool_queued, totals.pool_running), (0, 0));
    assert!(totals.pool_done >= 4, "{}", totals.pool_done);
}

#[test]
fn a_full_pool_lets_pass_or_refuses_as_the_route_says() {
    let check = |mode: Mode, busy: Busy, expected: &str, verdict: WafVerdict, counted: Busy| {
        let gate = Gate::start(mode, busy);
        let under_way = gate.fill();
        assert_eq!(gate.get("/?from=1.1.1.3&do=deny"), expected, "{mode:?} {busy:?}");
        let mode = if mode == Mode::Block { WafMode::Block } else { WafMode::Detect };
        assert_eq!(gate.verdicts(mode, verdict), 1, "{mode:?} {busy:?}");
        assert_eq!(gate.metrics.snapshot().basics.waf_busy[counted.index()], 1);
        gate.block_list.let_go.store(usize::MAX, Ordering::SeqCst);
        for stream in under_way {
            assert_eq!(answer(stream), "200");
        }
    };
    check(Mode::Block, Busy::Pass, "200", WafVerdict::Skipped, Busy::Pass);
    check(Mode::Block, Busy::Refuse, "503", WafVerdict::Refused, Busy::Refuse);
    check(Mode::Detect, Busy::Refuse, "200", WafVerdict::Skipped, Busy::Pass);
}

#[test]
fn who_gives_up_frees_the_place() {
    let gate = Gate::start(Mode::Block, Busy::Refuse);
    let [first, second] = gate.fill();
    socket2::SockRef::from(&second).set_linger(Some(Duration::ZERO)).unwrap();
    drop(second);
    gate.block_list.let_go.store(1, Ordering::SeqCst);
    assert_eq!(answer(first), "200");
    eventually(|| gate.metrics.snapshot().control.pool_done >= 2);
    assert_eq!(gate.block_list.asked.load(Ordering::SeqCst), 1, "nobody waits for the second");
    gate.block_list.let_go.store(usize::MAX, Ordering::SeqCst);
    assert_eq!(gate.get("/?from=1.1.1.3"), "200");
}

#[test]
fn a_panic_is_contained_and_goes_the_way_of_the_mode() {
    for (mode, name, expected) in
        [(Mode::Block, WafMode::Block, "500"), (Mode::Detect, WafMode::Detect, "200")]
    {
        let gate = Gate::start(mode, Busy::Wait);
        gate.block_list.let_go.store(usize::MAX, Ordering::SeqCst);
        for _ in 0..3 {
            assert_eq!(gate.get("/?from=9.9.9.9"), expected, "{mode:?}");
        }
        assert_eq!(gate.verdicts(name, WafVerdict::Failed), 3);
        assert_eq!(gate.get("/?from=1.1.1.1"), "200", "the pool's thread goes on");
    }
}
