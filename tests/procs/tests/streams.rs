//! Live streams of the real process: over kills and stops, from a query to the stream, and how far rows are.

use procs::{ALL_ROWS, Followed, Follower, Handover, System, Writers};
use std::{collections::BTreeSet, time::Duration};
use wh_testkit::http;
use wh_types::Cursor;

const WAIT: Duration = Duration::from_secs(120);
/// Numbers that writers do not reach.
const OWN: u64 = 1 << 40;

#[tokio::test]
async fn over_kills_and_stops_a_stream_goes_on_where_it_was() {
    let mut system = System::with("ingest: {batch_wait: 50ms}").await.unwrap();
    let follower = Follower::start(&system.url("")).await.unwrap();
    let writers = Writers::start(&system.url("/v1/ingest"), 3, 5);
    for kill in [true, false, true] {
        // what came before the fault is seen, or is to come after it
        let rows = follower.told().rows.len();
        follower.until(WAIT, "rows to come", |told| told.rows.len() > rows + 100).await.unwrap();
        if kill {
            system.wavehouse.kill().unwrap();
        } else {
            assert!(system.wavehouse.stop(WAIT).await.unwrap().success());
        }
        system.restart().await.unwrap();
    }
    writers.until_more(200, WAIT).await.unwrap();
    let sent = writers.stop().await.unwrap();
    // replayed rows come before it is live
    let all = |told: &Followed| told.connected == 4 && sent.accepted.is_subset(&told.ids());
    follower.until(WAIT, "every accepted row to come", all).await.unwrap();
    let told = follower.told();
    told.whole().unwrap();
    assert_eq!(told.ends, ["stopping"]);

    // whoever comes back much later gets the same rows once more
    let (first, _) = told.rows[0];
    let late = Follower::from(&system.url(""), Some(first)).await.unwrap();
    late.until(WAIT, "the rows to come again", |again| again.rows.len() >= told.rows.len() - 1).await.unwrap();
    let again = late.told();
    again.whole().unwrap();
    assert_eq!(again.rows[..told.rows.len() - 1], told.rows[1..]);
}

#[tokio::test]
async fn from_a_query_to_the_stream_nothing_is_missing_and_nothing_doubles_unsaid() {
    let system = System::with(&format!("{ALL_ROWS}\ningest: {{batch_wait: 50ms}}")).await.unwrap();
    let api = system.url("");
    let truth = Follower::start(&api).await.unwrap();
    let writers = Writers::start(&system.url("/v1/ingest"), 2, 5);
    let mut handovers = Vec::new();
    for n in 0..12 {
        writers.until_more(50, WAIT).await.unwrap();
        handovers.push(Handover::make(&api, OWN + n).await.unwrap());
    }
    let sent = writers.stop().await.unwrap();
    // at rest nothing is under way, and it is said so
    handovers.push(Handover::at_rest(&api, OWN + 100).await.unwrap());
    let last = handovers[handovers.len() - 1].until;
    truth
        .until(WAIT, "the truth to be there", |told| told.rows.last().is_some_and(|(place, _)| *place >= last))
        .await
        .unwrap();
    let told = truth.told();
    told.whole().unwrap();
    assert!(sent.accepted.is_subset(&told.ids()), "what was accepted was streamed");
    let doubled: Vec<usize> = handovers.iter().map(|made| made.judge(&told.rows).unwrap()).collect();
    println!("{} rows, rows twice within the named interval: {doubled:?}", told.rows.len());
}

#[tokio::test]
async fn what_is_said_to_be_committed_is_in_clickhouse() {
    let system = System::with("ingest: {batch_wait: 50ms}").await.unwrap();
    let truth = Follower::start(&system.url("")).await.unwrap();
    let url = system.url("/v1/stream?table=events&events=committed");
    let mut events = http::get(url).events().await.unwrap();
    let writers = Writers::start(&system.url("/v1/ingest"), 2, 5);
    let (mut said, mut last) = (Vec::new(), None);
    while said.len() < 20 {
        let event = events.next(WAIT).await.unwrap().expect("the stream ended");
        if event.kind != "committed" {
            assert!(["ready", "row"].contains(&event.kind.as_str()), "{event:?}");
            continue;
        }
        assert_eq!(event.id, None, "it is no place to go on from");
        let data = event.json().unwrap();
        assert_eq!(data["table"], "events");
        let committed: Cursor = data["committed"].as_str().unwrap().parse().unwrap();
        assert!(last.is_none_or(|last| last < committed), "{committed} after {last:?}");
        last = Some(committed);
        let ids = system.engine.query("SELECT id FROM events FORMAT TSV").await.unwrap();
        let ids: BTreeSet<u64> = ids.lines().map(|id| id.parse().unwrap()).collect();
        said.push((committed, ids));
    }
    let sent = writers.stop().await.unwrap();
    truth.until(WAIT, "every accepted row to come", |told| sent.accepted.is_subset(&told.ids())).await.unwrap();
    let told = truth.told();
    told.whole().unwrap();
    for (committed, ids) in &said {
        let missing = told.rows.iter().find(|(place, id)| place.block <= *committed && !ids.contains(id));
        assert_eq!(missing, None, "committed up to {committed}");
    }
    // and in the end all of it is
    let end = told.rows.last().unwrap().0.block;
    while last.is_none_or(|last| last < end) {
        let event = events.next(WAIT).await.unwrap().expect("the stream ended");
        if event.kind == "committed" {
            last = Some(event.json().unwrap()["committed"].as_str().unwrap().parse().unwrap());
        }
    }
}
