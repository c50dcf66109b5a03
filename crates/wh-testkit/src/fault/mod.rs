//! A proxy in front of ClickHouse's HTTP interface that misbehaves as it is told.
//!
//! It runs in the test's own process. Without rules it is invisible: bodies stream through in both directions, and an
//! upstream that is down looks like a connection reset. It is not fast: each request gets an upstream connection of
//! its own.

mod reply;
mod rule;
mod serve;

pub use rule::{Action, Kind, Rule, RuleId, Stats};

use crate::free_port;
use anyhow::{Context, Result};
use parking_lot::Mutex;
use rule::Table;
use std::sync::Arc;
use tokio::net::TcpListener;
use wh_types::{Stop, Tasks};

/// A running proxy. Dropping it cuts its connections and frees its port.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    serving: tokio::sync::Mutex<Option<Serving>>,
}

/// What every connection needs.
#[derive(Debug)]
struct Shared {
    upstream: String,
    rules: Mutex<Table>,
}

/// The time between one `up` and the next `down`.
#[derive(Debug)]
struct Serving {
    stop: Stop,
    tasks: Tasks,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.give();
    }
}

impl Proxy {
    /// In front of `upstream` (`http://host:port` or `host:port`), on a free port, without rules.
    ///
    /// # Errors
    /// No port is free.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start(upstream: impl AsRef<str>) -> Result<Self> {
        let upstream = upstream.as_ref();
        let upstream = upstream.strip_prefix("http://").unwrap_or(upstream).trim_end_matches('/').to_owned();
        let shared = Arc::new(Shared { upstream, rules: Mutex::default() });
        let proxy = Self { port: free_port()?, shared, serving: tokio::sync::Mutex::default() };
        proxy.up().await?;
        Ok(proxy)
    }

    /// `http://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Adds a rule after the others; the first that matches a request and is due acts on it.
    pub fn add(&self, rule: Rule) -> RuleId {
        self.shared.rules.lock().add(rule)
    }

    /// Removes one rule; the requests it holds stay held.
    pub fn remove(&self, rule: RuleId) {
        self.shared.rules.lock().remove(rule);
    }

    /// Removes all rules: from now on it is invisible.
    pub fn clear(&self) {
        self.shared.rules.lock().clear();
    }

    /// How often a rule acted, also after it was removed.
    #[must_use]
    pub fn fired(&self, rule: RuleId) -> u64 {
        self.shared.rules.lock().fired(rule)
    }

    /// What came and what was done to it, since the start.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.rules.lock().stats()
    }

    /// Cuts every connection; the port refuses until [`Proxy::up`]. No-op when it is down.
    ///
    /// # Cancel safety
    /// Detached: it goes down.
    pub async fn down(&self) {
        let taken = self.serving.lock().await.take();
        if let Some(serving) = taken {
            serving.stop.give();
            serving.tasks.wait().await;
        }
    }

    /// Listens again, on the same port. No-op when it is up.
    ///
    /// # Errors
    /// Something else took the port.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn up(&self) -> Result<()> {
        let mut serving = self.serving.lock().await;
        if serving.is_none() {
            let listener = TcpListener::bind(("127.0.0.1", self.port)).await.context("the proxy's port is taken")?;
            let (stop, tasks) = (Stop::new(), Tasks::new());
            let accepting = serve::accept(listener, self.shared.clone(), stop.clone(), tasks.clone());
            drop(tasks.spawn("fault proxy", accepting));
            *serving = Some(Serving { stop, tasks });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
