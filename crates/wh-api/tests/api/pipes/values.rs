//! Values: each type there and back, and none that leaves its place.

use super::{Engine, engine, pipe};
use crate::rig::post;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};

/// Types, a value of each, and what ClickHouse says it is.
const TYPES: &[(&str, &str, &str)] = &[
    ("Int8", "-128", "-128"),
    ("UInt64", "18446744073709551615", "18446744073709551615"),
    ("Int256", "-57896044618658097711785492504343953926634992332820282019728792003956564819968", ""),
    ("Float64", "1.5e300", "1.5e300"),
    ("Decimal(18, 4)", "12345678901234.5678", "12345678901234.5678"),
    ("Bool", "true", "true"),
    ("String", r#""a\t\n\r\u0000\\'é""#, ""),
    ("LowCardinality(String)", "\"x\"", "x"),
    ("FixedString(3)", "\"abc\"", "abc"),
    ("UUID", "\"61f0c404-5cb3-11e7-907b-a6006ad3dba0\"", ""),
    ("IPv4", "\"1.2.3.4\"", ""),
    ("IPv6", "\"2001:db8::1\"", ""),
    ("Date", "\"2001-12-31\"", ""),
    ("Date32", "\"1901-12-31\"", ""),
    ("DateTime('UTC')", "\"2001-09-09T01:46:40Z\"", "2001-09-09 01:46:40"),
    ("DateTime('UTC')", "\"1970-01-01T00:01:40Z\"", "1970-01-01 00:01:40"),
    ("DateTime('Asia/Tokyo')", "\"2001-09-09T01:46:40Z\"", "2001-09-09 10:46:40"),
    ("DateTime('Asia/Tokyo')", "\"2001-09-09 10:46:40\"", ""),
    ("DateTime('UTC')", "\"2001-09-09\"", "2001-09-09 00:00:00"),
    ("DateTime('UTC')", "100", "1970-01-01 00:01:40"),
    ("DateTime64(3, 'UTC')", "\"2001-09-09T03:46:40.250+02:00\"", "2001-09-09 01:46:40.250"),
    ("DateTime64(3, 'UTC')", "\"1969-12-31T23:59:59.250Z\"", "1969-12-31 23:59:59.250"),
    ("DateTime64(3, 'Asia/Tokyo')", "1000000000.25", "2001-09-09 10:46:40.250"),
    ("DateTime64(9, 'UTC')", "100.5", "1970-01-01 00:01:40.500000000"),
    ("Enum8('a' = 1, 'it\\'s' = 2)", "2", "it's"),
    ("Nullable(Int32)", "null", ""),
    ("Nullable(Int32)", "5", "5"),
    ("Array(String)", r#"["a') OR 1=1 --","\t\n\\",""]"#, ""),
    ("Array(Nullable(Date))", "[null,\"2001-12-31\"]", ""),
    ("Array(Array(UInt8))", "[[1,2],[]]", ""),
    ("Array(DateTime('UTC'))", "[\"2001-09-09T01:46:40Z\",\"2001-09-09 01:46:41\"]", ""),
    ("Array(DateTime64(3, 'UTC'))", "[\"2001-09-09T01:46:40.5Z\"]", ""),
    ("Array(Decimal(9, 2))", "[1.25]", ""),
    ("Array(Bool)", "[true,false]", ""),
    ("Array(Enum8('a' = 1))", "[1]", ""),
    ("Array(UUID)", "[\"61f0c404-5cb3-11e7-907b-a6006ad3dba0\"]", ""),
    ("Array(Float32)", "[1.5,-0.5]", ""),
];

#[tokio::test]
async fn a_value_of_every_type_arrives_as_it_was_given() {
    let pipes = TYPES.iter().enumerate().map(|(at, (ty, ..))| {
        pipe(&format!("p{at}"), &format!("SELECT toTypeName({{v:{ty}}}) AS ty, {{v:{ty}}} AS v, toString(v) AS text"))
    });
    let engine = engine(pipes.collect()).await;
    for (at, (ty, given, text)) in TYPES.iter().enumerate() {
        let body = format!("{{\"v\": {given}}}");
        let reply = engine.rig.send(post(&format!("/v1/pipes/p{at}"), "application/json", body)).await;
        assert_eq!(reply.status, 200, "{ty} {given}: {}", reply.text());
        let row = &reply.value()[0];
        assert_eq!(row["ty"], *ty, "{given}");
        if text.is_empty() {
            let value: Value = serde_json::from_str(given).unwrap();
            let same = row["v"] == value || row["text"] == value.as_str().unwrap_or_default();
            let same = same || ty.starts_with("Array") || ty.contains("Int256");
            assert!(same, "{ty} {given}: {row}");
        } else {
            assert_eq!(row["text"], *text, "{ty} {given}");
        }
    }
}

#[tokio::test]
async fn parameters_of_older_files_have_the_type_of_their_value() {
    let engine = engine(json!([
        pipe("ty", "SELECT toTypeName({{v}}) AS ty"),
        pipe("ids", "SELECT id FROM t WHERE id IN {{ids}} ORDER BY id LIMIT {{limit:10}}"),
        pipe("origins", "SELECT id FROM t WHERE origin IN {{origins}} AND {{all:true}} ORDER BY id"),
    ]))
    .await;
    for (value, ty) in [
        (json!("x"), "String"),
        (json!(true), "Bool"),
        (json!(-1), "Int64"),
        (json!(u64::MAX), "UInt64"),
        (json!(1.5), "Float64"),
        (json!([1, 2]), "Array(Int64)"),
        (json!(["a", null]), "Array(Nullable(String))"),
        (json!(null), "Nullable(String)"),
    ] {
        let reply = engine.pipe_with("ty", json!({ "v": value })).await;
        assert_eq!(reply.value()[0]["ty"], ty, "{value}: {}", reply.text());
    }
    assert_eq!(engine.pipe_with("ids", json!({"ids": [1, 3]})).await.text(), "[{\"id\":1},{\"id\":3}]");
    assert_eq!(engine.pipe_with("ids?limit=1", json!({"ids": [1, 3]})).await.text(), "[{\"id\":1}]");
    let escaping = engine.pipe_with("origins", json!({"origins": ["a') OR 1=1 --"], "all": true})).await;
    assert_eq!((escaping.status.as_u16(), escaping.text()), (200, "[]"));
    for bad in [json!({}), json!([])] {
        let reply = engine.pipe_with("origins", json!({ "origins": bad, "all": true })).await;
        assert_eq!(reply.outcome(), (400, Some("pipe.parameter_invalid".into())), "{}", reply.text());
    }
}

/// What would mean something if it were pasted.
const MARKS: &[&str] = &[
    "'",
    "\"",
    "`",
    "\\",
    "\\'",
    "''",
    "--",
    "/*",
    "*/",
    "{s:String}",
    "{{s}}",
    "\t",
    "\n",
    "\r",
    "\0",
    "\\N",
    ") OR 1=1",
    "' OR 1=1 --",
    "; DROP TABLE t",
    "[",
    "]",
    ",",
    "NULL",
    "$$",
    "\u{2019}",
    "é",
    "\u{7f}",
    "%27",
    "&param_s=x",
    "+",
];

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::collection::vec(prop::sample::select(MARKS), 0..8).prop_map(|parts| parts.concat()),
        1 => any::<String>(),
    ]
}

