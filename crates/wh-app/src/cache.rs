//! The cache of answers that the configuration names: opened here, and told of what the worker inserts.

use crate::StartError;
use async_trait::async_trait;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use wh_api::{AnswerCache, Check, Health, Invalidation};
use wh_cache::{Cache, memory, redis};
use wh_clickhouse::{Client, Relations, SchemaHandle};
use wh_config::{CacheBackend, Config, QueueBackend, RedisCache, RedisLogin, RedisMode};
use wh_ingest::{ClickHouse, Failure, Insert, Sink, SinkError};
use wh_types::{Clock, Entropy, Table, Tasks, Tenant};

/// The life of answers in a process's own memory while other processes insert: nobody tells it of what they do.
const UNTOLD: Duration = Duration::from_secs(10);

/// The cache, where there is one.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) cache: Arc<dyn Cache>,
    max_value_bytes: usize,
    longest: Duration,
    /// Kept in this process's memory while others insert.
    alone: bool,
    /// Its backend's name.
    name: &'static str,
}

/// Opens what the configuration names. A store on the network may be away: then it is used once it is there.
///
/// # Errors
/// What is configured can never be used.
pub(crate) fn open(
    config: &Config,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    tasks: &Tasks,
) -> Result<Option<Store>, StartError> {
    let name = config.cache.name();
    let (cache, max_value_bytes): (Arc<dyn Cache>, usize) = match &config.cache {
        // nobody here asks for answers, and nobody elsewhere sees this memory
        CacheBackend::Memory(_) if !config.roles.api => return Ok(None),
        CacheBackend::None => return Ok(None),
        CacheBackend::Memory(memory) => {
            let options = memory::Options {
                bytes: memory.bytes,
                max_value_bytes: memory.max_value_bytes,
                ..memory::Options::new(clock)
            };
            (Arc::new(memory::Cache::new(options).map_err(StartError::Cache)?), memory.max_value_bytes)
        }
        CacheBackend::Redis(redis) => {
            let options = redis_options(redis, clock, entropy, tasks.clone()).map_err(StartError::Cache)?;
            (Arc::new(redis::Cache::new(options).map_err(StartError::Cache)?), redis.max_value_bytes)
        }
    };
    let alone = matches!(config.cache, CacheBackend::Memory(_)) && config.mq.backend == QueueBackend::Nats;
    let longest = if alone { UNTOLD } else { wh_cache::MAX_TTL };
    Ok(Some(Store { cache, max_value_bytes, longest, alone, name }))
}

/// The options of a cache on Redis.
pub(crate) fn redis_options(
    redis: &RedisCache,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    tasks: Tasks,
) -> wh_cache::Result<redis::Options> {
    let mut addrs = redis.addrs.iter().map(|addr| addr.parse()).collect::<Result<Vec<redis::Address>, _>>()?;
    let servers = match &redis.mode {
        RedisMode::Cluster => redis::Servers::Cluster(addrs),
        RedisMode::Sentinel(primary) => redis::Servers::Sentinel { sentinels: addrs, primary: primary.clone() },
        RedisMode::Standalone => match addrs.pop() {
            Some(addr) => redis::Servers::Standalone(addr),
            None => redis::Servers::Cluster(addrs),
        },
    };
    let cache = wh_cache::Options {
        prefix: redis.key_prefix.clone(),
        timeout: redis.timeout,
        connect_timeout: redis.dial_timeout,
        version_ttl: redis.version_ttl,
        max_value_bytes: redis.max_value_bytes,
        pack_from: redis.compress_min_bytes.unwrap_or(usize::MAX),
        ..wh_cache::Options::new(clock, entropy, tasks)
    };
    let login =
        |login: &RedisLogin| redis::Login { user: login.username.clone(), password_file: login.password_file.clone() };
    Ok(redis::Options {
        login: login(&redis.login),
        sentinel_login: login(&redis.sentinel_login),
        tls: redis.tls.then(|| redis::Tls { ca_file: redis.ca_file.clone() }),
        database: redis.database,
        connections: redis.connections,
        ..redis::Options::new(servers, cache)
    })
}

impl Store {
    /// As the API takes it.
    pub(crate) fn for_api(&self) -> AnswerCache {
        AnswerCache {
            store: Arc::clone(&self.cache),
            max_value_bytes: self.max_value_bytes,
            longest: self.longest,
            by_marks: self.alone,
        }
    }

    /// What readiness says of it: a query does without.
    pub(crate) fn check(&self) -> Check {
        let (cache, name) = (Arc::clone(&self.cache), self.name);
        let look = move || match cache.status().away {
            Some(why) => Health::Degraded(format!("{name}: {why}")),
            None => Health::Good,
        };
        Check { name: "cache", look: Arc::new(look) }
    }

    /// The worker's sink, with which answers end once what they read was inserted into.
    pub(crate) fn around(&self, sink: ClickHouse, client: Client, schema: SchemaHandle) -> Told {
        let invalidation = Invalidation::new(Arc::clone(&self.cache), [(Tenant::default(), &client)]);
        Told { relations: Relations::new(client.clone(), schema), sink, client, invalidation }
    }
}

/// A sink whose inserts end answers. It returns after they have ended, or are owed an end: before the blocks are settled.
#[derive(Debug)]
pub(crate) struct Told {
    sink: ClickHouse,
    client: Client,
    relations: Relations,
    invalidation: Invalidation,
}

#[async_trait]
impl Sink for Told {
    fn pool(&self) -> &str {
        self.sink.pool()
    }

    async fn insert(&self, insert: Insert<'_>) -> Result<(), SinkError> {
        let table = insert.table.clone();
        let outcome = self.sink.insert(insert).await;
        if may_have_stored(outcome.as_ref().err().map(|error| error.failure)) {
            self.invalidation.wrote(&self.client, &self.relations, table.as_str()).await;
        }
        outcome
    }

    fn tables(&self) -> Option<Vec<Table>> {
        self.sink.tables()
    }

    async fn columns(&self, table: &Table) -> Option<Arc<BTreeSet<String>>> {
        Sink::columns(&self.sink, table).await
    }
}

/// Whether rows may be in a table, or in one behind it: a view may have taken them before another refused.
fn may_have_stored(failure: Option<Failure>) -> bool {
    match failure {
        None | Some(Failure::Unknown | Failure::Rejected) => true,
        Some(Failure::NoTable | Failure::Unavailable | Failure::Denied) => false,
    }
}
