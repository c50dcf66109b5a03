//! The store in memory.

use super::super::{Arm, Failure, Member, Stand, Way};
use async_trait::async_trait;
use std::sync::Arc;
use wh_dedupe::sim::{Fault, Link, Options, Shared};
use wh_types::{OsEntropy, SystemClock};

#[derive(Clone, Copy, Debug)]
pub(super) struct Sim;

#[derive(Debug)]
struct SimStand(Shared);

#[derive(Debug)]
struct SimWay(Link);

#[async_trait]
impl Arm for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn fails(&self, _: Failure) -> bool {
        true
    }

    async fn open(&self, _: bool) -> anyhow::Result<Box<dyn Stand>> {
        Ok(Box::new(SimStand(Shared::new())))
    }
}

#[async_trait]
impl Stand for SimStand {
    async fn join(&self) -> anyhow::Result<Member> {
        let store = self.0.join(Options { clock: Arc::new(SystemClock), entropy: Arc::new(OsEntropy) });
        let way = Arc::new(SimWay(store.link()));
        Ok(Member { store: Arc::new(store), way })
    }

    async fn crash(&self) -> anyhow::Result<()> {
        // a process that is gone is one that calls no more
        Ok(())
    }
}

#[async_trait]
impl Way for SimWay {
    async fn fail(&self, failure: Failure) {
        let fault = match failure {
            Failure::Refused => return self.0.cut(true),
            Failure::Throttled => Fault::Throttled,
            Failure::Lost => Fault::Lost,
            Failure::Half => Fault::HalfUndone,
            Failure::HalfLeft => Fault::HalfLeft,
        };
        self.0.always(Some(fault));
    }

    async fn heal(&self) {
        self.0.cut(false);
        self.0.always(None);
    }
}
