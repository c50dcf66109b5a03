//! kill -9 and SIGTERM of the process under load: every 200 is in ClickHouse in the end.

use procs::{System, Writers};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(180);

/// Rounds in CI; `cargo xtask chaos` sets more.
fn rounds() -> u32 {
    let more = std::env::var_os("WH_TEST_ROUNDS").and_then(|n| n.into_string().ok());
    more.and_then(|n| n.parse().ok()).unwrap_or(5)
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_kill_9_under_load() {
    // small batches and a short wait: kills meet inserts, not only waiting rows
    let mut system = System::with("ingest:\n  batch_wait: 50ms\n  batch_rows: 200").await.unwrap();
    let writers = Writers::start(&system.url("/v1/ingest"), 6, 7);
    for round in 0..rounds() {
        writers.until_more(500 + u64::from(round) * 131, WAIT).await.unwrap();
        system.wavehouse.kill().unwrap();
        system.restart().await.unwrap();
    }
    writers.until_more(100, WAIT).await.unwrap();
    let sent = writers.stop().await.unwrap();
    let accepted = sent.accepted.len() as u64;
    assert!(sent.unanswered > 0, "no request met a dead process: the kills tested nothing");

    missing_is_none(&system, &sent.accepted).await;
    let (rows, ids) = (
        system.number("SELECT count() FROM events").await.unwrap(),
        system.number("SELECT uniqExact(id) FROM events").await.unwrap(),
    );
    println!("{accepted} accepted, {} requests unanswered, {} rows doubled by kills", sent.unanswered, rows - ids);
    assert!(system.wavehouse.stop(WAIT).await.unwrap().success());
}

#[tokio::test]
async fn a_clean_stop_under_load_answers_what_it_took_and_doubles_nothing() {
    let mut system = System::with("ingest:\n  batch_wait: 200ms").await.unwrap();
    let writers = Writers::start(&system.url("/v1/ingest"), 20, 3);
    for _ in 0..2 {
        writers.until_more(1_000, WAIT).await.unwrap();
        let status = system.wavehouse.stop(Duration::from_secs(60)).await.unwrap();
        assert!(status.success(), "{status}: {}", system.wavehouse.tail(20));
        system.restart().await.unwrap();
    }
    let sent = writers.stop().await.unwrap();
    missing_is_none(&system, &sent.accepted).await;
    let (rows, ids) = (
        system.number("SELECT count() FROM events").await.unwrap(),
        system.number("SELECT uniqExact(id) FROM events").await.unwrap(),
    );
    assert_eq!(rows, ids, "a clean stop doubles nothing");
}

/// Waits until every accepted id is in the table.
async fn missing_is_none(system: &System, accepted: &std::collections::BTreeSet<u64>) {
    wh_testkit::until(WAIT, "every accepted event to be in ClickHouse", || async {
        let found = system.engine.query("SELECT DISTINCT id FROM events FORMAT TSV").await?;
        let found = found.lines().map(str::parse).collect::<Result<std::collections::BTreeSet<u64>, _>>()?;
        match accepted.difference(&found).next() {
            None => Ok(()),
            Some(first) => anyhow::bail!("{} of {} found, {first} is missing", found.len(), accepted.len()),
        }
    })
    .await
    .unwrap();
}
