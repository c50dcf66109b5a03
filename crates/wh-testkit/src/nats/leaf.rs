//! A hub with a JetStream domain and a leafnode outside of it: clients connect to the leafnode, streams are on the hub.

use super::{OPERATOR, Operator, Options, PASSWORD, Server, WITHIN};
use crate::{free_port, until};
use anyhow::{Context, Result};

/// A hub and its leafnode.
#[derive(Debug)]
pub struct Leaf {
    /// Where the streams are.
    pub hub: Server,
    /// Where clients connect.
    pub leaf: Server,
    domain: String,
    options: Options,
}

impl Leaf {
    /// Both with the same users. The leafnode has a JetStream of its own, of domain `leaf`, so that the plain form of
    /// the API means the leafnode's and only the long form reaches the hub.
    ///
    /// # Errors
    /// `options` has no domain or no users, or one of both does not come up or does not reach the other.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start(options: Options) -> Result<Self> {
        let domain = options.domain.clone().context("a hub has a domain")?;
        anyhow::ensure!(options.operator().is_some(), "a leafnode logs in: give it users");
        let port = free_port()?;
        let hub = options.clone().lines(&format!("leafnodes {{ listen: \"127.0.0.1:{port}\" }}\nserver_name: hub"));
        let hub = Server::with(hub).await?;
        let remote = format!(
            "server_name: leaf\nleafnodes {{ remotes: [{{ \
             url: \"nats-leaf://{OPERATOR}:{PASSWORD}@127.0.0.1:{port}\", account: WAVEHOUSE }}] }}"
        );
        let leaf = Server::with(options.clone().domain("leaf").lines(&remote)).await?;
        let both = Self { hub, leaf, domain, options };
        let look =
            || async { Operator::new(vec![both.leaf.port()], &both.options).answers_within_ms(300, "INFO").await };
        until(WITHIN, "the hub answers through the leafnode", look).await?;
        Ok(both)
    }

    /// The domain of the hub.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Who may do everything on the hub.
    #[must_use]
    pub fn operator(&self) -> Operator {
        Operator::new(vec![self.hub.port()], &self.options)
    }
}
