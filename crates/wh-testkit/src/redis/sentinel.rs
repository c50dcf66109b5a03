//! A primary, a replica of it, and a sentinel that names the primary. Clients reach the first primary through a proxy.

use super::server::{Options, START, Server};
use crate::{chaos, until};
use anyhow::{Context, Result};

/// What the sentinel calls the primary.
const NAME: &str = "wh";

/// The three of them.
#[derive(Debug)]
pub struct Sentinel {
    primary: Server,
    replica: Server,
    sentinel: Server,
    proxy: chaos::Tcp,
}

impl Sentinel {
    /// On free ports; the replica is in step.
    ///
    /// # Errors
    /// The server is missing, or they do not find each other.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start() -> Result<Self> {
        let primary = Server::start().await?;
        let proxy = chaos::Tcp::start(primary.port()).await?;
        let to = primary.port().to_string();
        let args = ["--replicaof", &format!("127.0.0.1 {to}"), "--repl-diskless-sync-delay", "0"];
        let replica = Server::with(Options { args: args.map(str::to_owned).to_vec(), ..Options::default() }).await?;
        let watched = proxy.port();
        let state = format!(
            "sentinel monitor {NAME} 127.0.0.1 {watched} 1\n\
             sentinel down-after-milliseconds {NAME} 60000\n\
             sentinel failover-timeout {NAME} 10000\n"
        );
        let sentinel = Server::with(Options { sentinel: Some(state), ..Options::default() }).await?;
        let all = Self { primary, replica, sentinel, proxy };
        all.in_step().await?;
        Ok(all)
    }

    async fn in_step(&self) -> Result<()> {
        until(START, "the replica is in step and the sentinel knows it", || async {
            let replica = self.replica.command(&["INFO", "replication"]).await.unwrap_or_default();
            let known = self.sentinel.command(&["SENTINEL", "replicas", NAME]).await.unwrap_or_default();
            let sound = replica.contains("master_link_status:up") && known.contains(&self.replica.port().to_string());
            if sound { Ok(()) } else { Err(format!("{replica} {known}")) }
        })
        .await?;
        Ok(())
    }

    /// What the sentinel calls the primary.
    #[must_use]
    pub fn name(&self) -> &'static str {
        NAME
    }

    /// The sentinel's port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.sentinel.port()
    }

    /// The first primary.
    pub fn primary(&mut self) -> &mut Server {
        &mut self.primary
    }

    /// The first replica.
    #[must_use]
    pub fn replica(&self) -> &Server {
        &self.replica
    }

    /// What clients reach the first primary through.
    #[must_use]
    pub fn proxy(&self) -> &chaos::Tcp {
        &self.proxy
    }

    /// Has the sentinel make the replica the primary, and waits until it is and the old one follows it.
    ///
    /// # Errors
    /// It does not come to be.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn fail_over(&self) -> Result<()> {
        self.sentinel.command(&["SENTINEL", "FAILOVER", NAME]).await.context("a failover was refused")?;
        until(START, "the replica is the primary", || async {
            let told = self.sentinel.command(&["SENTINEL", "MASTER", NAME]).await.unwrap_or_default();
            let named = self.sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).await.unwrap_or_default();
            let old = self.primary.command(&["ROLE"]).await.unwrap_or_default();
            let done = named.contains(&self.replica.port().to_string());
            if done && old.starts_with("slave") {
                return Ok(());
            }
            let mut again = String::new();
            // on a busy machine one is given up, and no other begins by itself
            if !done && told.contains("flags") && !told.contains("failover_in_progress") {
                again = format!("{:?}", self.sentinel.command(&["SENTINEL", "FAILOVER", NAME]).await);
            }
            Err(format!("{old} {told} {named} {again}"))
        })
        .await?;
        Ok(())
    }
}
