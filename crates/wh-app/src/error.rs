//! Why the process could not start or go on. Each says what to look at.

use crate::{DataDirError, ListenError};
use std::{fmt::Write, path::PathBuf};

/// It could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The port.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The data folder.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The queue in it.
    #[error("the queue in {} cannot be opened", path.display())]
    Queue {
        /// Its folder.
        path: PathBuf,
        /// Why.
        source: wh_mq::Error,
    },
    /// The connection to NATS: what it is given cannot work. A server that does not answer is no error of this kind.
    #[error("mq.nats cannot be used")]
    Nats(#[source] wh_nats::Error),
    /// No NATS server answered in time, or what is on it cannot be worked on.
    #[error(transparent)]
    Topology(wh_mq::nats::boot::Unsound),
    /// The queue on NATS.
    #[error("the queue on NATS cannot be opened")]
    Broker(#[source] wh_mq::Error),
    /// The leases by which processes share units.
    #[error("coord.nats cannot be used")]
    Leases(#[source] wh_coord::Error),
    /// The store of ids.
    #[error("dedupe cannot be used")]
    Dedupe(#[source] wh_dedupe::Error),
    /// A ClickHouse that cannot be meant. One that does not answer is no error.
    #[error("tenant_defaults.clickhouse cannot be used")]
    ClickHouse(#[source] wh_clickhouse::Error),
    /// A secret's file that was there a moment ago.
    #[error("a secret cannot be read")]
    Secret(#[from] wh_types::SecretFileError),
}

impl StartError {
    /// Whether room on the disk is all that is missing: then the process waits for it.
    #[must_use]
    pub fn no_space(&self) -> bool {
        match self {
            Self::DataDir(error) => error.no_space(),
            Self::Queue { source, .. } => matches!(source.kind(), wh_mq::Kind::NoSpace),
            Self::Listen(_)
            | Self::Nats(_)
            | Self::Topology(_)
            | Self::Broker(_)
            | Self::Leases(_)
            | Self::Dedupe(_)
            | Self::ClickHouse(_)
            | Self::Secret(_) => false,
        }
    }
}

/// It could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The queue, after its disk had room again.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A unit's delivery ended for good.
    #[error("the ingest worker ended")]
    Worker(#[source] wh_mq::Error),
    /// A task of ours panicked; the log has the place.
    #[error("{0} panicked")]
    Panicked(&'static str),
}

/// An error with its causes, in one line; a cause whose words are already there is left out.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !line.contains(&words) && write!(line, ": {words}").is_err() {
            break;
        }
        next = cause.source();
    }
    line
}
