//! Live streams over NATS: the api that serves one is restarted and killed, the history is purged, its leader is killed;
//! and from a query to the stream, where marks come from another process.

use super::{WAIT, busy, stop};
use procs::{ALL_ROWS, Fleet, Followed, Follower, Handover, Own, Role, Setup, TABLE, Writers};
use serde_json::json;
use wh_testkit::{servers::NATS_VERSIONS, until};

/// Numbers that writers do not reach.
const OWN: u64 = 1 << 40;

async fn fleet(setup: Setup) -> Fleet {
    let fleet = Fleet::new(Setup { partitions: 1, shards: 2, ..setup }).await.unwrap();
    fleet.engine.query(TABLE).await.unwrap();
    fleet
}

#[tokio::test]
async fn a_stream_goes_on_over_restarts_of_its_api_and_is_told_what_a_purge_took() {
    let fleet = fleet(busy()).await;
    let (mut one, two) = (fleet.api("api-1").await.unwrap(), fleet.api("api-2").await.unwrap());
    let follower = Follower::start(&one.url("")).await.unwrap();
    let writers = Writers::start(&two.url("/v1/ingest"), 3, 5);
    for kill in [false, true] {
        let rows = follower.told().rows.len();
        follower.until(WAIT, "rows to come", |told| told.rows.len() > rows + 100).await.unwrap();
        if kill {
            one.process.kill().unwrap();
        } else {
            one.stop(WAIT).await.unwrap();
        }
        one.restart().await.unwrap();
    }
    writers.until_more(100, WAIT).await.unwrap();
    let sent = writers.stop().await.unwrap();
    // replayed rows come before it is live
    let all = |told: &Followed| told.connected == 3 && sent.accepted.is_subset(&told.ids());
    follower.until(WAIT, "every accepted row to come", all).await.unwrap();
    let told = follower.told();
    told.whole().unwrap();
    assert_eq!(told.ends, ["stopping"]);
    drop(follower);

    // what is still in a process's memory is given from there: a new process has the history alone
    one.stop(WAIT).await.unwrap();
    fleet.nats.operator().purge("WH_HISTORY").await.unwrap();
    one.restart().await.unwrap();
    let late = Follower::from(&one.url(""), Some(told.rows[0].0)).await.unwrap();
    late.until(WAIT, "the gap to be told", |told| !told.gaps.is_empty()).await.unwrap();
    let row = json!({ "id": OWN, "at": "2026-01-01 00:00:00.000", "note": "after the purge" });
    assert_eq!(two.post("events", row.to_string()).await.unwrap().status, 200);
    late.until(WAIT, "a new row to come", |told| told.ids().contains(&OWN)).await.unwrap();
    let after = late.told();
    assert_eq!((after.rows.len(), after.gaps.len()), (1, 1), "{after:?}");
    stop([one, two]).await;
}

/// The node that leads the history, once it leads nothing that a live stream hears.
async fn leader_of_the_history_alone(fleet: &mut Fleet) -> usize {
    let cluster = &*fleet.nats.three().unwrap();
    until(WAIT, "leaders of their own", || async {
        let history = cluster.stream_leader("WH_HISTORY").await?;
        if history != cluster.stream_leader("WH_INGEST_0").await? {
            return Ok(history);
        }
        cluster.operator().step_down_stream("WH_HISTORY").await?;
        anyhow::bail!("node {history} leads both")
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_killed_leader_of_the_history_costs_a_live_stream_nothing() {
    let newest = NATS_VERSIONS[NATS_VERSIONS.len() - 1];
    let mut fleet = fleet(Setup { replicas: 3, version: newest, ..busy() }).await;
    let leader = leader_of_the_history_alone(&mut fleet).await;
    // what a process does not hear during the election is in no history: its own server is another
    let other = fleet.nats.three().unwrap().node((leader + 1) % 3).url();
    let own = || Own { nats: Some(other.clone()), ..Own::default() };
    let mut api = fleet.launch_with("api", "wavehouse-api", Role::Api, own()).unwrap();
    api.ready().await.unwrap();
    let follower = Follower::start(&api.url("")).await.unwrap();
    let writers = Writers::start(&api.url("/v1/ingest"), 3, 5);
    writers.until_more(200, WAIT).await.unwrap();
    let cluster = fleet.nats.three().unwrap();
    cluster.node_mut(leader).process().kill().unwrap();
    writers.until_more(200, WAIT).await.unwrap();
    cluster.node_mut(leader).restart().await.unwrap();
    writers.until_more(200, WAIT).await.unwrap();
    let sent = writers.stop().await.unwrap();
    follower.until(WAIT, "every accepted row to come", |told| sent.accepted.is_subset(&told.ids())).await.unwrap();
    let told = follower.told();
    told.whole().unwrap();
    assert_eq!((told.ends.len(), told.connected), (0, 1));
    stop([api]).await;
}

#[tokio::test]
async fn from_a_query_to_the_stream_of_another_process_nothing_is_missing_and_nothing_doubles_unsaid() {
    let more = format!("{ALL_ROWS}\ningest: {{batch_wait: 50ms}}");
    let fleet = fleet(Setup { more, ..Setup::default() }).await;
    let (one, two) = (fleet.api("api-1").await.unwrap(), fleet.api("api-2").await.unwrap());
    let ingest = fleet.ingest("ingest").await.unwrap();
    let truth = Follower::start(&one.url("")).await.unwrap();
    let writers = Writers::start(&one.url("/v1/ingest"), 2, 5);
    let mut handovers = Vec::new();
    for n in 0..8 {
        writers.until_more(50, WAIT).await.unwrap();
        handovers.push(Handover::make(&two.url(""), OWN + n).await.unwrap());
    }
    let sent = writers.stop().await.unwrap();
    handovers.push(Handover::at_rest(&two.url(""), OWN + 100).await.unwrap());
    let last = handovers[handovers.len() - 1].until;
    truth
        .until(WAIT, "the truth to be there", |told| told.rows.last().is_some_and(|(place, _)| *place >= last))
        .await
        .unwrap();
    let told = truth.told();
    told.whole().unwrap();
    assert!(sent.accepted.is_subset(&told.ids()), "what was accepted was streamed");
    for made in &handovers {
        made.judge(&told.rows).unwrap();
    }
    stop([one, two, ingest]).await;
}
