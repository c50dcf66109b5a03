//! Leases of one process.

use super::{
    super::{Arm, Member, Stand, Way},
    options,
};
use anyhow::bail;
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use wh_coord::{Key, local};

#[derive(Clone, Copy, Debug)]
pub(super) struct Local;

#[derive(Debug)]
struct LocalStand(local::Leases);

/// There is nothing between a process and itself.
#[derive(Clone, Copy, Debug)]
struct NoWay;

#[async_trait]
impl Arm for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn lapses(&self) -> bool {
        false
    }

    async fn open(&self) -> anyhow::Result<Box<dyn Stand>> {
        Ok(Box::new(LocalStand(local::Leases::new(options("table", Duration::from_secs(15))))))
    }
}

#[async_trait]
impl Stand for LocalStand {
    async fn join(&self, holder: &str, lease: Duration) -> anyhow::Result<Member> {
        Ok(Member { leases: Arc::new(self.0.peer(options(holder, lease))), way: Arc::new(NoWay) })
    }

    async fn overwrite(&self, _: &Key, _: &str) -> anyhow::Result<()> {
        bail!("nobody else reaches into a process")
    }

    async fn remove(&self, _: &Key) -> anyhow::Result<()> {
        bail!("nobody else reaches into a process")
    }
}

#[async_trait]
impl Way for NoWay {
    async fn slow(&self) {}
    async fn cut(&self) {}
    async fn deafen(&self) {}
    async fn heal(&self) {}
}
