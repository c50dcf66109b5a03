//! A service that takes measurements from somewhere and wants them in ClickHouse, safely: it embeds the queue and the
//! worker, and brings nothing of WaveHouse's HTTP or configuration with it.

use anyhow::{Context, Result};
use std::{path::Path, sync::Arc, time::Duration};
use wh_clickhouse::Client;
use wh_ingest::{ClickHouse, Options, Parts, Worker};
use wh_mq::{Broker, embedded};
use wh_types::{Block, BlockId, Clock, Encoding, Entropy, OsEntropy, Stop, SystemClock, Table, Tasks, Tenant, frame};

/// The service: a durable queue in a folder, and a worker that empties it into ClickHouse.
#[derive(Debug)]
pub struct Service {
    queue: Arc<embedded::Broker>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    stop: Stop,
    tasks: Tasks,
}

impl Service {
    /// Opens the queue in `folder` and starts the worker over the ClickHouse at `url`.
    ///
    /// # Errors
    /// The folder cannot be used, or the address is none.
    ///
    /// # Cancel safety
    /// Detached: the queue may stay open.
    pub async fn start(folder: &Path, url: &str, database: &str) -> Result<Self> {
        let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) = (Arc::new(SystemClock), Arc::new(OsEntropy));
        let queue = Arc::new(embedded::Broker::open(embedded::Options::new(folder)).await?);

        let options = wh_clickhouse::Options { url: url.into(), database: database.into(), ..Default::default() };
        // No schema discovery here: this service knows its table.
        let sink = ClickHouse::new(Client::new(options)?, None, clock.clone());
        let parts = Parts {
            broker: queue.clone(),
            sinks: Arc::new(Arc::new(sink)),
            clock: clock.clone(),
            entropy: entropy.clone(),
        };
        let worker = Worker::new(parts, Options { batch_wait: Duration::from_millis(200), ..Options::default() });

        let (stop, tasks) = (Stop::new(), Tasks::new());
        let stopped = stop.clone();
        tasks.spawn("ingest", async move {
            if let Err(error) = worker.run(stopped).await {
                // A service would stop here: delivery ended for good.
                drop(error);
            }
        });
        Ok(Self { queue, clock, entropy, stop, tasks })
    }

    /// Takes rows, each one a JSON object on one line. When this returns they are on disk, and will be in ClickHouse.
    ///
    /// # Errors
    /// The queue is full or closing; nothing was taken then. `Class::Unknown` would mean "perhaps": the same block, under
    /// the same id, may be published again.
    ///
    /// # Cancel safety
    /// Detached: the rows may be taken.
    pub async fn take(&self, table: &str, rows: &[String]) -> Result<()> {
        let plain = rows.iter().flat_map(|row| [row.as_bytes(), b"\n"]).collect::<Vec<_>>().concat();
        let block = Block {
            id: BlockId::draw(&*self.entropy),
            tenant: Tenant::default(),
            table: Table::new(table)?,
            received: self.clock.wall(),
            rows: u32::try_from(rows.len()).context("a block has at most 500 rows")?,
            decoded_bytes: u32::try_from(plain.len()).context("a block has about 512 KiB")?,
            encoding: Encoding::Zstd,
            body: frame::encode(Encoding::Zstd, &plain)?,
            chain: None,
            trace: None,
        };
        for outcome in self.queue.publish(&[block]).await {
            outcome?;
        }
        Ok(())
    }

    /// Inserts what is held, and closes the queue.
    ///
    /// # Cancel safety
    /// Must finish.
    pub async fn stop(self) {
        self.stop.give();
        self.tasks.wait().await;
        self.queue.close().await;
    }
}
