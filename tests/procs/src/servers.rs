//! The queue's nats-server, or three of them that are one cluster.

use anyhow::{Context, Result};
use wh_testkit::nats::{Cluster, Operator, Options, Server};

/// What the queue is on.
#[derive(Debug)]
pub enum Servers {
    /// A server.
    One(Server),
    /// A cluster.
    Three(Cluster),
}

impl Servers {
    pub(crate) async fn start(replicas: u32, options: Options) -> Result<Self> {
        if replicas > 1 {
            return Ok(Self::Three(Cluster::with(options).await?));
        }
        Ok(Self::One(Server::with(options).await?))
    }

    /// Who may do everything on it.
    #[must_use]
    pub fn operator(&self) -> Operator {
        match self {
            Self::One(server) => server.operator(),
            Self::Three(cluster) => cluster.operator(),
        }
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        match self {
            Self::One(server) => vec![server.url()],
            Self::Three(cluster) => cluster.urls(),
        }
    }

    /// The only server.
    ///
    /// # Errors
    /// There are three.
    pub fn one(&mut self) -> Result<&mut Server> {
        match self {
            Self::One(server) => Ok(server),
            Self::Three(_) => None.context("the queue is on three servers"),
        }
    }

    /// The cluster.
    ///
    /// # Errors
    /// There is one server only.
    pub fn three(&mut self) -> Result<&mut Cluster> {
        match self {
            Self::One(_) => None.context("the queue is on one server"),
            Self::Three(cluster) => Ok(cluster),
        }
    }
}
