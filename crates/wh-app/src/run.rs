//! One process from its configuration to its exit code.

use crate::{About, App, Exit, error::with_causes, signals::Signals};
use anyhow::Context;
use tracing::{info, warn};
use wh_config::Loaded;

/// Runs the server until it is stopped or fails.
pub(crate) fn run(about: About, loaded: Loaded) -> anyhow::Result<Exit> {
    let file = loaded.file.as_ref().map_or("no file".to_owned(), |file| file.display().to_string());
    info!(version = about.version, commit = about.commit, config = file, "{about} starts with {file}");
    for warning in &loaded.warnings {
        warn!("{warning}");
    }
    raise_file_limit(loaded.config.server.max_connections);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("the runtime cannot be started")?;
    let exit = runtime.block_on(Box::pin(until_stopped(about, loaded)));
    // nothing of ours is left that matters; a hanging disk must not keep the process
    runtime.shutdown_background();
    exit
}

async fn until_stopped(about: About, loaded: Loaded) -> anyhow::Result<Exit> {
    let mut signals = Signals::new().context("signals cannot be heard")?;
    let started = tokio::select! {
        started = App::start(loaded.config, about) => started,
        signal = signals.stop() => {
            info!("{signal} while starting: ended");
            return Ok(Exit::Ok);
        }
    };
    let mut running = started.map_err(|error| anyhow::anyhow!("cannot start: {}", with_causes(&error)))?;
    tokio::select! {
        ended = running.wait() => return finished(ended),
        signal = signals.stop() => info!("{signal}: stopping; a second one ends at once"),
    }
    running.stop();
    tokio::select! {
        ended = running.wait() => finished(ended),
        signal = signals.stop() => {
            warn!("{signal} again: ended without waiting; what was not inserted is delivered again at the next start");
            Ok(Exit::Failure)
        }
    }
}

fn finished(ended: Result<(), crate::RunError>) -> anyhow::Result<Exit> {
    match ended {
        Ok(()) => {
            info!("stopped");
            Ok(Exit::Ok)
        }
        Err(error) => Err(anyhow::anyhow!("ended: {}", with_causes(&error))),
    }
}

/// Each connection is a file handle, and the soft limit is often 1024: raises it as far as this process may.
fn raise_file_limit(max_connections: usize) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    /// Files of the queue, connections to ClickHouse, and the like.
    const OTHERS: u64 = 512;
    let wanted = max_connections as u64 + OTHERS;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
    if setrlimit(Resource::Nofile, limit).is_err() || limit.current < Some(wanted) {
        let has = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        warn!(
            has,
            wanted, "{has} file handles are fewer than server.max_connections needs ({wanted}): raise the limit"
        );
    }
}
