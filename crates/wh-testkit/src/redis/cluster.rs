//! A cluster of three primaries. Clients are told to reach each node through a proxy, so that all of it can be lost.

use super::{
    command,
    server::{Options, START, Server},
};
use crate::{chaos, free_port, until};
use anyhow::Result;
use futures::future::try_join_all;

const NODES: usize = 3;
const SLOTS: usize = 16_384;

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
    proxies: Vec<chaos::Tcp>,
}

impl Cluster {
    /// Three nodes on free ports that share all slots.
    ///
    /// # Errors
    /// The server is missing, or they do not become one cluster.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start() -> Result<Self> {
        let (mut nodes, mut proxies, mut buses) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..NODES {
            // the proxy needs the node's port and the node the proxy's: the node is told last
            let bus = free_port()?.to_string();
            let args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--cluster-port", &bus];
            let args = args.map(str::to_owned).to_vec();
            let node = Server::with(Options { args, ..Options::default() }).await?;
            let proxy = chaos::Tcp::start(node.port()).await?;
            node.command(&["CONFIG", "SET", "cluster-announce-port", &proxy.port().to_string()]).await?;
            nodes.push(node);
            proxies.push(proxy);
            buses.push(bus);
        }
        for (n, node) in nodes.iter().enumerate() {
            let (first, last) = (n * SLOTS / NODES, (n + 1) * SLOTS / NODES - 1);
            node.command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]).await?;
            // a node that restarts is to know where the others are, and what its own proxy is
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(n + 1).to_string()]).await?;
        }
        for (other, bus) in nodes.iter().zip(&buses).skip(1) {
            nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string(), bus]).await?;
        }
        let cluster = Self { nodes, proxies };
        cluster.whole().await?;
        Ok(cluster)
    }

    /// Waits until every node says that the cluster is whole.
    ///
    /// # Errors
    /// It does not become so.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn whole(&self) -> Result<()> {
        until(START, "every node knows a whole cluster", || async {
            for node in &self.nodes {
                let info = node.command(&["CLUSTER", "INFO"]).await.unwrap_or_default();
                let slots = node.command(&["CLUSTER", "SLOTS"]).await.unwrap_or_default();
                let told = self.proxies.iter().all(|proxy| slots.contains(&proxy.port().to_string()));
                let known = info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
                if !known || !told {
                    return Err(format!("{}: {info} {slots}", node.port()));
                }
            }
            Ok(())
        })
        .await?;
        Ok(())
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// What clients reach the nodes through.
    #[must_use]
    pub fn proxies(&self) -> &[chaos::Tcp] {
        &self.proxies
    }

    /// Sends a command to each node.
    ///
    /// # Errors
    /// As [`command`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn command(&self, words: &[&str]) -> Result<()> {
        try_join_all(self.nodes.iter().map(|node| command(node.port(), None, words))).await.map(drop)
    }

    /// Kills every node and starts it again with what it saved last.
    ///
    /// # Errors
    /// They do not come up as one cluster.
    ///
    /// # Cancel safety
    /// Safe: each is dead or up.
    pub async fn crash(&mut self) -> Result<()> {
        for (node, proxy) in self.nodes.iter_mut().zip(&self.proxies) {
            node.crash().await?;
            node.command(&["CONFIG", "SET", "cluster-announce-port", &proxy.port().to_string()]).await?;
        }
        self.whole().await
    }
}
