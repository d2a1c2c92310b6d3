//! Context shared by several gates, through a Valkey or Redis server.
//!
//! Every change that is made here goes to the server, where one script puts it into a stream and into
//! two hashes that hold the state. Every gate reads the stream from where it was and applies what
//! others have changed ([`Context::apply`]); what it applies is not sent again. A gate that begins, or
//! finds that the stream has gone on without it for too long, takes the state from the hashes first.
//!
//! - Nothing here is on the way of a request: it is one task of the control thread, and what waits for the
//!   server waits in the bounded queue of a [`Watch`].
//! - What was sent and not acknowledged is sent again, so a change may arrive twice. To values that
//!   makes no difference; an increment is then counted twice.
//! - Gates agree in the end as `tidegate_waf::context` says of its updates: the later value wins,
//!   increments add up.

mod wire;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ConnectionInfo, RedisError};
use tidegate_telemetry::clock::{self, Stamp};
use tidegate_waf::context::{Collection, Context, Lifetime, Record, Source, Watch};

use wire::{What, Wire};

const SCRIPT: &str = include_str!("change.lua");

/// Changes that may wait for the server. Beyond that they are lost to it, and all state is sent anew.
const CHANGES_MAX: usize = 262_144;
/// Changes that are sent together, and entries of the stream or the hashes that are read together.
const TOGETHER_MAX: usize = 500;
/// How often changes are looked for.
const LOOKED_EVERY: Duration = Duration::from_millis(20);
/// How long the server holds a question for news back; also how old the lag may be that is told.
const NEWS_WITHIN: Duration = Duration::from_secs(1);
/// For an answer of the server, beyond that.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long a process that ends waits for its last changes to be sent.
const SETTLE_MAX: Duration = Duration::from_secs(2);
/// The pause after a failure, doubled with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Where a gate with a copy on disk keeps how far it has read.
const POSITION: (Record<'static>, &[u8]) =
    (Record::new(Collection::Global, b"tidegate:sync"), b"position");

/// What the configuration says of it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Where the server is, with its secrets.
    pub(crate) server: ConnectionInfo,
    /// The same without them, for people.
    pub(crate) shown: String,
    /// What the server's keys begin with.
    pub(crate) prefix: String,
    /// Changes that the stream keeps.
    pub(crate) stream_max: usize,
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        // The connection's details have no equality of their own; their shape has.
        (&self.shown, &self.prefix, self.stream_max)
            == (&other.shown, &other.prefix, other.stream_max)
    }
}

impl Eq for Settings {}

/// How it goes, for metrics and status.
#[derive(Debug)]
pub(crate) struct Status {
    /// The server, for people.
    pub(crate) server: String,
    connected: Cell<bool>,
    /// When the server was last heard of.
    heard: Cell<Stamp>,
    lag_in: Cell<Duration>,
    lag_out: Cell<Duration>,
    pub(crate) sent: Cell<u64>,
    pub(crate) applied: Cell<u64>,
    pub(crate) failures: Cell<u64>,
    pub(crate) error: RefCell<Option<String>>,
    /// How often there was nothing to send.
    idle: Cell<u64>,
}

impl Status {
    pub(crate) fn new(settings: &Settings) -> Rc<Status> {
        Rc::new(Status {
            server: settings.shown.clone(),
            connected: Cell::new(false),
            heard: Cell::new(Stamp::now()),
            lag_in: Cell::default(),
            lag_out: Cell::default(),
            sent: Cell::default(),
            applied: Cell::default(),
            failures: Cell::default(),
            error: RefCell::default(),
            idle: Cell::default(),
        })
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connected.get()
    }

    /// Waits until all that has changed by now is sent, but not for long.
    pub(crate) async fn settle(&self) {
        let (idle, began) = (self.idle.get(), Stamp::now());
        // The look that is under way may have begun before the last change.
        while self.is_connected() && self.idle.get() < idle + 2 && began.elapsed() < SETTLE_MAX {
            tokio::time::sleep(LOOKED_EVERY).await;
        }
    }

    /// How far this gate and the others may be apart: the age of the oldest change that is not sent or
    /// applied yet; without a connection, the time since there was one.
    pub(crate) fn lag(&self) -> Duration {
        let apart = self.lag_in.get().max(self.lag_out.get());
        if self.is_connected() { apart } else { apart.max(self.heard.get().elapsed()) }
    }
}

