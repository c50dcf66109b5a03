//! A queue in memory, a worker, a database of the test's own, and a proxy between the last two.

use std::{sync::Arc, time::Duration};
use wh_clickhouse::{Client, Discovery, DiscoveryOptions};
use wh_ingest::{ClickHouse, Options, Parts, Worker};
use wh_mq::{Allowance, Broker, DeadLetter, DeadLetterQuery, sim};
use wh_testkit::{
    clickhouse::{Database, database},
    fault::{Kind, Proxy},
    until,
};
use wh_types::{
    Backoff, Block, BlockId, Encoding, Epoch, OsEntropy, Stop, SystemClock, Table, Tasks, Tenant, Timestamp, frame,
};

pub(crate) const WITHIN: Duration = Duration::from_secs(180);

pub(crate) struct Rig {
    pub(crate) database: Database,
    pub(crate) proxy: Proxy,
    pub(crate) broker: sim::Broker,
    user: Option<&'static str>,
    options: Options,
    stop: Stop,
    tasks: Tasks,
}

/// Short waits: what takes minutes in production takes seconds here, in the same proportions. An insert alone has more
/// time than it has there: on a busy machine one that is only slow must not be repeated.
pub(crate) fn quick() -> Options {
    Options {
        batch_wait: Duration::from_millis(100),
        backoff: Backoff::half_jitter(Duration::from_millis(100), Duration::from_secs(1)),
        insert_timeout: Duration::from_secs(60),
        ..Options::default()
    }
}

impl Rig {
    /// Without a worker yet.
    pub(crate) async fn idle(options: Options) -> Self {
        Self::on(database().await.unwrap(), options).await
    }

