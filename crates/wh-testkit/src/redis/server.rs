//! One redis-server.

use super::command;
use crate::{Process, free_port, servers, until};
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use tempfile::TempDir;

pub(super) const START: Duration = Duration::from_secs(90);

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The default user's password; none is asked for without it.
    pub password: Option<String>,
    /// Further arguments, such as `--user`, a name and its rules, each an argument.
    pub args: Vec<String>,
    /// Whether it is a sentinel, whose state is these lines.
    pub sentinel: Option<String>,
}

/// A running redis-server.
#[derive(Debug)]
pub struct Server {
    process: Process,
    options: Options,
    port: u16,
    dir: TempDir,
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
        Self::with(Options::default()).await
    }

    /// On a free port, as the options say.
    ///
    /// # Errors
    /// It is missing or does not come up.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn with(options: Options) -> Result<Self> {
        let (dir, port) = (TempDir::with_prefix("wh-redis-")?, free_port()?);
        if let Some(state) = &options.sentinel {
            std::fs::write(dir.path().join("sentinel.conf"), state)?;
        }
        let mut server = Self { process: launch(&options, port, &dir)?, options, port, dir };
        server.process.listens(port, START).await?;
        server.answers().await?;
        Ok(server)
    }

    async fn answers(&self) -> Result<()> {
        // one that reads its data takes connections and no commands
        until(START, "the server takes commands", || async {
            let said = self.command(&["PING"]).await;
            said.is_ok_and(|said| said == "PONG")
        })
        .await?;
        Ok(())
    }

    /// Sends it one command and gives the answer as text.
    ///
    /// # Errors
    /// As [`command`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn command(&self, words: &[&str]) -> Result<String> {
        command(self.port, self.options.password.as_deref(), words).await
    }

    /// Makes it a replica of a port where nobody is: it answers reads and refuses writes, as a primary that was demoted.
    ///
    /// # Errors
    /// As [`command`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn demote(&self) -> Result<()> {
        self.command(&["REPLICAOF", "127.0.0.1", "1"]).await.map(drop)
    }

    /// Makes it a primary.
    ///
    /// # Errors
    /// As [`command`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn promote(&self) -> Result<()> {
        self.command(&["REPLICAOF", "NO", "ONE"]).await.map(drop)
    }

    /// Saves what it holds: with this it comes back from a crash.
    ///
    /// # Errors
    /// As [`command`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn save(&self) -> Result<()> {
        let said = self.command(&["SAVE"]).await?;
        ensure!(said == "OK", "it saved nothing: {said}");
        Ok(())
    }

    /// Kills it and starts it again on the same port, with what it saved last.
    ///
    /// # Errors
    /// It does not come up.
    ///
    /// # Cancel safety
    /// Safe: it is dead or up.
    pub async fn crash(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process = launch(&self.options, self.port, &self.dir)?;
        self.process.listens(self.port, START).await?;
        self.answers().await.context("after a crash")
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

fn launch(options: &Options, port: u16, dir: &TempDir) -> Result<Process> {
    let sentinel = options.sentinel.is_some();
    let mut launch =
        Process::launch(if sentinel { "redis-sentinel" } else { "redis-server" }, servers::redis_server()?);
    if sentinel {
        launch = launch.arg(dir.path().join("sentinel.conf")).arg("--sentinel");
    } else {
        launch = launch.args(["--save", "", "--appendonly", "no"]);
        if let Some(password) = &options.password {
            launch = launch.args(["--requirepass", password, "--masterauth", password]);
        }
    }
    launch
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .arg("--dir")
        .arg(dir.path())
        .args(&options.args)
        .start()
}
