//! From an open port to its end: the queue (once its disk has room), the API, the worker, and the stop.

use crate::{
    About, RunError,
    clickhouse::{self, Clients},
    front::{Front, Phase},
    parts::{api_options, api_parts, worker},
    queue::Opening,
    secrets::Secrets,
    serve::Server,
    telemetry::Metrics,
};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::timeout_at};
use tracing::{error, info, warn};
use wh_api::Api;
use wh_config::Config;
use wh_mq::Broker;
use wh_types::{Clock, Entropy, Stop, Tasks};

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
    /// As they were read at boot.
    pub(crate) secrets: Secrets,
    /// This start's name.
    pub(crate) instance: String,
    pub(crate) front: Front<Api>,
    pub(crate) server: Server,
    pub(crate) opening: Opening,
    pub(crate) tasks: Tasks,
    pub(crate) stop: Stop,
}

/// What runs besides the server.
#[derive(Debug)]
struct Parts {
    api: Api,
    /// Ends the streams; first.
    streams: Stop,
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
        let mut parts = self.begin(queue);
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
            match self.opening.open().await {
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
    /// The schema, the worker, the API.
    fn begin(&self, queue: Arc<dyn Broker>) -> Parts {
        let (streams, ingest, rest) = (Stop::new(), Stop::new(), Stop::new());
        let schema = wh_clickhouse::Discovery::start(
            self.clients.queries.clone(),
            clickhouse::discovery(&self.config),
            self.clock.clone(),
            self.entropy.clone(),
            &self.tasks,
            rest.clone(),
        );
        let worker = self.tasks.spawn("app/ingest", worker(self, queue.clone(), schema.clone()).run(ingest.clone()));
        let operator_key = self.secrets.watch(&self.clients, &self.tasks, &rest);
        let api =
            Api::new(api_parts(self, queue.clone(), schema, operator_key, streams.clone()), api_options(&self.config));
        self.front.set(Phase::Serving(api.clone()));
        self.tasks.spawn("app/metrics", self.metrics.clone().upkeep(rest.clone()));
        info!("serving");
        Parts { api, streams, ingest, rest, worker, queue }
    }

    /// Halt, drain, release, each within its bound.
    async fn end(self, parts: Parts, worker_ended: bool) {
        let Parts { api, streams, ingest, rest, mut worker, queue } = parts;
        let within = self.config.server.shutdown_timeout;
        let deadline = self.clock.now() + within + RELEASE;
        streams.give();
        let cut = self.server.drain(within).await;
        if cut > 0 {
            warn!(cut, "{cut} connections were cut: server.shutdown_timeout is over");
        }
        // rows of requests that were cut may still be on their way into the queue
        if timeout_at(deadline, api.finish()).await.is_err() {
            warn!(
                "rows were left behind on their way into the queue; their senders were not told that they are stored"
            );
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
