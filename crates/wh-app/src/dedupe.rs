//! The store of ids that the configuration names: opened here, or later where it cannot be reached yet.
//!
//! A store that can never be used as it is refuses the start. One that is away is tried again in the background; what is
//! asked of it meanwhile fails as `Unavailable`.

use crate::{StartError, data_dir, metrics};
use async_trait::async_trait;
use parking_lot::RwLock;
use std::{sync::Arc, time::Duration};
use tracing::{error, info, warn};
use wh_api::DedupeStore;
use wh_config::{Config, DedupeBackend, DynamoDb};
use wh_dedupe::{Dedupe, Error, Kind, Result, Retention, Row, Ticket, Under, Verdict, dynamodb, log, sled};
use wh_types::{Backoff, Class, Clock, Entropy, Stop, Tasks};

/// The store's folder in the data folder, and sled's: neither is the other's.
const FOLDER: &str = "dedupe";
const SLED_FOLDER: &str = "dedupe-sled";
/// Waits between attempts to open it.
const AGAIN: Backoff = Backoff::half_jitter(Duration::from_secs(1), Duration::from_secs(30));
/// How often what it holds is measured.
const MEASURE: Duration = Duration::from_secs(10);
/// What one attempt has of the time of a call to DynamoDB.
const ATTEMPT: f64 = 0.4;

