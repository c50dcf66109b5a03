//! Three nats-servers that are one cluster.

use super::{Operator, Options, Server, WITHIN};
use crate::{free_port, until};
use anyhow::{Context, Result};

/// A cluster of three, `n0` to `n2`.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
    options: Options,
}

impl Cluster {
    /// Three of one release, without users, with their leader elected.
    ///
    /// # Errors
    /// A server is missing or does not come up, or no leader is elected.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn three(version: &'static str) -> Result<Self> {
        Self::with(Options::default().version(version)).await
    }

    /// Three with users, a domain, further lines.
    ///
    /// # Errors
    /// As [`Cluster::three`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn with(options: Options) -> Result<Self> {
        let routes = [free_port()?, free_port()?, free_port()?];
        let urls = routes.map(|port| format!("nats-route://127.0.0.1:{port}")).join(", ");
        let mut nodes = Vec::new();
        for (number, route) in routes.iter().enumerate() {
            let lines = format!(
                "server_name: n{number}\ncluster {{ name: wh, listen: \"127.0.0.1:{route}\", routes: [{urls}] }}"
            );
            nodes.push(Server::launch(options.clone().lines(&lines))?);
        }
        for node in &mut nodes {
            node.listens().await?;
        }
        let cluster = Self { nodes, options };
        cluster.elected().await?;
        Ok(cluster)
    }

    /// Waits until JetStream answers, which it does once it has a leader.
    ///
    /// # Errors
    /// None is elected in 20 seconds.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn elected(&self) -> Result<()> {
        let look = || async { self.operator().answers_within_ms(300, "INFO").await };
        until(WITHIN, "the cluster has a leader", look).await?;
        Ok(())
    }

    /// The URLs of all three.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Server::url).collect()
    }

    /// A server by its number.
    #[must_use]
    pub fn node(&self, number: usize) -> &Server {
        &self.nodes[number]
    }

    /// A server by its number: to kill, pause, resume or restart it.
    pub fn node_mut(&mut self, number: usize) -> &mut Server {
        &mut self.nodes[number]
    }

    /// Who may do everything on it. Asks whichever server answers.
    #[must_use]
    pub fn operator(&self) -> Operator {
        Operator::new(self.nodes.iter().map(Server::port).collect(), &self.options)
    }

    /// The number of the server that leads a stream.
    ///
    /// # Errors
    /// None does, or nobody answers.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn stream_leader(&self, stream: &str) -> Result<usize> {
        number(&self.operator().stream_leader(stream).await?)
    }

    /// The number of the server that leads a consumer.
    ///
    /// # Errors
    /// None does, or nobody answers.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn consumer_leader(&self, stream: &str, durable: &str) -> Result<usize> {
        number(&self.operator().consumer_leader(stream, durable).await?)
    }
}

fn number(name: &str) -> Result<usize> {
    let digits = name.strip_prefix('n').with_context(|| format!("no server is called {name}"))?;
    Ok(digits.parse()?)
}
