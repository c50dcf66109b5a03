//! Live streams: what is stored from now on, to everybody at their own pace.

use crate::rig::{Rig, Setup, get};
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use std::time::Duration;
use wh_api::ApiOptions;
use wh_mq::{
    Kind,
    faulty::{Fault, Op},
};
use wh_types::{Clock, SystemClock};

/// A stream being read.
struct Reading {
    body: Body,
    text: String,
}

impl Reading {
    async fn open(rig: &Rig, request: Request<Body>) -> Self {
        let response = rig.raw(request).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        let mut this = Self { body: response.into_body(), text: String::new() };
        assert_eq!(this.event().await, ["event: ready", r#"data: {"table":"t"}"#]);
        this
    }

    /// The next event or comment; `None` at the end.
    async fn next(&mut self) -> Option<Vec<String>> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = event.lines().map(str::to_owned).collect();
                self.text = rest.to_owned();
                return Some(event);
            }
            let frame = self.body.frame().await?.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&frame).unwrap());
        }
    }

    async fn event(&mut self) -> Vec<String> {
        self.next().await.expect("the stream ended")
    }
}

fn row(id: &str, text: &str) -> Vec<String> {
    vec![format!("id: {id}"), "event: row".to_owned(), format!("data: {text}")]
}

#[tokio::test(start_paused = true)]
async fn every_stream_of_a_table_gets_its_rows_and_no_others() {
    let rig = Rig::new();
    rig.json(r#"{"id":0}"#).await;
    let mut one = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let mut two = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let mut other = Reading::open(&rig, {
        let mut request = get("/v1/stream?table=t");
        request.headers_mut().insert("x-tenant-id", "acme".parse().unwrap());
        request
    })
    .await;
    rig.send(crate::rig::post("/v1/ingest?table=a.b%2Fc", "application/json", r#"{"id":7}"#)).await;
    rig.lines("{\"id\":1, \"note\":\"x  y\"}\n{\"id\":2}").await;
    for reading in [&mut one, &mut two] {
        assert_eq!(reading.event().await, row("0000000e-3.0", r#"{"id":1,"note":"x  y"}"#));
        assert_eq!(reading.event().await, row("0000000e-3.1", r#"{"id":2}"#));
    }
    drop(one);
    rig.json(r#"{"id":3}"#).await;
    assert_eq!(two.event().await, row("0000000e-4.0", r#"{"id":3}"#));
    assert_eq!(other.event().await, [":"], "another tenant's stream only lives");
}

#[tokio::test(start_paused = true)]
async fn silence_is_broken_by_comments_every_fifteen_seconds() {
    let rig = Rig::new();
    let mut reading = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let start = SystemClock.now();
    for n in 1..=3 {
        assert_eq!(reading.event().await, [":"]);
        assert_eq!(start.elapsed().as_secs(), 15 * n);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_is_told_of_its_gap() {
    let rig = Rig::new();
    for (path, id, from) in [
        ("/v1/stream?table=t", Some("0000000e-7.3"), "\"0000000e-7.3\""),
        ("/v1/stream?table=t&since=0000000e-9.1", None, "\"0000000e-9.1\""),
        ("/v1/stream?table=t&since=2025-01-01T00:00:00Z", None, "null"),
    ] {
        let mut request = get(path);
        if let Some(id) = id {
            request.headers_mut().insert("last-event-id", id.parse().unwrap());
        }
        let mut reading = Reading::open(&rig, request).await;
        assert_eq!(reading.event().await, ["event: gap".to_owned(), format!("data: {{\"from\":{from},\"to\":null}}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_is_told_what_it_missed_and_slows_nobody() {
    let options = ApiOptions { stream_bytes: 20_000, ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    let mut slow = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let mut quick = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let note = "x".repeat(1_000);
    for n in 1..=100 {
        rig.json(format!("{{\"id\":{n},\"note\":\"{note}\"}}")).await;
        assert_eq!(quick.event().await[0], format!("id: 0000000e-{n}.0"));
    }
    let gap = slow.event().await;
    let next = slow.event().await;
    let first = next[0].strip_prefix("id: 0000000e-").unwrap().strip_suffix(".0").unwrap().parse::<u64>().unwrap();
    assert!((70..100).contains(&first), "{first}");
    assert_eq!(gap, ["event: gap".to_owned(), format!("data: {{\"from\":null,\"to\":\"0000000e-{first}\"}}")]);
    for n in first + 1..=100 {
        assert_eq!(slow.event().await[0], format!("id: 0000000e-{n}.0"), "after the gap nothing is missing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_streams_at_once_and_says_where_to_go_on() {
    let rig = Rig::new();
    let mut reading = Reading::open(&rig, get("/v1/stream?table=t")).await;
    let mut quiet = Reading::open(&rig, get("/v1/stream?table=t")).await;
    rig.lines("{\"id\":1}\n{\"id\":2}").await;
    reading.event().await;
    reading.event().await;
    let start = SystemClock.now();
    rig.stop.give();
    let end =
        |resume: &str| ["event: end".to_owned(), format!("data: {{\"reason\":\"stopping\",\"resume\":{resume}}}")];
    assert_eq!(reading.event().await, end("\"0000000e-1.1\""));
    assert_eq!(reading.next().await, None);
    assert_eq!(quiet.event().await, end("null"));
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
    assert_eq!(reading.event().await, row("0000000e-1.0", r#"{"id":1}"#));
    rig.json(r#"{"id":2}"#).await;
    rig.json(r#"{"id":3}"#).await;
    assert_eq!(reading.event().await, row("0000000e-2.0", r#"{"id":2}"#));
    assert_eq!(reading.event().await, row("0000000e-3.0", r#"{"id":3}"#));
    assert!(rig.script.is_done());
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_ends_the_stream() {
    let rig = Rig::new();
    let mut reading = Reading::open(&rig, get("/v1/stream?table=t")).await;
    rig.broker.close().await;
    assert_eq!(reading.event().await[1], r#"data: {"reason":"closed","resume":null}"#);
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
