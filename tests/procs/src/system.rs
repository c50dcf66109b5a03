//! One `wavehouse` process and the engine behind it.

use anyhow::{Context, Result, bail, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use wh_testkit::{Process, clickhouse, free_port, http, until, workspace};

/// The table that numbered events go to.
pub const TABLE: &str = "CREATE TABLE events (id UInt64, at DateTime64(3), note String) ENGINE = MergeTree ORDER BY id";

/// The operator key of every test's process.
const KEY: &str = "an-operator-key";

/// The process, the engine, and where their data is.
#[derive(Debug)]
pub struct System {
    /// The engine behind it.
    pub engine: clickhouse::Server,
    /// The process.
    pub wavehouse: Process,
    dir: TempDir,
    port: u16,
    env: Env,
    through: Through,
}

/// How a process is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Through {
    Itself,
    /// A shell that has it outlive files that may not grow.
    Shell,
}

/// Files that may not grow end a process, unless it was told not to mind.
const OUTLIVES: &str = "trap '' XFSZ; exec \"$0\" \"$@\"";

/// Environment variables of a process.
type Env = Vec<(&'static str, String)>;

/// A configuration file's text. `more` is added at the end, as YAML.
#[must_use]
pub fn config(data: &Path, key_file: &Path, port: u16, clickhouse: &str, more: &str) -> String {
    format!(
        "data_dir: {data:?}\nserver:\n  port: {port}\nauth:\n  operator_key_file: {key_file:?}\n\
         tenant_defaults:\n  clickhouse:\n    url: {clickhouse:?}\n    database: default\n  schema:\n    refresh_interval: 1\n\
         {more}\n"
    )
}

impl System {
    /// Starts both, makes [`TABLE`], and waits until events can be posted.
    ///
    /// # Errors
    /// Either did not come up; the error has the last lines of its log.
    pub async fn start() -> Result<Self> {
        Self::with("").await
    }

    /// The same with further configuration.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn with(more: &str) -> Result<Self> {
        let engine = clickhouse::Server::start().await?;
        engine.query(TABLE).await?;
        Self::over(engine, more).await
    }

    /// The same over an engine that the test has prepared.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn over(engine: clickhouse::Server, more: &str) -> Result<Self> {
        let url = engine.url();
        Self::behind(engine, &url, more).await
    }

    /// The same with something between the process and the engine, at `url`.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn behind(engine: clickhouse::Server, url: &str, more: &str) -> Result<Self> {
        Self::in_env(engine, url, Env::new(), more).await
    }

    /// The same where the process trusts the certificates in a file, and no others.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn trusting(engine: clickhouse::Server, url: &str, roots: PathBuf, more: &str) -> Result<Self> {
        Self::in_env(engine, url, vec![("SSL_CERT_FILE", roots.display().to_string())], more).await
    }

    /// The same as [`Self::with`], where files of the process can be kept from growing ([`Process::limit_files`]).
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn with_limits(more: &str) -> Result<Self> {
        let engine = clickhouse::Server::start().await?;
        engine.query(TABLE).await?;
        let url = engine.url();
        Self::started(engine, &url, Env::new(), more, Through::Shell).await
    }

    /// The same where the process has further environment variables.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn in_env(engine: clickhouse::Server, url: &str, env: Env, more: &str) -> Result<Self> {
        Self::started(engine, url, env, more, Through::Itself).await
    }

    async fn started(engine: clickhouse::Server, url: &str, env: Env, more: &str, through: Through) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let port = free_port()?;
        let key = dir.path().join("operator.key");
        fs::write(&key, KEY)?;
        fs::write(dir.path().join("config.yaml"), config(&dir.path().join("data"), &key, port, url, more))?;
        let wavehouse = launch(dir.path(), &env, through)?;
        let mut system = Self { engine, wavehouse, dir, port, env, through };
        system.ready().await?;
        Ok(system)
    }

    /// Waits until `/readyz` is 200.
    ///
    /// # Errors
    /// It did not become ready, or the process ended.
    pub async fn ready(&mut self) -> Result<()> {
        let url = self.url("/readyz");
        self.wavehouse.ready(Duration::from_secs(120), "wavehouse to be ready", || succeeds(url.clone())).await
    }

    /// Starts the process again on the same data and the same port, after it ended.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn restart(&mut self) -> Result<()> {
        self.wavehouse = launch(self.dir.path(), &self.env, self.through)?;
        self.ready().await
    }

    /// An address of the process.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Where the process listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with the configuration and the data.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    /// Posts a body to the table `events`.
    ///
    /// # Errors
    /// No answer came.
    pub async fn post(&self, content_type: &str, body: impl Into<Vec<u8>>) -> Result<http::Reply> {
        self.post_to("/v1/ingest?table=events", content_type, body).await
    }

    /// Posts a body to a path.
    ///
    /// # Errors
    /// No answer came.
    pub async fn post_to(&self, path: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Result<http::Reply> {
        http::post(self.url(path), body.into()).header("content-type", content_type).send().await
    }

    /// Runs SQL over the ops API.
    ///
    /// # Errors
    /// No answer came, or it was refused.
    pub async fn sql(&self, sql: &str) -> Result<serde_json::Value> {
        let reply = http::post(self.url("/v1/ops/query"), serde_json::json!({ "sql": sql }).to_string())
            .header("content-type", "application/json")
            .header("authorization", format!("Operator {KEY}"))
            .send()
            .await?;
        ensure!(reply.status.is_success(), "{sql}: {} {}", reply.status, reply.text());
        reply.json()
    }

    /// One number that the engine answers.
    ///
    /// # Errors
    /// The engine did not answer, or with something else.
    pub async fn number(&self, sql: &str) -> Result<u64> {
        let text = self.engine.query(sql).await?;
        text.trim().parse().with_context(|| format!("{sql}: {text:?}"))
    }

    /// Waits until the table `events` holds this many different ids.
    ///
    /// # Errors
    /// It did not in time.
    pub async fn holds_ids(&self, ids: u64, within: Duration) -> Result<()> {
        until(within, "every accepted event to be in ClickHouse", || async {
            let found = self.number("SELECT uniqExact(id) FROM events").await?;
            if found >= ids { Ok(()) } else { bail!("{found} of {ids} ids") }
        })
        .await?;
        Ok(())
    }
}

fn launch(dir: &Path, env: &Env, through: Through) -> Result<Process> {
    let binary = workspace::binary("wavehouse", "wavehouse")?;
    let launch = match through {
        Through::Itself => Process::launch("wavehouse", binary),
        Through::Shell => Process::launch("wavehouse", "/bin/sh").args(["-c", OUTLIVES]).arg(binary),
    };
    let launch = launch.args(["serve", "--config"]).arg(dir.join("config.yaml"));
    env.iter().fold(launch, |launch, (name, value)| launch.env(name, value)).start()
}

async fn succeeds(url: String) -> Result<()> {
    let reply = http::get(url).send().await?;
    if reply.status.is_success() { Ok(()) } else { bail!("{} {}", reply.status, reply.text()) }
}
