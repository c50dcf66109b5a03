//! What every handler shares.

use crate::{
    AnswerCache, ApiOptions, Check, DedupeStore, Invalidation, OperatorKey, Tenants, Version,
    answers::Answers,
    budget::Budget,
    ingest::{Claims, PublishOptions, Publishing, Waits},
    metrics::Meters,
    query::{Plans, Seams},
    served::Served,
    stream::{Hub, hub},
};
use std::{fmt, sync::Arc};
use tokio::sync::Semaphore;
use wh_mq::Broker;
use wh_types::{Clock, Entropy, Stop, Tasks};

/// Renders the process's metrics.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Everything an [`Api`](crate::Api) is put together from.
pub struct Parts {
    /// Where rows go and live events come from.
    pub broker: Arc<dyn Broker>,
    /// Where keys of events and requests are kept, where that is anywhere.
    pub dedupe: Option<DedupeStore>,
    /// Where answers of reads are kept, where that is anywhere.
    pub cache: Option<AnswerCache>,
    /// Whom it serves.
    pub tenants: Tenants,
    /// What opens `/v1/ops`.
    pub operator_key: OperatorKey,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Ends streams at once; requests in flight still get their answers.
    pub stop: Stop,
    /// This process's name. The chain of its blocks has it with a mark of this start: a chain never goes on in another.
    pub process: Arc<str>,
    /// What `/version` says.
    pub version: Version,
    /// What else decides whether the process is ready.
    pub checks: Vec<Check>,
    /// The path of the metrics and what renders them; without it there is no such path.
    pub metrics: Option<(String, RenderMetrics)>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { broker, tenants, process, version, .. } = self;
        f.debug_struct("Parts")
            .field("broker", broker)
            .field("tenants", tenants)
            .field("process", process)
            .field("version", version)
            .finish_non_exhaustive()
    }
}

/// The state of one API.
pub(crate) struct App {
    pub(crate) options: ApiOptions,
    pub(crate) served: Served,
    pub(crate) key: OperatorKey,
    pub(crate) budget: Budget,
    /// The same for answers of ClickHouse.
    pub(crate) answers: Budget,
    /// Answers that are shared and kept.
    pub(crate) kept: Answers,
    /// What ends them, where they are kept.
    pub(crate) invalidation: Option<Invalidation>,
    pub(crate) seams: Seams,
    /// Queries that were planned before.
    pub(crate) plans: Plans,
    pub(crate) publishing: Arc<Publishing>,
    /// Requests that wait for their rows to be committed.
    pub(crate) waits: Waits,
    pub(crate) meters: Arc<Meters>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) streams: Arc<Semaphore>,
    /// Check, replay and purge of dead letters: one at a time, so that live traffic keeps its share.
    pub(crate) replaying: Semaphore,
    pub(crate) version: Version,
    pub(crate) checks: Vec<Check>,
    pub(crate) metrics: Option<(String, RenderMetrics)>,
}

impl App {
    pub(crate) fn new(parts: Parts, options: ApiOptions) -> Self {
        let (meters, tasks) = (Arc::new(Meters::new()), Tasks::new());
        let publish = PublishOptions {
            encoding: options.encoding,
            publish_timeout: options.publish_timeout,
            table_bytes: options.table_bytes,
            idle: options.idle,
            probe_for: options.probe_for,
        };
        let process = format!("{}.{:016x}", parts.process, parts.entropy.next_u64()).into();
        let hub = Hub::new(
            Arc::clone(&parts.broker),
            (Arc::clone(&parts.entropy), Arc::clone(&parts.clock)),
            Arc::clone(&meters),
            tasks.clone(),
            parts.stop.clone(),
            hub::Bounds { table: options.stream_bytes, all: options.streams_bytes, replays: options.max_replays },
        );
        let publishing = Publishing {
            broker: parts.broker,
            clock: parts.clock,
            entropy: parts.entropy,
            tasks,
            stop: parts.stop,
            process,
            options: publish,
            meters: Arc::clone(&meters),
            probes: Publishing::probes(),
            claims: parts.dedupe.map(|store| Arc::new(Claims::new(store))),
        };
        let largest = largest_request(&options);
        let budget = Budget::with_reserve(options.held_bytes, largest, options.held_patience);
        let answers = Budget::new(options.answers_held_bytes.max(options.answer_bytes), options.held_patience);
        let invalidation = parts.cache.as_ref().map(|cache| {
            let tenants = parts.tenants.iter().map(|one| (one.tenant.clone(), &one.clickhouse));
            Invalidation::new(Arc::clone(&cache.store), tenants)
        });
        let clock = Arc::clone(&publishing.clock);
        let of_tenant =
            || Budget::with_reserve(options.tenant_held_bytes, largest, options.held_patience).within(&budget);
        Self {
            served: Served::new(parts.tenants, of_tenant),
            key: parts.operator_key,
            budget: budget.clone(),
            kept: Answers::new(
                parts.cache,
                Arc::clone(&publishing.broker),
                clock,
                Arc::clone(&meters),
                answers.clone(),
            ),
            answers,
            invalidation,
            seams: Seams::default(),
            plans: Plans::default(),
            publishing: Arc::new(publishing),
            waits: Waits::default(),
            meters,
            hub: Arc::new(hub),
            streams: Arc::new(Semaphore::new(options.max_streams.min(Semaphore::MAX_PERMITS))),
            replaying: Semaphore::new(1),
            version: parts.version,
            checks: parts.checks,
            metrics: parts.metrics,
            options,
        }
    }
}

/// What one request of the largest size holds: its body as it came, decoded, and its rows besides.
fn largest_request(options: &ApiOptions) -> usize {
    let cap = options.ingest_body_bytes.max(options.query_body_bytes).max(options.sql_body_bytes);
    cap.saturating_mul(3).saturating_add(64 << 10)
}
