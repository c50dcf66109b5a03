//! Redis, servers of the suite's own for each case: one alone, a cluster of three, a primary with a replica and a
//! sentinel. Members reach every server through proxies, and the proxies stand where the servers say they are.

use super::{
    super::{Arm, Member, Stand, Way},
    options,
};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tokio::sync::Mutex;
use wh_cache::redis::{Address, Cache, Options, Servers};
use wh_testkit::{chaos, redis};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Standalone,
    Cluster,
    Sentinel,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Redis(pub(super) Shape);

#[derive(Debug)]
enum Running {
    Standalone(redis::Server),
    Cluster(redis::Cluster),
    Sentinel(Box<redis::Sentinel>),
}

#[derive(Clone, Debug)]
struct RedisStand(Arc<Mutex<Running>>);

#[derive(Debug)]
struct RedisWay {
    stand: RedisStand,
    /// The member's own proxy; it has none where all share those of the servers.
    own: Option<chaos::Tcp>,
}

fn address(port: u16) -> Address {
    Address { host: "127.0.0.1".to_owned(), port }
}

#[async_trait]
impl Arm for Redis {
    fn name(&self) -> &'static str {
        match self.0 {
            Shape::Standalone => "redis",
            Shape::Cluster => "redis-cluster",
            Shape::Sentinel => "redis-sentinel",
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn open(&self) -> anyhow::Result<Box<dyn Stand>> {
        let running = match self.0 {
            Shape::Standalone => Running::Standalone(redis::Server::start().await?),
            Shape::Cluster => Running::Cluster(redis::Cluster::start().await?),
            Shape::Sentinel => Running::Sentinel(Box::new(redis::Sentinel::start().await?)),
        };
        Ok(Box::new(RedisStand(Arc::new(Mutex::new(running)))))
    }
}

impl RedisStand {
    async fn way(&self) -> anyhow::Result<RedisWay> {
        let own = match &*self.0.lock().await {
            Running::Standalone(server) => Some(chaos::Tcp::start(server.port()).await?),
            Running::Cluster(_) | Running::Sentinel(_) => None,
        };
        Ok(RedisWay { stand: self.clone(), own })
    }

    async fn member(&self, way: RedisWay) -> anyhow::Result<Member> {
        let servers = match (&*self.0.lock().await, &way.own) {
            (Running::Standalone(server), own) => {
                Servers::Standalone(address(own.as_ref().map_or(server.port(), chaos::Tcp::port)))
            }
            (Running::Cluster(cluster), _) => {
                Servers::Cluster(cluster.proxies().iter().map(|proxy| address(proxy.port())).collect())
            }
            (Running::Sentinel(all), _) => {
                Servers::Sentinel { sentinels: vec![address(all.port())], primary: all.name().to_owned() }
            }
        };
        let cache = Cache::new(Options::new(servers, options()))?;
        Ok(Member { cache: Arc::new(cache), way: Arc::new(way) })
    }
}

#[async_trait]
impl Stand for RedisStand {
    async fn join(&self) -> anyhow::Result<Member> {
        let member = self.member(self.way().await?).await?;
        wh_testkit::until(Duration::from_secs(90), "it is connected", || {
            let away = member.cache.status().away;
            async move { away.map_or(Ok(()), Err) }
        })
        .await?;
        Ok(member)
    }

    async fn join_cut_off(&self) -> anyhow::Result<Member> {
        let way = self.way().await?;
        way.down().await?;
        self.member(way).await
    }

    async fn wipe(&self) -> anyhow::Result<()> {
        match &mut *self.0.lock().await {
            Running::Standalone(server) => server.command(&["FLUSHALL"]).await.map(drop),
            Running::Cluster(cluster) => cluster.command(&["FLUSHALL"]).await,
            Running::Sentinel(all) => all.primary().command(&["FLUSHALL"]).await.map(drop),
        }
    }

    async fn remember(&self) -> anyhow::Result<()> {
        match &mut *self.0.lock().await {
            Running::Standalone(server) => server.save().await,
            Running::Cluster(cluster) => cluster.command(&["SAVE"]).await,
            Running::Sentinel(all) => all.primary().save().await,
        }
    }

    async fn restore(&self) -> anyhow::Result<()> {
        match &mut *self.0.lock().await {
            Running::Standalone(server) => server.crash().await,
            Running::Cluster(cluster) => cluster.crash().await,
            Running::Sentinel(all) => all.primary().crash().await,
        }
    }
}

/// What is done to a proxy.
#[derive(Clone, Copy, Debug)]
enum Act {
    Down,
    BlackHole,
    Slow,
    Heal,
}

impl Act {
    async fn on(self, proxy: &chaos::Tcp) -> anyhow::Result<()> {
        match self {
            Self::Down => proxy.down().await,
            Self::BlackHole => proxy.black_hole(chaos::Way::Both),
            Self::Slow => {
                let pace = chaos::Pace { delay: Duration::from_millis(150), bytes_per_second: None };
                proxy.slow(chaos::Way::ToClient, pace);
            }
            Self::Heal => {
                proxy.heal();
                proxy.up().await?;
            }
        }
        Ok(())
    }
}

impl RedisWay {
    async fn act(&self, act: Act) -> anyhow::Result<()> {
        match (&self.own, &*self.stand.0.lock().await) {
            (Some(own), _) => act.on(own).await?,
            (None, Running::Cluster(cluster)) => {
                for proxy in cluster.proxies() {
                    act.on(proxy).await?;
                }
            }
            (None, Running::Sentinel(all)) => act.on(all.proxy()).await?,
            (None, Running::Standalone(_)) => {}
        }
        Ok(())
    }

    /// Demotes every primary, or ends that. A node of a cluster becomes no replica of nobody: it is told to keep writes
    /// out while a replica is missing.
    async fn demote(&self, demote: bool) -> anyhow::Result<()> {
        match &mut *self.stand.0.lock().await {
            Running::Standalone(server) if demote => server.demote().await,
            Running::Standalone(server) => server.promote().await,
            Running::Sentinel(all) if demote => all.primary().demote().await,
            Running::Sentinel(all) => all.primary().promote().await,
            Running::Cluster(cluster) => {
                let replicas = if demote { "1" } else { "0" };
                cluster.command(&["CONFIG", "SET", "min-replicas-to-write", replicas]).await
            }
        }
    }
}

#[async_trait]
impl Way for RedisWay {
    async fn down(&self) -> anyhow::Result<()> {
        self.act(Act::Down).await
    }

    async fn black_hole(&self) -> anyhow::Result<()> {
        self.act(Act::BlackHole).await
    }

    async fn slow(&self) -> anyhow::Result<()> {
        self.act(Act::Slow).await
    }

    async fn read_only(&self) -> anyhow::Result<()> {
        self.demote(true).await
    }

    async fn heal(&self) -> anyhow::Result<()> {
        self.act(Act::Heal).await?;
        self.demote(false).await
    }
}
