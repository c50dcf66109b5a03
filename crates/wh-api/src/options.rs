//! What there is of the surface, and its bounds. Filled in by the configuration; every default is production's.

use std::time::Duration;
use wh_types::Encoding;

/// Which paths there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surface {
    /// All of them.
    #[default]
    Full,
    /// Probes, metrics and `/v1/ops`: of a process that takes no events and answers no queries of clients. What it knows
    /// of ClickHouse's tables does not decide whether it is ready.
    Operator,
}

/// Sizes, times and numbers that hold for the process.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// Which paths there are.
    pub surface: Surface,
    /// Whether `/readyz` asks the queue for its status. False where the checks of [`Parts`](crate::Parts) know it without
    /// asking: of a queue on other machines the question costs a request for each stream.
    pub ask_queue: bool,
    /// Whether other processes insert what is in the queue, so that their marks come over a network.
    pub shared_queue: bool,
    /// Largest decoded body of an ingest request.
    pub ingest_body_bytes: usize,
    /// Largest decoded body of a structured query.
    pub query_body_bytes: usize,
    /// Largest decoded body of a raw SQL request.
    pub sql_body_bytes: usize,
    /// Largest answer of ClickHouse that is held for a query.
    pub answer_bytes: usize,
    /// Bytes of such answers that the process holds at once.
    pub answers_held_bytes: usize,
    /// Bytes of bodies and gathered rows that the process holds at once; never less than one largest request needs,
    /// which is three times its body, and 4 MiB.
    pub held_bytes: usize,
    /// How many of these one tenant's ingest requests hold; the same least holds.
    pub tenant_held_bytes: usize,
    /// Most time a request waits for its share of these.
    pub held_patience: Duration,
    /// Bytes of rows that may gather for one table.
    pub table_bytes: usize,
    /// Most time for a body to arrive.
    pub body_timeout: Duration,
    /// Longest silence within the body of an ingest request.
    pub body_idle_timeout: Duration,
    /// Most time for any request but a stream. Longer than `body_timeout` and six `publish_timeout`s together.
    pub request_timeout: Duration,
    /// How blocks are compressed.
    pub encoding: Encoding,
    /// Most time for one publish attempt; three of them fit into the budget of a block.
    pub publish_timeout: Duration,
    /// How long an unanswered block is probed: the queue's duplicate window.
    pub probe_for: Duration,
    /// How long a table's task waits for more rows before it ends.
    pub idle: Duration,
    /// Most open streams of all tenants.
    pub max_streams: usize,
    /// Most histories that streams read at once; more wait for their turn.
    pub max_replays: usize,
    /// Longest silence on a stream.
    pub keepalive: Duration,
    /// Bytes of recent events kept for the slower streams of one table.
    pub stream_bytes: usize,
    /// The same for all tables together.
    pub streams_bytes: usize,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            surface: Surface::Full,
            ask_queue: true,
            shared_queue: false,
            ingest_body_bytes: 16 << 20,
            query_body_bytes: 1 << 20,
            sql_body_bytes: 16 << 20,
            answer_bytes: 64 << 20,
            answers_held_bytes: 512 << 20,
            held_bytes: 256 << 20,
            tenant_held_bytes: 192 << 20,
            held_patience: Duration::from_secs(5),
            table_bytes: 64 << 20,
            body_timeout: Duration::from_secs(30),
            body_idle_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(75),
            encoding: Encoding::Zstd,
            publish_timeout: Duration::from_secs(5),
            probe_for: Duration::from_secs(120),
            idle: Duration::from_secs(10),
            max_streams: 10_000,
            max_replays: 32,
            keepalive: Duration::from_secs(15),
            stream_bytes: 16 << 20,
            streams_bytes: 256 << 20,
        }
    }
}
