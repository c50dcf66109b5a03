//! From the configuration's words to those of the worker and the API.

use crate::{About, backend::Queue, cluster::Cluster, life::Life, telemetry::Metrics};
use std::{collections::HashMap, sync::Arc};
use wh_api::{ApiOptions, Check, OperatorKey, Surface, TenantLimits, TenantRuntime};
use wh_clickhouse::SchemaHandle;
use wh_config::{Config, Mode, QueueBackend};
use wh_types::{Stop, Tenant};

/// The worker that moves rows from the queue into ClickHouse.
pub(crate) fn worker(life: &Life, queue: &Queue, schema: SchemaHandle) -> wh_ingest::Worker {
    let sink = wh_ingest::ClickHouse::new(life.clients.inserts.clone(), Some(schema), life.clock.clone());
    let parts = wh_ingest::Parts {
        broker: queue.broker.clone(),
        sinks: Arc::new(Arc::new(sink)),
        clock: life.clock.clone(),
        entropy: life.entropy.clone(),
    };
    wh_ingest::Worker::new(parts, worker_options(&life.config, queue))
}

fn worker_options(config: &Config, queue: &Queue) -> wh_ingest::Options {
    let ingest = &config.ingest;
    wh_ingest::Options {
        batch_rows: ingest.batch_rows,
        batch_bytes: ingest.batch_bytes,
        batch_wait: ingest.batch_wait,
        held_rows: ingest.held_rows,
        held_bytes: ingest.held_bytes,
        ack_wait: queue.ack_wait,
        missing_table_hold: ingest.missing_table_hold,
        stop_budget: config.server.shutdown_timeout,
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
    };
    let render = |metrics: Metrics| -> wh_api::RenderMetrics { Arc::new(move || metrics.render()) };
    wh_api::Parts {
        broker: queue.broker.clone(),
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
        max_row_bytes: config.ingest.max_row_bytes.min(largest),
        max_result_rows: config.tenant_defaults.default_max_rows,
        query_timeout: config.tenant_defaults.clickhouse.query_timeout,
    }
}

/// The bounds of the API. A stream keeps its connection: a quarter of them is left for everything else.
pub(crate) fn api_options(config: &Config) -> ApiOptions {
    let nats = (config.mq.backend == QueueBackend::Nats).then_some(config.mq.nats.topology.choices());
    let plain = ApiOptions::default();
    ApiOptions {
        surface: if config.roles.api { Surface::Full } else { Surface::Operator },
        ask_queue: nats.is_none(),
        publish_timeout: nats.map_or(plain.publish_timeout, |choices| choices.publish_timeout),
        ingest_body_bytes: config.ingest.max_body_bytes,
        held_bytes: config.ingest.body_budget,
        body_timeout: config.server.body_timeout,
        request_timeout: config.server.request_timeout,
        encoding: config.ingest.encoding,
        max_streams: config.server.max_connections.div_ceil(4).saturating_mul(3),
        keepalive: config.tenant_defaults.stream_keepalive_interval,
        ..plain
    }
}
