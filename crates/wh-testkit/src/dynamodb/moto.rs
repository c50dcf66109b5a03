//! Another DynamoDB emulator (moto), in memory. It takes seconds to start: one server serves many tests, each with a table
//! of its own.

use crate::{Process, free_port, servers};
use anyhow::Result;
use std::time::Duration;

/// Python reads thousands of files, on a machine that may be busy.
const START: Duration = Duration::from_secs(60);

/// A running emulator. It ends with this process.
#[derive(Debug)]
pub struct Server {
    process: Process,
    port: u16,
}

impl Server {
    /// On a free port.
    ///
    /// # Errors
    /// The emulator or python3 is missing, or it does not come up.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start() -> Result<Self> {
        let port = free_port()?;
        let process = Process::launch("moto", "python3")
            .args(["-m", "moto.server", "--host", "127.0.0.1", "--port", &port.to_string()])
            .env("PYTHONPATH", servers::moto()?)
            // nothing of the machine's own is found before it
            .env("PYTHONNOUSERSITE", "1")
            .start()?;
        let mut server = Self { process, port };
        server.process.listens(port, START).await?;
        Ok(server)
    }

    /// `http://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
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
