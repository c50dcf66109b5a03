//! Counters by code agree with the store, whatever parks and whatever removes. The ways of parking are those that there
//! are: a refusal by ClickHouse, by a proxy before it, a column or a table that is gone, a block that nobody can read.

use super::common::{NDJSON, WAIT, act, agree, agrees, dlq, hold_up, row};
use procs::{Fleet, Setup, System};
use serde_json::json;
use std::ops::RangeInclusive;
use wh_mq::{Broker as _, embedded};
use wh_testkit::{
    clickhouse::Server,
    fault::{Action, Proxy, Rule},
    until,
};
use wh_types::{Block, BlockId, Encoding, OsEntropy, Table, Tenant, Timestamp};

/// An engine with a table that refuses long notes, and with a column that may go.
async fn table() -> Server {
    let engine = Server::start().await.unwrap();
    engine.query(procs::TABLE).await.unwrap();
    engine.query("ALTER TABLE events ADD CONSTRAINT short CHECK length(note) < 20").await.unwrap();
    engine.query("ALTER TABLE events ADD COLUMN extra UInt32 DEFAULT 7").await.unwrap();
    engine
}

fn with_extra(ids: RangeInclusive<u64>) -> String {
    let row = |id| format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"n","extra":{}}}"#, id * 10);
    ids.map(row).collect::<Vec<_>>().join("\n")
}

/// A proxy's word that a request is too large, to the next insert.
fn too_large(proxy: &Proxy) {
    proxy.add(Rule::insert(Action::Status { status: 413, body: "too large".into() }).times(1));
}

/// Puts a block that nobody can read into the queue of a process that does not run.
async fn spoil(system: &System) {
    let queue = embedded::Broker::open(embedded::Options::new(system.dir().join("data/queue"))).await.unwrap();
    let block = Block {
        id: BlockId::draw(&OsEntropy),
        tenant: Tenant::default(),
        table: Table::new("events").unwrap(),
        received: Timestamp::from_millis(1_750_000_000_000),
        rows: 3,
        decoded_bytes: 30,
        encoding: Encoding::Zstd,
        body: "no frame".into(),
        chain: None,
        trace: None,
    };
    for stored in queue.publish(&[block]).await {
        stored.unwrap();
    }
    queue.close().await;
}

#[tokio::test]
async fn counters_by_code_agree_with_the_store_whatever_parks_and_removes() {
    let engine = table().await;
    let proxy = Proxy::start(engine.url()).await.unwrap();
    let mut system = System::behind(engine, &proxy.url(), "ingest:\n  batch_wait: 100ms").await.unwrap();
    assert!(system.wavehouse.stop(WAIT).await.unwrap().success());
    spoil(&system).await;
    // what another test starts at this moment holds a copy of the queue's lock until it runs
    let mut tries = 0;
    while let Err(error) = system.restart().await {
        tries += 1;
        assert!(tries < 20, "{error:#}");
    }
    agrees(&system, &[("block.unreadable", 1)]).await;

    let long = "x".repeat(30);
    let body = [row(1, "good"), row(2, &long), row(3, &long)].join("\n");
    assert_eq!(system.post(NDJSON, body).await.unwrap().status, 200);
    agrees(&system, &[("469", 2), ("block.unreadable", 1)]).await;

    system.holds_ids(1, WAIT).await.unwrap();
    too_large(&proxy);
    assert_eq!(system.post(NDJSON, row(4, "n")).await.unwrap().status, 200);
    agrees(&system, &[("469", 2), ("block.unreadable", 1), ("http 413", 1)]).await;

    let held_up = hold_up(&proxy);
    assert_eq!(system.post(NDJSON, with_extra(11..=30)).await.unwrap().status, 200);
    system.engine.query("ALTER TABLE events DROP COLUMN extra").await.unwrap();
    proxy.remove(held_up);
    agrees(&system, &[("117", 20), ("469", 2), ("block.unreadable", 1), ("http 413", 1)]).await;
    // what removes them: by themselves, a replay, a purge; a check and a refused replay remove none
    system.engine.query("ALTER TABLE events ADD COLUMN extra UInt32 DEFAULT 7").await.unwrap();
    agrees(&system, &[("469", 2), ("block.unreadable", 1), ("http 413", 1)]).await;
    let refused = dlq(&system, &["replay", "--code", "block.unreadable", "--yes"]).await;
    assert!(refused.code == 1 && refused.out.contains("1 refused"), "{refused:?}");
    let checked = dlq(&system, &["check", "--code", "http 413"]).await;
    assert_eq!(checked.code, 0, "{checked:?}");
    agrees(&system, &[("469", 2), ("block.unreadable", 1), ("http 413", 1)]).await;
    for (line, left) in [
        (&["replay", "--code", "http 413", "--yes"][..], &[("469", 2), ("block.unreadable", 1)][..]),
        (&["replay", "--code", "469", "--set", "note=\"short\"", "--yes"], &[("block.unreadable", 1)]),
        (&["purge", "--all", "--yes"], &[]),
    ] {
        let ran = dlq(&system, line).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        agrees(&system, left).await;
    }
    system.holds_ids(24, WAIT).await.unwrap();
    let found = system.engine.query("SELECT count(), sumIf(extra, id > 10) FROM events FORMAT TSV").await.unwrap();
    assert_eq!(found.trim(), "24\t4100", "each once, none with a default in its place");
}

