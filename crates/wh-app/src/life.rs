//! From an open port to its end: the queue (once its disk has room), the API, the worker, and the stop.

use crate::{
    About, RunError,
    backend::{Backend, Queue},
    cache,
    clickhouse::{self, Clients},
    dedupe,
    error::with_causes,
    front::{Front, Phase},
    id_columns,
    parts::{api_options, api_parts, dedupe_rules, stop_budget, worker},
    pipes::PipesFile,
    secrets::Secrets,
    serve::Server,
    telemetry::Metrics,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    task::{JoinError, JoinHandle},
    time::timeout_at,
};
use tracing::{error, info, warn};
use wh_api::Api;
use wh_config::{Config, Roles};
use wh_dedupe::Dedupe as _;
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
    /// As they were read at boot.
    pub(crate) pipes: PipesFile,
    /// This start's name.
    pub(crate) instance: String,
    pub(crate) front: Front<Api>,
    pub(crate) server: Server,
    pub(crate) opening: Backend,
    /// Where ids are kept, where they are.
    pub(crate) dedupe: Option<Arc<dedupe::Store>>,
    /// Where answers are kept, where they are.
    pub(crate) cache: Option<cache::Store>,
    pub(crate) tasks: Tasks,
    pub(crate) stop: Stop,
}

type Worker = JoinHandle<Result<(), wh_mq::Error>>;

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
    /// With the role `ingest`.
    worker: Option<Worker>,
    queue: Queue,
}

impl Life {
    pub(crate) async fn run(self, queue: Option<Queue>) -> Result<(), RunError> {
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
            ended = ended(parts.worker.as_mut()) => Some(ended),
        };
        let outcome = ended.map(|ended| match ended {
            Ok(Err(error)) => RunError::Worker(error),
            Ok(Ok(())) | Err(_) => RunError::Panicked("the ingest worker"),
        });
        if let Some(error) = &outcome {
            error!("stopping: {}", with_causes(error));
            parts.worker = None;
        }
        self.end(parts).await;
        outcome.map_or(Ok(()), Err)
    }

    /// The queue once its disk has room; `None` when stopped meanwhile.
    async fn wait_for_space(&self) -> Result<Option<Queue>, RunError> {
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
    /// The schema, the worker, the API: each where its role is ours.
    fn begin(&self, queue: Queue) -> Parts {
        let (streams, ingest, rest) = (Stop::new(), Stop::new(), Stop::new());
        let schema = wh_clickhouse::Discovery::start(
            self.clients.queries.clone(),
            clickhouse::discovery(&self.config),
            self.clock.clone(),
            self.entropy.clone(),
            &self.tasks,
            rest.clone(),
        );
        let worker = self
            .config
            .roles
            .ingest
            .then(|| self.tasks.spawn("app/ingest", worker(self, &queue, schema.clone()).run(ingest.clone())));
        let cluster = queue.cluster.as_ref();
        let mut checks = cluster.map(|cluster| cluster.watch(&self.tasks, rest.clone())).unwrap_or_default();
        checks.extend(self.cache.as_ref().map(cache::Store::check));
        let operator_key = self.secrets.watch(&self.clients, &self.tasks, &rest);
        self.pipes.watch(&self.tasks, &rest);
        if self.dedupe.is_some() {
            id_columns::watch(dedupe_rules(&self.config.tenant_defaults.dedupe), &schema, &self.tasks, rest.clone());
        }
        let parts = api_parts(self, &queue, schema, operator_key, checks, streams.clone());
        let api = Api::new(parts, api_options(&self.config));
        self.front.set(Phase::Serving(api.clone()));
        self.tasks.spawn("app/metrics", self.metrics.clone().upkeep(rest.clone()));
        let Roles { api: serves, ingest: ingests, .. } = self.config.roles;
        info!(api = serves, ingest = ingests, "serving");
        Parts { api, streams, ingest, rest, worker, queue }
    }

    /// Halt, drain, release, each within its bound.
    async fn end(self, parts: Parts) {
        let Parts { api, streams, ingest, rest, worker, queue } = parts;
        let within = self.config.server.shutdown_timeout;
        let released = stop_budget(&self.config) + RELEASE;
        let deadline = self.clock.now() + within + RELEASE;
        // from here on nobody is sent to this process: readiness says so, streams end
        streams.give();
        let serving = async {
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
        };
        let working = async {
            ingest.give();
            if let Some(worker) = worker
                && tokio::time::timeout(released, worker).await.is_err()
            {
                warn!("the worker was left behind: what it holds is delivered again");
            }
        };
        match (self.config.roles.api, queue.cluster.is_some()) {
            // others take the units over at once, whatever clients still do here
            (true, true) => drop(tokio::join!(serving, working)),
            // what these clients sent is inserted too, as nobody else will before the next start
            (true, false) => {
                serving.await;
                working.await;
            }
            // operators look on until the last row is settled
            (false, _) => {
                working.await;
                serving.await;
            }
        }
        rest.give();
        self.front.set(Phase::Stopped);
        let closing = async {
            if let Some(dedupe) = &self.dedupe {
                dedupe.close().await;
            }
            if let Some(store) = &self.cache {
                store.cache.close().await;
            }
            queue.close().await;
            self.tasks.wait().await;
        };
        if tokio::time::timeout(CLOSE, closing).await.is_err() {
            warn!("the queue was not closed in time");
        }
    }
}

/// How the worker ended; never, where there is none.
async fn ended(worker: Option<&mut Worker>) -> Result<Result<(), wh_mq::Error>, JoinError> {
    match worker {
        Some(worker) => worker.await,
        None => std::future::pending().await,
    }
}
