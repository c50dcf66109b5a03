//! The boot configuration, resolved: every value there, checked, in its own type. What each means stands in `table.rs`.

use crate::{CacheBackend, Dedupe, DedupeRules, SecretSource};
use std::{collections::BTreeMap, net::IpAddr, path::PathBuf, time::Duration};
use wh_types::{Encoding, Secret};

/// The boot configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder this process keeps its data in.
    pub data_dir: PathBuf,
    /// What this process does.
    pub roles: Roles,
    /// The name of this process, where it was given.
    pub instance_id: Option<String>,
    /// Listening, and its bounds.
    pub server: Server,
    /// The queue.
    pub mq: Mq,
    /// Who does what, where there are several processes.
    pub coord: Coord,
    /// Where answers of queries are kept.
    pub cache: CacheBackend,
    /// Where ids of events are kept.
    pub dedupe: Dedupe,
    /// From HTTP into the queue and from the queue into ClickHouse.
    pub ingest: Ingest,
    /// Who may do what.
    pub auth: Auth,
    /// The metrics route.
    pub prometheus: Prometheus,
    /// Logs.
    pub log: Log,
    /// What holds for every tenant that has no settings of its own.
    pub tenant_defaults: TenantDefaults,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Serves `/v1`.
    pub api: bool,
    /// Moves rows from the queue into ClickHouse.
    pub ingest: bool,
    /// Clears what a queue leaves to be cleared.
    pub sweeper: bool,
}

/// Listening, and its bounds.
#[derive(Clone, Debug)]
pub struct Server {
    /// The address.
    pub host: IpAddr,
    /// The port. Never 0 from a file or variable; a caller that builds its own may set 0 for a free one.
    pub port: u16,
    /// Most connections at a time.
    pub max_connections: usize,
    /// Most open streams; fewer than connections, unless there is one connection only.
    pub max_streams: usize,
    /// Most streams that read the history at once.
    pub max_replays: usize,
    /// How long a connection may take to send headers.
    pub header_timeout: Duration,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long the body of an ingest request may stand still.
    pub body_idle_timeout: Duration,
    /// How long a request may take to its answer.
    pub request_timeout: Duration,
    /// How long a stop waits.
    pub shutdown_timeout: Duration,
}

/// The queue.
#[derive(Clone, Debug)]
pub struct Mq {
    /// Which backend.
    pub backend: QueueBackend,
    /// The embedded one's settings.
    pub embedded: EmbeddedQueue,
    /// Those of the one on NATS: checked whatever the backend, complete only with it.
    pub nats: NatsQueue,
}

/// The queue's backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueBackend {
    /// In the data folder.
    Embedded,
    /// On a JetStream cluster.
    Nats,
}

/// The embedded queue's settings.
#[derive(Clone, Debug)]
pub struct EmbeddedQueue {
    /// Units of delivery.
    pub shards: u32,
    /// How long a delivered block may be silent.
    pub ack_wait: Duration,
    /// How long a settled block stays readable.
    pub history: Duration,
    /// Bytes of blocks kept in memory.
    pub cache_bytes: usize,
}

/// The settings of the queue on NATS.
#[derive(Clone, Debug)]
pub struct NatsQueue {
    /// `nats://` or `tls://` and host, perhaps with a port; at least one with this backend.
    pub urls: Vec<String>,
    /// The connections' name, where it was given.
    pub name: Option<String>,
    /// Who we are there.
    pub credentials: NatsCredentials,
    /// How connections are kept secret.
    pub tls: NatsTls,
    /// What the operator created: names, counts, domain, replicas, publish timeout, and the leases' bucket and length.
    pub topology: wh_topology::Spec,
    /// How long connecting to one server may take.
    pub connect_timeout: Duration,
    /// How long a start waits for a topology without required findings.
    pub topology_wait: Duration,
    /// How often the topology is checked again, before chance is added.
    pub topology_recheck: Duration,
}

/// Who we are to NATS. Files are read by whoever connects, again when they change (decision D18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NatsCredentials {
    /// Nobody, or who our certificate says.
    None,
    /// A `.creds` file.
    Creds(PathBuf),
    /// A file with an `NKey` seed.
    NkeySeed(PathBuf),
    /// A user, and a file with the password.
    Password {
        /// The user.
        user: String,
        /// The password's file.
        file: PathBuf,
    },
    /// A file with a token.
    Token(PathBuf),
}

/// How connections to NATS are kept secret. Also `tls://` in a URL asks for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatsTls {
    /// Certificates that servers are checked against, besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Our own certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that servers' certificates are checked for, instead of the host in the URL.
    pub server_name: Option<String>,
    /// Whether TLS begins before the server speaks.
    pub handshake_first: bool,
}

