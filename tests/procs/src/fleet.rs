//! Several processes over one queue on NATS: `wavehouse-api` and `wavehouse-ingest`, each with a user of its own and no
//! more rights than its role has, on a topology that an operator made.

use crate::{Member, Servers};
use anyhow::{Context, Result, bail};
use std::{collections::BTreeSet, fmt::Write as _, fs, time::Duration};
use tempfile::TempDir;
use wh_testkit::{
    clickhouse,
    nats::{self, Operator, PASSWORD, Shape},
    servers::NATS_VERSIONS,
    until,
};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology, renderer};

/// The operator key of every test's process.
const KEY: &str = "an-operator-key";

/// How a fleet is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Streams, N.
    pub partitions: u32,
    /// Durables on each, V.
    pub shards: u32,
    /// Copies of everything: 1 on one server, 3 on three.
    pub replicas: u32,
    /// The servers' release.
    pub version: &'static str,
    /// How long a silent member keeps its units.
    pub lease: Duration,
    /// How long a pin outlives its owner.
    pub pinned_ttl: Duration,
    /// How long a start waits for a sound topology.
    pub wait: &'static str,
    /// How long an attempt of a publish may take, where it is not the default.
    pub publish_timeout: Option<Duration>,
    /// How long claims of ids last, where ids are kept.
    pub dedupe_lease: Option<Duration>,
    /// What processes log.
    pub log: &'static str,
    /// Further configuration of every process, as YAML.
    pub more: String,
}

impl Default for Setup {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            partitions: 4,
            shards: 8,
            replicas: 1,
            version: NATS_VERSIONS[0],
            lease: seconds(3),
            pinned_ttl: seconds(5),
            wait: "20s",
            publish_timeout: None,
            dedupe_lease: None,
            log: "debug",
            more: String::new(),
        }
    }
}

/// What one process has otherwise than the others of its fleet.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// Where it finds the queue's server, if something stands between.
    pub nats: Option<String>,
    /// Further configuration, as YAML.
    pub more: String,
    /// Environment variables.
    pub env: Vec<(&'static str, String)>,
}

/// The engine, the queue's server, and what new processes are started with.
#[derive(Debug)]
pub struct Fleet {
    /// The engine.
    pub engine: clickhouse::Server,
    /// What the queue is on.
    pub nats: Servers,
    setup: Setup,
    clickhouse: String,
    /// Files of objects that were made by earlier counts.
    there: BTreeSet<String>,
    dir: TempDir,
}

impl Setup {
    fn spec(&self) -> Result<Spec> {
        let plain = Choices::default();
        let choices = Choices {
            publish_timeout: self.publish_timeout.unwrap_or(plain.publish_timeout),
            dedupe_lease: self.dedupe_lease.unwrap_or(plain.dedupe_lease),
            partitions: self.partitions,
            shards: self.shards,
            replicas: self.replicas,
            file_store: 4 << 30,
            coord_lease: self.lease,
            ..plain
        };
        Ok(Spec::new(choices)?)
    }

    /// The server's users; with the rights of so many shards at least, as some may be left to be drained.
    fn options(&self, shards: u32) -> Result<nats::Options> {
        let spec = Self { shards: self.shards.max(shards), ..self.clone() }.spec()?;
        let user = |options: nats::Options, role: Role| {
            options.user(role.user(), Rights::new(&spec, role).print(RightsFormat::Nats))
        };
        Ok(Role::ALL.into_iter().fold(nats::Options::default().version(self.version), user))
    }
}

/// A topology as our own files for the command line.
fn files(setup: &Setup) -> Result<Vec<(String, String)>> {
    let files = renderer("nats-cli").context("a renderer")?.render(&Topology::new(setup.spec()?)?)?;
    Ok(files.into_iter().map(|file| (file.name, file.text)).collect())
}