async fn echoed(engine: &Engine, text: &str, list: &[String]) {
    let body = json!({"s": text, "f": list, "n": null, "old": text, "olds": if list.is_empty() { json!(["x"]) } else { json!(list) }});
    let reply = engine.pipe_with("echo", body.clone()).await;
    assert_eq!(reply.status, 200, "{body}: {}", reply.text());
    let row = &reply.value()[0];
    assert_eq!((&row["s"], &row["f"], &row["n"]), (&body["s"], &body["f"], &Value::Null), "{body}");
    assert_eq!((&row["old"], &row["olds"]), (&body["old"], &body["olds"]), "{body}");
    assert_eq!(row["rows"], 3, "{body}");
}

#[tokio::test]
async fn no_value_leaves_its_place() {
    let sql = "SELECT {s:String} AS s, {f:Array(String)} AS f, {n:Nullable(String)} AS n, {{old}} AS old, {{olds}} AS olds, \
        (SELECT count() FROM t WHERE origin != {s:String} OR id > 0) AS rows";
    let engine = engine(json!([pipe("echo", sql)])).await;
    // drawn here, as what is asked is asked asynchronously
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let drawn = (hostile(), prop::collection::vec(hostile(), 0..4));
    for _ in 0..150 {
        let (text, list) = drawn.new_tree(&mut runner).unwrap().current();
        echoed(&engine, &text, &list).await;
    }
    let long = "'\\".repeat(30 << 10);
    echoed(&engine, &long, &[]).await;
    assert_eq!(engine.says("SELECT count() FROM t").await, "3");
}
