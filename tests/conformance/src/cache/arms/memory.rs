//! The cache of one process.

use super::{
    super::{Arm, Member, Stand, Way},
    MAX_VALUE,
};
use anyhow::bail;
use async_trait::async_trait;
use std::sync::Arc;
use wh_cache::{Cache, Change, memory};
use wh_types::{SystemClock, Tenant};

#[derive(Clone, Copy, Debug)]
pub(super) struct Memory;

#[derive(Debug)]
struct MemoryStand(Arc<memory::Cache>);

/// There is nothing between a process and itself.
#[derive(Clone, Copy, Debug)]
struct NoWay;

#[async_trait]
impl Arm for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn is_shared(&self) -> bool {
        false
    }

    async fn open(&self) -> anyhow::Result<Box<dyn Stand>> {
        let options = memory::Options { max_value_bytes: MAX_VALUE, ..memory::Options::new(Arc::new(SystemClock)) };
        Ok(Box::new(MemoryStand(Arc::new(memory::Cache::new(options)?))))
    }
}

#[async_trait]
impl Stand for MemoryStand {
    async fn join(&self) -> anyhow::Result<Member> {
        Ok(Member { cache: Arc::<memory::Cache>::clone(&self.0), way: Arc::new(NoWay) })
    }

    async fn join_cut_off(&self) -> anyhow::Result<Member> {
        bail!("a process cannot be cut off from itself")
    }

    async fn wipe(&self) -> anyhow::Result<()> {
        for tenant in ["t", "u"] {
            self.0.invalidate(&[Change::tenant(Tenant::new(tenant)?)]).await;
        }
        Ok(())
    }

    async fn remember(&self) -> anyhow::Result<()> {
        bail!("what a process holds ends with it")
    }

    async fn restore(&self) -> anyhow::Result<()> {
        bail!("what a process holds ends with it")
    }
}

#[async_trait]
impl Way for NoWay {
    async fn down(&self) -> anyhow::Result<()> {
        Ok(())
    }

    async fn black_hole(&self) -> anyhow::Result<()> {
        Ok(())
    }

    async fn slow(&self) -> anyhow::Result<()> {
        Ok(())
    }

    async fn read_only(&self) -> anyhow::Result<()> {
        Ok(())
    }

    async fn heal(&self) -> anyhow::Result<()> {
        Ok(())
    }
}
