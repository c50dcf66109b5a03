//! A redis-server of a test's own. It saves nothing.

use crate::{Process, free_port, servers};
use anyhow::Result;
use std::time::Duration;
use tempfile::TempDir;

const START: Duration = Duration::from_secs(20);

/// A running redis-server.
#[derive(Debug)]
pub struct Server {
    process: Process,
    port: u16,
    _dir: TempDir,
}

impl Server {
    /// On a free port.
    ///
    /// # Errors
    /// It is missing or does not come up.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start() -> Result<Self> {
        let (dir, port) = (TempDir::with_prefix("wh-redis-")?, free_port()?);
        let process = Process::launch("redis-server", servers::redis_server()?)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(dir.path())
            .start()?;
        let mut server = Self { process, port, _dir: dir };
        server.process.listens(port, START).await?;
        Ok(server)
    }

    /// `redis://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process: to pause, resume, kill, and for its log.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Stops it in order.
    ///
    /// # Errors
    /// It had to be killed.
    ///
    /// # Cancel safety
    /// Safe: it is killed.
    pub async fn stop(mut self) -> Result<()> {
        self.process.stop(START).await.map(drop)
    }
}
