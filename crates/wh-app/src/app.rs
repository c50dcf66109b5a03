//! Starting an application from its configuration, and the handle on the running one.

use crate::{
    About, RunError, StartError,
    backend::Backend,
    cache,
    clickhouse::Clients,
    dedupe,
    error::with_causes,
    front::{Front, Phase},
    instance,
    life::Life,
    pipes::PipesFile,
    secrets::Secrets,
    serve::{Limits, Server, listen},
    telemetry::install_metrics,
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::task::JoinHandle;
use tracing::{error, info};
use wh_config::Config;
use wh_types::{Clock, Entropy, OsEntropy, Stop, SystemClock, Tasks};

/// An application: the roles of one configuration, in this process.
#[derive(Debug)]
pub struct App;

impl App {
    /// Starts it: opens the port, then the queue, then the rest. A ClickHouse that is away and a full disk are waited
    /// for in the background, a sound topology on NATS is waited for here; anything else that is wrong is told here.
    ///
    /// Logs are the caller's ([`telemetry::install_logs`](crate::telemetry::install_logs)); metrics are taken over for
    /// the process.
    ///
    /// # Errors
    /// [`StartError`], which names the port, folder or key.
    ///
    /// # Cancel safety
    /// Detached: the port may stay open. Await it.
    pub async fn start(config: Config, about: About) -> Result<Running, StartError> {
        let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) = (Arc::new(SystemClock), Arc::new(OsEntropy));
        let instance = config.instance_id.clone().unwrap_or_else(|| instance::name(&*entropy));
        let opening = Backend::new(&config, &instance, clock.clone(), entropy.clone());
        start(config, about, instance, opening, clock, entropy).await
    }
}

pub(crate) async fn start(
    config: Config,
    about: About,
    instance: String,
    opening: Backend,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<Running, StartError> {
    let metrics = install_metrics(about, clock.clone());
    let secrets = Secrets::read(&config)?;
    let clients = Clients::new(&config, secrets.password())?;
    let pipes = PipesFile::load(&config)?;
    let tasks = Tasks::new();
    let cache = cache::open(&config, clock.clone(), entropy.clone(), &tasks)?;

    let listener = listen(SocketAddr::new(config.server.host, config.server.port)).await?;
    let addr = listener.local_addr().map_err(|source| crate::ListenError::Refused {
        addr: (config.server.host, config.server.port).into(),
        source,
    })?;
    let front = Front::new(entropy.clone());
    let limits =
        Limits { max_connections: config.server.max_connections, header_timeout: config.server.header_timeout };
    let server = Server::start(listener, front.clone(), limits);
    info!(%addr, instance, "{instance} listens on http://{addr}");

    let queue = match opening.open().await {
        Ok(queue) => Some(queue),
        Err(full) if full.no_space() => {
            let why = with_causes(&full);
            error!("no space for the queue, retrying every 5 s: {why}");
            front.set(Phase::NoSpace(format!("no space for the queue: {why}")));
            None
        }
        Err(error) => {
            server.drain(Duration::ZERO).await;
            return Err(error);
        }
    };
    let dedupe = match Box::pin(dedupe::open(&config, clock.clone(), entropy.clone())).await {
        Ok(dedupe) => dedupe,
        Err(error) => {
            server.drain(Duration::ZERO).await;
            if let Some(queue) = queue {
                queue.close().await;
            }
            return Err(error);
        }
    };
    let stop = Stop::new();
    let life = Life {
        config,
        about,
        clock,
        entropy,
        metrics,
        clients,
        secrets,
        pipes,
        instance,
        front,
        server,
        opening,
        dedupe,
        cache,
        tasks,
        stop: stop.clone(),
    };
    let ended = Tasks::new().spawn("app/life", Box::pin(life.run(queue)));
    Ok(Running { addr, stop, ended })
}

/// A running application. Dropping it stops nothing.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    stop: Stop,
    ended: JoinHandle<Result<(), RunError>>,
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Asks it to stop: no new connections, streams end, requests in flight are answered, rows already taken from the
    /// queue are inserted, the queue is closed. Again is a no-op.
    pub fn stop(&self) {
        self.stop.give();
    }

    /// Returns once it has stopped: after [`stop`](Self::stop) within `server.shutdown_timeout` and 8 s, and where it
    /// ingests within `ingest.insert_timeout` and 13 s more.
    ///
    /// # Errors
    /// It ended by itself, for this reason.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait(&mut self) -> Result<(), RunError> {
        (&mut self.ended).await.unwrap_or(Err(RunError::Panicked("the application")))
    }
}

#[cfg(test)]
#[path = "app_tests.rs"]
mod tests;
