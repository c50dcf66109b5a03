//! A nats-server of a test's own, with JetStream on a folder of its own.

use crate::{Process, free_port, servers};
use anyhow::{Result, ensure};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

const START: Duration = Duration::from_secs(20);

/// A running nats-server.
#[derive(Debug)]
pub struct Server {
    process: Process,
    port: u16,
    program: PathBuf,
    dir: TempDir,
}

impl Server {
    /// The oldest supported version, on a free port.
    ///
    /// # Errors
    /// It is missing or does not come up.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start() -> Result<Self> {
        Self::start_version(servers::NATS_VERSIONS[0]).await
    }

    /// One of [`servers::NATS_VERSIONS`].
    ///
    /// # Errors
    /// It is missing or does not come up.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start_version(version: &str) -> Result<Self> {
        let (dir, port, program) = (TempDir::with_prefix("wh-nats-")?, free_port()?, servers::nats_server(version)?);
        let store = dir.path().join("jetstream");
        let conf = format!("listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {store:?} }}\n");
        std::fs::write(dir.path().join("nats.conf"), conf)?;
        let process = launch(&program, dir.path())?;
        let mut server = Self { process, port, program, dir };
        server.process.listens(port, START).await?;
        Ok(server)
    }

    /// `nats://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
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

    /// Starts it again on the same port and data, killing it first if it runs.
    ///
    /// # Errors
    /// It does not come up.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn restart(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process = launch(&self.program, self.dir.path())?;
        self.process.listens(self.port, START).await
    }

    /// Stops it in order.
    ///
    /// # Errors
    /// It had to be killed, or ended with another status than that of a stop.
    ///
    /// # Cancel safety
    /// Safe: it is killed.
    pub async fn stop(mut self) -> Result<()> {
        let status = self.process.stop(START).await?;
        // nats-server answers SIGTERM with 1 after an orderly stop
        ensure!(matches!(status.code(), Some(0 | 1)), "nats-server ended with {status}");
        Ok(())
    }
}

fn launch(program: &Path, dir: &Path) -> Result<Process> {
    Process::launch("nats-server", program).arg("-c").arg(dir.join("nats.conf")).log_file(dir.join("nats.log")).start()
}
