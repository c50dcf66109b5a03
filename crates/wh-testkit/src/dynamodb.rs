//! DynamoDB emulators of a test's own, in memory: dynalite, and moto for a second opinion. Not AWS: neither enacts TTL
//! deletion.

use crate::{Process, free_port, servers};
use anyhow::Result;
use std::time::Duration;

const START: Duration = Duration::from_secs(90);

/// A running emulator.
#[derive(Debug)]
pub struct Server {
    process: Process,
    port: u16,
}

impl Server {
    /// Dynalite, on a free port; tables are created and deleted at once.
    ///
    /// # Errors
    /// The emulator or node is missing, or it does not come up.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start() -> Result<Self> {
        let port = free_port()?;
        let process = Process::launch("dynalite", "node")
            .arg(servers::dynalite()?)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0"])
            .start()?;
        Self::listening(process, port).await
    }

    /// Moto, on a free port. It takes seconds to start: one server serves many tests, each with a table of its own.
    ///
    /// # Errors
    /// The emulator or python3 is missing, or it does not come up.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start_moto() -> Result<Self> {
        let port = free_port()?;
        let process = Process::launch("moto", "python3")
            .args(["-m", "moto.server", "--host", "127.0.0.1", "--port", &port.to_string()])
            .env("PYTHONPATH", servers::moto()?)
            // nothing of the machine's own is found before it
            .env("PYTHONNOUSERSITE", "1")
            .start()?;
        Self::listening(process, port).await
    }

    async fn listening(process: Process, port: u16) -> Result<Self> {
        let mut server = Self { process, port };
        server.process.listens(port, START).await?;
        Ok(server)
    }

    /// `http://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its process: to pause, resume, kill, and for its log.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Stops it.
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