impl NatsTls {
    /// Whether any of this asks for TLS.
    #[must_use]
    pub fn required(&self) -> bool {
        self.ca_file.is_some() || self.identity.is_some() || self.server_name.is_some() || self.handshake_first
    }
}

/// Who does what, where there are several processes.
#[derive(Clone, Copy, Debug)]
pub struct Coord {
    /// Which backend. The bucket of `nats` is in [`NatsQueue::topology`].
    pub backend: CoordBackend,
    /// How long a silent process keeps what it owns.
    pub lease: Duration,
}

/// Where processes agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordBackend {
    /// In this process, which is the only one.
    Local,
    /// In a bucket on the queue's servers.
    Nats,
}

/// How strictly rows are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Refuse what ClickHouse would change.
    Strict,
    /// Let ClickHouse decide.
    Lenient,
}

/// From HTTP into the queue and from the queue into ClickHouse.
#[derive(Clone, Debug)]
pub struct Ingest {
    /// How strictly rows are judged.
    pub mode: Mode,
    /// The largest body, decoded bytes.
    pub max_body_bytes: usize,
    /// All bodies in flight, decoded bytes.
    pub body_budget: usize,
    /// The same for one tenant.
    pub tenant_body_budget: usize,
    /// The largest row, decoded bytes.
    pub max_row_bytes: usize,
    /// How blocks are compressed.
    pub encoding: Encoding,
    /// Rows that make a batch.
    pub batch_rows: u64,
    /// Decoded bytes that make a batch.
    pub batch_bytes: u64,
    /// The age of a row that makes a batch.
    pub batch_wait: Duration,
    /// Most rows of one insert.
    pub batch_max_rows: u64,
    /// Most decoded bytes of one insert.
    pub batch_max_bytes: u64,
    /// Inserts into one table at once.
    pub table_inserts: usize,
    /// Most rows delivered and not settled.
    pub held_rows: usize,
    /// Most compressed bytes delivered and not settled.
    pub held_bytes: usize,
    /// How long the records of a request with an `Idempotency-Key` are known.
    pub idempotency_window: Duration,
    /// Whether refused rows are kept.
    pub dead_letters: bool,
    /// Most time for one insert.
    pub insert_timeout: Duration,
    /// How long rows of a missing table are held.
    pub missing_table_hold: Duration,
}

/// Who may do what.
#[derive(Clone, Debug)]
pub struct Auth {
    /// The key that `/v1/ops` demands.
    pub operator_key: SecretSource,
    /// Whether an open data plane may listen beyond this machine.
    pub allow_open: bool,
}

/// The metrics route.
#[derive(Clone, Debug)]
pub struct Prometheus {
    /// Whether it is there.
    pub enabled: bool,
    /// Its path.
    pub path: String,
}

/// Logs.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// What is logged.
    pub level: LogLevel,
    /// How.
    pub format: LogFormat,
}

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// How an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text.
    Text,
    /// One JSON object.
    Json,
}

/// What holds for every tenant that has no settings of its own: the shape of `config.json`.
#[derive(Clone, Debug)]
pub struct TenantDefaults {
    /// Its ClickHouse.
    pub clickhouse: ClickHouse,
    /// How events are told apart.
    pub dedupe: DedupeRules,
    /// The role of who presents nothing.
    pub default_role: Option<String>,
    /// The file of pipes, where there is one.
    pub pipes_file: Option<PathBuf>,
    /// Most rows of a query that names no limit.
    pub default_max_rows: u64,
    /// The longest life of a kept answer; zero: none is kept.
    pub cache_ttl: Duration,
    /// The size of the steps in which ages in queries move; zero: none.
    pub timestamp_bucket: Duration,
    /// How often columns are read again.
    pub schema_refresh_interval: Duration,
    /// How often a quiet stream gets a comment.
    pub stream_keepalive_interval: Duration,
    /// Most open streams in one process.
    pub stream_max_connections: usize,
    /// What it may keep in the queue, in bytes.
    pub queue_max_bytes: u64,
}

/// Where ClickHouse is and who we are there.
#[derive(Clone, Debug)]
pub struct ClickHouse {
    /// `http://host:port`, perhaps with a path.
    pub url: String,
    /// The database that is served.
    pub database: String,
    /// The user.
    pub username: String,
    /// The user's password.
    pub password: SecretSource,
    /// Most time for one query.
    pub query_timeout: Duration,
    /// Most queries, and most inserts, in flight.
    pub max_open_conns: usize,
    /// Further headers of every request.
    pub headers: BTreeMap<String, Secret>,
}
