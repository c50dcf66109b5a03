//! `?wait=committed` where the api and the ingests are processes of their own: marks go over NATS, and a wait outlives the
//! worker it began with.

use super::{UNITS, WAIT, busy, fleet, stop};
use procs::{Member, even};
use serde_json::{Value, json};
use wh_testkit::http;

/// Posts a row to the table, and waits until it is committed.
async fn post(api: &Member, table: &str, id: u64, timeout: &str) -> (u16, Value) {
    let url = api.url(&format!("/v1/ingest?table={table}&wait=committed&timeout={timeout}"));
    let body = json!({ "n": id, "note": "own" }).to_string();
    let request = http::post(url, body).header("content-type", "application/x-ndjson").timeout(WAIT);
    let reply = request.send().await.unwrap();
    (reply.status.as_u16(), reply.json().unwrap())
}

#[tokio::test]
async fn a_wait_over_nats_ends_with_the_insert_and_outlives_the_worker_it_began_with() {
    let fleet = fleet(busy()).await;
    let api = fleet.api("api").await.unwrap();
    let mut first = fleet.ingest("ingest-1").await.unwrap();
    even(&[&first], UNITS, WAIT).await.unwrap();
    for id in 0..20 {
        let (status, answer) = post(&api, "t00", id, "30s").await;
        assert_eq!((status, &answer["committed"]), (200, &json!(1)), "{answer}");
        let stored = fleet.number(&format!("SELECT count() FROM t00 WHERE n = {id}")).await.unwrap();
        assert!(stored >= 1, "row {id} was said to be committed");
    }

    // its worker is gone before it inserts anything; another comes and does it
    first.process.kill().unwrap();
    let waits = post(&api, "t00", 100, "30s");
    let comes = async {
        let second = fleet.ingest("ingest-2").await.unwrap();
        even(&[&second], UNITS, WAIT).await.unwrap();
        second
    };
    let ((status, answer), second) = tokio::join!(waits, comes);
    assert!(matches!(status, 200 | 202), "{answer}");
    // however long the lease of the one before took: the rows are there, and the next wait says so
    let (status, answer) = post(&api, "t00", 101, "30s").await;
    assert_eq!((status, &answer["committed"]), (200, &json!(1)), "{answer}");
    assert_eq!(fleet.number("SELECT count() FROM t00 WHERE n IN (100, 101)").await.unwrap(), 2);

    // a worker that hands its units over
    let third = fleet.ingest("ingest-3").await.unwrap();
    let handed = async { even(&[&second, &third], UNITS, WAIT).await.unwrap() };
    let waits = async {
        for id in 200..230 {
            let (status, answer) = post(&api, "t00", id, "30s").await;
            assert_eq!((status, &answer["committed"]), (200, &json!(1)), "{answer}");
        }
    };
    tokio::join!(handed, waits);
    stop([api, second, third]).await;
}