/// Shares context for as long as the process runs.
pub(crate) async fn run(
    context: Arc<Context>,
    settings: Settings,
    status: Rc<Status>,
    watch: Watch,
    keeps: Keeps,
) {
    let from = format!("{:016x}", random());
    let sync = Sync {
        from,
        keys: ["changes", "about", "values"].map(|key| format!("{}:{key}", settings.prefix)),
        watch,
        waiting: RefCell::default(),
        position: RefCell::new(read_position(&context)),
        context,
        settings,
        status,
        keeps,
    };
    let mut pause = PAUSE_MIN;
    loop {
        let Err(error) = sync.session().await;
        let status = &sync.status;
        status.failures.set(status.failures.get() + 1);
        if status.connected.replace(false) {
            pause = PAUSE_MIN;
            tracing::error!(server = status.server, %error, "context is not shared any more; the server is tried again");
        } else if status.error.borrow().is_none() {
            tracing::error!(server = status.server, %error, "context is not shared; the server is tried again");
        }
        *status.error.borrow_mut() = Some(error.to_string());
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Begins to note what changes, before anything does.
pub(crate) fn watch(context: &Context) -> Watch {
    context.watch(CHANGES_MAX)
}

/// Whether this gate's state outlives it, so that how far it has read is worth keeping beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// It has a copy on disk.
    OnDisk,
    /// It begins with nothing.
    Nothing,
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness, the process and the time have to do.
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(_) => u64::from_ne_bytes(bytes),
        Err(_) => clock::unix_millis() << 20 | u64::from(std::process::id()),
    }
}

/// A number for this gate's stamps; two gates seldom draw the same, and then only a tie of both in one
/// millisecond is left undecided.
pub(crate) fn draw_origin() -> u16 {
    u16::try_from(random() >> 48).unwrap_or(0)
}

fn read_position(context: &Context) -> Option<String> {
    let (record, name) = POSITION;
    context.get(record, name, clock::unix_millis(), |value| {
        let mut bytes = Vec::new();
        value.append_to(&mut bytes);
        String::from_utf8(bytes).ok()
    })?
}

struct Sync {
    /// Who we are among the gates.
    from: String,
    /// Stream, stamps, values.
    keys: [String; 3],
    watch: Watch,
    /// What is sent and not acknowledged, and what comes next.
    waiting: RefCell<VecDeque<Wire>>,
    /// The last entry of the stream that was applied.
    position: RefCell<Option<String>>,
    context: Arc<Context>,
    settings: Settings,
    status: Rc<Status>,
    keeps: Keeps,
}

/// What a session ends with; it never ends well.
type Ended<T> = Result<T, RedisError>;

/// Entries of the stream: their ids, and their fields and values in turn.
type Entries = Vec<(String, Vec<Vec<u8>>)>;

