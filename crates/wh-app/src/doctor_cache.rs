//! What `wavehouse doctor` says of a cache on Redis: whether it can be used. Writes the one name that every process probes
//! with.

use crate::{cache::redis_options, error::with_causes};
use std::{fmt, sync::Arc, time::Duration};
use wh_cache::{Cache as _, redis};
use wh_config::{CacheBackend, Config};
use wh_types::{Clock, OsEntropy, SystemClock, Tasks};

/// What connections may take beyond their own bound.
const MARGIN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    place: String,
    /// Why it cannot be used; `None` where it can.
    away: Option<String>,
}

impl Found {
    /// Whether no answer could be kept now.
    pub(crate) fn is_fault(&self) -> bool {
        self.away.is_some()
    }
}

/// Tries once; `None` where no store of its own is configured.
pub(crate) async fn look(config: &Config) -> Option<Found> {
    let CacheBackend::Redis(redis) = &config.cache else { return None };
    let place = redis.addrs.join(", ");
    let clock = Arc::new(SystemClock);
    let opened = redis_options(redis, clock.clone(), Arc::new(OsEntropy), Tasks::new()).and_then(redis::Cache::new);
    let cache = match opened {
        Ok(cache) => cache,
        Err(error) => return Some(Found { place, away: Some(with_causes(&error)) }),
    };
    let until = clock.now() + redis.dial_timeout + MARGIN;
    let mut away = cache.status().away;
    while away.is_some() && clock.now() < until {
        tokio::time::sleep(LOOK).await;
        away = cache.status().away;
    }
    cache.close().await;
    Some(Found { place, away })
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "cache {}", self.place)?;
        match &self.away {
            None => write!(f, "it answers and takes writes"),
            Some(why) => write!(f, "it cannot be used now: {why}; a server would ask ClickHouse for every answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_config::{Environment, load};

    async fn found(addr: &str) -> Option<Found> {
        let variables =
            [("WH_CACHE_BACKEND", "redis"), ("WH_CACHE_REDIS_ADDRS", addr), ("WH_CACHE_REDIS_DIAL_TIMEOUT", "10s")];
        look(&load(None, &Environment::new(variables)).unwrap().config).await
    }

    #[tokio::test]
    async fn a_store_that_works_and_one_that_is_not_there_are_told_apart() {
        let server = wh_testkit::redis::Server::start().await.unwrap();
        let good = found(&format!("127.0.0.1:{}", server.port())).await.unwrap();
        assert!(!good.is_fault() && good.to_string().contains("takes writes"), "{good}");
        let variables = [
            ("WH_CACHE_BACKEND", "redis"),
            ("WH_CACHE_REDIS_ADDRS", "127.0.0.1:1"),
            ("WH_CACHE_REDIS_DIAL_TIMEOUT", "10ms"),
        ];
        let away = look(&load(None, &Environment::new(variables)).unwrap().config).await.unwrap();
        assert!(away.is_fault() && away.to_string().contains("cannot be used now"), "{away}");
        assert!(look(&load(None, &Environment::default()).unwrap().config).await.is_none(), "memory is always there");
    }
}
