//! A process that is killed exactly between the publish and the purge of a replay. On NATS both are requests on one
//! connection: a proxy lets the first through and stops at the second, and there the process is killed.

use super::common::{WAIT, act, agree, request, row};
use procs::{Fleet, Role, Setup, StopsAt};
use serde_json::json;
use wh_testkit::{clickhouse::Server, until};
use wh_types::Tasks;

#[tokio::test]
async fn a_process_that_is_killed_between_publish_and_purge_of_a_replay_stores_each_row_once() {
    let engine = Server::start().await.unwrap();
    engine.query(procs::TABLE).await.unwrap();
    engine.query("ALTER TABLE events ADD CONSTRAINT short CHECK length(note) < 20").await.unwrap();
    let url = engine.url();
    let more = "ingest: {batch_wait: 100ms}".to_owned();
    let setup = Setup { partitions: 1, shards: 2, more, ..Setup::default() };
    let mut fleet = Fleet::behind(engine, &url, setup).await.unwrap();
    let api = fleet.api("api").await.unwrap();
    let ingest = fleet.ingest("ingest").await.unwrap();
    let long = "x".repeat(30);
    let body = (1..=5).map(|id| row(id, &long)).collect::<Vec<_>>().join("\n");
    assert_eq!(api.post("events", body).await.unwrap().status, 200);
    agree([&api, &ingest], &[("469", 5)]).await;

    let proxy = StopsAt::start(fleet.nats.one().unwrap().port(), "STREAM.MSG.DELETE.").await.unwrap();
    let mut victim = fleet.launch_over("victim", "wavehouse-api", Role::Api, &proxy.url("nats")).unwrap();
    victim.ready().await.unwrap();
    let ask = json!({"all": true, "edit": [{"op": "set", "column": "note", "value": "fixed"}]});
    let request = request(&victim, "replay", &ask);
    let tasks = Tasks::new();
    let replay = tasks.spawn("replay", request.send());
    proxy.met(WAIT).await.unwrap();
    victim.process.kill().unwrap();
    assert!(replay.await.unwrap().is_err(), "it was never answered");
    // the rows went on their way, and every letter is there
    until(WAIT, "the replayed rows to be stored", || async {
        let rows = fleet.number("SELECT count() FROM events").await?;
        if rows == 5 { Ok(()) } else { anyhow::bail!("{rows} of 5") }
    })
    .await
    .unwrap();
    agree([&api, &ingest], &[("469", 5)]).await;

    let again = act(&api, "replay", ask).await;
    assert_eq!(
        (&again["duplicates"], &again["replayed"], &again["purged"]),
        (&5.into(), &0.into(), &5.into()),
        "{again}"
    );
    agree([&api, &ingest], &[]).await;
    fleet.drained(1, WAIT).await.unwrap();
    let found = fleet.engine.query("SELECT count(), countIf(note = 'fixed') FROM events FORMAT TSV").await.unwrap();
    assert_eq!(found.trim(), "5\t5", "each once");
}
