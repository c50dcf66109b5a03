//! The settings of kept answers, through the whole way of a configuration.

use super::{CacheBackend, RedisMode};
use crate::{Config, tests::found};
use std::time::Duration;

#[test]
fn answers_are_kept_in_memory_unless_something_else_is_chosen() {
    let (config, warnings) = found("").unwrap();
    let CacheBackend::Memory(memory) = config.cache else { panic!("{:?}", config.cache) };
    assert_eq!((memory.bytes, memory.max_value_bytes), (64 << 20, 1 << 20));
    let query = (config.tenant_defaults.cache_ttl, config.tenant_defaults.timestamp_bucket);
    assert_eq!(query, (Duration::from_secs(3_600), Duration::from_secs(60)));
    assert_eq!(warnings, Vec::<String>::new());
    let (config, _) = found("tenant_defaults: {query: {cache_ttl: 0, timestamp_bucket_seconds: 0}}").unwrap();
    assert!(config.tenant_defaults.cache_ttl.is_zero() && config.tenant_defaults.timestamp_bucket.is_zero());
    assert_eq!(found("cache: {backend: none}").unwrap().0.cache, CacheBackend::None);
}

#[test]
fn redis_takes_servers_in_each_of_their_forms() {
    let redis = |text: &str| match found(&format!("cache: {{backend: redis, redis: {{{text}}}}}")) {
        Ok((Config { cache: CacheBackend::Redis(redis), .. }, _)) => *redis,
        other => panic!("{text}: {other:?}"),
    };
    let alone = redis("addrs: ['[::1]:6379'], db: 3, username: wh, compress_min_bytes: 0, timeout: 50ms");
    assert_eq!((alone.mode, alone.database, alone.compress_min_bytes), (RedisMode::Standalone, 3, None));
    assert_eq!((alone.login.username.as_deref(), alone.timeout), (Some("wh"), Duration::from_millis(50)));
    let cluster = redis("mode: cluster, addrs: ['a:1', 'b:2'], tls: {enabled: true}, connections: 4");
    assert!(cluster.mode == RedisMode::Cluster && cluster.addrs.len() == 2 && cluster.tls && cluster.connections == 4);
    let sentinel = redis("mode: sentinel, addrs: ['a:1'], sentinel_primary: main");
    assert_eq!(sentinel.mode, RedisMode::Sentinel("main".to_owned()));
}

#[test]
fn what_cannot_work_is_refused_with_its_key() {
    for (text, expected) in [
        ("backend: redis", "cache.redis.addrs: is needed"),
        ("backend: redis, redis: {addrs: ['redis://me:hush@h:1']}", "entry 1 must be like host:6379"),
        ("backend: redis, redis: {addrs: ['a:1', 'b:1']}", "more than one server"),
        ("backend: redis, redis: {addrs: ['a:1'], mode: cluster, db: 1}", "cache.redis.db: must be 0"),
        ("backend: redis, redis: {addrs: ['a:1'], mode: sentinel}", "cache.redis.sentinel_primary: is needed"),
        ("backend: redis, redis: {addrs: ['a:1'], tls: {ca_file: x}}", "needs cache.redis.tls.enabled"),
        ("backend: redis, redis: {addrs: ['a:1'], key_prefix: 'a{b'}", "cache.redis.key_prefix: must be"),
        ("backend: redis, redis: {addrs: ['a:1'], password_file: /nowhere/x}", "cannot be read"),
        ("backend: memory, memory: {bytes: 4MiB}", "cache.memory.bytes: must be at least eight times"),
        ("backend: local", "is not one of none, memory, redis"),
        ("redis: {password: hush}", "name that in cache.redis.password_file"),
    ] {
        let errors = found(&format!("cache: {{{text}}}")).map(|_| ()).unwrap_err();
        assert!(errors.iter().any(|error| error.contains(expected)), "{text}: {expected:?} is not in {errors:?}");
        assert!(!errors.concat().contains("hush@"), "{errors:?}");
    }
}

#[test]
fn keys_without_effect_and_a_cache_beside_other_processes_are_warnings() {
    let warnings = |text: &str| found(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}")).1;
    let other = warnings("cache: {backend: none, memory: {bytes: 64MiB}, redis: {addrs: ['a:1']}}");
    assert!(other.len() == 2 && other.iter().all(|text| text.contains("has no effect")), "{other:?}");
    let nats = "mq: {backend: nats, nats: {urls: [a]}}\ncoord: {backend: nats}\n";
    let beside = warnings(&format!("{nats}cache: {{backend: memory}}"));
    assert!(beside.iter().any(|text| text.contains("10 s at most")), "{beside:?}");
    assert!(!warnings(nats).iter().any(|text| text.contains("10 s at most")), "it is told to who chose it");
}
