//! The lease store in memory.

use super::{
    super::{Arm, Member, Stand, Way},
    options,
};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use wh_coord::{Key, sim};

#[derive(Clone, Copy, Debug)]
pub(super) struct Sim;

#[derive(Debug)]
struct SimStand(sim::Cluster);

#[derive(Debug)]
struct SimWay(sim::Link);

#[async_trait]
impl Arm for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn lapses(&self) -> bool {
        true
    }

    async fn open(&self) -> anyhow::Result<Box<dyn Stand>> {
        Ok(Box::new(SimStand(sim::Cluster::new())))
    }
}

#[async_trait]
impl Stand for SimStand {
    async fn join(&self, holder: &str, lease: Duration) -> anyhow::Result<Member> {
        let leases = self.0.join(options(holder, lease));
        let way = Arc::new(SimWay(leases.link()));
        Ok(Member { leases: Arc::new(leases), way })
    }

    async fn overwrite(&self, key: &Key, value: &str) -> anyhow::Result<()> {
        self.0.overwrite(key, value.to_owned());
        Ok(())
    }

    async fn remove(&self, key: &Key) -> anyhow::Result<()> {
        self.0.remove(key);
        Ok(())
    }
}

#[async_trait]
impl Way for SimWay {
    async fn slow(&self) {
        self.0.slow(Duration::from_millis(150), Duration::from_millis(150));
    }

    async fn cut(&self) {
        self.0.cut(true);
    }

    async fn deafen(&self) {
        self.0.deafen(true);
        self.0.lose_randomly(1.0);
    }

    async fn heal(&self) {
        self.0.cut(false);
        self.0.deafen(false);
        self.0.lose_randomly(0.0);
        self.0.slow(Duration::ZERO, Duration::ZERO);
    }
}
