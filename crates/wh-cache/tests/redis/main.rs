//! What is Redis's own: logins, encrypted connections, what a server refuses, the layout. The port's clauses are in the
//! conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

mod authority;
mod logs;

use authority::Authority;
use logs::Logs;
use std::{path::Path, sync::Arc, time::Duration};
use wh_cache::{
    Cache as _, Change, Filled, Key, Landing, Options as Shared, Outcome, Read, View,
    redis::{Address, Cache, Login, Options, Servers, Tls},
};
use wh_testkit::{chaos, redis, until};
use wh_types::{OsEntropy, SystemClock, Table, Tasks, Tenant};

const PATIENCE: Duration = Duration::from_secs(90);
const TTL: Duration = Duration::from_secs(60);

fn shared() -> Shared {
    let shared = Shared::new(Arc::new(SystemClock), Arc::new(OsEntropy), Tasks::new());
    Shared { pause: Duration::from_millis(400), connect_timeout: Duration::from_secs(4), ..shared }
}

fn standalone(port: u16) -> Options {
    Options::new(Servers::Standalone(Address { host: "127.0.0.1".into(), port }), shared())
}

fn tenant() -> Tenant {
    Tenant::new("t").unwrap()
}

fn clicks() -> View {
    View::new(tenant(), [Read::from(Table::new("clicks").unwrap())]).unwrap()
}

fn key() -> Key {
    Key::of([&b"q"[..]])
}

async fn well(cache: &Cache) {
    until(PATIENCE, "the cache is in use", || async { cache.status().away.map_or(Ok(()), Err) }).await.unwrap();
}

async fn away(cache: &Cache, why: &str) {
    let says = || async {
        // a cache that is not asked does not find out
        let outcome = cache.lookup(&clicks(), &key()).await.outcome;
        drop(cache.invalidate(&[Change::tenant(tenant())]).await);
        match cache.status().away {
            Some(away) if away.contains(why) => Ok(()),
            away => Err(format!("{away:?} {outcome:?}")),
        }
    };
    until(PATIENCE, &format!("it is away: {why}"), says).await.unwrap();
}

async fn keeps_and_serves(cache: &Cache, value: &'static str) {
    let kept = || async {
        let at = cache.lookup(&clicks(), &key()).await.at;
        let kept = cache.put(&at, &key(), value.into(), TTL).await;
        let served = cache.lookup(&clicks(), &key()).await.outcome.hit();
        if served.is_some_and(|hit| hit.value == value) { Ok(()) } else { Err(format!("{kept:?}")) }
    };
    until(PATIENCE, &format!("{value} is kept and served"), kept).await.unwrap();
}

fn with_user(rules: &str) -> redis::Options {
    let args = std::iter::once("--user").chain(rules.split(' ')).map(str::to_owned).collect();
    redis::Options { password: Some("of-the-operator".into()), args, ..redis::Options::default() }
}

#[tokio::test]
async fn a_wrong_password_is_no_reason_not_to_start_and_a_mended_file_is_enough() {
    let (logs, _guard) = Logs::capture();
    let server = redis::Server::with(with_user("wh on >right-horse ~wh:* +get +mget +set")).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    let mut options = standalone(server.port());
    options.login = Login::new(Some("wh"), &file);
    let shown = format!("{options:?}");
    let cache = Cache::new(options).unwrap();
    away(&cache, "the password's file").await;
    std::fs::write(&file, "wrong-battery\n").unwrap();
    away(&cache, "WRONGPASS").await;
    std::fs::write(&file, "right-horse\n").unwrap();
    well(&cache).await;
    keeps_and_serves(&cache, "answer").await;
    cache.close().await;
    let all = format!("{shown} {cache:?} {}", logs.text());
    assert!(!all.contains("battery") && !all.contains("horse"), "{all}");
    assert!(logs.text().contains("the cache is in use"), "{}", logs.text());
}

#[tokio::test]
async fn only_get_mget_and_set_are_needed_and_everything_has_a_time_to_live() {
    let server = redis::Server::with(with_user("wh on >pw ~wh:* +get +mget +set")).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    std::fs::write(&file, "pw").unwrap();
    let cache = Cache::new(Options { login: Login::new(Some("wh"), &file), ..standalone(server.port()) }).unwrap();
    well(&cache).await;
    keeps_and_serves(&cache, "answer").await;
    let change = Change::table(tenant(), Table::new("clicks").unwrap());
    until(PATIENCE, "an invalidation lands", || async {
        cache.invalidate(std::slice::from_ref(&change)).await.pop().unwrap().unwrap() == Landing::Landed
    })
    .await
    .unwrap();
    let keys = server.command(&["KEYS", "*"]).await.unwrap();
    let mut names: Vec<_> = keys.lines().map(|key| key.rsplit_once(":q:t:").map_or(key, |_| "answer")).collect();
    names.sort_unstable();
    assert_eq!(names, ["answer", "wh:probe", "wh:{t}:B:clicks", "wh:{t}:S:clicks:", "wh:{t}:T"]);
    for key in keys.lines() {
        let left: i64 = server.command(&["PTTL", key]).await.unwrap().parse().unwrap();
        assert!(left > 0, "{key} lives for ever");
    }
}

