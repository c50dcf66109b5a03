//! One engine as a child process: start, crash, restart on the same port and data, pause, stop.

use super::Endpoint;
use crate::{Process, free_port, servers, workspace};
use anyhow::{Context, Result, ensure};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// How long a start may take; 0.2 s is usual, a machine under load takes longer.
const START: Duration = Duration::from_secs(120);
/// How long a stop may take before the engine is killed.
const STOP: Duration = Duration::from_secs(60);

/// What a [`Server`] is started with.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    dir: Option<PathBuf>,
    port: Option<u16>,
}

impl ServerOptions {
    /// Its data, configuration and logs, kept when it ends. Else a temporary folder, removed when it is dropped.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Its port on 127.0.0.1. Else a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// The engine or its launcher is missing, the folder cannot be written, or it does not come up in 30 s.
    ///
    /// # Cancel safety
    /// Safe: what was started is killed.
    pub async fn start(self) -> Result<Server> {
        let (dir, scratch) = match self.dir {
            Some(dir) => (dir, None),
            None => {
                let scratch = TempDir::with_prefix("wh-clickhouse-")?;
                (scratch.path().to_owned(), Some(scratch))
            }
        };
        let port = match self.port {
            Some(port) => port,
            None => free_port()?,
        };
        write_config(&dir).with_context(|| format!("cannot write to {}", dir.display()))?;
        let process = launch(&dir, port)?;
        let mut server = Server { process, port, dir, _scratch: scratch };
        server.until_it_answers().await?;
        Ok(server)
    }
}

fn write_config(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir.join("data"))?;
    std::fs::write(dir.join("config.xml"), include_str!("config.xml"))?;
    std::fs::write(dir.join("users.xml"), include_str!("users.xml"))
}

fn launch(dir: &Path, port: u16) -> Result<Process> {
    let launcher = workspace::binary("wh-chserver", "wh-testkit")?;
    let data = dir.join("data");
    let log = data.join("server.log");
    Process::launch("clickhouse", launcher)
        .arg(servers::clickhouse_lib()?)
        .arg(format!("--config-file={}", dir.join("config.xml").display()))
        .arg(format!("--path={}", data.display()))
        .arg(format!("--http_port={port}"))
        .arg("--listen_host=127.0.0.1")
        .arg(format!("--logger.log={}", log.display()))
        .args(["--logger.level=warning", "--log-level=warning"])
        .log_file(dir.join("output.log"))
        .shows(log)
        // the frames of stack traces, which have no symbols
        .hides(". ? @ 0x")
        .stdin_open()
        .start()
}

/// A running engine of one's own, with the users of `users.xml`: `default`, `ro`, `ingest`, `small`, `tiny`.
#[derive(Debug)]
pub struct Server {
    // dropped, and so killed, before its folder is removed
    process: Process,
    port: u16,
    dir: PathBuf,
    _scratch: Option<TempDir>,
}

impl Server {
    /// On a free port with its data in a temporary folder.
    ///
    /// # Errors
    /// As [`ServerOptions::start`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start() -> Result<Self> {
        Self::options().start().await
    }

    /// To choose the folder or the port.
    #[must_use]
    pub fn options() -> ServerOptions {
        ServerOptions::default()
    }

    /// `http://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its HTTP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its address as the user `default`.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.url())
    }

    /// Runs a statement as the user `default`.
    ///
    /// # Errors
    /// As [`Endpoint::query`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn query(&self, sql: &str) -> Result<String> {
        self.endpoint().query(sql).await
    }

    /// Its child process, for its id and its log.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Kills it with SIGKILL. Its port refuses; its data stays.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn crash(&mut self) -> Result<()> {
        self.process.kill().map(drop)
    }

    /// Starts it again on the same port and data, killing it first if it runs.
    ///
    /// # Errors
    /// As [`ServerOptions::start`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn restart(&mut self) -> Result<()> {
        self.crash()?;
        self.process = launch(&self.dir, self.port)?;
        self.until_it_answers().await
    }

    /// Stops all its threads (SIGSTOP): connections open and nothing is answered.
    ///
    /// # Errors
    /// It has ended.
    pub fn pause(&mut self) -> Result<()> {
        self.process.pause()
    }

    /// Lets it run again.
    ///
    /// # Errors
    /// It has ended.
    pub fn resume(&mut self) -> Result<()> {
        self.process.resume()
    }

    /// Stops it in order, by the end of its standard input.
    ///
    /// # Errors
    /// It had to be killed, or failed at the end.
    ///
    /// # Cancel safety
    /// Safe: it is killed.
    pub async fn stop(mut self) -> Result<()> {
        self.process.close_stdin();
        let status = self.process.wait(STOP).await?;
        ensure!(status.success(), "clickhouse ended with {status}\n{}", self.process.tail(40));
        Ok(())
    }

    async fn until_it_answers(&mut self) -> Result<()> {
        let endpoint = self.endpoint();
        self.process.ready(START, "it answers its ping", || endpoint.answers()).await
    }
}
