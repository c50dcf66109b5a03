//! The store in a folder of sled's, on the real disk. Nothing is to go wrong with it: what a write that fails does to it
//! is in its own tests.

use super::super::{Arm, Failure, Member, Stand, Way};
use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::Mutex;
use wh_dedupe::{
    Dedupe as _,
    sled::{Dedupe, Options},
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Sled;

#[derive(Debug)]
struct SledStand {
    dir: tempfile::TempDir,
    life: Mutex<Option<Arc<Dedupe>>>,
}

#[derive(Debug)]
struct SledWay;

#[async_trait]
impl Arm for Sled {
    fn name(&self) -> &'static str {
        "sled"
    }

    fn fails(&self, _: Failure) -> bool {
        false
    }

    async fn open(&self, _: bool) -> anyhow::Result<Box<dyn Stand>> {
        Ok(Box::new(SledStand { dir: tempfile::tempdir()?, life: Mutex::default() }))
    }
}

#[async_trait]
impl Stand for SledStand {
    async fn join(&self) -> anyhow::Result<Member> {
        let mut life = self.life.lock().await;
        let store = match &*life {
            Some(store) => Arc::clone(store),
            None => {
                let store = Dedupe::open(Options::new(self.dir.path().join("dedupe"))).await?;
                Arc::clone(life.insert(Arc::new(store)))
            }
        };
        Ok(Member { store, way: Arc::new(SledWay) })
    }

    async fn crash(&self) -> anyhow::Result<()> {
        // a process of its own is killed by the crash tests; here the folder must become free
        if let Some(store) = self.life.lock().await.take() {
            store.close().await;
        }
        Ok(())
    }
}

#[async_trait]
impl Way for SledWay {
    async fn fail(&self, failure: Failure) {
        panic!("{failure:?} is not among what can be made to go wrong with sled");
    }

    async fn heal(&self) {}
}
