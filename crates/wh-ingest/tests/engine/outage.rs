//! ClickHouse is away, slow, full, or forbids: rows wait, none is parked, each is stored once.

use crate::rig::{Rig, WITHIN, plain, quick, rows};
use std::time::Duration;
use wh_ingest::Options;
use wh_testkit::{
    clickhouse::{Database, Server},
    fault::{Action, Rule},
    until,
};
use wh_types::{Backoff, Clock, SystemClock};

const TABLE: &str = "CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id \
                     SETTINGS non_replicated_deduplication_window = 1000";

fn error(code: u32, name: &str, status: u16) -> Action {
    Action::Error { code, name: name.into(), status, message: "injected fault".into() }
}

#[tokio::test]
async fn an_outage_of_every_kind_leaves_an_empty_dead_letter_store_and_each_row_once() {
    let rig = Rig::new(quick(), &[TABLE]).await;
    let mut next = 0;
    let kinds = [
        Action::Reset,
        Action::DropReply,
        Action::Status { status: 502, body: "<html>bad gateway</html>".into() },
        Action::Status { status: 500, body: String::new() },
        Action::Status { status: 200, body: "<html>log in</html>".into() },
        Action::Truncate { bytes: 0 },
        error(242, "TABLE_IS_READ_ONLY", 500),
        error(164, "READONLY", 500),
        error(497, "ACCESS_DENIED", 403),
        error(516, "AUTHENTICATION_FAILED", 403),
        error(241, "MEMORY_LIMIT_EXCEEDED", 200),
        error(252, "TOO_MANY_PARTS", 500),
        error(999, "KEEPER_EXCEPTION", 500),
        error(60, "UNKNOWN_TABLE", 404),
        Action::MidException { code: 243, name: "NOT_ENOUGH_SPACE".into(), bytes: 0 },
    ];
    for kind in kinds {
        // each rule meets several tries, so that back-off, probe and recovery all happen under it
        let name = kind.name();
        let rule = rig.proxy.add(Rule::insert(kind).times(3));
        rig.publish("t", &plain(next..next + 200)).await;
        next += 200;
        until(WITHIN, "the fault to be met three times", || async {
            match rig.proxy.fired(rule) {
                3 => Ok(()),
                times => Err(anyhow::anyhow!("{name}: {times}")),
            }
        })
        .await
        .unwrap();
        rig.settled().await;
    }
    rig.proxy.down().await;
    rig.publish("t", &plain(next..next + 5_000)).await;
    next += 5_000;
    // an outage, shortened: many windows of the back-off pass
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(rig.letters().await.is_empty());
    rig.proxy.up().await.unwrap();
    rig.settled().await;
    assert_eq!(rig.sql("SELECT count(), uniqExact(id), sum(id) FROM t").await, {
        let sum = next * (next - 1) / 2;
        format!("{next}\t{next}\t{sum}")
    });
    assert!(rig.letters().await.is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn an_answer_lost_after_the_commit_stores_the_batch_once() {
    let rig = Rig::new(quick(), &[TABLE]).await;
    let rule = rig.proxy.add(Rule::insert(Action::DropReply).times(4));
    rig.publish("t", &plain(0..3_000)).await;
    rig.settled().await;
    assert_eq!(rig.proxy.fired(rule), 4);
    assert_eq!(rig.sql("SELECT count(), uniqExact(id) FROM t").await, "3000\t3000");
    rig.sql("SYSTEM FLUSH LOGS").await;
    let tries = "SELECT count(), uniqExact(Settings['insert_deduplication_token']) FROM system.query_log \
                 WHERE current_database = currentDatabase() AND query_kind = 'Insert' AND type = 'QueryFinish'";
    let counts = rig.sql(tries).await;
    let (tries, tokens) = counts.split_once('\t').unwrap();
    assert_eq!(tries.parse::<u64>().unwrap(), tokens.parse::<u64>().unwrap() + 4, "repeats had the token of the first");
    rig.stop().await;
}

/// What a token was used for in one partition must not be taken for rows of another.
#[tokio::test]
async fn answers_lost_for_rows_of_several_partitions_store_each_row_once() {
    let rig = Rig::new(
        quick(),
        &["CREATE TABLE t (id UInt64, p UInt8) ENGINE = MergeTree ORDER BY id PARTITION BY p \
        SETTINGS non_replicated_deduplication_window = 1000"],
    )
    .await;
    let rule = rig.proxy.add(Rule::insert(Action::DropReply).every(2).times(8));
    for n in 0..12 {
        // one partition, the other, and both
        let partition = |id: u64| format!(",\"p\":{}", if n % 3 == 2 { id % 2 } else { n % 3 });
        rig.publish("t", &rows(n * 100..n * 100 + 100, partition)).await;
        rig.settled().await;
    }
    assert_eq!(rig.proxy.fired(rule), 8);
    assert_eq!(rig.sql("SELECT count(), uniqExact(id), countIf(p = 0) FROM t").await, "1200\t1200\t600");
    assert!(rig.letters().await.is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn rows_wait_for_a_user_that_may_not_insert_and_are_stored_once_it_may() {
    // one may not insert into this database (497), one may write nothing at all (164)
    for user in ["ingest", "ro"] {
        let mut rig = Rig::idle(quick()).await.user(Some(user));
        rig.sql("CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id").await;
        rig.work();
        rig.publish("t", &plain(0..1_000)).await;
        until(WITHIN, "several tries", || async {
            if rig.inserts() >= 3 { Ok(()) } else { Err(anyhow::anyhow!("{}", rig.inserts())) }
        })
        .await
        .unwrap();
        assert_eq!((rig.number("SELECT count() FROM t").await, rig.letters().await.len()), (0, 0), "{user}");
        rig.stopped().await;
        rig = rig.user(None);
        rig.work();
        rig.settled().await;
        assert_eq!(rig.sql("SELECT count(), uniqExact(id) FROM t").await, "1000\t1000");
        assert!(rig.letters().await.is_empty());
        rig.stop().await;
    }
}

/// Waits until so many rows are stored, and says how long that took.
async fn stored(rig: &Rig, rows: u64) -> Duration {
    let began = SystemClock.now();
    until(WITHIN, "the rows that came meanwhile", || async {
        let found = rig.number("SELECT uniqExact(id) FROM t").await;
        if found == rows { Ok(()) } else { Err(anyhow::anyhow!("{found} of {rows}")) }
    })
    .await
    .unwrap();
    began.elapsed()
}

/// The worker's times are a three-hundredth of the defaults, and so is an hour: 12 s, half of them spent hanging and half
/// dead. An insert's own time stays longer, as the machine may be slow.
#[tokio::test]
async fn an_hour_of_an_engine_that_hangs_and_dies_in_short_leaves_an_empty_dead_letter_store() {
    let mut engine = Server::start().await.unwrap();
    let options = Options {
        batch_wait: Duration::from_millis(50),
        backoff: Backoff::half_jitter(Duration::from_millis(3), Duration::from_millis(100)),
        insert_timeout: Duration::from_secs(2),
        ..quick()
    };
    let rig = Rig::on(Database::on(engine.endpoint()).await.unwrap(), options).await;
    rig.sql(TABLE).await;
    rig.work();
    rig.publish("t", &plain(0..500)).await;
    rig.settled().await;
    let (mut next, mut figures) = (500, Vec::new());
    for hangs in [true, false, true, false] {
        let before = rig.inserts();
        let broken = if hangs { engine.pause() } else { engine.crash() };
        broken.unwrap();
        let began = SystemClock.now();
        while began.elapsed() < Duration::from_secs(3) {
            rig.publish("t", &plain(next..next + 500)).await;
            next += 500;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let tries = rig.inserts() - before;
        assert!(rig.letters().await.is_empty());
        let mended = if hangs { engine.resume() } else { engine.restart().await };
        mended.unwrap();
        figures.push((if hangs { "hung" } else { "dead" }, tries, stored(&rig, next).await));
    }
    rig.settled().await;
    assert!(rig.letters().await.is_empty(), "{:?}", rig.letters().await.first());
    assert_eq!(rig.sql("SELECT uniqExact(id), sum(DISTINCT id) FROM t").await, {
        let sum = next * (next - 1) / 2;
        format!("{next}\t{sum}")
    });
    let doubled = rig.number("SELECT count() FROM t").await - next;
    println!(
        "{next} rows, {doubled} of them twice, no dead letter; outages of 3 s, tries in each, time to catch up: {figures:?}"
    );
    rig.stop().await;
}
