//! The bounds of the pool and of the versions.

use super::*;
use crate::{Cache as _, Read};
use wh_types::{SystemClock, Table, Tenant};

fn cache(bytes: u64, max_value_bytes: usize, versions: usize) -> Cache {
    let clock = Arc::new(SystemClock);
    Cache::new(Options { bytes, max_value_bytes, versions, clock }).unwrap()
}

fn view(table: &str) -> View {
    View::new(Tenant::new("t").unwrap(), [Read::from(Table::new(table).unwrap())]).unwrap()
}

fn key(n: usize) -> Key {
    Key::of([&n.to_be_bytes()[..]])
}

const TTL: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_pool_stays_within_its_bytes_and_holds_what_is_asked_for() {
    let cache = cache(4 << 20, 64 << 10, 1_000);
    let value = Bytes::from(vec![7; 10_000]);
    let hot = cache.snapshot(&view("hot")).await;
    assert_eq!(cache.put(&hot, &key(0), value.clone(), TTL).await.unwrap(), Filled::Kept);
    for n in 0..5_000 {
        let found = cache.lookup(&view("a"), &key(n)).await;
        assert_eq!(cache.put(&found.at, &key(n), value.clone(), TTL).await.unwrap(), Filled::Kept);
        assert!(cache.bytes() <= 4 << 20, "{n}: {}", cache.bytes());
        assert!(cache.get(&hot, &key(0)).await.hit().is_some(), "the one in use was evicted after {n}");
    }
    assert!(cache.bytes() > 3 << 20, "{}", cache.bytes());
}

#[tokio::test]
async fn an_answer_of_the_largest_size_is_kept_in_the_smallest_pool() {
    let cache = cache(9 << 20, 1 << 20, 10);
    for n in 0..20 {
        let at = cache.snapshot(&view("a")).await;
        cache.put(&at, &key(n), vec![1; 1 << 20].into(), TTL).await.unwrap();
        assert!(cache.get(&at, &key(n)).await.hit().is_some(), "{n}");
    }
}

#[tokio::test]
async fn a_pool_that_is_too_small_is_refused() {
    let options = Options { bytes: 1 << 20, ..Options::new(Arc::new(SystemClock)) };
    assert!(Cache::new(options).unwrap_err().to_string().contains("less than 8"));
}

#[tokio::test]
async fn versions_are_pruned_and_pruning_costs_misses_only() {
    let cache = cache(4 << 20, 1_024, 100);
    let first = cache.lookup(&view("t0"), &key(0)).await.at;
    cache.put(&first, &key(0), "old".into(), TTL).await.unwrap();
    for n in 0..2_000 {
        cache.snapshot(&view(&format!("t{n}"))).await;
    }
    assert!(cache.versions() <= 110, "{}", cache.versions());
    cache.invalidate(&[Change::table(Tenant::new("t").unwrap(), Table::new("t0").unwrap())]).await;
    assert!(cache.lookup(&view("t0"), &key(0)).await.outcome.hit().is_none());
    assert_eq!(cache.put(&first, &key(0), "old".into(), TTL).await.unwrap(), Filled::Skipped(Skipped::Stale));
}

#[tokio::test]
async fn what_was_ended_gives_its_bytes_back_when_it_is_found() {
    let cache = cache(4 << 20, 100_000, 100);
    let at = cache.snapshot(&view("a")).await;
    cache.put(&at, &key(0), vec![0; 50_000].into(), TTL).await.unwrap();
    assert!(cache.bytes() > 50_000);
    cache.invalidate(&[Change::tenant(Tenant::new("t").unwrap())]).await;
    assert!(matches!(cache.lookup(&view("a"), &key(0)).await.outcome, Outcome::Stale));
    assert_eq!(cache.bytes(), 0);
}
