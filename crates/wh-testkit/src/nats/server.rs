//! One nats-server, with JetStream on a folder of its own.

use super::{Operator, Options, PASSWORD, WITHIN};
use crate::{Process, free_port, servers, until};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What its log says after it read its configuration again.
const RELOADED: &str = "Reloaded server configuration";

/// A running nats-server.
#[derive(Debug)]
pub struct Server {
    process: Process,
    port: u16,
    program: PathBuf,
    options: Options,
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
        Self::with(Options::default()).await
    }

    /// One of [`servers::NATS_VERSIONS`].
    ///
    /// # Errors
    /// It is missing or does not come up.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start_version(version: &'static str) -> Result<Self> {
        Self::with(Options::default().version(version)).await
    }

    /// With users, a domain, further lines.
    ///
    /// # Errors
    /// It is missing, does not take the configuration, or does not come up.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn with(options: Options) -> Result<Self> {
        let mut server = Self::launch(options)?;
        server.listens().await?;
        Ok(server)
    }

    /// Starts it without waiting for it.
    pub(super) fn launch(options: Options) -> Result<Self> {
        let dir = TempDir::with_prefix("wh-nats-")?;
        let port = free_port()?;
        let program = servers::nats_server(options.version)?;
        std::fs::write(dir.path().join("nats.conf"), options.file(port, dir.path()))?;
        let process = launch(&program, dir.path())?;
        Ok(Self { process, port, program, options, dir })
    }

    pub(super) async fn listens(&mut self) -> Result<()> {
        self.process.listens(self.port, WITHIN).await
    }

    /// `nats://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Its URL with a user and the password of all users.
    #[must_use]
    pub fn url_as(&self, user: &str) -> String {
        format!("nats://{user}:{PASSWORD}@127.0.0.1:{}", self.port)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder: configuration, log, data.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Its process: to pause, resume, kill, and for its log.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Who may do everything on it.
    #[must_use]
    pub fn operator(&self) -> Operator {
        Operator::new(vec![self.port], &self.options)
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
        self.listens().await
    }

    /// Makes it read a changed configuration while it runs: other users, other rights.
    ///
    /// # Errors
    /// It does not take it.
    ///
    /// # Cancel safety
    /// Detached: it may take it later.
    pub async fn reload(&mut self, options: Options) -> Result<()> {
        std::fs::write(self.dir.path().join("nats.conf"), options.file(self.port, self.dir.path()))?;
        self.options = options;
        let before = self.process.log().matches(RELOADED).count();
        self.process.hang_up()?;
        let process = &self.process;
        until(WITHIN, "it reloads", || async { process.log().matches(RELOADED).count() > before }).await?;
        Ok(())
    }

    /// Stops it in order.
    ///
    /// # Errors
    /// It had to be killed, or ended with another status than that of a stop.
    ///
    /// # Cancel safety
    /// Safe: it is killed.
    pub async fn stop(mut self) -> Result<()> {
        let status = self.process.stop(WITHIN).await?;
        // nats-server answers SIGTERM with 1 after an orderly stop
        ensure!(matches!(status.code(), Some(0 | 1)), "nats-server ended with {status}");
        Ok(())
    }
}

fn launch(program: &Path, dir: &Path) -> Result<Process> {
    Process::launch("nats-server", program).arg("-c").arg(dir.join("nats.conf")).log_file(dir.join("nats.log")).start()
}