/// Creates those objects of a topology that are not there.
async fn create(operator: &mut Operator, setup: &Setup, there: &BTreeSet<String>) -> Result<()> {
    let shape = Shape { pinned_ttl: Some(setup.pinned_ttl), ..Shape::default() };
    operator.apply(files(setup)?.into_iter().filter(|(name, _)| !there.contains(name)), &shape).await
}

impl Fleet {
    /// Starts both servers and creates the topology; no process yet.
    ///
    /// # Errors
    /// Either did not come up, or the topology was refused.
    pub async fn new(setup: Setup) -> Result<Self> {
        let engine = clickhouse::Server::start().await?;
        let url = engine.url();
        Self::behind(engine, &url, setup).await
    }

    /// The same with something between the processes and the engine, at `url`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub async fn behind(engine: clickhouse::Server, url: &str, setup: Setup) -> Result<Self> {
        let nats = Servers::start(setup.replicas, setup.options(0)?).await?;
        create(&mut nats.operator(), &setup, &BTreeSet::new()).await?;
        let dir = tempfile::tempdir()?;
        fs::write(dir.path().join("operator.key"), KEY)?;
        fs::write(dir.path().join("password"), PASSWORD)?;
        Ok(Self { engine, nats, setup, clickhouse: url.to_owned(), there: BTreeSet::new(), dir })
    }

    /// How it is set up now.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What an operator does to change the counts, while no process runs: creates what is new, says the new counts in
    /// every partition that stays, and prints the rights anew, without taking any away. Deletes nothing. Processes that start after it know the new
    /// counts.
    ///
    /// # Errors
    /// The server refuses something.
    pub async fn change_counts(&mut self, partitions: u32, shards: u32) -> Result<()> {
        let there = files(&self.setup)?.into_iter().map(|(name, _)| name).collect();
        self.there.extend::<BTreeSet<String>>(there);
        let drained = self.setup.shards;
        self.setup.partitions = partitions;
        self.setup.shards = shards;
        let mut operator = self.nats.operator();
        create(&mut operator, &self.setup, &self.there).await?;
        for (name, text) in files(&self.setup)? {
            let Some(stream) = name.strip_suffix(".json").filter(|stream| !stream.contains('.')) else { continue };
            let config: serde_json::Value = serde_json::from_str(&text)?;
            if config["retention"] == "workqueue" && self.there.contains(&name) {
                let metadata = serde_json::json!({ "metadata": config["metadata"] });
                operator.change_stream(stream, &metadata).await?;
            }
        }
        self.nats.one()?.reload(self.setup.options(drained)?).await
    }

    /// Starts a process that takes events, and waits until it is ready.
    ///
    /// # Errors
    /// It is not in time; with the last lines of its log.
    pub async fn api(&self, name: &str) -> Result<Member> {
        self.member(name, "wavehouse-api", Role::Api).await
    }

    /// Starts a process that writes to ClickHouse, and waits until it is ready.
    ///
    /// # Errors
    /// As [`Self::api`].
    pub async fn ingest(&self, name: &str) -> Result<Member> {
        self.member(name, "wavehouse-ingest", Role::Ingest).await
    }

    /// Starts a process with both roles, and waits until it is ready.
    ///
    /// # Errors
    /// As [`Self::api`].
    pub async fn both(&self, name: &str) -> Result<Member> {
        self.member(name, "wavehouse", Role::Both).await
    }

    async fn member(&self, name: &str, program: &str, role: Role) -> Result<Member> {
        let mut member = self.launch(name, program, role)?;
        member.ready().await?;
        Ok(member)
    }

    /// Starts a process without waiting for it.
    ///
    /// # Errors
    /// It is not built.
    pub fn launch(&self, name: &str, program: &str, role: Role) -> Result<Member> {
        self.launch_with(name, program, role, Own::default())
    }

    /// The same with something between the process and the queue's server, at `url`.
    ///
    /// # Errors
    /// As [`Self::launch`].
    pub fn launch_over(&self, name: &str, program: &str, role: Role, url: &str) -> Result<Member> {
        self.launch_with(name, program, role, Own { nats: Some(url.to_owned()), ..Own::default() })
    }

    /// The same with whatever else is its own.
    ///
    /// # Errors
    /// As [`Self::launch`].
    pub fn launch_with(&self, name: &str, program: &str, role: Role, own: Own) -> Result<Member> {
        let port = wh_testkit::free_port()?;
        let file = self.dir.path().join(format!("{name}.yaml"));
        let urls = own.nats.map_or_else(|| self.nats.urls(), |url| vec![url]);
        fs::write(&file, self.config(name, role, port, &urls)? + &own.more)?;
        Member::start(name, program, &file, port, KEY, own.env)
    }

    fn config(&self, name: &str, role: Role, port: u16, urls: &[String]) -> Result<String> {
        let (dir, Setup { partitions, shards, replicas, lease, wait, log, more, .. }) = (self.dir.path(), &self.setup);
        let (key, password, data) = (dir.join("operator.key"), dir.join("password"), dir.join("data"));
        let (user, clickhouse) = (role.user(), &self.clickhouse);
        let timeout = self.setup.publish_timeout.map(|time| format!("publish_timeout: {}ms, ", time.as_millis()));
        let timeout = timeout.unwrap_or_default();
        let mut text = String::new();
        writeln!(text, "data_dir: {data:?}\ninstance_id: {name}\nserver: {{port: {port}}}")?;
        writeln!(text, "auth: {{operator_key_file: {key:?}}}\nlog: {{level: {log}}}")?;
        writeln!(text, "mq:\n  backend: nats\n  nats: {{urls: {urls:?}, user: {user}, password_file: {password:?},")?;
        writeln!(
            text,
            "    partitions: {partitions}, shards: {shards}, replicas: {replicas}, {timeout}topology_wait: {wait}}}"
        )?;
        writeln!(text, "coord: {{backend: nats, lease: {}ms}}", lease.as_millis())?;
        writeln!(text, "tenant_defaults:\n  clickhouse: {{url: {clickhouse:?}, database: default}}")?;
        writeln!(text, "  schema: {{refresh_interval: 1}}\n{more}")?;
        Ok(text)
    }

    /// One number that the engine answers.
    ///
    /// # Errors
    /// The engine did not answer, or with something else.
    pub async fn number(&self, sql: &str) -> Result<u64> {
        let text = self.engine.query(sql).await?;
        text.trim().parse().with_context(|| format!("{sql}: {text:?}"))
    }

    /// Blocks that are queued and not settled, over all partitions that were ever made.
    ///
    /// # Errors
    /// The server did not answer.
    pub async fn queued(&self, partitions: u32) -> Result<u64> {
        let (mut operator, spec, mut sum) = (self.nats.operator(), self.setup.spec()?, 0);
        for partition in 0..partitions {
            let info = operator.stream_info(&spec.names().partition_stream(partition)).await?;
            sum += info["state"]["messages"].as_u64().context("a stream counts its messages")?;
        }
        Ok(sum)
    }

    /// Waits until nothing is queued any more.
    ///
    /// # Errors
    /// It is not in time.
    pub async fn drained(&self, partitions: u32, within: Duration) -> Result<()> {
        until(within, "the queue to be empty", || async {
            match self.queued(partitions).await? {
                0 => Ok(()),
                blocks => bail!("{blocks} blocks"),
            }
        })
        .await?;
        Ok(())
    }
}

/// Waits until the live members have all units, and none has more than one above another; gives how many each has.
///
/// # Errors
/// It is not in time.
pub async fn even(members: &[&Member], units: u32, within: Duration) -> Result<Vec<u32>> {
    let loads = until(within, "an even split of the units", || async {
        let mut loads = Vec::new();
        for member in members {
            loads.push(member.owned().await?);
        }
        let (least, most) = (loads.iter().min().copied(), loads.iter().max().copied());
        let even = most.zip(least).is_some_and(|(most, least)| most - least <= 1);
        if even && loads.iter().sum::<u32>() == units { Ok(loads) } else { bail!("{loads:?}") }
    })
    .await?;
    Ok(loads)
}
