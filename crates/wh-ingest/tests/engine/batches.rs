//! Batches that ClickHouse refuses in part or as a whole: too many partitions, too little memory, merges that do not keep
//! up, bad rows.

use crate::rig::{Rig, WITHIN, plain, quick, rows};
use std::time::Duration;
use wh_ingest::Options;
use wh_testkit::until;
use wh_types::{Clock, SystemClock};

#[tokio::test]
async fn one_bad_row_in_five_thousand_costs_few_requests() {
    let rig =
        Rig::new(quick(), &["CREATE TABLE t (id UInt64, d DateTime, note String) ENGINE = MergeTree ORDER BY id"])
            .await;
    let bad = 3_333;
    let text = |id: u64| {
        let day = if id == bad { "yesterday" } else { "2026-11-29 12:00:00" };
        format!(",\"d\":\"{day}\",\"note\":\"{}\"", "x".repeat(200))
    };
    rig.publish("t", &rows(0..5_000, text)).await;
    rig.settled().await;
    assert!(rig.inserts() <= 30, "{} requests", rig.inserts());
    assert_eq!(rig.sql("SELECT count(), uniqExact(id) FROM t").await, "4999\t4999");
    let letters = rig.letters().await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].body, rows(bad..bad + 1, text)[0].as_bytes());
    assert!(letters[0].reason.starts_with("Code: 41. ") && letters[0].retry_until.is_none(), "{}", letters[0].reason);
    assert_eq!(letters[0].code, "41");
    assert_eq!(letters[0].id.0.row, u32::try_from(bad % 500).unwrap());
    rig.stop().await;
}

#[tokio::test]
async fn bad_rows_all_over_a_batch_are_parked_and_nothing_else_is() {
    let rig = Rig::new(quick(), &["CREATE TABLE t (id UInt64, v Int32, j JSON) ENGINE = MergeTree ORDER BY id"]).await;
    let text = |id: u64| match id % 500 {
        7 => ",\"v\":\"seven\"".to_owned(),
        // a path given twice, nested and with a dot
        8 => ",\"j\":{\"a.b\":1,\"a\":{\"b\":2}}".to_owned(),
        9 => ",\"v\":3000000000000000000000".to_owned(),
        // a stray bracket: the engine names the row after it
        10 => "}".to_owned(),
        n => format!(",\"v\":{n},\"j\":{{\"a\":{{\"b\":{n}}}}}"),
    };
    rig.publish("t", &rows(0..4_000, text)).await;
    rig.settled().await;
    let letters = rig.letters().await;
    let bad = letters.iter().filter(|letter| (7..=10).contains(&(u64::from(letter.id.0.row)))).count();
    assert_eq!(bad, letters.len(), "only bad rows are parked");
    let stored = rig.number("SELECT count() FROM t").await;
    assert_eq!(stored + letters.len() as u64, 4_000);
    assert_eq!(rig.number("SELECT countIf(id % 500 NOT IN (7, 8, 9, 10)) FROM t").await, 4_000 - 32);
    assert_eq!(rig.number("SELECT countIf(id % 500 = 7) FROM t").await, 0);
    rig.stop().await;
}

#[tokio::test]
async fn too_many_partitions_are_split_until_they_fit_and_that_is_remembered() {
    let rig =
        Rig::new(quick(), &["CREATE TABLE t (id UInt64, p UInt16) ENGINE = MergeTree ORDER BY id PARTITION BY p"])
            .await;
    let partitioned = |ids: std::ops::Range<u64>| rows(ids, |id| format!(",\"p\":{}", id / 2 % 150));
    rig.publish("t", &partitioned(0..300)).await;
    rig.settled().await;
    let first = rig.inserts();
    assert_eq!(rig.sql("SELECT count(), uniqExact(id), uniqExact(p) FROM t").await, "300\t300\t150");
    assert!(first <= 3, "{first} requests: whole, and two halves");
    rig.publish("t", &partitioned(300..600)).await;
    rig.settled().await;
    assert_eq!(rig.inserts() - first, 2, "no request is wasted on what was too much a moment ago");
    assert_eq!(rig.number("SELECT count() FROM t").await, 600);
    assert!(rig.letters().await.is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn a_batch_that_needs_too_much_memory_is_halved_until_it_fits() {
    let rig = Rig::idle(Options { batch_max_bytes: 1 << 30, held_bytes: 1 << 30, ..quick() }).await.user(Some("small"));
    // this user's queries have a second: what a busy machine breaks off and repeats is stored once
    rig.sql(
        "CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id \
         SETTINGS non_replicated_deduplication_window = 1000",
    )
    .await;
    let text = |id: u64| format!(",\"s\":\"{}\"", format!("{id:08}").repeat(60_000));
    // one row a block, so that blocks stay small
    for id in 0..150 {
        rig.publish("t", &rows(id..id + 1, text)).await;
    }
    rig.work();
    rig.settled().await;
    assert_eq!(rig.sql("SELECT count(), uniqExact(id), sum(length(s)) FROM t").await, "150\t150\t72000000");
    assert!(rig.letters().await.is_empty());
    assert!(rig.inserts() > 1, "it was too much at once");
    rig.stop().await;
}

#[tokio::test]
async fn merges_that_do_not_keep_up_split_nothing_and_stop_no_other_table() {
    let rig = Rig::new(
        quick(),
        &[
            "CREATE TABLE slow (id UInt64) ENGINE = MergeTree ORDER BY id SETTINGS parts_to_throw_insert = 2, parts_to_delay_insert = 1000",
            "CREATE TABLE other (id UInt64) ENGINE = MergeTree ORDER BY id",
        ],
    )
    .await;
    rig.sql("SYSTEM STOP MERGES slow").await;
    for part in 0..2 {
        rig.sql(&format!("INSERT INTO slow VALUES ({part})")).await;
    }
    let (before, began) = (rig.inserts(), SystemClock.now());
    for second in 0..6 {
        rig.publish("slow", &plain(second * 500 + 10..second * 500 + 510)).await;
        rig.publish("other", &plain(second * 500..second * 500 + 500)).await;
        until(WITHIN, "the other table's rows", || async {
            match rig.number("SELECT count() FROM other").await {
                rows if rows >= (second + 1) * 500 => Ok(()),
                rows => Err(anyhow::anyhow!("{rows}")),
            }
        })
        .await
        .unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let tries = rig.inserts() - before - 6;
    let most = 5 + u64::try_from(began.elapsed().as_millis()).unwrap() / 500;
    assert!(tries <= most, "{tries} tries on the table whose merges are slow, at most {most}");
    assert_eq!(rig.number("SELECT count() FROM slow").await, 2);
    assert!(rig.letters().await.is_empty());
    // parts of a few rows are not merged by themselves soon
    rig.sql("SYSTEM START MERGES slow").await;
    rig.sql("ALTER TABLE slow MODIFY SETTING parts_to_throw_insert = 3000").await;
    rig.settled().await;
    assert_eq!(rig.sql("SELECT count(), uniqExact(id) FROM slow").await, "3002\t3002");
    assert!(rig.letters().await.is_empty());
    rig.stop().await;
}
