//! The running system of the tour: the ClickHouse engine and one `wavehouse serve` in `target/quickstart/`.

use crate::tell::Teller;
use anyhow::{Context, Result, bail};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use wh_testkit::{Process, clickhouse, free_port, http, until, workspace};

/// Both processes, and how to reach them.
#[derive(Debug)]
pub(crate) struct System {
    clickhouse: clickhouse::Server,
    wavehouse: Process,
    /// Where WaveHouse answers.
    pub(crate) url: String,
    /// The operator key of this run.
    pub(crate) key: String,
    /// Where the key's file is, relative to the workspace.
    pub(crate) key_file: &'static str,
    /// Whether it was built for speed.
    pub(crate) optimised: bool,
    /// Held while it runs.
    _lock: fs::File,
}

const DIR: &str = "target/quickstart";
const KEY_FILE: &str = "target/quickstart/operator.key";

/// Builds what is started, with cargo's own progress in between. Refused while another one runs: it would replace what
/// that one started.
pub(crate) fn build(teller: &mut Teller, optimised: bool) -> Result<()> {
    drop(one_at_a_time(&workspace::root()?)?);
    crate::setup::ensure(&[crate::setup::Server::Clickhouse]).context("the ClickHouse engine could not be brought")?;
    teller.step("building wavehouse (the first time this takes a few minutes)");
    teller.say("");
    let mut cargo = crate::workspace::cargo();
    cargo.current_dir(workspace::root()?).args(["build", "--bin", "wavehouse", "--bin", "wh-chserver"]);
    cargo.args(["-p", "wavehouse", "-p", "wh-testkit"]);
    if optimised {
        cargo.args(["--profile", "quick"]);
    }
    if !cargo.stdin(Stdio::null()).status().context("running cargo")?.success() {
        bail!("the build failed; cargo says why above");
    }
    teller.done("built");
    Ok(())
}

impl System {
    /// Starts both in an empty folder and waits until they answer.
    pub(crate) async fn start(teller: &mut Teller, optimised: bool, port: u16) -> Result<Self> {
        let root = workspace::root()?;
        let dir = root.join(DIR);
        let lock = one_at_a_time(&root)?;
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("clearing {}", dir.display()))?;
        }
        fs::create_dir_all(&dir)?;

        teller.step("starting the ClickHouse engine");
        let clickhouse = clickhouse::Server::options().dir(dir.join("clickhouse")).start().await?;
        let version = clickhouse.query("SELECT version()").await?;
        teller.done(&format!("ClickHouse {} answers at {}", version.trim(), clickhouse.url()));

        let asked = port;
        let port = if free(asked) { asked } else { free_port()? };
        let key = new_key()?;
        secret(&root.join(KEY_FILE), &key)?;
        let config = dir.join("config.yaml");
        fs::write(&config, config_text(&dir, port, &root.join(KEY_FILE), &clickhouse.url()))?;

        teller.step("starting wavehouse");
        let profile = if optimised { "quick" } else { "debug" };
        // this tool stands in the folder of its own profile, wherever cargo was told to build
        let built = std::env::current_exe()?.parent().and_then(Path::parent).map(|target| target.join(profile));
        let binary = built.context("where was wavehouse built?")?.join("wavehouse");
        let mut wavehouse = Process::launch("wavehouse", binary)
            .args(["serve", "--config"])
            .arg(&config)
            .current_dir(&root)
            .log_file(dir.join("wavehouse.log"))
            .start()?;
        let url = format!("http://127.0.0.1:{port}");
        let ready = format!("{url}/readyz");
        wavehouse.ready(Duration::from_secs(30), "wavehouse to be ready", || is_ready(ready.clone())).await?;
        let taken = if port == asked { String::new() } else { format!(" (port {asked} is taken)") };
        teller.done(&format!("wavehouse is ready at {url}{taken}"));
        Ok(Self { clickhouse, wavehouse, url, key, key_file: KEY_FILE, optimised, _lock: lock })
    }

    /// Runs a statement over the ops API and gives the reply's text.
    pub(crate) async fn sql(&self, sql: &str) -> Result<serde_json::Value> {
        let body = serde_json::json!({ "sql": sql }).to_string();
        let reply = http::post(format!("{}/v1/ops/query", self.url), body)
            .header("content-type", "application/json")
            .header("authorization", format!("Operator {}", self.key))
            .send()
            .await?;
        if !reply.status.is_success() {
            bail!("{sql}: {} {}", reply.status, reply.text());
        }
        reply.json()
    }

    /// Returns when a process ends by itself, which it should not.
    pub(crate) async fn ended(&mut self) -> Result<()> {
        let ended = until(Duration::from_secs(86_400 * 365), "wavehouse to end", || {
            let ended = self.wavehouse.ended();
            async move { ended.ok().flatten() }
        });
        let status = ended.await?;
        bail!("wavehouse ended by itself: {status}")
    }

    /// The last lines of WaveHouse's log, for when something went wrong.
    pub(crate) fn last_words(&self) -> String {
        format!("the last lines of {DIR}/wavehouse.log:\n{}", self.wavehouse.tail(20))
    }

    /// Stops both.
    pub(crate) async fn stop(mut self, within: Duration) -> Result<()> {
        let status = self.wavehouse.stop(within).await?;
        self.clickhouse.stop().await?;
        if !status.success() {
            bail!("wavehouse stopped with {status}");
        }
        Ok(())
    }
}

/// The folder is this run's alone: another quickstart would clear it under our feet.
fn one_at_a_time(root: &Path) -> Result<fs::File> {
    let path = root.join("target/quickstart.lock");
    // cargo may build elsewhere
    fs::create_dir_all(root.join("target"))?;
    let file = fs::File::create(&path).with_context(|| path.display().to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => {
            bail!("another quickstart runs in {DIR}: end it with Ctrl-C first")
        }
        Err(fs::TryLockError::Error(error)) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// A file that only its owner reads.
fn secret(path: &Path, text: &str) -> Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).with_context(|| path.display().to_string())
}

async fn is_ready(url: String) -> Result<()> {
    let reply = http::get(url).send().await?;
    if reply.status.is_success() { Ok(()) } else { bail!("{} {}", reply.status, reply.text()) }
}

fn free(port: u16) -> bool {
    std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// 32 random hex digits, from the operating system.
fn new_key() -> Result<String> {
    use std::{fmt::Write, io::Read};
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).context("/dev/urandom")?;
    let mut key = String::new();
    for byte in bytes {
        write!(key, "{byte:02x}")?;
    }
    Ok(key)
}

fn config_text(dir: &Path, port: u16, key: &Path, clickhouse: &str) -> String {
    let data: PathBuf = dir.join("data");
    format!(
        "# Made by `cargo xtask quickstart`. Every key: docs/guide/configuration.md\n\
         data_dir: {data:?}\n\
         server:\n  port: {port}\n\
         auth:\n  operator_key_file: {key:?}\n\
         tenant_defaults:\n  clickhouse:\n    url: {clickhouse:?}\n    database: default\n"
    )
}
