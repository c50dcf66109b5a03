//! Opening the queue that the configuration names. The one place that knows a backend.

use crate::{StartError, data_dir};
use std::{path::PathBuf, sync::Arc};
use tracing::{error, info, warn};
use wh_config::Config;
use wh_mq::{Allowance, Broker, embedded};
use wh_types::{Clock, Entropy};

/// The queue's folder in the data folder.
const FOLDER: &str = "queue";

/// Where the queue of a configuration is.
pub(crate) fn folder(config: &Config) -> PathBuf {
    config.data_dir.join(FOLDER)
}

/// What a tenant has that was given nothing of its own.
pub(crate) fn allowance(config: &Config) -> Allowance {
    let bytes = config.tenant_defaults.queue_max_bytes;
    // one table's flood leaves a fifth to the others
    Allowance { bytes, table_bytes: bytes / 5 * 4, history: config.mq.embedded.history }
}

/// What opening takes. It may be tried again.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    data_dir: PathBuf,
    options: embedded::Options,
}

impl Opening {
    pub(crate) fn new(config: &Config, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        let queue = &config.mq.embedded;
        let options = embedded::Options {
            shards: queue.shards,
            ack_wait: queue.ack_wait,
            default_allowance: allowance(config),
            cache_bytes: queue.cache_bytes,
            clock,
            entropy,
            ..embedded::Options::new(folder(config))
        };
        Self { data_dir: config.data_dir.clone(), options }
    }

    /// The same on another disk.
    #[cfg(test)]
    pub(crate) fn on(mut self, disk: Arc<wh_log::disk::sim::SimDisk>) -> Self {
        self.options.disk = disk;
        self
    }

    /// Opens it, reading what is there.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Broker>, StartError> {
        data_dir::prepare(&self.data_dir)?;
        let path = self.options.dir.clone();
        let broker = embedded::Broker::open(self.options.clone())
            .await
            .map_err(|source| StartError::Queue { path: path.clone(), source })?;
        let embedded::Recovery { blocks, dead_letters, took, damages, damage_count, torn, missing, listed } =
            broker.recovery();
        let (path, took_ms) = (path.display(), took.as_millis());
        info!(%path, blocks, dead_letters, took_ms, torn, "the queue in {path} is open, {blocks} blocks in it");
        for damage in damages {
            error!(%path, "the queue in {path} cannot be read at {}", damage.place);
        }
        if *damage_count > damages.len() as u64 {
            error!(%path, damage_count, "{damage_count} places in {path} cannot be read in all");
        }
        for one in missing {
            let (segment, whole, noticed) = (one.place.segment, one.whole, one.noticed);
            let what = if whole { "is gone" } else { "was cut short" };
            error!(%path, segment, place = %one.place, %noticed, "segment {segment} of the queue in {path} {what}: what it held is lost");
        }
        if !listed {
            warn!(%path, "which segments the queue in {path} should have was not noted: missing ones are not noticed this time");
        }
        Ok(Arc::new(broker))
    }
}