#[tokio::test]
async fn what_a_user_may_not_do_is_said_and_does_not_leave_the_store_alone() {
    let (logs, _guard) = Logs::capture();
    let server = redis::Server::with(with_user("wh on >pw ~wh:* +get +set")).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    std::fs::write(&file, "pw").unwrap();
    let cache = Cache::new(Options { login: Login::new(Some("wh"), &file), ..standalone(server.port()) }).unwrap();
    well(&cache).await;
    for _ in 0..10 {
        assert!(matches!(cache.lookup(&clicks(), &key()).await.outcome, Outcome::Fault(_)));
    }
    assert_eq!(cache.status().away, None);
    assert_eq!(logs.warnings(), 1, "{}", logs.text());
    assert!(logs.text().contains("NOPERM"), "{}", logs.text());
}

#[tokio::test]
async fn a_server_alone_that_is_a_node_of_a_cluster_is_said_aloud() {
    let (logs, _guard) = Logs::capture();
    let cluster = redis::Cluster::start().await.unwrap();
    // of three nodes at least two do not have the slot of the tenant
    let caches: Vec<_> = cluster.nodes().iter().map(|node| Cache::new(standalone(node.port())).unwrap()).collect();
    until(PATIENCE, "two of three say so", || async {
        let mut told = 0;
        for cache in &caches {
            cache.lookup(&clicks(), &key()).await;
            told += usize::from(cache.status().away.is_some_and(|away| away.contains("node of a cluster")));
        }
        if told >= 2 { Ok(()) } else { Err(told) }
    })
    .await
    .unwrap();
    assert!(logs.text().contains("node of a cluster"), "{}", logs.text());
}

#[tokio::test]
async fn a_primary_that_was_demoted_is_left_alone_until_it_takes_writes_again() {
    let (logs, _guard) = Logs::capture();
    let server = redis::Server::start().await.unwrap();
    let cache = Cache::new(standalone(server.port())).unwrap();
    well(&cache).await;
    keeps_and_serves(&cache, "answer").await;
    server.demote().await.unwrap();
    let change = [Change::tenant(tenant())];
    assert_eq!(cache.invalidate(&change).await.pop().unwrap().unwrap(), Landing::Owed);
    away(&cache, "READONLY").await;
    server.promote().await.unwrap();
    well(&cache).await;
    until(PATIENCE, "what was owed landed", || async { cache.status().owed == 0 }).await.unwrap();
    assert!(cache.lookup(&clicks(), &key()).await.outcome.hit().is_none());
    keeps_and_serves(&cache, "new").await;
    assert_eq!(logs.warnings(), 1, "{}", logs.text());
}

#[tokio::test]
async fn an_outage_with_many_queries_is_one_line_in_the_log() {
    let (logs, _guard) = Logs::capture();
    let server = redis::Server::start().await.unwrap();
    let proxy = chaos::Tcp::start(server.port()).await.unwrap();
    let cache = Cache::new(standalone(proxy.port())).unwrap();
    well(&cache).await;
    proxy.down().await;
    for _ in 0..2_000 {
        assert!(cache.lookup(&clicks(), &key()).await.outcome.hit().is_none());
    }
    away(&cache, "").await;
    proxy.up().await.unwrap();
    well(&cache).await;
    keeps_and_serves(&cache, "answer").await;
    // the second outage within a minute is not a second line
    proxy.down().await;
    until(PATIENCE, "it is away again", || async {
        cache.lookup(&clicks(), &key()).await;
        cache.status().away.is_some()
    })
    .await
    .unwrap();
    assert_eq!(logs.warnings(), 1, "{}", logs.text());
}