#[tokio::test]
async fn on_nats_what_is_parked_for_good_is_counted_as_the_store_has_it() {
    let engine = table().await;
    engine.query(&procs::TABLE.replace("TABLE events", "TABLE gone")).await.unwrap();
    let proxy = Proxy::start(engine.url()).await.unwrap();
    let more = "ingest: {batch_wait: 100ms, missing_table_hold: 1s}".to_owned();
    let setup = Setup { partitions: 1, shards: 2, more, ..Setup::default() };
    let fleet = Fleet::behind(engine, &proxy.url(), setup).await.unwrap();
    let mut api = fleet.api("api").await.unwrap();
    let mut ingest = fleet.ingest("ingest").await.unwrap();

    too_large(&proxy);
    assert_eq!(api.post("events", row(1, "n")).await.unwrap().status, 200);
    agree([&api, &ingest], &[("http 413", 1)]).await;
    let held_up = hold_up(&proxy);
    let body = (1..=5).map(|id| row(id, "n")).collect::<Vec<_>>().join("\n");
    assert_eq!(api.post("gone", body).await.unwrap().status, 200);
    assert_eq!(api.post("events", with_extra(11..=30)).await.unwrap().status, 200);
    fleet.engine.query("DROP TABLE gone SYNC").await.unwrap();
    fleet.engine.query("ALTER TABLE events DROP COLUMN extra").await.unwrap();
    proxy.remove(held_up);
    let parked = [("117", 20), ("60", 5), ("http 413", 1)];
    agree([&api, &ingest], &parked).await;
    // the time of those that were held is over: they stay, whatever comes back
    until(WAIT, "no letter to be held", || async {
        let page = api.ops("/v1/ops/dead-letters?held=true").await?;
        let held = page["letters"].as_array().map_or(0, Vec::len);
        if held == 0 { Ok(()) } else { anyhow::bail!("{held}") }
    })
    .await
    .unwrap();
    agree([&api, &ingest], &parked).await;

    let ask = json!({"filter": {"code": "117"}, "edit": [{"op": "remove", "column": "extra"}]});
    let replayed = act(&api, "replay", ask).await;
    assert_eq!((&replayed["replayed"], &replayed["purged"]), (&20.into(), &20.into()), "{replayed}");
    agree([&api, &ingest], &[("60", 5), ("http 413", 1)]).await;
    until(WAIT, "the api to know that the table is gone", || async {
        let checked = act(&api, "check", json!({"filter": {"code": "60"}})).await;
        if checked["refused"] == 5 { Ok(()) } else { anyhow::bail!("{checked}") }
    })
    .await
    .unwrap();
    let refused = act(&api, "replay", json!({"filter": {"code": "60"}})).await;
    assert_eq!((&refused["refused"], &refused["purged"]), (&5.into(), &0.into()), "{refused}");
    let replayed = act(&api, "replay", json!({"filter": {"code": "http 413"}})).await;
    assert_eq!((&replayed["replayed"], &replayed["purged"]), (&1.into(), &1.into()), "{replayed}");
    agree([&api, &ingest], &[("60", 5)]).await;
    let purged = act(&api, "purge", json!({"all": true})).await;
    assert_eq!(purged["purged"], 5, "{purged}");
    agree([&api, &ingest], &[]).await;
    until(WAIT, "the replayed rows to arrive", || async {
        let rows = fleet.number("SELECT count() FROM events").await?;
        if rows == 21 { Ok(()) } else { anyhow::bail!("{rows} of 21") }
    })
    .await
    .unwrap();
    ingest.stop(WAIT).await.unwrap();
    api.stop(WAIT).await.unwrap();
}