    /// On a database that is not on the engine which tests share.
    pub(crate) async fn on(database: Database, options: Options) -> Self {
        let proxy = Proxy::start(database.url()).await.unwrap();
        let broker = sim::Broker::new(sim::Options {
            epoch: Epoch(7),
            shards: 2,
            ack_wait: options.ack_wait,
            duplicate_window: Duration::from_secs(120),
            default_allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::from_secs(60) },
            dead_letter_share: 10,
            clock: Arc::new(SystemClock),
        });
        Self { database, proxy, broker, user: None, options, stop: Stop::new(), tasks: Tasks::new() }
    }

    /// With a worker, and tables made before it started.
    pub(crate) async fn new(options: Options, tables: &[&str]) -> Self {
        let rig = Self::idle(options).await;
        for table in tables {
            rig.sql(table).await;
        }
        rig.work();
        rig
    }

    /// As another user of the engine, whose password is its name.
    pub(crate) fn user(mut self, user: Option<&'static str>) -> Self {
        self.user = user;
        self
    }

    /// Starts the worker.
    pub(crate) fn work(&self) {
        let endpoint = self.database.endpoint();
        let client = Client::new(wh_clickhouse::Options {
            url: self.proxy.url(),
            database: self.database.name().into(),
            user: self.user.unwrap_or(endpoint.user_name()).into(),
            password: Some(self.user.unwrap_or(endpoint.password()).into()),
            request_timeout: self.options.insert_timeout,
            ..wh_clickhouse::Options::default()
        })
        .unwrap();
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
        let every = DiscoveryOptions { interval: Duration::from_secs(60), ..DiscoveryOptions::default() };
        let schema =
            Discovery::start(client.clone(), every, clock.clone(), entropy.clone(), &self.tasks, self.stop.clone());
        let sink = ClickHouse::new(client, Some(schema), clock.clone());
        let parts = Parts { broker: Arc::new(self.broker.clone()), sinks: Arc::new(Arc::new(sink)), clock, entropy };
        let (worker, stop) = (Worker::new(parts, self.options.clone()), self.stop.clone());
        drop(self.tasks.spawn("worker", async move { worker.run(stop).await.unwrap() }));
    }

    pub(crate) async fn sql(&self, sql: &str) -> String {
        self.database.query(sql).await.unwrap()
    }

    /// Changes a table under inserts, and waits until its parts are changed. The engine may fail on a part that an insert
    /// wrote meanwhile (341), which has the new columns already: what it tries in vain for long is given up.
    pub(crate) async fn alter(&self, sql: &str) {
        self.sql(&format!("{sql} SETTINGS alter_sync = 0, mutations_sync = 0")).await;
        let began = wh_types::Clock::now(&SystemClock);
        until(WITHIN, "the table's parts to be changed", || async {
            let left = "SELECT count(), any(latest_fail_reason) FROM system.mutations \
                        WHERE database = currentDatabase() AND NOT is_done";
            let left = self.sql(left).await;
            if left.starts_with("0\t") {
                return Ok(());
            }
            if began.elapsed() > Duration::from_secs(10) && left.contains("UNKNOWN_IDENTIFIER") {
                self.sql("KILL MUTATION WHERE database = currentDatabase() AND NOT is_done").await;
            }
            Err(anyhow::anyhow!("{sql}: {left}"))
        })
        .await
        .unwrap();
    }

    pub(crate) async fn number(&self, sql: &str) -> u64 {
        self.sql(sql).await.trim().parse().unwrap()
    }

    /// Publishes rows, 500 a block. When it returns they are in the queue.
    pub(crate) async fn publish(&self, into: &str, rows: &[String]) {
        for rows in rows.chunks(500) {
            let plain = rows.iter().map(|row| format!("{row}\n")).collect::<String>();
            let block = Block {
                id: BlockId::draw(&OsEntropy),
                tenant: Tenant::default(),
                table: Table::new(into).unwrap(),
                received: Timestamp::from_millis(1_750_000_000_000),
                rows: u32::try_from(rows.len()).unwrap(),
                decoded_bytes: u32::try_from(plain.len()).unwrap(),
                encoding: Encoding::Zstd,
                body: frame::encode(Encoding::Zstd, plain.as_bytes()).unwrap(),
                chain: None,
                trace: None,
            };
            for outcome in self.broker.publish(&[block]).await {
                outcome.unwrap();
            }
        }
    }

    /// Waits until every published row is settled.
    pub(crate) async fn settled(&self) {
        until(WITHIN, "every row to be settled", || async {
            match self.unsettled().await {
                0 => Ok(()),
                rows => Err(anyhow::anyhow!("{rows} rows are not settled")),
            }
        })
        .await
        .unwrap();
    }

    pub(crate) async fn unsettled(&self) -> u64 {
        let status = self.broker.status().await.unwrap();
        status.tenants.values().filter_map(|tenant| tenant.unsettled_rows).sum()
    }

    pub(crate) async fn letters(&self) -> Vec<DeadLetter> {
        let (mut letters, mut query) = (Vec::new(), DeadLetterQuery { limit: 1_000, ..DeadLetterQuery::default() });
        loop {
            let page = self.broker.dead_letters(&Tenant::default(), &query).await.unwrap();
            letters.extend(page.letters);
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => return letters,
            }
        }
    }

    /// Inserts that came to the proxy.
    pub(crate) fn inserts(&self) -> u64 {
        self.proxy.stats().requests(Kind::Insert)
    }

    /// Stops the worker; another may start then.
    pub(crate) async fn stopped(&mut self) {
        std::mem::take(&mut self.stop).give();
        std::mem::take(&mut self.tasks).wait().await;
    }

    pub(crate) async fn stop(mut self) {
        self.stopped().await;
    }
}

/// Rows `{"id":n}` and more of each.
pub(crate) fn rows(ids: std::ops::Range<u64>, more: impl Fn(u64) -> String) -> Vec<String> {
    ids.map(|id| format!("{{\"id\":{id}{}}}", more(id))).collect()
}

pub(crate) fn plain(ids: std::ops::Range<u64>) -> Vec<String> {
    rows(ids, |_| String::new())
}
