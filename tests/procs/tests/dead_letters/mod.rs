//! Dead letters of the real process in front of the real engine, through `wavehouse dlq`: parked, seen, tried, replayed.

mod common;
mod counts;
mod killed;

use common::{NDJSON, WAIT, agrees, constrained, depth, dlq, hold_up, json, row};
use procs::System;
use wh_testkit::{fault::Proxy, http, until};

#[tokio::test]
async fn a_row_is_parked_found_tried_replayed_and_stored_once() {
    let system = constrained().await;
    let long = "x".repeat(30);
    let body = [row(1, "good"), row(2, &long), row(3, &long)].join("\n");
    assert_eq!(system.post(NDJSON, body).await.unwrap().status, 200);
    let letters = depth(&system, 2).await;
    system.holds_ids(1, WAIT).await.unwrap();
    assert_eq!(letters[0]["code"], "469", "{letters:?}");
    agrees(&system, &[("469", 2)]).await;
    let id = letters[0]["id"].as_str().unwrap();

    let shown = dlq(&system, &["show", id]).await;
    assert!(shown.code == 0 && shown.out.contains(&long) && shown.out.contains("469"), "{shown:?}");
    let table = dlq(&system, &["list", "--reason", "SHORT"]).await;
    assert!(table.out.starts_with("ID ") && table.out.lines().count() == 3, "{table:?}");
    assert!(dlq(&system, &["list", "--code", "27"]).await.out.lines().count() == 1);

    // what ingest cannot tell, a check cannot either; what it can, it says
    let checked = dlq(&system, &["check", id, "--rename", "note=nothing"]).await;
    assert!(checked.code == 1 && checked.out.contains("column.not_found"), "{checked:?}");
    let checked = dlq(&system, &["check", id, "--set", "note=\"short\""]).await;
    assert!(checked.code == 0 && checked.out.contains(r#""note":"short""#), "{checked:?}");
    depth(&system, 2).await;

    let unasked = dlq(&system, &["replay", id, "--set", "note=\"short\""]).await;
    assert!(unasked.code == 2 && unasked.err.contains("--yes"), "{unasked:?}");
    let replayed = dlq(&system, &["replay", id, "--set", "note=\"short\"", "--yes"]).await;
    assert!(replayed.code == 0 && replayed.out.contains("1 replayed, 1 purged"), "{replayed:?}");
    system.holds_ids(2, WAIT).await.unwrap();
    depth(&system, 1).await;

    // not fixed: it comes back under another id
    let again = dlq(&system, &["replay", "--all", "--yes"]).await;
    assert_eq!(again.code, 0, "{again:?}");
    let other = until(WAIT, "the row to be parked again", || async {
        let page = json(&system, &["list"]).await;
        let letter = page["letters"][0].clone();
        if letter.is_null() || letter["id"] == letters[1]["id"] {
            anyhow::bail!("{page}")
        }
        Ok(letter)
    })
    .await
    .unwrap();
    assert!(other["body"].as_str().unwrap().contains(&long));
    agrees(&system, &[("469", 1)]).await;
    let purged = dlq(&system, &["purge", "--code", "469", "--yes"]).await;
    assert!(purged.code == 0 && purged.out.contains("1 purged"), "{purged:?}");
    let gone = dlq(&system, &["purge", id, id, "--yes"]).await;
    assert!(gone.code == 1 && gone.out.contains("0 looked at, 1 not found"), "{gone:?}");
    depth(&system, 0).await;
    agrees(&system, &[]).await;
    assert_eq!(
        system.engine.query("SELECT id, note FROM events ORDER BY id FORMAT TSV").await.unwrap(),
        "1\tgood\n2\tshort"
    );
}

#[tokio::test]
async fn a_replay_that_died_before_its_letter_was_removed_stores_the_row_once() {
    let mut system = constrained().await;
    let body = (1..=50).map(|id| row(id, &"x".repeat(30))).collect::<Vec<_>>().join("\n");
    assert_eq!(system.post(NDJSON, body).await.unwrap().status, 200);
    depth(&system, 50).await;
    let edit = ["--set", "note=\"fixed\"", "--yes"];
    let published = dlq(&system, &[&["replay", "--all", "--keep"], &edit[..]].concat()).await;
    assert!(published.code == 0 && published.out.contains("50 replayed"), "{published:?}");
    system.wavehouse.kill().unwrap();
    system.restart().await.unwrap();
    depth(&system, 50).await;
    let again = dlq(&system, &[&["replay", "--all"], &edit[..]].concat()).await;
    assert!(again.code == 0 && again.out.contains("50 duplicates, 50 purged"), "{again:?}");
    depth(&system, 0).await;
    system.holds_ids(50, WAIT).await.unwrap();
    // what was in the queue is settled, and nothing more comes
    until(WAIT, "the queue to be empty", || async {
        let metrics = http::get(system.url("/v1/ops/queue")).header("x-operator-key", "an-operator-key").send().await?;
        let left = metrics.json()?["tenants"]["0"]["unsettled_rows"].as_u64();
        if left == Some(0) { Ok(()) } else { anyhow::bail!("{left:?} rows") }
    })
    .await
    .unwrap();
    assert_eq!(system.number("SELECT uniqExact(id) FROM events WHERE note = 'fixed'").await.unwrap(), 50);
}

#[tokio::test]
async fn rows_whose_column_was_dropped_arrive_by_themselves_when_it_is_back() {
    let engine = wh_testkit::clickhouse::Server::start().await.unwrap();
    engine.query(procs::TABLE).await.unwrap();
    engine.query("ALTER TABLE events ADD COLUMN extra UInt32 DEFAULT 7").await.unwrap();
    let proxy = Proxy::start(engine.url()).await.unwrap();
    let url = proxy.url();
    let system = System::behind(engine, &url, "ingest:\n  batch_wait: 100ms").await.unwrap();
    // rows wait in the worker while the column goes
    let held_up = hold_up(&proxy);
    let rows: Vec<String> = (1..=20)
        .map(|id| format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"n","extra":{}}}"#, id * 10))
        .chain((21..=30).map(|id| row(id, "plain")))
        .collect();
    assert_eq!(system.post(NDJSON, rows.join("\n")).await.unwrap().status, 200);
    system.engine.query("ALTER TABLE events DROP COLUMN extra").await.unwrap();
    proxy.remove(held_up);
    let letters = depth(&system, 20).await;
    assert!(letters.iter().all(|letter| letter["retry_until"].is_string()), "{letters:?}");
    system.holds_ids(10, WAIT).await.unwrap();
    agrees(&system, &[("117", 20)]).await;
    assert!(dlq(&system, &["list", "--held"]).await.out.contains("held"));

    system.engine.query("ALTER TABLE events ADD COLUMN extra UInt32 DEFAULT 7").await.unwrap();
    system.holds_ids(30, WAIT).await.unwrap();
    depth(&system, 0).await;
    agrees(&system, &[]).await;
    let found = system.engine.query("SELECT count(), sum(extra) FROM events WHERE id <= 20 FORMAT TSV").await.unwrap();
    assert_eq!(found.trim(), "20\t2100", "each once, none with a default in its place");
}

#[tokio::test]
async fn rows_of_a_table_that_is_gone_for_good_are_parked_under_its_code() {
    let engine = wh_testkit::clickhouse::Server::start().await.unwrap();
    engine.query(procs::TABLE).await.unwrap();
    let proxy = Proxy::start(engine.url()).await.unwrap();
    let url = proxy.url();
    let more = "ingest:\n  batch_wait: 100ms\n  missing_table_hold: 1s";
    let system = System::behind(engine, &url, more).await.unwrap();
    let held_up = hold_up(&proxy);
    let body = (1..=5).map(|id| row(id, "n")).collect::<Vec<_>>().join("\n");
    assert_eq!(system.post(NDJSON, body).await.unwrap().status, 200);
    system.engine.query("DROP TABLE events SYNC").await.unwrap();
    proxy.remove(held_up);
    let letters = depth(&system, 5).await;
    assert_eq!(letters[0]["code"], "60", "{letters:?}");
    agrees(&system, &[("60", 5)]).await;
    let checked = dlq(&system, &["check", "--all"]).await;
    assert!(checked.code == 1 && checked.out.contains("table.not_found"), "{checked:?}");
    system.engine.query(procs::TABLE).await.unwrap();
    let replayed = until(WAIT, "the table to be known", || async {
        let ran = dlq(&system, &["replay", "--table", "events", "--yes"]).await;
        if ran.code == 0 { Ok(ran) } else { anyhow::bail!("{ran:?}") }
    })
    .await
    .unwrap();
    assert!(replayed.out.contains("5 replayed, 5 purged"), "{replayed:?}");
    system.holds_ids(5, WAIT).await.unwrap();
    assert_eq!(system.number("SELECT count() FROM events").await.unwrap(), 5);
    agrees(&system, &[]).await;
}