impl Sync {
    /// One connection's life.
    async fn session(&self) -> Ended<std::convert::Infallible> {
        let client = redis::Client::open(self.settings.server.clone())?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_WITHIN))
            .set_response_timeout(Some(NEWS_WITHIN + ANSWER_WITHIN));
        let mut sending = client.get_multiplexed_async_connection_with_config(&config).await?;
        // A question for news holds its connection up.
        let mut hearing = client.get_multiplexed_async_connection_with_config(&config).await?;
        let script: String =
            redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT).query_async(&mut sending).await?;
        self.begin(&mut sending, &script).await?;
        if self.watch.take_lost() > 0 {
            self.send_all(&mut sending, &script).await?;
        }
        self.status.connected.set(true);
        *self.status.error.borrow_mut() = None;
        tracing::info!(server = self.status.server, "context is shared");
        let (never, _) =
            tokio::try_join!(self.send(&mut sending, &script), self.hear(&mut hearing))?;
        Ok(never)
    }

    /// Settles from where the stream is read. A gate that begins, and one without which the
    /// stream has gone on, gives its state and takes that of the hashes. To a server that has forgotten
    /// everything each gate gives its own, and hears of others' by the stream.
    async fn begin(&self, connection: &mut MultiplexedConnection, script: &str) -> Ended<()> {
        let stream = &self.keys[0];
        let known = self.position.borrow().clone();
        if let Some(position) = known {
            // What we have applied is still there, or something before it: nothing was missed.
            let before: Entries = redis::cmd("XRANGE")
                .arg(stream)
                .arg(&["-", &position, "COUNT", "1"])
                .query_async(connection)
                .await?;
            if !before.is_empty() {
                return Ok(());
            }
            if self.is_whole(connection).await {
                tracing::warn!("the server has forgotten what it knew: it is told anew");
                *self.position.borrow_mut() = Some("0-0".to_owned());
                return self.send_all(connection, script).await;
            }
            tracing::warn!("the stream has gone on without this gate: the state is taken anew");
        }
        self.send_all(connection, script).await?;
        let last: Entries = redis::cmd("XREVRANGE")
            .arg(stream)
            .arg(&["+", "-", "COUNT", "1"])
            .query_async(connection)
            .await?;
        let last = last.into_iter().next().map_or_else(|| "0-0".to_owned(), |(id, _)| id);
        self.take_state(connection).await?;
        *self.position.borrow_mut() = Some(last);
        Ok(())
    }

    /// Whether the stream has everything that was ever put into it. Servers before Redis 7 do not
    /// tell, and count as if it had not.
    async fn is_whole(&self, connection: &mut MultiplexedConnection) -> bool {
        let mut ask = redis::cmd("XINFO");
        ask.arg("STREAM").arg(&self.keys[0]);
        let told: Vec<redis::Value> = match ask.query_async(connection).await {
            Ok(told) => told,
            // There is none.
            Err(error) => return error.kind() == redis::ServerErrorKind::ResponseError.into(),
        };
        let number = |name: &str| {
            let mut pairs = told.chunks_exact(2);
            let pair = pairs.find(|pair| {
                matches!(&pair[0], redis::Value::BulkString(text) if text == name.as_bytes())
            })?;
            match pair[1] {
                redis::Value::Int(number) => Some(number),
                _ => None,
            }
        };
        number("entries-added").is_some_and(|added| number("length") == Some(added))
    }

    async fn take_state(&self, connection: &mut MultiplexedConnection) -> Ended<()> {
        let [_, about, values] = &self.keys;
        let mut cursor = "0".to_owned();
        loop {
            let (next, pairs): (String, Vec<Vec<u8>>) = redis::cmd("HSCAN")
                .arg(about)
                .arg(&[&cursor, "COUNT", "500"])
                .query_async(connection)
                .await?;
            if !pairs.is_empty() {
                let mut ask = redis::cmd("HMGET");
                ask.arg(values);
                for pair in pairs.chunks_exact(2) {
                    ask.arg(&pair[0]);
                }
                let found: Vec<Option<Vec<u8>>> = ask.query_async(connection).await?;
                for (pair, value) in pairs.chunks_exact(2).zip(found) {
                    let wire = value.and_then(|value| Wire::kept(&pair[0], &pair[1], value));
                    if let Some(wire) = wire {
                        self.apply(&wire);
                    }
                }
            }
            cursor = next;
            if cursor == "0" {
                return Ok(());
            }
        }
    }

    /// Sends all there is, to a server that knows nothing of it or has missed changes. What waits goes
    /// first: an increment that the server has counted already is no news in the state.
    async fn send_all(&self, connection: &mut MultiplexedConnection, script: &str) -> Ended<()> {
        while self.send_some(connection, script).await? > 0 {}
        let mut all = Vec::new();
        let now_ms = clock::unix_millis();
        self.context.snapshot(now_ms, |record, name, update| {
            if record != POSITION.0 {
                all.push(Wire::new(record, name, now_ms, What::of(&update)));
            }
            ControlFlow::Continue(())
        });
        for some in all.chunks(TOGETHER_MAX) {
            self.run_script(connection, script, some, self.settings.stream_max).await?;
        }
        Ok(())
    }

    async fn send(
        &self,
        connection: &mut MultiplexedConnection,
        script: &str,
    ) -> Ended<std::convert::Infallible> {
        loop {
            if self.send_some(connection, script).await? > 0 {
                continue;
            }
            if self.watch.take_lost() > 0 {
                tracing::warn!("more changes came than the server took: all state is sent anew");
                self.send_all(connection, script).await?;
            }
            self.status.idle.set(self.status.idle.get() + 1);
            tokio::time::sleep(LOOKED_EVERY).await;
        }
    }

    /// Sends what waits, up to some; how many changes. They wait until the server has them.
    async fn send_some(
        &self,
        connection: &mut MultiplexedConnection,
        script: &str,
    ) -> Ended<usize> {
        let some: Vec<Wire> = {
            let mut waiting = self.waiting.borrow_mut();
            while waiting.len() < TOGETHER_MAX
                && let Some(change) = self.watch.try_next()
            {
                if change.source == Source::Local && change.record() != POSITION.0 {
                    waiting.push_back(Wire::of(&change));
                }
            }
            waiting.iter().cloned().collect()
        };
        let now_ms = clock::unix_millis();
        let age = some.first().map_or(0, |oldest| now_ms.saturating_sub(oldest.at_ms));
        self.status.lag_out.set(Duration::from_millis(age));
        if some.is_empty() {
            return Ok(0);
        }
        self.run_script(connection, script, &some, self.settings.stream_max).await?;
        self.waiting.borrow_mut().drain(..some.len());
        self.status.sent.set(self.status.sent.get() + some.len() as u64);
        self.status.heard.set(Stamp::now());
        Ok(some.len())
    }

    async fn run_script(
        &self,
        connection: &mut MultiplexedConnection,
        script: &str,
        changes: &[Wire],
        stream_max: usize,
    ) -> Ended<()> {
        let mut pipe = redis::pipe();
        for wire in changes {
            let call = pipe.cmd("EVALSHA").arg(script).arg(3).arg(&self.keys);
            call.arg(stream_max).arg(&self.from).arg(wire.at_ms).arg(wire.place());
            for argument in wire.arguments() {
                call.arg(argument);
            }
            call.ignore();
        }
        pipe.query_async(connection).await
    }

    async fn hear(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Ended<std::convert::Infallible> {
        let block_ms = NEWS_WITHIN.as_millis().to_string();
        // The hashes do not know yet what a feed has put into the stream.
        let mut quiet = connection.clone();
        let script: String =
            redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT).query_async(&mut quiet).await?;
        loop {
            let position = self.position.borrow().clone().unwrap_or_else(|| "0-0".to_owned());
            let news: Option<Vec<(String, Entries)>> = redis::cmd("XREAD")
                .arg(&["COUNT", "500", "BLOCK", &block_ms, "STREAMS"])
                .arg(&self.keys[0])
                .arg(&position)
                .query_async(connection)
                .await?;
            self.status.heard.set(Stamp::now());
            let entries = news.into_iter().flatten().flat_map(|(_, entries)| entries);
            let (mut last, mut lag_ms, mut foreign) = (None, 0, Vec::new());
            for (id, fields) in entries {
                if let Some(wire) = Wire::parse(&id, &fields) {
                    let from = fields.chunks_exact(2).find(|pair| pair[0] == b"from");
                    if from.is_none_or(|pair| pair[1] != self.from.as_bytes()) {
                        lag_ms = lag_ms.max(clock::unix_millis().saturating_sub(wire.at_ms));
                        self.apply(&wire);
                    }
                    if from.is_none() {
                        foreign.push(wire);
                    }
                } else {
                    tracing::warn!(id, "an entry of the stream is not understood");
                }
                last = Some(id);
            }
            self.status.lag_in.set(Duration::from_millis(lag_ms));
            if !foreign.is_empty() {
                self.run_script(connection, &script, &foreign, 0).await?;
            }
            if let Some(last) = last {
                self.keep_position(&last);
                *self.position.borrow_mut() = Some(last);
            }
        }
    }

    fn apply(&self, wire: &Wire) {
        let Some(update) = wire.what.update() else { return };
        // What does not fit is refused and counted, as any other write is.
        let now_ms = clock::unix_millis();
        if self.context.apply(wire.record(), &wire.name, &update, now_ms).is_ok() {
            self.status.applied.set(self.status.applied.get() + 1);
        }
    }

    fn keep_position(&self, position: &str) {
        if self.keeps == Keeps::OnDisk {
            let (record, name) = POSITION;
            let (value, lifetime) = (position.as_bytes(), Lifetime::Forever);
            let now_ms = clock::unix_millis();
            let context = &self.context;
            // A variable that is there keeps its lifetime; without room, the state is taken anew.
            let _ = context.set(record, name, value, now_ms);
            let _ = context.expire(record, name, lifetime, now_ms);
        }
    }
}