async fn encrypted(authority: &Authority, dir: &Path) -> (redis::Server, u16) {
    let port = wh_testkit::free_port().unwrap();
    let (cert, key) = authority.issue(dir);
    let file = |path: &Path| path.display().to_string();
    let args = ["--tls-port", &port.to_string(), "--tls-auth-clients", "no"].map(str::to_owned);
    let files = ["--tls-cert-file".into(), file(&cert), "--tls-key-file".into(), file(&key)];
    let ca = ["--tls-ca-cert-file".into(), file(&authority.file(dir))];
    let args = args.into_iter().chain(files).chain(ca).collect();
    (redis::Server::with(redis::Options { args, ..redis::Options::default() }).await.unwrap(), port)
}

#[tokio::test]
async fn a_handshake_that_takes_longer_than_an_operation_may_does_not_keep_the_store_out() {
    let (dir, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let (_server, port) = encrypted(&authority, dir.path()).await;
    let proxy = chaos::Tcp::start(port).await.unwrap();
    let mut options = standalone(proxy.port());
    options.tls = Some(Tls { ca_file: Some(authority.file(dir.path())) });
    // a dial is five ways there and back, an operation one
    options.cache.timeout = Duration::from_millis(600);
    options.connections = 1;
    let pace = chaos::Pace { delay: Duration::from_millis(250), bytes_per_second: None };
    proxy.slow(chaos::Way::ToClient, pace);
    let cache = Cache::new(options).unwrap();
    well(&cache).await;
    keeps_and_serves(&cache, "answer").await;
    proxy.cut();
    until(PATIENCE, "it is noticed", || async {
        cache.lookup(&clicks(), &key()).await;
        cache.status().away.is_some()
    })
    .await
    .unwrap();
    well(&cache).await;
    assert_eq!(cache.lookup(&clicks(), &key()).await.outcome.hit().unwrap().value, "answer");
}

#[tokio::test]
async fn a_server_that_another_authority_signed_is_not_used() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_server, port) = encrypted(&Authority::new(), dir.path()).await;
    let mut options = standalone(port);
    options.tls = Some(Tls { ca_file: Some(Authority::new().file(other.path())) });
    let cache = Cache::new(options).unwrap();
    away(&cache, "connect").await;
    let at = cache.snapshot(&clicks()).await;
    assert!(at.is_blind() && !matches!(cache.put(&at, &key(), "x".into(), TTL).await, Ok(Filled::Kept)));
}

#[tokio::test]
async fn a_failover_is_followed_and_nothing_old_is_served() {
    let mut all = redis::Sentinel::start().await.unwrap();
    let sentinel = Address { host: "127.0.0.1".into(), port: all.port() };
    let servers = Servers::Sentinel { sentinels: vec![sentinel], primary: all.name().into() };
    let caches = [0, 1].map(|_| Cache::new(Options::new(servers.clone(), shared())).unwrap());
    for cache in &caches {
        well(cache).await;
        keeps_and_serves(cache, "answer").await;
    }
    let changes = [Change::tenant(tenant())];
    assert!(caches[0].invalidate(&changes).await.pop().unwrap().is_ok());
    all.fail_over().await.unwrap();
    let ended = || async {
        let mut owed = 0;
        for cache in &caches {
            let served = cache.lookup(&clicks(), &key()).await.outcome.hit();
            assert!(served.is_none(), "{served:?} was served after its end");
            owed += u32::from(cache.invalidate(&changes).await.pop().unwrap().unwrap() == Landing::Owed);
        }
        if owed == 0 { Ok(()) } else { Err(owed) }
    };
    until(PATIENCE, "both write to the new primary", ended).await.unwrap();
    for cache in &caches {
        keeps_and_serves(cache, "new").await;
    }
    let there = all.replica().command(&["KEYS", "wh:q:*"]).await.unwrap();
    assert_eq!(there.lines().count(), 1, "{there}");
    assert!(all.primary().command(&["ROLE"]).await.unwrap().starts_with("slave"));
}

#[tokio::test]
async fn versions_that_are_none_are_replaced() {
    let server = redis::Server::start().await.unwrap();
    server.command(&["SET", "wh:{t}:T", "something else"]).await.unwrap();
    server.command(&["LPUSH", "wh:{t}:B:clicks", "a list"]).await.unwrap();
    let cache = Cache::new(standalone(server.port())).unwrap();
    well(&cache).await;
    keeps_and_serves(&cache, "answer").await;
    assert_eq!(server.command(&["STRLEN", "wh:{t}:T"]).await.unwrap(), "8");
    // and an answer that is none is no answer
    let name = server.command(&["KEYS", "wh:q:*"]).await.unwrap();
    server.command(&["SET", &name, "no answer"]).await.unwrap();
    assert!(matches!(cache.lookup(&clicks(), &key()).await.outcome, Outcome::Fault(_)));
    keeps_and_serves(&cache, "again").await;
}
