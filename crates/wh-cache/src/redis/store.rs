//! The store on Redis and Valkey: GET, MGET and SET, nothing else.

use super::{
    dial::{Connections, dial},
    error,
    options::{Options, Servers},
};
use crate::{
    Error, Kind, Result,
    remote::{Item, Store, probe},
};
use async_trait::async_trait;
use bytes::Bytes;
use fred::{
    clients::Pipeline,
    interfaces::{FredResult, KeysInterface as _},
    prelude::Client,
    types::{Expiration, SetOptions, Value},
};
use parking_lot::RwLock;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How long the probe's value lives.
const PROBE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Redis {
    options: Options,
    connections: RwLock<Option<Arc<Connections>>>,
    /// A server that was taken to stand alone is a node of a cluster.
    moved: AtomicBool,
}

impl Redis {
    pub(super) fn new(options: Options) -> Self {
        Self { options, connections: RwLock::default(), moved: AtomicBool::new(false) }
    }

    fn connections(&self, op: &'static str) -> Result<Arc<Connections>> {
        self.connections.read().clone().ok_or_else(|| Error::new(op, Kind::Disconnected))
    }

    fn error(&self, op: &'static str, vendor: &fred::error::Error) -> Error {
        if vendor.details().starts_with("MOVED") && matches!(self.options.servers, Servers::Standalone(_)) {
            self.moved.store(true, Ordering::Relaxed);
        }
        error::of(op, vendor)
    }

    /// Sends what was queued and gives each answer.
    async fn send(
        &self,
        op: &'static str,
        queue: impl AsyncFnOnce(&Pipeline<Client>) -> FredResult<()> + Send,
        count: usize,
    ) -> Result<Vec<Result<Value>>> {
        let connections = self.connections(op)?;
        let pipeline = connections.one(op)?.pipeline();
        queue(&pipeline).await.map_err(|vendor| self.error(op, &vendor))?;
        let answers = pipeline.try_all::<Value>().await;
        if answers.len() == count {
            return Ok(answers.into_iter().map(|one| one.map_err(|vendor| self.error(op, &vendor))).collect());
        }
        // the pipeline as a whole failed
        let failed = answers.into_iter().find_map(FredResult::err);
        Err(failed.map_or_else(|| Error::new(op, Kind::Disconnected), |vendor| self.error(op, &vendor)))
    }
}

/// What MGET gives: an array, or the one value where one was asked for.
fn texts(op: &'static str, value: Value, count: usize) -> Result<Vec<Option<Bytes>>> {
    let values = if value.is_array() { value.into_array() } else { vec![value] };
    if values.len() == count {
        return Ok(values.into_iter().map(Value::into_bytes).collect());
    }
    Err(Error::new(op, Kind::Corrupt("an answer to MGET has another length".into())))
}

fn ttl(item: &Item) -> Option<Expiration> {
    Some(Expiration::PX(i64::try_from(item.ttl.as_millis()).unwrap_or(i64::MAX).max(1)))
}

async fn queue_set(to: &Pipeline<Client>, item: &Item, options: Option<SetOptions>) -> FredResult<()> {
    to.set::<(), _, _>(item.name.as_str(), item.value.clone(), ttl(item), options, false).await
}

#[async_trait]
impl Store for Redis {
    const BACKEND: &'static str = "redis";

    async fn read(&self, versions: &[String], value: Option<&str>) -> Result<(Vec<Option<Bytes>>, Option<Bytes>)> {
        const OP: &str = "lookup";
        let queue = async |to: &Pipeline<Client>| {
            if !versions.is_empty() {
                to.mget::<(), _>(versions.to_vec()).await?;
            }
            if let Some(name) = value {
                to.get::<(), _>(name).await?;
            }
            Ok(())
        };
        let count = usize::from(!versions.is_empty()) + usize::from(value.is_some());
        let mut answers = self.send(OP, queue, count).await?.into_iter();
        let mut next = || answers.next().unwrap_or_else(|| Err(Error::new(OP, Kind::Disconnected)));
        let versions = if versions.is_empty() { Vec::new() } else { texts(OP, next()?, versions.len())? };
        let value = if value.is_some() { next()?.into_bytes() } else { None };
        Ok((versions, value))
    }

    async fn create(&self, versions: &[Item]) -> Result<Vec<Option<Bytes>>> {
        const OP: &str = "create";
        let queue = async |to: &Pipeline<Client>| {
            for item in versions {
                queue_set(to, item, Some(SetOptions::NX)).await?;
            }
            to.mget::<(), _>(versions.iter().map(|item| item.name.clone()).collect::<Vec<_>>()).await
        };
        let mut answers = self.send(OP, queue, versions.len() + 1).await?;
        let read = answers.pop().unwrap_or_else(|| Err(Error::new(OP, Kind::Disconnected)))?;
        answers.into_iter().collect::<Result<Vec<_>>>()?;
        texts(OP, read, versions.len())
    }

    async fn write(&self, items: &[Item]) -> Vec<Result<()>> {
        let queue = async |to: &Pipeline<Client>| {
            for item in items {
                queue_set(to, item, None).await?;
            }
            Ok(())
        };
        match self.send("set", queue, items.len()).await {
            Ok(answers) => answers.into_iter().map(|answer| answer.map(drop)).collect(),
            Err(error) => vec![Err(error)],
        }
    }

    async fn peek(&self, names: &[String]) -> Result<Vec<Option<Bytes>>> {
        let queue = async |to: &Pipeline<Client>| {
            for name in names {
                to.get::<(), _>(name.as_str()).await?;
            }
            Ok(())
        };
        let answers = self.send("peek", queue, names.len()).await?;
        answers.into_iter().map(|answer| answer.map(Value::into_bytes)).collect()
    }

    async fn renew(&self) -> Result<()> {
        const OP: &str = "connect";
        let connections = dial(&self.options).await?;
        let prefix = &self.options.cache.prefix;
        // a node of a cluster takes writes of some names, so more than one is tried after it was found out
        let count = if self.moved.load(Ordering::Relaxed) { 32 } else { 1 };
        let name = |n: usize| if n == 0 { probe(prefix) } else { format!("{}:{n}", probe(prefix)) };
        for n in 0..count {
            let item = Item { name: name(n), value: Bytes::from_static(b"1"), ttl: PROBE };
            let set = connections.one(OP)?.set::<Value, _, _>(
                item.name.as_str(),
                item.value.clone(),
                ttl(&item),
                None,
                false,
            );
            set.await.map_err(|vendor| self.error(OP, &vendor))?;
        }
        *self.connections.write() = Some(Arc::new(connections));
        Ok(())
    }

    async fn end(&self) {
        *self.connections.write() = None;
    }
}
