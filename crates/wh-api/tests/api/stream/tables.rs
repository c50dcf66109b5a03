//! Several tables in one stream.

use super::{Event, Reading, resume};
use crate::rig::{Rig, get, post};

const PATH: &str = "/v1/stream?table=t&table=a.b%2Fc";

async fn other(rig: &Rig, id: u64) {
    let posted = rig.send(post("/v1/ingest?table=a.b%2Fc", "application/json", format!("{{\"id\":{id}}}"))).await;
    assert_eq!(posted.status, 200);
}

/// Table, id of the row, and whether it is marked; ids as they are.
fn short(event: &Event) -> (String, String, u64, bool) {
    let value = event.value();
    let replay = value["replay"].as_bool().unwrap_or_default();
    assert_eq!(replay, event.replay, "both marks say the same");
    let id = value["row"]["id"].as_u64().unwrap_or_default();
    (event.id().replace("0000000e-", ""), value["table"].as_str().unwrap().to_owned(), id, replay)
}

async fn take(reading: &mut Reading, count: usize) -> Vec<(String, String, u64, bool)> {
    let mut all = Vec::new();
    while all.len() < count {
        all.push(short(&reading.event().await));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn tables_share_a_stream_and_an_id_has_the_place_in_each() {
    let rig = Rig::new();
    rig.json(r#"{"id":1}"#).await;
    let mut reading = Reading::begin(&rig, get(PATH)).await;
    let mut begun = take(&mut reading, 2).await;
    begun.sort_by_key(|(_, table, ..)| table.clone());
    let told = |id: &str, table: &str, row: u64| (id.to_owned(), table.to_owned(), row, false);
    assert_eq!(begun, [told("1,1", "a.b/c", 0), told("1,1", "t", 0)], "each is ready");
    other(&rig, 2).await;
    assert_eq!(take(&mut reading, 1).await, [told("1,2.0", "a.b/c", 2)]);
    rig.lines("{\"id\":3}\n{\"id\":4}").await;
    assert_eq!(take(&mut reading, 2).await, [told("3.0,2.0", "t", 3), told("3.1,2.0", "t", 4)]);
    drop(reading);

    // from the middle of a block of one and from before the other's
    let old = |id: &str, table: &str, row: u64| (id.to_owned(), table.to_owned(), row, true);
    let mut reading = Reading::begin(&rig, resume(PATH, "0000000e-3.0,0000000e-1")).await;
    let mut rows = take(&mut reading, 4).await;
    rows.retain(|(_, _, row, _)| *row > 0);
    rows.sort_by_key(|(_, _, row, _)| *row);
    assert_eq!(
        rows.iter().map(|(_, table, row, _)| (table.as_str(), *row)).collect::<Vec<_>>(),
        [("a.b/c", 2), ("t", 4)]
    );
    assert!(rows.iter().all(|(.., replay)| *replay));
    drop(reading);

    // what has no place yet says from when
    let mut reading = Reading::begin(&rig, resume(PATH, "0000000e-3.1,2025-01-01T00:00:00.000000000Z")).await;
    let all = take(&mut reading, 3).await;
    let row = all.iter().find(|(_, _, row, _)| *row > 0).unwrap();
    assert_eq!(*row, old("3.1,2.0", "a.b/c", 2));
}

#[tokio::test(start_paused = true)]
async fn a_busy_table_does_not_keep_another_from_its_turn() {
    let rig = Rig::new();
    let mut reading = Reading::begin(&rig, get(PATH)).await;
    take(&mut reading, 2).await;
    let much = format!("{{\"id\":1,\"note\":\"{}\"}}", "x".repeat(100_000));
    for _ in 0..6 {
        rig.json(much.clone()).await;
    }
    other(&rig, 7).await;
    let first = take(&mut reading, 3).await;
    assert!(first.iter().any(|(_, table, ..)| table == "a.b/c"), "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn a_table_whose_place_is_unknown_is_told_of_its_gap() {
    let rig = Rig::new();
    let mut reading = Reading::begin(&rig, resume(PATH, "0000000e-0,")).await;
    let mut gaps = Vec::new();
    for _ in 0..3 {
        let event = reading.event().await;
        if event.kind == "gap" {
            gaps.push(event.data);
        }
    }
    assert_eq!(gaps, [r#"{"table":"a.b/c","from":null,"to":null,"reason":"lost"}"#]);
}

#[tokio::test]
async fn tables_that_cannot_be_streamed_together_are_refused() {
    let rig = Rig::new();
    let many = (0..17).map(|n| format!("&table=t{n}")).collect::<String>();
    for (query, id, outcome) in [
        ("table=t&table=nope", "", (404, "table.not_found")),
        ("table=t&table=t", "", (400, "request.invalid")),
        ("table=t&table=", "", (400, "request.invalid")),
        (many.as_str(), "", (400, "request.invalid")),
        ("table=t&table=v", "0000000e-1.0", (400, "stream.cursor_invalid")),
        ("table=t", "0000000e-1.0,0000000e-1.0", (400, "stream.cursor_invalid")),
        ("table=t&since=0000000e-1.0,0000000e-1.0", "", (400, "stream.cursor_invalid")),
        ("table=t&since=5", "", (400, "stream.cursor_invalid")),
        ("table=t&columsn=id", "", (400, "request.invalid")),
    ] {
        let refused = rig.send(resume(&format!("/v1/stream?{query}"), id)).await;
        assert_eq!(refused.outcome(), (outcome.0, Some(outcome.1.to_owned())), "{query} {id}");
    }
}
