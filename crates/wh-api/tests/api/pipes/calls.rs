//! Who may run what, which values it takes, and in which form it answers.

use super::{engine, pipe, with};
use crate::rig::{Setup, get, keyed, post};
use serde_json::{Value, json};
use wh_api::TenantLimits;

const BY_ID: &str = "SELECT id, origin, at FROM t WHERE id IN {ids:Array(UInt64)} ORDER BY id";

#[tokio::test]
async fn a_pipe_answers_as_a_query_does_in_every_form() {
    let engine = engine(json!([pipe("by_id", BY_ID)])).await;
    let rows = json!([{"id": 1, "origin": "DTW", "at": "2001-01-01T09:00:00.500Z"},
        {"id": 3, "origin": "O'Hare\n", "at": "2001-01-03T09:00:00.000Z"}]);
    for reply in [engine.pipe("by_id?ids=1&ids=3").await, engine.pipe_with("by_id?ids=2", json!({"ids": [1, 3]})).await]
    {
        assert_eq!((reply.status.as_u16(), reply.value()), (200, rows.clone()), "{}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("vary"), Some("X-Tenant-ID, Accept, Accept-Encoding, Authorization, X-Operator-Key"));
    }
    let empty = engine.pipe_with("by_id", json!({"ids": []})).await;
    assert_eq!((empty.status.as_u16(), empty.text()), (200, "[]"));
    let lines = engine.pipe("by_id?ids=1&ids=3&format=ndjson&numbers=string").await;
    let first = lines.text().lines().next().unwrap();
    assert_eq!(serde_json::from_str::<Value>(first).unwrap()["id"], "1");
    assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
    let csv = engine.pipe("by_id?ids=1&format=csv").await;
    assert_eq!(csv.text(), "\"id\",\"origin\",\"at\"\n1,\"DTW\",\"2001-01-01T09:00:00.500Z\"\n");
    let mut arrow = get("/v1/pipes/by_id?ids=1");
    arrow.headers_mut().insert("accept", "application/vnd.apache.arrow.stream".parse().unwrap());
    let arrow = engine.rig.send(arrow).await;
    assert_eq!((arrow.status.as_u16(), &arrow.body[..4]), (200, &[0xff_u8; 4][..]));
    assert_eq!(engine.pipe("by_id?ids=1&format=xml").await.outcome(), (400, Some("request.invalid".into())));
}

#[tokio::test]
async fn absent_and_forbidden_pipes_are_the_same_and_no_role_is_asked_to_say_who_it_is() {
    let pipes = json!([pipe("open", "SELECT 1 AS x"), {"name": "closed", "sql": "SELECT 2 AS x"},
        {"name": "others", "sql": "SELECT 3 AS x", "allowed_roles": ["editor"]}, pipe("with space%", "SELECT 4 AS x")]);
    let engine = engine(pipes.clone()).await;
    assert_eq!(engine.pipe("open").await.text(), "[{\"x\":1}]");
    assert_eq!(engine.pipe("with%20space%25").await.text(), "[{\"x\":4}]");
    let absent = engine.pipe("absent").await;
    assert_eq!(absent.value()["error"], "unknown pipe: \"absent\"");
    for name in ["closed", "others", "absent"] {
        let reply = engine.pipe(name).await;
        assert_eq!(reply.outcome(), (404, Some("pipe.not_found".into())), "{name}");
        let told = reply.value()["error"].as_str().unwrap().replace(name, "absent");
        assert_eq!(told, absent.value()["error"].as_str().unwrap());
    }
    for (name, x) in [("open", 1), ("closed", 2), ("others", 3)] {
        let reply = engine.rig.send(keyed(get(&format!("/v1/pipes/{name}")))).await;
        assert_eq!(reply.value()[0]["x"], x, "the operator may run all");
    }
    let mut bad = get("/v1/pipes/open");
    bad.headers_mut().insert("x-operator-key", "wrong".parse().unwrap());
    assert_eq!(engine.rig.send(bad).await.outcome(), (401, Some("auth.operator_key_invalid".into())));
    let nobody = with(pipes, &[], Setup::default()).await;
    drop(nobody);
    let nobody = crate::engine::Engine::new(&[]).await;
    for path in ["/v1/pipes/open", "/v1/pipes/absent", "/v1/pipes"] {
        let reply = nobody.rig.send(get(path)).await;
        assert_eq!(reply.outcome(), (401, Some("auth.required".into())), "{path}: before any look-up");
    }
}

#[tokio::test]
async fn values_that_cannot_be_are_refused_before_clickhouse() {
    // nothing listens where this rig's ClickHouse should be
    let (set, _) = wh_api::PipeSet::parse(
        json!({"pipes": [{"name": "p", "sql": "SELECT {n:UInt8}, {{s}}", "allowed_roles": ["viewer"],
            "parameters": [{"name": "n", "required": true}, {"name": "s", "type": "string", "default": "x"}]}]})
        .to_string()
        .as_bytes(),
    )
    .unwrap();
    let rig = crate::rig::Rig::with(Setup { pipes: set, default_role: Some("viewer".into()), ..Setup::default() });
    let ask = async |query: &str, body: &str| {
        rig.send(post(&format!("/v1/pipes/p?{query}"), "application/json", body.to_owned())).await
    };
    for (query, body, code, told) in [
        ("", "", "pipe.parameter_missing", "missing required parameter: n"),
        ("n=1&x=2", "", "pipe.parameter_unknown", "unknown parameter: \"x\"; there are n, s"),
        ("n=1", "{\"X\":2}", "pipe.parameter_unknown", "\"X\""),
        ("n=300", "", "pipe.parameter_invalid", "the parameter \"n\" (UInt8) is out of range"),
        ("n=1&n=2", "", "pipe.parameter_invalid", "more than once"),
        ("n=1", "{\"n\":\"1 OR 1=1\"}", "pipe.parameter_invalid", "is no number"),
        ("n=1", "{\"n\":{}}", "pipe.parameter_invalid", "is an object"),
        ("n=1", "{\"s\":[]}", "pipe.parameter_invalid", "is an array"),
        ("n=1", "{\"n\":1", "pipe.body_invalid", "EOF"),
        ("n=1", "[1]", "pipe.body_invalid", "an object"),
        ("n=1", "{\"n\":1,\"n\":2}", "pipe.body_invalid", "twice"),
        ("n=1", "n=1", "pipe.body_invalid", "not an object of parameters"),
    ] {
        let reply = ask(query, body).await;
        assert_eq!(reply.outcome(), (400, Some(code.into())), "{query} {body}: {}", reply.text());
        assert!(reply.value()["error"].as_str().unwrap().contains(told), "{query} {body}: {}", reply.text());
        assert_eq!(reply.value()["retryable"], false);
    }
    let large = format!("{{\"s\":\"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(ask("n=1", &large).await.outcome(), (413, Some("body.too_large".into())));
    let long = format!("{{\"s\":\"{}\"}}", "x".repeat(200 << 10));
    let reply = ask("n=1", &long).await;
    assert_eq!(reply.outcome(), (400, Some("pipe.parameter_invalid".into())));
    assert!(reply.text().contains("longer than 128 KiB"), "{}", reply.text());
    assert_eq!(
        ask("n=1", "").await.outcome(),
        (503, Some("clickhouse.unavailable".into())),
        "and what is good gets there"
    );
}

#[tokio::test]
async fn what_is_cut_off_is_said_and_streams_are_never_cut() {
    let limits = TenantLimits { max_result_rows: 10, ..TenantLimits::default() };
    let own =
        json!({"name": "own", "sql": "SELECT number FROM numbers(20)", "allowed_roles": ["viewer"], "max_rows": 4});
    let pipes = json!([pipe("many", "SELECT number FROM numbers({n:UInt64}) ORDER BY number"), own]);
    let engine = with(pipes, &[], Setup { limits, ..Setup::default() }).await;
    for (path, rows, cut) in [("many?n=10", 10, None), ("many?n=11", 10, Some("rows=10")), ("own", 4, Some("rows=4"))] {
        let reply = engine.pipe(path).await;
        assert_eq!(reply.value().as_array().unwrap().len(), rows, "{path}");
        assert_eq!(reply.value()[rows - 1]["number"], rows - 1);
        assert_eq!(reply.header("x-truncated"), cut, "{path}");
    }
    for format in ["ndjson", "csv", "arrow"] {
        let whole = engine.pipe(&format!("many?n=10&format={format}")).await;
        assert_eq!((whole.status.as_u16(), whole.header("x-truncated")), (200, None));
        let reply = engine.pipe(&format!("many?n=11&format={format}")).await;
        assert_eq!(reply.outcome(), (400, Some("clickhouse.limit_exceeded".into())), "{}", reply.text());
        assert!(reply.text().contains("more than 10 rows"), "{}", reply.text());
    }
}

#[tokio::test]
async fn a_pipe_that_fails_tells_nothing_of_its_statement() {
    let engine = engine(json!([
        pipe("gone", "SELECT secret_column FROM nowhere WHERE id = {id:UInt64}"),
        pipe("broken", "SELEKT secret_column"),
        pipe("late", "SELECT throwIf(number = 5, 'boom') AS x FROM numbers(10) WHERE {id:UInt64} = 1"),
        pipe("two", "SELECT 1; SELECT 2"),
        pipe("formed", "SELECT 1 FORMAT CSV"),
    ]))
    .await;
    for (path, code) in [
        ("gone?id=1", "clickhouse.rejected"),
        ("broken", "clickhouse.rejected"),
        ("late?id=1", "clickhouse.rejected"),
        ("two", "clickhouse.rejected"),
    ] {
        let reply = engine.pipe(path).await;
        assert_eq!(reply.outcome(), (400, Some(code.into())), "{path}: {}", reply.text());
        for ours in [engine.database.name(), "SELECT", "version 2"] {
            assert!(!reply.text().contains(ours), "{path}: {}", reply.text());
        }
    }
    let formed = engine.pipe("formed").await;
    assert_eq!(formed.outcome(), (502, Some("pipe.unusable".into())), "{}", formed.text());
}
