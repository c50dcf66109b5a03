//! The queue's backends behind one word: which one a configuration means, and what comes with it once it is open.

use crate::{
    StartError,
    cluster::{self, Cluster},
    queue,
};
use std::{sync::Arc, time::Duration};
use wh_config::{Config, QueueBackend};
use wh_mq::Broker;
use wh_types::{Clock, Entropy};

/// What opening a queue takes. It may be tried again.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// In the data folder.
    Embedded { opening: Box<queue::Opening>, ack_wait: Duration },
    /// On a JetStream cluster.
    Nats(Box<cluster::Opening>),
}

/// A queue that is open.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) broker: Arc<dyn Broker>,
    /// How long a delivered block may be silent.
    pub(crate) ack_wait: Duration,
    /// Where it is shared with other processes.
    pub(crate) cluster: Option<Cluster>,
}

impl Backend {
    /// The one that the configuration names.
    pub(crate) fn new(config: &Config, instance: &str, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        match config.mq.backend {
            QueueBackend::Embedded => Self::Embedded {
                opening: Box::new(queue::Opening::new(config, clock, entropy)),
                ack_wait: config.mq.embedded.ack_wait,
            },
            QueueBackend::Nats => Self::Nats(Box::new(cluster::Opening::new(config, instance, clock, entropy))),
        }
    }

    /// Opens it.
    pub(crate) async fn open(&self) -> Result<Queue, StartError> {
        match self {
            Self::Embedded { opening, ack_wait } => {
                Ok(Queue { broker: opening.open().await?, ack_wait: *ack_wait, cluster: None })
            }
            Self::Nats(opening) => opening.open().await,
        }
    }
}

impl Queue {
    /// Ends it, in order: the queue, what its processes agree by, the connection.
    pub(crate) async fn close(&self) {
        self.broker.close().await;
        if let Some(cluster) = &self.cluster {
            cluster.close().await;
        }
    }
}
