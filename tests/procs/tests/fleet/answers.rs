//! Kept answers where the apis and the ingests are processes of their own: a client reads its own writes, whichever api it
//! asks where the store is shared, and at the one it wrote through where each has its own.

use super::{UNITS, WAIT, busy, fleet, stop};
use procs::{Member, Setup, even};
use serde_json::{Value, json};
use wh_testkit::{http, redis::Server};

/// Posts a row to the table, and waits until it is committed.
async fn write(api: &Member, id: u64) {
    let url = api.url("/v1/ingest?table=t00&wait=committed&timeout=30s");
    let body = json!({ "n": id, "note": "own" }).to_string();
    let request = http::post(url, body).header("content-type", "application/x-ndjson").timeout(WAIT);
    let answer: Value = request.send().await.unwrap().json().unwrap();
    assert_eq!(answer["committed"], json!(1), "{answer}");
}

/// How many rows the table has by an api's answer.
async fn seen(api: &Member) -> u64 {
    let query = json!({"aggregations": [{"fn": "uniqExact", "column": "n", "alias": "rows"}]}).to_string();
    let request =
        http::post(api.url("/v1/query?table=t00"), query).header("content-type", "application/json").timeout(WAIT);
    let reply = request.send().await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json().unwrap()[0]["rows"].as_u64().unwrap()
}

#[tokio::test]
async fn two_apis_see_over_a_shared_store_what_was_committed() {
    let redis = Server::start().await.unwrap();
    let more = format!(
        "{}\ncache: {{backend: redis, redis: {{addrs: ['127.0.0.1:{}'], timeout: 10s}}}}",
        busy().more,
        redis.port()
    );
    let fleet = fleet(Setup { more, ..busy() }).await;
    let apis = [fleet.api("api-1").await.unwrap(), fleet.api("api-2").await.unwrap()];
    let ingest = fleet.ingest("ingest-1").await.unwrap();
    even(&[&ingest], UNITS, WAIT).await.unwrap();
    for n in 0..20 {
        let (own, other) = if n % 2 == 0 { (&apis[0], &apis[1]) } else { (&apis[1], &apis[0]) };
        write(own, n).await;
        for api in [other, own, other] {
            assert_eq!(seen(api).await, n + 1, "after {} rows", n + 1);
        }
    }
    stop(apis.into_iter().chain([ingest])).await;
}

#[tokio::test]
async fn an_api_with_a_memory_of_its_own_sees_what_it_said_is_committed() {
    let fleet = fleet(busy()).await;
    let api = fleet.api("api").await.unwrap();
    let ingest = fleet.ingest("ingest-1").await.unwrap();
    even(&[&ingest], UNITS, WAIT).await.unwrap();
    for n in 0..20 {
        write(&api, n).await;
        for _ in 0..2 {
            assert_eq!(seen(&api).await, n + 1, "after {} rows", n + 1);
        }
    }
    stop([api, ingest]).await;
}
