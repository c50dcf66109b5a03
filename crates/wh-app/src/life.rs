//! From an open port to its end: the queue (once its disk has room), the API, the worker, and the stop.

use crate::{
    About, RunError,
    clickhouse::{self, Clients},
    front::{Front, Phase},
    queue::Opening,
    serve::Server,
    telemetry::Metrics,
};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::timeout_at};
use tracing::{error, info, warn};
use wh_config::Config;
use wh_mq::Broker;
use wh_types::{Clock, Entropy, Secret, Stop, Tasks};

/// How often a full disk is tried again.
const SPACE: Duration = Duration::from_secs(5);
/// What the worker has beyond the time for stopping, to give back what it holds.
const RELEASE: Duration = Duration::from_secs(5);
/// How long closing the queue may take.
const CLOSE: Duration = Duration::from_secs(3);

/// Everything an application is made of, once its port is open.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) config: Config,
    pub(crate) about: About,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) metrics: Metrics,
    pub(crate) clients: Clients,
    pub(crate) password: Option<Secret>,
    pub(crate) operator_key: Option<Secret>,
    pub(crate) front: Front,
    pub(crate) server: Server,
    pub(crate) opening: Opening,
    pub(crate) tasks: Tasks,
    pub(crate) stop: Stop,
}

/// What runs besides the server.
#[derive(Debug)]
struct Parts {
    /// Ends the streams; first.
    api: Stop,
    /// Ends the worker; once no request is in flight.
    ingest: Stop,
    /// Ends what only watches; last.
    rest: Stop,
    worker: JoinHandle<Result<(), wh_mq::Error>>,
    queue: Arc<dyn Broker>,
}

impl Life {
    pub(crate) async fn run(self, queue: Option<Arc<dyn Broker>>) -> Result<(), RunError> {
        let queue = match queue {
            Some(queue) => queue,
            None => match self.wait_for_space().await {
                Ok(Some(queue)) => queue,
                Ok(None) => {
                    self.server.drain(self.config.server.shutdown_timeout).await;
                    return Ok(());
                }
                Err(error) => {
                    self.server.drain(Duration::ZERO).await;
                    return Err(error);
                }
            },
        };
        let mut parts = self.begin(queue).await;
        let ended = tokio::select! {
            () = self.stop.wait() => None,
            ended = &mut parts.worker => Some(ended),
        };
        let outcome = ended.map(|ended| match ended {
            Ok(Err(error)) => RunError::Worker(error),
            Ok(Ok(())) | Err(_) => RunError::Panicked("the ingest worker"),
        });
        if let Some(error) = &outcome {
            error!("stopping: {}", crate::error::with_causes(error));
        }
        self.end(parts, outcome.is_some()).await;
        outcome.map_or(Ok(()), Err)
    }

    /// The queue once its disk has room; `None` when stopped meanwhile.
    async fn wait_for_space(&self) -> Result<Option<Arc<dyn Broker>>, RunError> {
        loop {
            tokio::select! {
                () = self.stop.wait() => return Ok(None),
                () = tokio::time::sleep(SPACE) => {}
            }
            match self.opening.open(self.clock.clone(), self.entropy.clone()).await {
                Ok(queue) => {
                    info!("there is space for the queue again");
                    return Ok(Some(queue));
                }
                Err(error) if error.no_space() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Life {
    /// The tenant's allowance, the schema, the worker, the API.
    async fn begin(&self, queue: Arc<dyn Broker>) -> Parts {
        let (api, ingest, rest) = (Stop::new(), Stop::new(), Stop::new());
        let schema = wh_clickhouse::Discovery::start(
            self.clients.queries.clone(),
            clickhouse::discovery(&self.config),
            self.clock.clone(),
            self.entropy.clone(),
            &self.tasks,
            rest.clone(),
        );
        self.tasks.spawn("app/metrics", self.metrics.clone().upkeep(rest.clone()));
        let worker = self.tasks.spawn("app/ingest", self.worker(queue.clone(), schema).run(ingest.clone()));
        self.front.set(Phase::Serving(axum::Router::new()));
        Parts { api, ingest, rest, worker, queue }
    }

    fn worker(&self, queue: Arc<dyn Broker>, schema: wh_clickhouse::SchemaHandle) -> wh_ingest::Worker {
        let sink = wh_ingest::ClickHouse::new(self.clients.inserts.clone(), Some(schema), self.clock.clone());
        let parts = wh_ingest::Parts {
            broker: queue,
            sinks: Arc::new(Arc::new(sink)),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        };
        let ingest = &self.config.ingest;
        let options = wh_ingest::Options {
            batch_rows: ingest.batch_rows,
            batch_bytes: ingest.batch_bytes,
            batch_wait: ingest.batch_wait,
            held_rows: ingest.held_rows,
            held_bytes: ingest.held_bytes,
            ack_wait: self.config.mq.embedded.ack_wait,
            missing_table_hold: ingest.missing_table_hold,
            stop_budget: self.config.server.shutdown_timeout,
            ..wh_ingest::Options::default()
        };
        wh_ingest::Worker::new(parts, options)
    }

    /// Halt, drain, release, each within its bound.
    async fn end(self, parts: Parts, worker_ended: bool) {
        let Parts { api, ingest, rest, mut worker, queue } = parts;
        let within = self.config.server.shutdown_timeout;
        let deadline = self.clock.now() + within + RELEASE;
        api.give();
        let cut = self.server.drain(within).await;
        if cut > 0 {
            warn!(cut, "{cut} connections were cut: server.shutdown_timeout is over");
        }
        ingest.give();
        if !worker_ended && timeout_at(deadline, &mut worker).await.is_err() {
            warn!("the worker was left behind: what it holds is delivered again at the next start");
        }
        rest.give();
        self.front.set(Phase::Stopped);
        let closing = async {
            queue.close().await;
            self.tasks.wait().await;
        };
        if tokio::time::timeout(CLOSE, closing).await.is_err() {
            warn!("the queue was not closed in time: it is recovered at the next start");
        }
    }
}
