//! ClickHouse behind TLS, and behind certificates that nobody should trust.

use procs::{System, TABLE};
use std::time::Duration;
use wh_testkit::{
    clickhouse, http,
    tls::{Authority, Terminator},
    until,
};

const WAIT: Duration = Duration::from_secs(180);
const ADDRESS: &str = "127.0.0.1";

fn rows(ids: std::ops::Range<u64>) -> String {
    let row = |id| format!("{{\"id\":{id},\"at\":\"2026-01-01 00:00:00.000\",\"note\":\"n\"}}\n");
    ids.map(row).collect()
}

#[tokio::test]
async fn rows_wait_while_clickhouse_shows_a_wrong_certificate_and_readiness_says_why() {
    let engine = clickhouse::Server::start().await.unwrap();
    engine.query(TABLE).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let roots = dir.path().join("roots.pem");
    let (trusted, other) = (Authority::new("trusted").unwrap(), Authority::new("other").unwrap());
    std::fs::write(&roots, trusted.pem()).unwrap();
    let right = trusted.sign(ADDRESS).unwrap();
    let proxy = Terminator::start(engine.port(), &right).await.unwrap();
    let url = proxy.url();
    let system = System::trusting(engine, &url, roots, "ingest:\n  batch_wait: 50ms").await.unwrap();
    let post = async |ids| {
        let reply = system.post("application/x-ndjson", rows(ids)).await.unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    post(0..100).await;
    system.holds_ids(100, WAIT).await.unwrap();

    let mut next = 100;
    for (wrong, why) in [
        (other.sign(ADDRESS), "UnknownIssuer"),
        (trusted.sign_expired(ADDRESS), "expired"),
        (trusted.sign("elsewhere.example"), "not valid for name"),
    ] {
        proxy.show(&wrong.unwrap()).unwrap();
        post(next..next + 100).await;
        next += 100;
        until(WAIT, why, || async {
            let reply = http::get(system.url("/readyz")).send().await?;
            let text = reply.text();
            anyhow::ensure!(reply.status == 200 && text.contains(why), "{} {text}", reply.status);
            let metrics = http::get(system.url("/metrics")).send().await?.text().into_owned();
            let backs_off = "wavehouse_ingest_backoffs{scope=\"pool\"} 1";
            anyhow::ensure!(metrics.contains(backs_off), "no {backs_off}");
            Ok(())
        })
        .await
        .unwrap();
    }
    assert_eq!(system.number("SELECT count() FROM events").await.unwrap(), 100, "none came through");

    proxy.show(&right).unwrap();
    system.holds_ids(next, WAIT).await.unwrap();
    assert_eq!(system.number("SELECT count() FROM events").await.unwrap(), next, "each once");
    until(WAIT, "nothing to be wrong any more", || async {
        let text = http::get(system.url("/readyz")).send().await?.text().into_owned();
        if text.contains("\"ready\"") { Ok(()) } else { Err(anyhow::anyhow!(text)) }
    })
    .await
    .unwrap();
    let request = http::get(system.url("/v1/ops/dlq/stats")).header("authorization", "Operator an-operator-key");
    assert_eq!(request.send().await.unwrap().json().unwrap()["total"], 0);
}