#[tokio::test]
async fn on_nats_counters_by_code_agree_with_the_store_whatever_parks_and_removes() {
    let engine = table().await;
    let proxy = Proxy::start(engine.url()).await.unwrap();
    let more = "ingest: {batch_wait: 100ms}".to_owned();
    let setup = Setup { partitions: 1, shards: 2, more, ..Setup::default() };
    let fleet = Fleet::behind(engine, &proxy.url(), setup).await.unwrap();
    let mut api = fleet.api("api").await.unwrap();
    let mut ingest = fleet.ingest("ingest").await.unwrap();

    let long = "x".repeat(30);
    let body = [row(1, "good"), row(2, &long), row(3, &long)].join("\n");
    assert_eq!(api.post("events", body).await.unwrap().status, 200);
    fleet.nats.operator().request("wh.ingest.0.0.0.events", "not a block").await.unwrap();
    agree([&api, &ingest], &[("469", 2), ("block.unreadable", 1)]).await;

    let edit = json!([{"op": "set", "column": "note", "value": "short"}]);
    let ask = json!({"all": true, "edit": edit});
    let checked = act(&api, "check", ask.clone()).await;
    assert_eq!((&checked["accepted"], &checked["refused"]), (&2.into(), &1.into()), "{checked}");
    let replayed = act(&api, "replay", ask).await;
    assert_eq!((&replayed["replayed"], &replayed["purged"]), (&2.into(), &2.into()), "{replayed}");
    agree([&api, &ingest], &[("block.unreadable", 1)]).await;

    let held_up = hold_up(&proxy);
    assert_eq!(api.post("events", with_extra(11..=30)).await.unwrap().status, 200);
    fleet.engine.query("ALTER TABLE events DROP COLUMN extra").await.unwrap();
    proxy.remove(held_up);
    agree([&api, &ingest], &[("117", 20), ("block.unreadable", 1)]).await;
    fleet.engine.query("ALTER TABLE events ADD COLUMN extra UInt32 DEFAULT 7").await.unwrap();
    until(WAIT, "the held rows to arrive", || async {
        let rows = fleet.number("SELECT count() FROM events WHERE id > 10").await?;
        if rows == 20 { Ok(()) } else { anyhow::bail!("{rows} of 20") }
    })
    .await
    .unwrap();
    agree([&api, &ingest], &[("block.unreadable", 1)]).await;
    let purged = act(&api, "purge", json!({"filter": {"code": "block.unreadable"}})).await;
    assert_eq!(purged["purged"], 1, "{purged}");
    agree([&api, &ingest], &[]).await;
    let found =
        fleet.engine.query("SELECT count(), uniqExact(id), sum(extra) FROM events WHERE id > 10 FORMAT TSV").await;
    assert_eq!(found.unwrap().trim(), "20\t20\t4100", "each once, none with a default in its place");
    assert_eq!(fleet.number("SELECT count() FROM events").await.unwrap(), 23);
    ingest.stop(WAIT).await.unwrap();
    api.stop(WAIT).await.unwrap();
}
