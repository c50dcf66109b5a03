//! The store in a data folder: on the real disk for most cases, and on the log's simulated one where something is to go
//! wrong with it.

use super::super::{Arm, Failure, Member, Stand, Way};
use async_trait::async_trait;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::Mutex;
use wh_dedupe::{
    Dedupe as _,
    log::{Dedupe, Options},
};
use wh_log::disk::{Disk, RealDisk, sim::SimDisk};

#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    pub(super) name: &'static str,
    pub(super) simulated: bool,
}

#[derive(Debug)]
struct LogStand {
    dir: PathBuf,
    real: Option<tempfile::TempDir>,
    simulated: SimDisk,
    life: Mutex<Option<Arc<Dedupe>>>,
}

/// A disk that can fail; a real one does not when it is told to.
#[derive(Debug)]
struct LogWay(SimDisk);

#[async_trait]
impl Arm for Log {
    fn name(&self) -> &'static str {
        self.name
    }

    fn fails(&self, failure: Failure) -> bool {
        // one append is all or nothing: nothing stops half way
        self.simulated && matches!(failure, Failure::Refused | Failure::Throttled | Failure::Lost)
    }

    async fn open(&self, _: bool) -> anyhow::Result<Box<dyn Stand>> {
        let real = if self.simulated { None } else { Some(tempfile::tempdir()?) };
        let dir = real.as_ref().map_or_else(|| PathBuf::from("/dedupe"), |dir| dir.path().join("dedupe"));
        Ok(Box::new(LogStand { dir, real, simulated: SimDisk::new(7), life: Mutex::default() }))
    }
}

#[async_trait]
impl Stand for LogStand {
    async fn join(&self) -> anyhow::Result<Member> {
        let mut life = self.life.lock().await;
        let store = match &*life {
            Some(store) => Arc::clone(store),
            None => {
                let mut options = Options::new(&self.dir);
                options.segment_bytes = 256 * 1024;
                options.upkeep_every = Duration::from_millis(20);
                options.disk = match self.real {
                    Some(_) => Arc::new(RealDisk) as Arc<dyn Disk>,
                    None => Arc::new(self.simulated.clone()),
                };
                Arc::clone(life.insert(Arc::new(Dedupe::open(options).await?)))
            }
        };
        Ok(Member { store, way: Arc::new(LogWay(self.simulated.clone())) })
    }

    async fn crash(&self) -> anyhow::Result<()> {
        let Some(store) = self.life.lock().await.take() else { return Ok(()) };
        if self.real.is_none() {
            // what it still does, it does without power
            self.simulated.cut_power();
        }
        // a process of its own is killed by the crash tests; here the folder must become free
        store.close().await;
        self.simulated.power_on();
        Ok(())
    }
}

#[async_trait]
impl Way for LogWay {
    async fn fail(&self, failure: Failure) {
        match failure {
            Failure::Refused => self.0.fail_writes(u64::MAX),
            // the end of the log may be marked already, and an append then finds room in what is there
            Failure::Throttled => self.0.set_capacity(Some(0)),
            Failure::Lost | Failure::Half | Failure::HalfLeft => self.0.fail_syncs(u64::MAX),
        }
    }

    async fn heal(&self) {
        self.0.fail_writes(0);
        self.0.fail_syncs(0);
        self.0.set_capacity(None);
    }
}
