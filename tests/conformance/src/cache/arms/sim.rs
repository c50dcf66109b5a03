//! The store in memory that members share.

use super::{
    super::{Arm, Member, Stand, Way},
    options,
};
use anyhow::Context as _;
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tokio::sync::Mutex;
use wh_cache::sim::{Cluster, Image, Link};
use wh_types::OsEntropy;

#[derive(Clone, Copy, Debug)]
pub(super) struct Sim;

#[derive(Debug, Default)]
struct SimStand {
    cluster: Cluster,
    image: Mutex<Option<Image>>,
    links: Mutex<Vec<Link>>,
}

#[derive(Debug)]
struct SimWay(Link);

#[async_trait]
impl Arm for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn open(&self) -> anyhow::Result<Box<dyn Stand>> {
        Ok(Box::new(SimStand::default()))
    }
}

#[async_trait]
impl Stand for SimStand {
    async fn join(&self) -> anyhow::Result<Member> {
        let cache = self.cluster.join(options());
        self.links.lock().await.push(cache.link());
        Ok(Member { way: Arc::new(SimWay(cache.link())), cache: Arc::new(cache) })
    }

    async fn join_cut_off(&self) -> anyhow::Result<Member> {
        let link = Link::new(Arc::new(OsEntropy));
        link.down(true);
        let cache = self.cluster.join_later(options(), link.clone());
        Ok(Member { way: Arc::new(SimWay(link)), cache: Arc::new(cache) })
    }

    async fn wipe(&self) -> anyhow::Result<()> {
        self.cluster.wipe();
        Ok(())
    }

    async fn remember(&self) -> anyhow::Result<()> {
        *self.image.lock().await = Some(self.cluster.image());
        Ok(())
    }

    async fn restore(&self) -> anyhow::Result<()> {
        let image = self.image.lock().await.take().context("nothing was remembered")?;
        self.cluster.restore(image);
        for link in &*self.links.lock().await {
            link.drop_connection();
        }
        Ok(())
    }
}

#[async_trait]
impl Way for SimWay {
    async fn down(&self) -> anyhow::Result<()> {
        self.0.down(true);
        Ok(())
    }

    async fn black_hole(&self) -> anyhow::Result<()> {
        self.0.black_hole(true);
        Ok(())
    }

    async fn slow(&self) -> anyhow::Result<()> {
        self.0.slow(Duration::from_millis(150), Duration::from_millis(150));
        Ok(())
    }

    async fn read_only(&self) -> anyhow::Result<()> {
        self.0.read_only(true);
        Ok(())
    }

    async fn heal(&self) -> anyhow::Result<()> {
        self.0.down(false);
        self.0.black_hole(false);
        self.0.slow(Duration::ZERO, Duration::ZERO);
        self.0.read_only(false);
        Ok(())
    }
}
