//! The process's recorder of metrics, and the page it renders.

use crate::{About, metrics as ours};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tracing::warn;
use wh_types::{Clock, Mono, Stop};

/// How often the recorder clears up after itself.
const UPKEEP: Duration = Duration::from_secs(5);
/// Bounds of histograms of seconds: from a cached answer to a slow insert.
const SECONDS: [f64; 14] = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];
/// Bounds of histograms of rows.
const ROWS: [f64; 9] = [1.0, 10.0, 100.0, 500.0, 1_000.0, 5_000.0, 10_000.0, 50_000.0, 100_000.0];

/// The page of metrics. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Metrics {
    handle: PrometheusHandle,
    clock: Arc<dyn Clock>,
    started: Mono,
}

/// Takes over the process's metrics. Where several applications run in one process they share the page.
pub(crate) fn install(about: About, clock: Arc<dyn Clock>) -> Metrics {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    let handle = HANDLE.get_or_init(|| {
        let recorder = builder().build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            warn!("another recorder of metrics is installed, so the metrics page stays empty");
        }
        ours::describe();
        handle
    });
    ours::build(about);
    let started = clock.now();
    Metrics { handle: handle.clone(), clock, started }
}

fn builder() -> PrometheusBuilder {
    let bounds: [(&str, &[f64]); 2] = [("_seconds", &SECONDS), ("_rows", &ROWS)];
    bounds.into_iter().fold(PrometheusBuilder::new(), |builder, (suffix, bounds)| {
        // it refuses only an empty list of bounds
        builder
            .set_buckets_for_metric(Matcher::Suffix(suffix.to_owned()), bounds)
            .unwrap_or_else(|_| PrometheusBuilder::new())
    })
}

impl Metrics {
    /// The page in Prometheus' text form.
    pub(crate) fn render(&self) -> String {
        ours::process(self.clock.now().saturating_duration_since(self.started));
        self.handle.render()
    }

    /// Clears up until `stop` is given.
    pub(crate) async fn upkeep(self, stop: Stop) {
        loop {
            tokio::select! {
                () = stop.wait() => return,
                () = tokio::time::sleep(UPKEEP) => self.handle.run_upkeep(),
            }
        }
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}
