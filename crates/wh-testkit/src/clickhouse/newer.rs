//! A newer engine than the one that serves, as a Python module without a listener of its own: a small script answers
//! for it. Good for one question: what would this version store?

use super::Endpoint;
use crate::{Process, free_port, servers};
use anyhow::Result;
use std::time::Duration;

const START: Duration = Duration::from_secs(180);

/// The newer engine, empty, in memory. Takes statements in a body, one at a time; nothing else of ClickHouse's HTTP
/// interface: no parameters, no compression, no users.
#[derive(Debug)]
pub struct Newer {
    _process: Process,
    endpoint: Endpoint,
}

impl Newer {
    /// Starts it.
    ///
    /// # Errors
    /// The engine or python3 is missing, or it does not come up.
    ///
    /// # Cancel safety
    /// Safe: what was started is killed.
    pub async fn start() -> Result<Self> {
        let port = free_port()?;
        let mut process = Process::launch("clickhouse-newer", "python3")
            .args(["-c", include_str!("newer.py")])
            .arg(servers::clickhouse_newer()?)
            .arg(port.to_string())
            .start()?;
        let endpoint = Endpoint::new(format!("http://127.0.0.1:{port}"));
        process.ready(START, "it answers its ping", || endpoint.answers()).await?;
        Ok(Self { _process: process, endpoint })
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// As [`Endpoint::query`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn query(&self, sql: &str) -> Result<String> {
        self.endpoint.query(sql).await
    }
}
