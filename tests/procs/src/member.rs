//! One process of a fleet, and what it says of itself.

use anyhow::{Context, Result, bail};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};
use wh_testkit::{Process, http, workspace};

/// How long a process may take to become ready.
const READY: Duration = Duration::from_secs(120);

/// A process of a fleet.
#[derive(Debug)]
pub struct Member {
    /// The process.
    pub process: Process,
    name: String,
    program: String,
    config: PathBuf,
    port: u16,
    key: &'static str,
    env: Vec<(&'static str, String)>,
}

impl Member {
    pub(crate) fn start(
        name: &str,
        program: &str,
        config: &Path,
        port: u16,
        key: &'static str,
        env: Vec<(&'static str, String)>,
    ) -> Result<Self> {
        let process = launch(name, program, config, &env)?;
        let (name, program, config) = (name.to_owned(), program.to_owned(), config.to_owned());
        Ok(Self { process, name, program, config, port, key, env })
    }

    /// What the test calls it; also its name in leases.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until `/readyz` is 200.
    ///
    /// # Errors
    /// It did not become ready, or the process ended.
    pub async fn ready(&mut self) -> Result<()> {
        let url = self.url("/readyz");
        self.process.ready(READY, "the process to be ready", || succeeds(url.clone())).await
    }

    /// Starts it again with the same configuration, after it ended, and waits until it is ready.
    ///
    /// # Errors
    /// As [`Self::ready`].
    pub async fn restart(&mut self) -> Result<()> {
        self.process = launch(&self.name, &self.program, &self.config, &self.env)?;
        self.ready().await
    }

    /// An address of the process.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Posts rows to a table.
    ///
    /// # Errors
    /// No answer came.
    pub async fn post(&self, table: &str, rows: impl Into<Vec<u8>>) -> Result<http::Reply> {
        let request = http::post(self.url(&format!("/v1/ingest?table={table}")), rows.into());
        request.header("content-type", "application/x-ndjson").timeout(Duration::from_secs(40)).send().await
    }

    /// Asks the operator's API.
    ///
    /// # Errors
    /// No answer came, or it was refused.
    pub async fn ops(&self, path: &str) -> Result<serde_json::Value> {
        let request = http::get(self.url(path)).header("authorization", format!("Operator {}", self.key));
        let reply = request.send().await?;
        if !reply.status.is_success() {
            bail!("{path}: {} {}", reply.status, reply.text());
        }
        reply.json()
    }

    /// Every metric, by name with its labels as they are printed.
    ///
    /// # Errors
    /// No answer came.
    pub async fn metrics(&self) -> Result<BTreeMap<String, f64>> {
        let request = http::get(self.url("/metrics")).timeout(Duration::from_secs(30));
        let reply = request.send().await?;
        let text = reply.text();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let metric = |line: &str| {
            let (name, value) = line.rsplit_once(' ').context("a line of metrics has a value")?;
            Ok((name.to_owned(), value.parse()?))
        };
        lines.filter(|line| !line.is_empty()).map(metric).collect()
    }

    /// A metric's sum over its labels; 0 where there is none.
    ///
    /// # Errors
    /// No answer came.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let own = |key: &str| key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('{'));
        Ok(self.metrics().await?.iter().filter(|(key, _)| own(key)).map(|(_, value)| value).sum())
    }

    /// How many units it works on.
    ///
    /// # Errors
    /// No answer came.
    pub async fn owned(&self) -> Result<u32> {
        let owned = self.metric("wavehouse_ingest_shards_owned").await?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count, never negative")]
        Ok(owned as u32)
    }

    /// Asks it to stop, and demands that it ends well.
    ///
    /// # Errors
    /// It did not end in time, or not with 0.
    pub async fn stop(&mut self, within: Duration) -> Result<()> {
        let status = self.process.stop(within).await?;
        if status.success() { Ok(()) } else { bail!("{} ended with {status}\n{}", self.name, self.process.tail(40)) }
    }
}

fn launch(name: &str, program: &str, config: &Path, env: &[(&'static str, String)]) -> Result<Process> {
    let binary = workspace::binary(program, program)?;
    let launch = Process::launch(name, binary).args(["serve", "--config"]).arg(config);
    env.iter().fold(launch, |launch, (name, value)| launch.env(name, value)).start()
}

async fn succeeds(url: String) -> Result<()> {
    let reply = http::get(url).send().await?;
    if reply.status.is_success() { Ok(()) } else { bail!("{} {}", reply.status, reply.text()) }
}
