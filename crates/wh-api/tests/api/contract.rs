//! The contract of statuses and codes: clients decide by these whether to send again.

use crate::rig::{KEY, Rig, Setup, get, keyed, post};
use axum::body::Body;
use http::Request;
use std::{io, sync::Arc, time::Duration};
use wh_api::{ApiOptions, Check, Health, Surface, TenantLimits};
use wh_clickhouse::{Discovery, DiscoveryOptions};
use wh_mq::faulty::{Fault, Op};
use wh_types::{OsEntropy, Stop, SystemClock, Tasks};

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";

fn with(request: Request<Body>, headers: &[(&str, &str)]) -> Request<Body> {
    let (mut head, body) = request.into_parts();
    for (name, value) in headers {
        head.headers.append(name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
    }
    Request::from_parts(head, body)
}

fn ingest(media: &str, body: &str) -> Request<Body> {
    post("/v1/ingest?table=t", media, body.to_owned())
}

#[tokio::test]
async fn every_fault_has_its_status_and_code() {
    let rig = Rig::with(Setup {
        options: ApiOptions { ingest_body_bytes: 4_000, query_body_bytes: 300, ..ApiOptions::default() },
        limits: TenantLimits { max_row_bytes: 1_000, ..TenantLimits::default() },
        ..Setup::default()
    });
    let large = format!(r#"{{"id":1,"note":"{}"}}"#, "x".repeat(1_000));
    let deep = format!(r#"{{"id":1,"note":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    let cases = [
        // paths
        (get("/nope"), 404, "route.not_found"),
        (get("/v1/ingest?table=t"), 405, "route.method_not_allowed"),
        (post("/livez", JSON, ""), 405, "route.method_not_allowed"),
        // tenant and credentials
        (with(ingest(JSON, "{}"), &[("x-tenant-id", "a b")]), 400, "tenant.invalid"),
        (with(ingest(JSON, "{}"), &[("x-tenant-id", "acme"), ("x-tenant-id", "acme")]), 400, "tenant.invalid"),
        (with(ingest(JSON, "{}"), &[("x-tenant-id", "nobody")]), 404, "tenant.not_found"),
        (with(ingest(JSON, "{}"), &[("authorization", "Bearer x")]), 401, "auth.token_invalid"),
        (with(ingest(JSON, "{}"), &[("x-operator-key", "guess")]), 401, "auth.operator_key_invalid"),
        (get("/v1/ops/schema"), 401, "auth.required"),
        (with(get("/v1/ops/schema"), &[("authorization", "Operator guess")]), 401, "auth.operator_key_invalid"),
        (keyed(get("/v1/ops/schema?tenant=nobody")), 404, "tenant.not_found"),
        (keyed(get("/v1/ops/schema?tenant=a%20b")), 400, "tenant.invalid"),
        (keyed(get("/v1/ops/schema?table=nope")), 404, "table.not_found"),
        // table
        (post("/v1/ingest", JSON, "{}"), 400, "table.missing"),
        (post("/v1/ingest?table=", JSON, "{}"), 400, "table.missing"),
        (post("/v1/ingest?table=t&table=t", JSON, "{}"), 400, "request.invalid"),
        (post("/v1/ingest?table=nope", JSON, "{}"), 404, "table.not_found"),
        (post("/v1/ingest?table=v", JSON, "{}"), 400, "table.not_writable"),
        (post("/v1/ingest?table=t&results=some", JSON, "{}"), 400, "request.invalid"),
        (get("/v1/stream"), 400, "table.missing"),
        (get("/v1/stream?table=nope"), 404, "table.not_found"),
        (with(get("/v1/stream?table=t"), &[("last-event-id", "yesterday")]), 400, "stream.cursor_invalid"),
        (get("/v1/stream?table=t&since=yesterday"), 400, "stream.cursor_invalid"),
        (get("/v1/stream?table=t&tabel=t"), 400, "request.invalid"),
        (post("/v1/query?table=nope", JSON, "{}"), 404, "table.not_found"),
        (post("/v1/ingest?table=t&wiat=committed", JSON, "{}"), 400, "request.invalid"),
        // body
        (Request::post("/v1/ingest?table=t").body(Body::from("{}")).unwrap(), 415, "content_type.unsupported"),
        (ingest("text/csv; header=maybe", "1,2"), 415, "content_type.unsupported"),
        (ingest("text/plain", "1,2"), 415, "content_type.unsupported"),
        (
            with(ingest(JSON, "{}"), &[("content-encoding", "gzip"), ("content-encoding", "gzip")]),
            415,
            "content_encoding.unsupported",
        ),
        (with(ingest(JSON, "{}"), &[("content-encoding", "br")]), 415, "content_encoding.unsupported"),
        (with(ingest(JSON, "{}"), &[("content-encoding", "gzip")]), 400, "body.encoding"),
        (ingest(JSON, &format!("[{}]", " ".repeat(4_000))), 413, "body.too_large"),
        (ingest(JSON, ""), 400, "body.empty"),
        (ingest(LINES, "\n \r\n"), 400, "body.empty"),
        (ingest(JSON, r#"{"id":1,}"#), 400, "json.malformed"),
        (ingest(JSON, r#"[{"id":1},{"id":2}"#), 400, "json.truncated"),
        (ingest(JSON, r#"[{"id":1},{"id":"#), 400, "json.truncated"),
        (ingest(JSON, r#"[{"id":1} {"id":2}]"#), 400, "json.malformed"),
        (ingest(JSON, r#"{"id":1}{"id":2}"#), 400, "json.trailing"),
        (ingest(JSON, r#"[{"id":1}]x"#), 400, "json.trailing"),
        (ingest(JSON, "7"), 400, "json.not_object"),
        (ingest(JSON, "nonsense"), 400, "json.malformed"),
        (post("/v1/ingest?table=t", JSON, b"{\"note\":\"\xff\"}".to_vec()), 400, "json.utf8"),
        (ingest("text/csv", "1,\"x,2\n"), 400, "csv.malformed"),
        (ingest("text/csv; header=present", "id,id\n1,2"), 400, "csv.header"),
        (ingest("text/csv", "id,what\n1,2"), 400, "csv.header"),
        (ingest("text/csv; header=present", "id,what\n1,2"), 400, "column.not_found"),
        (ingest("text/csv", "\n\n"), 400, "body.empty"),
        // one record, which is refused
        (ingest("text/csv", "1,2"), 400, "csv.cells"),
        (ingest("text/tab-separated-values", "1\t2"), 400, "csv.cells"),
        (ingest(JSON, &deep), 400, "json.depth"),
        (ingest(LINES, "7"), 400, "json.not_object"),
        (ingest(LINES, r#"{"id":1}{"id":2}"#), 400, "json.trailing"),
        (ingest(LINES, r#"{"id":1"#), 400, "json.truncated"),
        (ingest(JSON, r#"{"id":1,"\u0069d":2}"#), 400, "json.duplicate_key"),
        (ingest(JSON, &large), 400, "row.too_large"),
        (ingest(JSON, r#"{"id":1,"nope":2}"#), 400, "column.not_found"),
        (ingest(JSON, r#"{"id":1,"twice":2}"#), 400, "column.not_writable"),
        (ingest(JSON, r#"{"id":1,"next":2}"#), 400, "column.not_writable"),
        (ingest(JSON, r#"{"note":"x"}"#), 400, "column.required"),
        (ingest(JSON, r#"{"id":null}"#), 400, "column.required"),
        (ingest(JSON, r#"{"id":1,"tags":"x"}"#), 400, "column.type"),
        (ingest(JSON, r#"{"id":1,"at":-5}"#), 400, "column.value"),
        (ingest(LINES, "7\n{\"id\":1,\"nope\":2}"), 400, "ingest.all_rejected"),
        // queries
        (post("/v1/query?table=t", JSON, "{"), 400, "query.invalid"),
        (post("/v1/query?table=t", JSON, r#"{"filter":[]}"#), 400, "query.invalid"),
        (post("/v1/query?table=t", JSON, r#"{"columns":"nope"}"#), 400, "column.not_found"),
        (post("/v1/query?table=t", JSON, " ".repeat(301)), 413, "body.too_large"),
        (post("/v1/query?table=t", JSON, r#"{"columns":"id"}"#), 503, "clickhouse.unavailable"),
        (keyed(post("/v1/ops/query", JSON, "{")), 400, "request.invalid"),
        (keyed(post("/v1/ops/query", JSON, "{}")), 400, "request.invalid"),
        (keyed(post("/v1/ops/query", JSON, r#"{"sql":"SELECT 1"}"#)), 503, "clickhouse.unavailable"),
    ];
    for (request, status, code) in cases {
        let what = format!("{} {} {:?}", request.method(), request.uri(), request.headers());
        let reply = rig.send(request).await;
        assert_eq!(reply.outcome(), (status, Some(code.to_owned())), "{what}: {}", reply.text());
        let value = reply.value();
        assert!(value["error"].as_str().is_some_and(|text| !text.is_empty()), "{what}");
        assert_eq!(value["retryable"], status == 503, "{what}");
        assert_eq!(reply.headers.contains_key("retry-after"), status == 503, "{what}");
        assert_eq!(reply.header("content-type"), Some("application/json"), "{what}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{what}");
        assert_eq!(value["request_id"].as_str(), reply.header("x-request-id"), "{what}");
        assert!(!reply.text().contains(KEY));
        if what.contains("/v1/ingest") {
            assert!(value["total"].is_u64() && value["results"].is_array(), "an ingest error has its summary: {what}");
        }
    }
    assert_eq!(rig.rows().await, Vec::<String>::new(), "nothing of all this was stored");
}

#[tokio::test]
async fn a_broken_or_slow_transfer_stores_nothing() {
    let rig = Rig::with(Setup {
        options: ApiOptions { body_timeout: Duration::from_millis(20), ..ApiOptions::default() },
        ..Setup::default()
    });
    let pieces = [Ok("{\"id\":1}\n"), Err(io::Error::other("cut"))];
    let broken = Body::from_stream(futures::stream::iter(pieces));
    assert_eq!(rig.lines(broken).await.outcome(), (400, Some("body.broken".into())));
    let slow = Body::from_stream(futures::stream::pending::<io::Result<&str>>());
    let reply = rig.lines(slow).await;
    assert_eq!(reply.outcome(), (408, Some("body.timeout".into())));
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(rig.rows().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn bodies_beyond_the_budget_are_refused_and_not_forever() {
    let options = ApiOptions {
        ingest_body_bytes: 64 << 10,
        query_body_bytes: 0,
        sql_body_bytes: 0,
        held_bytes: 0,
        tenant_held_bytes: 0,
        held_patience: Duration::from_millis(10),
        ..ApiOptions::default()
    };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    rig.script.next(Op::Publish, Fault::Delay(Duration::from_secs(1)));
    let row = format!("{{\"id\":1,\"note\":\"{}\"}}", "x".repeat(60_000));
    let replies = futures::future::join_all((0..40).map(|_| rig.json(row.clone()))).await;
    let (stored, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    assert_eq!((stored.len(), refused.len()), (33, 7), "4 MiB and the largest request always fit");
    for reply in refused {
        assert_eq!(reply.outcome(), (503, Some("server.busy".into())));
        assert_eq!(reply.header("retry-after"), Some("5"));
    }
    assert_eq!(rig.json(row).await.status, 200, "what was held is given back");
}

#[tokio::test(start_paused = true)]
async fn one_tenant_does_not_take_what_is_for_all() {
    let options = ApiOptions {
        ingest_body_bytes: 64 << 10,
        query_body_bytes: 0,
        sql_body_bytes: 0,
        tenant_held_bytes: 0,
        held_patience: Duration::from_millis(10),
        ..ApiOptions::default()
    };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    rig.script.next(Op::Publish, Fault::Delay(Duration::from_secs(1)));
    let row = format!("{{\"id\":1,\"note\":\"{}\"}}", "x".repeat(60_000));
    let flood = futures::future::join_all((0..40).map(|_| rig.json(row.clone())));
    let other = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        rig.send(with(ingest(JSON, &row), &[("x-tenant-id", "acme")])).await
    };
    let (flood, other) = tokio::join!(flood, other);
    let busy: Vec<_> = flood.iter().filter(|reply| reply.status == 503).collect();
    assert_eq!((busy.len(), other.status.as_u16()), (7, 200));
    assert!(busy[0].text().contains("of this tenant"), "{}", busy[0].text());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_gives_its_share_back_at_once() {
    let options = ApiOptions {
        ingest_body_bytes: 1 << 20,
        query_body_bytes: 0,
        sql_body_bytes: 0,
        held_bytes: 0,
        held_patience: Duration::from_millis(10),
        ..ApiOptions::default()
    };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    // each has sent nearly all of its body, and never sends the rest
    let half = || {
        let piece = futures::stream::iter([Ok::<_, io::Error>(vec![b' '; 900_000])]);
        let body = Body::from_stream(futures::StreamExt::chain(piece, futures::stream::pending()));
        Box::pin(rig.lines(body))
    };
    let mut uploads: Vec<_> = (0..3).map(|_| half()).collect();
    for upload in &mut uploads {
        assert!(futures::poll!(upload).is_pending());
    }
    let row = format!("{{\"id\":1,\"note\":\"{}\"}}", "x".repeat(900_000));
    assert_eq!(rig.json(row.clone()).await.outcome(), (503, Some("server.busy".into())), "all is held");
    drop(uploads);
    assert_eq!(rig.json(row).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_due_tells_what_became_of_each_record_by_then() {
    let options = ApiOptions { request_timeout: Duration::from_secs(40), ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    for _ in 0..100 {
        rig.script.next(Op::Publish, Fault::Delay(Duration::from_secs(3_600)));
    }
    // the first publish is given up after its budget; what waits behind it is not over when the answer is due
    let (first, second) = tokio::join!(rig.lines("{\"id\":1}\n{}\n"), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        rig.lines("{\"id\":2}\n{}\n").await
    });
    for reply in [first, second] {
        let told: Vec<_> = reply.results().into_iter().map(|(index, status, _)| (index, status)).collect();
        assert_eq!(told, [(0, "in_flight".into()), (1, "rejected".into())], "{}", reply.text());
        assert_eq!((reply.status.as_u16(), reply.counts()), (503, [2, 0, 1]));
        assert!(reply.headers.contains_key("retry-after"));
    }
}

#[tokio::test]
async fn before_the_schema_is_known_everything_asks_to_come_back() {
    let defaults = Setup::default();
    let (tasks, stop) = (Tasks::new(), Stop::new());
    let schema = Discovery::start(
        defaults.clickhouse.clone(),
        DiscoveryOptions::default(),
        Arc::new(SystemClock),
        Arc::new(OsEntropy),
        &tasks,
        stop.clone(),
    );
    let rig = Rig::with(Setup { schema, ..defaults });
    for request in [
        ingest(JSON, r#"{"id":1}"#),
        post("/v1/ingest?table=nope", JSON, "{}"),
        post("/v1/query?table=t", JSON, "{}"),
        get("/v1/stream?table=t"),
        keyed(get("/v1/ops/schema")),
    ] {
        let reply = rig.send(request).await;
        assert_eq!(reply.outcome(), (503, Some("schema.not_loaded".into())));
        assert_eq!(reply.header("retry-after"), Some("5"));
    }
    assert_eq!(rig.send(get("/livez")).await.status, 200, "the process lives");
    let ready = rig.send(get("/readyz")).await;
    assert_eq!(ready.status, 503);
    assert!(ready.value()["failed"]["schema"].is_string(), "{}", ready.text());
    stop.give();
    tasks.wait().await;
}

#[tokio::test]
async fn probes_tell_alive_from_ready_from_degraded() {
    let check = |name, health: Health| Check { name, look: Arc::new(move || health.clone()) };
    let rig = Rig::with(Setup { checks: vec![check("worker", Health::Degraded("slow".into()))], ..Setup::default() });
    for path in ["/livez", "/healthz", "/health"] {
        let reply = rig.send(get(path)).await;
        assert_eq!((reply.status.as_u16(), reply.text()), (200, r#"{"status":"ok"}"#));
    }
    for path in ["/readyz", "/ready"] {
        let reply = rig.send(get(path)).await;
        assert_eq!(reply.status, 200, "degraded is ready");
        assert_eq!(reply.value(), serde_json::json!({"status": "degraded", "degraded": {"worker": "slow"}}));
    }
    assert_eq!(rig.send(get("/version")).await.value()["version"], "1.2.3");
    assert_eq!(rig.send(get("/metrics")).await.text(), "# metrics\n");
    assert_eq!(rig.send(get("/v1/health")).await.status, 200);
    assert_eq!(rig.send(with(get("/v1/health"), &[("x-tenant-id", "no")])).await.status, 404);

    rig.broker.close().await;
    let reply = rig.send(get("/readyz")).await;
    assert_eq!(reply.status, 503, "a queue that takes nothing is not ready");
    let broken = Rig::with(Setup { checks: vec![check("worker", Health::Failed("gone".into()))], ..Setup::default() });
    assert_eq!(broken.send(get("/readyz")).await.value()["failed"]["worker"], "gone");
}

#[tokio::test]
async fn an_operators_surface_takes_no_events_and_is_ready_without_a_schema() {
    let options = ApiOptions { surface: Surface::Operator, ask_queue: false, ..ApiOptions::default() };
    let (tasks, stop, mut setup) = (Tasks::new(), Stop::new(), Setup { options, ..Setup::default() });
    let client = setup.clickhouse.clone();
    let (clock, chance) = (Arc::new(SystemClock), Arc::new(OsEntropy));
    setup.schema = Discovery::start(client, DiscoveryOptions::default(), clock, chance, &tasks, stop.clone());
    let rig = Rig::with(setup);
    for request in
        [ingest(JSON, "{}"), post("/v1/query?table=t", JSON, "{}"), get("/v1/stream?table=t"), get("/v1/health")]
    {
        assert_eq!(rig.send(request).await.outcome(), (404, Some("route.not_found".into())));
    }
    let ready = rig.send(get("/readyz")).await;
    assert_eq!(
        (ready.status.as_u16(), ready.value()["degraded"]["schema"].is_string()),
        (200, true),
        "{}",
        ready.text()
    );
    assert_eq!(rig.send(get("/livez")).await.status, 200);
    assert_eq!(rig.send(get("/v1/ops/queue")).await.status, 401);
    assert_eq!(rig.send(keyed(get("/v1/ops/queue"))).await.value()["accepting"], true);

    rig.broker.close().await;
    assert_eq!(rig.send(get("/readyz")).await.status, 200, "the queue is not asked");
    rig.stop.give();
    assert_eq!(rig.send(get("/readyz")).await.value()["failed"]["process"], "shutting down");
    stop.give();
    tasks.wait().await;
}

#[tokio::test]
async fn a_fault_of_ours_is_an_envelope_and_the_next_request_is_served() {
    let look = Arc::new(|| panic!("on purpose"));
    let rig = Rig::with(Setup { checks: vec![Check { name: "bad", look }], ..Setup::default() });
    let reply = rig.send(with(get("/readyz"), &[("x-request-id", "mine-1")])).await;
    assert_eq!(reply.outcome(), (500, Some("internal".into())));
    assert_eq!(reply.value()["request_id"], "mine-1");
    assert!(!reply.text().contains("on purpose"), "what failed inside is for the log");
    assert_eq!(rig.send(get("/livez")).await.status, 200);
}

#[tokio::test]
async fn without_a_key_nobody_operates() {
    for key in [None, Some("")] {
        let rig = Rig::with(Setup { key, ..Setup::default() });
        for request in
            [get("/v1/ops/queue"), keyed(get("/v1/ops/queue")), post("/v1/ops/query", JSON, r#"{"sql":"SELECT 1"}"#)]
        {
            let reply = rig.send(request).await;
            assert_eq!(reply.outcome(), (403, Some("ops.forbidden".into())));
            assert!(reply.text().contains("auth.operator_key_file"));
        }
    }
}

#[tokio::test]
async fn an_id_is_echoed_and_answers_of_a_tenant_say_so() {
    let rig = Rig::new();
    let reply =
        rig.send(with(ingest(JSON, r#"{"id":1}"#), &[("x-request-id", "abc-123"), ("x-tenant-id", "acme")])).await;
    assert_eq!(reply.header("x-request-id"), Some("abc-123"));
    assert_eq!(reply.header("vary"), Some("X-Tenant-ID"));
    let reply = rig.send(with(get("/livez"), &[("x-request-id", "a b")])).await;
    assert_eq!(reply.header("x-request-id").map(str::len), Some(16));
    assert_eq!(reply.header("vary"), None);
    let block = &rig.queued().await[0].block;
    assert_eq!(block.tenant.as_str(), "acme");
}