/// What opening takes. It may be tried again.
#[derive(Clone, Debug)]
struct Opening {
    config: Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

/// A store that may be open only later. Closing ends its tasks, too.
#[derive(Debug)]
pub(crate) struct Store {
    open: RwLock<Option<Arc<dyn Dedupe>>>,
    stop: Stop,
    tasks: Tasks,
}

/// Opens what the configuration names; nothing where it names none or this process takes no events.
///
/// # Errors
/// It can never be used as it is.
pub(crate) async fn open(
    config: &Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> std::result::Result<Option<Arc<Store>>, StartError> {
    if !config.roles.api || config.dedupe.backend == DedupeBackend::None {
        return Ok(None);
    }
    let store = Arc::new(Store { open: RwLock::new(None), stop: Stop::new(), tasks: Tasks::new() });
    let opening = Opening { config: config.clone(), clock, entropy };
    match opening.open(&store).await {
        Ok(()) => {}
        Err(fault) if passing(&fault) => {
            warn!("the dedupe store cannot be opened, trying again: {}", crate::error::with_causes(&fault));
            let late = Arc::clone(&store);
            drop(store.tasks.spawn("app/dedupe", opening.later(late)));
        }
        Err(fault) => return Err(StartError::Dedupe(fault)),
    }
    Ok(Some(store))
}

/// Whether it may be gone by itself.
fn passing(error: &Error) -> bool {
    matches!(error.class(), Class::Unavailable | Class::Unknown | Class::Exhausted { .. })
}

impl Opening {
    async fn open(&self, store: &Arc<Store>) -> Result<()> {
        let found: Arc<dyn Dedupe> = match &self.config.dedupe.backend {
            DedupeBackend::None => return Ok(()),
            DedupeBackend::Log => self.log(store).await?,
            DedupeBackend::Sled => self.sled().await?,
            DedupeBackend::DynamoDb(table) => self.dynamodb(table).await?,
        };
        *store.open.write() = Some(found);
        Ok(())
    }

    async fn later(self, store: Arc<Store>) {
        for failures in 1.. {
            tokio::select! {
                () = store.stop.wait() => return,
                () = tokio::time::sleep(AGAIN.delay(failures, &*self.entropy)) => {}
            }
            match self.open(&store).await {
                Ok(()) => return info!("the dedupe store is open now"),
                Err(fault) if passing(&fault) => {}
                Err(fault) => error!("the dedupe store cannot be used: {}", crate::error::with_causes(&fault)),
            }
        }
    }

    async fn log(&self, store: &Arc<Store>) -> Result<Arc<dyn Dedupe>> {
        let path = self.folder(FOLDER)?;
        let options =
            log::Options { clock: self.clock.clone(), entropy: self.entropy.clone(), ..log::Options::new(&path) };
        let found = Arc::new(log::Dedupe::open(options).await?);
        let (recovery, path) = (found.recovery(), path.display());
        let (known, claims) = (recovery.known, recovery.claims);
        info!(%path, known, claims, "the dedupe store in {path} is open, {known} keys are known");
        drop(store.tasks.spawn("app/dedupe/usage", measure(Arc::downgrade(&found), store.stop.clone())));
        Ok(found)
    }

    async fn sled(&self) -> Result<Arc<dyn Dedupe>> {
        let path = self.folder(SLED_FOLDER)?;
        let options =
            sled::Options { clock: self.clock.clone(), entropy: self.entropy.clone(), ..sled::Options::new(&path) };
        let found = sled::Dedupe::open(options).await?;
        let (claims, path) = (found.usage().claims, path.display());
        info!(%path, claims, "the dedupe store in {path} is open, {claims} claims were not resolved");
        Ok(Arc::new(found))
    }

    /// A folder in the data folder, which is made where it is missing.
    fn folder(&self, name: &str) -> Result<std::path::PathBuf> {
        let refused = |error| Error::new("open", Kind::Denied("its data folder".into())).with_source(error);
        data_dir::prepare(&self.config.data_dir).map_err(refused)?;
        Ok(self.config.data_dir.join(name))
    }

    async fn dynamodb(&self, table: &DynamoDb) -> Result<Arc<dyn Dedupe>> {
        let options = dynamodb::Options {
            region: table.region.clone(),
            endpoint: table.endpoint.clone(),
            create_table: table.create_table,
            timeout: table.timeout,
            attempt: table.timeout.mul_f64(ATTEMPT),
            concurrency: table.concurrency,
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            ..dynamodb::Options::new(&table.table)
        };
        let found = dynamodb::Dedupe::connect(options).await?;
        info!(table = table.table, "the dedupe table {} is there", table.table);
        Ok(Arc::new(found))
    }
}

/// Sets the gauges of what a log holds, now and then.
async fn measure(log: std::sync::Weak<log::Dedupe>, stop: Stop) {
    while let Some(log) = log.upgrade() {
        let log::Usage { known, claims, table_bytes, disk_bytes } = log.usage();
        metrics::dedupe(known, claims, table_bytes, disk_bytes);
        drop(log);
        tokio::select! {
            () = stop.wait() => return,
            () = tokio::time::sleep(MEASURE) => {}
        }
    }
}

impl Store {
    fn get(&self, op: &'static str) -> Result<Arc<dyn Dedupe>> {
        let away = || Error::new(op, if self.stop.given() { Kind::Stopping } else { Kind::Unavailable });
        self.open.read().clone().ok_or_else(away)
    }

    /// As the API takes it.
    pub(crate) fn for_api(self: &Arc<Self>, config: &Config) -> DedupeStore {
        DedupeStore {
            store: Arc::clone(self) as Arc<dyn Dedupe>,
            lease: config.dedupe.lease,
            on_outage: match config.dedupe.on_outage {
                wh_config::OnOutage::Refuse => wh_api::OnOutage::Refuse,
                wh_config::OnOutage::Accept => wh_api::OnOutage::Accept,
            },
            duplicate_window: config.dedupe.duplicate_window,
            idempotency_window: config.ingest.idempotency_window,
        }
    }
}

#[async_trait]
impl Dedupe for Store {
    async fn reserve(&self, rows: &[Row], under: &Under) -> Result<Vec<Verdict>> {
        self.get("reserve")?.reserve(rows, under).await
    }

    async fn commit(&self, held: &[Ticket], retention: Retention) -> Vec<Result<()>> {
        match self.get("commit") {
            Ok(store) => store.commit(held, retention).await,
            Err(error) => held.iter().map(|_| Err(Error::new("commit", error.kind().clone()))).collect(),
        }
    }

    async fn release(&self, held: &[Ticket]) -> Vec<Result<()>> {
        match self.get("release") {
            Ok(store) => store.release(held).await,
            Err(error) => held.iter().map(|_| Err(Error::new("release", error.kind().clone()))).collect(),
        }
    }

    async fn close(&self) {
        self.stop.give();
        self.tasks.wait().await;
        let open = self.open.write().take();
        if let Some(store) = open {
            store.close().await;
        }
    }
}

#[cfg(test)]
#[path = "dedupe_tests.rs"]
mod tests;
