//! Opening the queue that the configuration names. The one place that knows a backend.

use crate::{StartError, data_dir};
use std::{path::PathBuf, sync::Arc};
use wh_config::{Config, QueueBackend};
use wh_mq::Broker;
use wh_types::{Clock, Entropy};

/// The queue's folder in the data folder.
const FOLDER: &str = "queue";

/// What opening takes.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    backend: QueueBackend,
    data_dir: PathBuf,
}

impl Opening {
    pub(crate) fn new(config: &Config) -> Self {
        Self { backend: config.mq.backend, data_dir: config.data_dir.clone() }
    }

    /// Opens it, reading what is there.
    pub(crate) async fn open(
        &self,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Arc<dyn Broker>, StartError> {
        data_dir::prepare(&self.data_dir)?;
        let _ = (clock, entropy, self.backend);
        let path = self.data_dir.join(FOLDER);
        Err(StartError::Queue { path, source: wh_mq::Error::new("open", wh_mq::Kind::Unsupported("be opened")) })
    }
}
