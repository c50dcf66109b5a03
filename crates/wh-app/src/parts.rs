//! From the configuration's words to those of the worker and the API.

use crate::{About, backend::Queue, cache, cluster::Cluster, life::Life, telemetry::Metrics};
use std::{collections::HashMap, sync::Arc, time::Duration};
use wh_api::{ApiOptions, Check, DedupeRules, IdRule, OperatorKey, Surface, TenantLimits, TenantRuntime};
use wh_clickhouse::SchemaHandle;
use wh_config::{Config, Mode, QueueBackend};
use wh_dedupe::Retention;
use wh_ingest::{ClaimOptions, Sinks};
use wh_types::{Stop, Tenant};

/// What a stop has beyond the time of one insert.
const INSERT_MARGIN: Duration = Duration::from_secs(5);

/// The worker that moves rows from the queue into ClickHouse.
pub(crate) fn worker(life: &Life, queue: &Queue, schema: SchemaHandle) -> wh_ingest::Worker {
    let client = life.clients.inserts.clone();
    let sink = wh_ingest::ClickHouse::new(client.clone(), Some(schema.clone()), life.clock.clone());
    let sinks: Arc<dyn Sinks> = match &life.cache {
        Some(cache) => Arc::new(Arc::new(cache.around(sink, client, schema))),
        None => Arc::new(Arc::new(sink)),
    };
    let parts = wh_ingest::Parts {
        broker: queue.broker.clone(),
        sinks,
        clock: life.clock.clone(),
        entropy: life.entropy.clone(),
    };
    let worker = wh_ingest::Worker::new(parts, worker_options(&life.config, queue)).with_tasks(life.tasks.clone());
    match queue.cluster.as_ref().and_then(Cluster::leases) {
        Some(leases) => worker.with_claims(leases, claim_options(life.config.coord.lease)),
        None => worker,
    }
}

/// Members are read as often as leases are renewed (decision D20), unless something is heard before.
fn claim_options(lease: Duration) -> ClaimOptions {
    ClaimOptions { lease, tick: (lease * 2 / 15).max(Duration::from_millis(200)), ..ClaimOptions::default() }
}

/// How long a stop of the worker may take. An insert that is cut short may be stored all the same and then doubles, so
/// there is time for a whole one, unless nothing is to be waited for.
pub(crate) fn stop_budget(config: &Config) -> Duration {
    let within = config.server.shutdown_timeout;
    if within.is_zero() { within } else { within.max(config.ingest.insert_timeout + INSERT_MARGIN) }
}

fn worker_options(config: &Config, queue: &Queue) -> wh_ingest::Options {
    let ingest = &config.ingest;
    wh_ingest::Options {
        batch_rows: ingest.batch_rows,
        batch_bytes: ingest.batch_bytes,
        batch_wait: ingest.batch_wait,
        batch_max_rows: ingest.batch_max_rows,
        batch_max_bytes: ingest.batch_max_bytes,
        table_inserts: ingest.table_inserts,
        held_rows: ingest.held_rows,
        held_bytes: ingest.held_bytes,
        ack_wait: queue.ack_wait,
        missing_table_hold: ingest.missing_table_hold,
        dead_letters: ingest.dead_letters,
        insert_timeout: ingest.insert_timeout,
        stop_budget: stop_budget(config),
        ..wh_ingest::Options::default()
    }
}

/// What the API is put together from. It serves one tenant, `0`, until tenants have settings.
pub(crate) fn api_parts(
    life: &Life,
    queue: &Queue,
    schema: SchemaHandle,
    operator_key: OperatorKey,
    checks: Vec<Check>,
    stop: Stop,
) -> wh_api::Parts {
    let Life { config, about, .. } = life;
    let tenant = TenantRuntime {
        tenant: Tenant::default(),
        schema,
        clickhouse: life.clients.queries.clone(),
        limits: tenant_limits(config, queue),
        pipes: life.pipes.pipes.clone(),
        default_role: config.tenant_defaults.default_role.clone(),
    };
    let render = |metrics: Metrics| -> wh_api::RenderMetrics { Arc::new(move || metrics.render()) };
    wh_api::Parts {
        broker: queue.broker.clone(),
        dedupe: life.dedupe.as_ref().map(|store| store.for_api(config)),
        cache: life.cache.as_ref().map(cache::Store::for_api),
        tenants: vec![tenant],
        operator_key,
        clock: life.clock.clone(),
        entropy: life.entropy.clone(),
        stop,
        process: life.instance.as_str().into(),
        version: version(*about),
        checks,
        metrics: config.prometheus.enabled.then(|| (config.prometheus.path.clone(), render(life.metrics.clone()))),
    }
}

/// What `/version` and `wavehouse version --json` say.
pub(crate) fn version(about: About) -> wh_api::Version {
    wh_api::Version {
        version: about.version.to_owned(),
        git_commit: about.commit.to_owned(),
        // a build of the same commit is the same build
        build_time: "unknown".to_owned(),
    }
}

fn tenant_limits(config: &Config, queue: &Queue) -> TenantLimits {
    let largest = queue.cluster.as_ref().map_or(usize::MAX, Cluster::largest_row);
    TenantLimits {
        mode: match config.ingest.mode {
            Mode::Strict => wh_api::Mode::Strict,
            Mode::Lenient => wh_api::Mode::Lenient,
        },
        table_modes: HashMap::new(),
        dedupe: dedupe_rules(&config.tenant_defaults.dedupe),
        max_row_bytes: config.ingest.max_row_bytes.min(largest),
        max_result_rows: config.tenant_defaults.default_max_rows,
        cache_ttl: config.tenant_defaults.cache_ttl,
        time_step: config.tenant_defaults.timestamp_bucket,
        query_timeout: config.tenant_defaults.clickhouse.query_timeout,
        max_streams: config.tenant_defaults.stream_max_connections,
    }
}

/// How events are told apart.
pub(crate) fn dedupe_rules(rules: &wh_config::DedupeRules) -> DedupeRules {
    let rule = |rule: &wh_config::DedupeRule| IdRule {
        column: rule.id_field.clone(),
        required: rule.require_id,
        retention: rule.retention.map_or(Retention::Forever, Retention::For),
    };
    let table = |(name, given): (&String, &Option<_>)| (name.clone(), given.as_ref().map(rule));
    DedupeRules { others: rules.others.as_ref().map(rule), tables: rules.tables.iter().map(table).collect() }
}

/// The bounds of the API.
pub(crate) fn api_options(config: &Config) -> ApiOptions {
    let nats = (config.mq.backend == QueueBackend::Nats).then_some(config.mq.nats.topology.choices());
    let plain = ApiOptions::default();
    ApiOptions {
        surface: if config.roles.api { Surface::Full } else { Surface::Operator },
        ask_queue: nats.is_none(),
        shared_queue: nats.is_some(),
        publish_timeout: nats.map_or(plain.publish_timeout, |choices| choices.publish_timeout),
        ingest_body_bytes: config.ingest.max_body_bytes,
        held_bytes: config.ingest.body_budget,
        tenant_held_bytes: config.ingest.tenant_body_budget,
        body_timeout: config.server.body_timeout,
        body_idle_timeout: config.server.body_idle_timeout,
        request_timeout: config.server.request_timeout,
        encoding: config.ingest.encoding,
        max_streams: config.server.max_streams,
        max_replays: config.server.max_replays,
        keepalive: config.tenant_defaults.stream_keepalive_interval,
        ..plain
    }
}
