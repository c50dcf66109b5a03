//! What is stored from now on: to every stream of the table, until the stream ends.

use super::{Reading, end, ready, row};
use crate::rig::{Rig, Setup, get, post};
use std::time::Duration;
use wh_api::ApiOptions;
use wh_mq::{
    Kind,
    faulty::{Fault, Op},
};
use wh_types::{Clock, SystemClock};

#[tokio::test(start_paused = true)]
async fn every_stream_of_a_table_gets_its_rows_and_no_others() {
    let rig = Rig::new();
    rig.json(r#"{"id":0}"#).await;
    let mut one = Reading::begin(&rig, get("/v1/stream?table=t")).await;
    one.shows(&[ready("0000000e-1", "t")]).await;
    let mut two = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let mut other = Reading::open(&rig, {
        let mut request = get("/v1/stream?table=t");
        request.headers_mut().insert("x-tenant-id", "acme".parse().unwrap());
        request
    })
    .await;
    rig.send(post("/v1/ingest?table=a.b%2Fc", "application/json", r#"{"id":7}"#)).await;
    rig.lines("{\"id\":1, \"note\":\"x  y\"}\n{\"id\":2}").await;
    for reading in [&mut one, &mut two] {
        reading.shows(&[row("0000000e-3.0", r#"{"id":1,"note":"x  y"}"#), row("0000000e-3.1", r#"{"id":2}"#)]).await;
    }
    drop(one);
    rig.json(r#"{"id":3}"#).await;
    two.shows(&[row("0000000e-4.0", r#"{"id":3}"#)]).await;
    assert_eq!(other.block().await.unwrap(), [":"], "another tenant's stream only lives");
}

#[tokio::test(start_paused = true)]
async fn the_rows_of_a_block_go_out_in_one_piece() {
    let rig = Rig::new();
    let mut reading = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let rows = |from: u64| (from..from + 400).map(|n| format!("{{\"id\":{n}}}\n")).collect::<String>();
    rig.lines(rows(0)).await;
    assert_eq!(reading.piece().await.unwrap().matches("event: row\n").count(), 400);
    // and what waits by then goes out with it
    rig.lines(rows(400)).await;
    rig.lines(rows(800)).await;
    assert_eq!(reading.piece().await.unwrap().matches("event: row\n").count(), 800);
}

#[tokio::test(start_paused = true)]
async fn silence_is_broken_by_comments_every_fifteen_seconds() {
    let rig = Rig::new();
    let mut reading = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let start = SystemClock.now();
    for n in 1..=3 {
        assert_eq!(reading.block().await.unwrap(), [":"]);
        assert_eq!(start.elapsed().as_secs(), 15 * n);
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    rig.json(r#"{"id":1}"#).await;
    reading.shows(&[row("0000000e-1.0", r#"{"id":1}"#)]).await;
    let start = SystemClock.now();
    assert_eq!(reading.block().await.unwrap(), [":"]);
    assert_eq!(start.elapsed().as_secs(), 15, "counted from the last event");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_streams_at_once_and_says_where_to_go_on() {
    let rig = Rig::new();
    let mut reading = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let (mut quiet, mut ended) = (Reading::begin(&rig, get("/v1/stream?table=a.b%2Fc&table=t")).await, String::new());
    rig.lines("{\"id\":1}\n{\"id\":2}").await;
    reading.event().await;
    reading.event().await;
    let start = SystemClock.now();
    rig.stop.give();
    reading.shows(&[end("stopping", Some("0000000e-1.1"))]).await;
    assert_eq!(reading.next().await, None);
    while let Some(event) = quiet.next().await {
        ended = event.kind;
    }
    assert_eq!(ended, "end", "also where nobody read yet");
    rig.api.finish().await;
    assert!(start.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_history_that_fails_is_opened_again_where_it_ended() {
    let rig = Rig::new();
    rig.script.spare(Op::HistoryNext, 2);
    rig.script.next(Op::HistoryNext, Fault::Fail(Kind::Unavailable));
    let mut reading = Reading::open(&rig, get("/v1/stream?table=t")).await;
    rig.json(r#"{"id":1}"#).await;
    reading.shows(&[row("0000000e-1.0", r#"{"id":1}"#)]).await;
    rig.json(r#"{"id":2}"#).await;
    rig.json(r#"{"id":3}"#).await;
    reading.shows(&[row("0000000e-2.0", r#"{"id":2}"#), row("0000000e-3.0", r#"{"id":3}"#)]).await;
    assert!(rig.script.is_done());
}

#[tokio::test(start_paused = true)]
async fn a_history_that_fails_before_its_first_block_loses_nothing() {
    let rig = Rig::new();
    rig.script.spare(Op::HistoryNext, 1);
    rig.script.next(Op::HistoryNext, Fault::Fail(Kind::Unavailable));
    rig.script.spare(Op::History, 1);
    rig.script.next(Op::History, Fault::Fail(Kind::Unavailable));
    let mut reading = Reading::open(&rig, get("/v1/stream?table=t")).await;
    rig.json(r#"{"id":1}"#).await;
    reading.shows(&[row("0000000e-1.0", r#"{"id":1}"#)]).await;
    assert!(rig.script.is_done());
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_ends_the_stream() {
    let rig = Rig::new();
    let mut reading = Reading::open(&rig, get("/v1/stream?table=t")).await;
    rig.broker.close().await;
    reading.shows(&[end("closed", Some("0000000e-0"))]).await;
    assert_eq!(reading.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn streams_have_a_bound() {
    let options = ApiOptions { max_streams: 1, ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    let open = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let refused = rig.send(get("/v1/stream?table=t")).await;
    assert_eq!(refused.outcome(), (503, Some("stream.too_many".into())));
    drop(open);
    Reading::open(&rig, get("/v1/stream?table=t")).await;
}
