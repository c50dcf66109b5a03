//! Structured queries over the real engine.

mod broken;
mod form;
pub(crate) mod kept;
mod life;
mod page;
mod planned;
mod reference;
mod runs;
mod unread;
mod wire;

use crate::{
    engine::Engine,
    rig::{Setup, post},
};
use serde_json::{Value, json};
use wh_api::TenantLimits;

const TABLE: &str = "CREATE TABLE t (id UInt64, delay Nullable(Int32), price Decimal(18, 2), ratio Float64, ok Bool, \
    origin LowCardinality(String), kind Enum8('a' = 1, 'b' = 2), day Date, at DateTime64(3, 'Asia/Tokyo'), seen DateTime, \
    uid UUID, ip IPv4, fixed FixedString(3), big UInt256, `we``ird \\\\ name` String, raw String EPHEMERAL, \
    twice UInt64 ALIAS id * 2) ENGINE = MergeTree ORDER BY id";
const ROWS: &str = "INSERT INTO t (id, delay, price, ratio, ok, origin, kind, day, at, seen, uid, ip, fixed, big, `we``ird \\\\ name`) VALUES \
    (1, -5, 3.15, 0.5, true, 'DTW', 'a', '2001-01-01', '2001-01-01 09:00:00', '2001-01-01 00:00:00', '61f0c404-5cb3-11e7-907b-a6006ad3dba0', '1.2.3.4', 'abc', 1, 'it''s'), \
    (2, 10, 0.5, 1e10, false, 'O''Hare\n', 'b', '2001-01-02', '2001-01-02 09:00:00.500', '2001-01-02 00:00:00', '61f0c404-5cb3-11e7-907b-a6006ad3dba1', '1.2.3.5', 'abd', 2, ''), \
    (18446744073709551615, NULL, -1, 0.1, true, '%_\\\\', 'a', '2001-01-03', '2001-01-03 09:00:00', '2001-01-03 00:00:00', '61f0c404-5cb3-11e7-907b-a6006ad3dba2', '9.9.9.9', 'abe', 115792089237316195423570985008687907853269984665640564039457584007913129639935, '')";

async fn ids(engine: &Engine, filter: Value) -> Vec<u64> {
    let query = json!({"columns": ["id"], "filters": filter, "order_by": [{"column": "id"}]});
    let reply = engine.query(query).await;
    assert_eq!(reply.status, 200, "{filter}: {}", reply.text());
    assert_eq!(reply.header("x-cache"), Some("BYPASS"));
    reply.value().as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn every_kind_of_column_can_be_compared() {
    const MAX: u64 = u64::MAX;
    let engine = Engine::new(&[TABLE, ROWS]).await;
    let one = |column: &str, op: &str, value: Value| json!([{"column": column, "op": op, "value": value}]);
    for (filter, expected) in [
        (one("id", "eq", json!(MAX)), vec![MAX]),
        (one("id", "gt", json!(-1)), vec![1, 2, MAX]),
        (one("id", "eq", json!("2")), vec![2]),
        (one("delay", "lt", json!(300)), vec![1, 2]),
        (one("delay", "gte", json!(10)), vec![2]),
        (one("delay", "lt", json!(10.5)), vec![1, 2]),
        (one("price", "eq", json!(3.15)), vec![1]),
        (one("price", "lte", json!("0.5")), vec![2, MAX]),
        (one("price", "gt", json!(3.135)), vec![1]),
        (one("ratio", "gt", json!(1e9)), vec![2]),
        (one("ok", "eq", json!(true)), vec![1, MAX]),
        (one("ok", "neq", json!(1)), vec![2]),
        (one("origin", "eq", json!("O'Hare\n")), vec![2]),
        (one("origin", "eq", json!("%_\\")), vec![MAX]),
        (one("origin", "like", json!("D%")), vec![1]),
        (one("origin", "in", json!(["DTW", "O'Hare\n", "' OR 1=1 --"])), vec![1, 2]),
        (one("kind", "eq", json!("b")), vec![2]),
        (one("kind", "in", json!(["a"])), vec![1, MAX]),
        (one("day", "gte", json!("2001-01-02")), vec![2, MAX]),
        (one("day", "eq", json!("2001-01-02T00:00:00Z")), vec![2]),
        (one("at", "eq", json!("2001-01-01T00:00:00Z")), vec![1]),
        (one("at", "eq", json!("2001-01-01 09:00:00")), vec![1]),
        (one("at", "eq", json!("2001-01-02T00:00:00.500Z")), vec![2]),
        (one("at", "gt", json!(978_307_200)), vec![2, MAX]),
        (one("seen", "lte", json!("2001-01-02T01:00:00+01:00")), vec![1, 2]),
        (one("seen", "in", json!(["2001-01-01T00:00:00Z", "2001-01-03T00:00:00Z"])), vec![1, MAX]),
        (one("uid", "eq", json!("61f0c404-5cb3-11e7-907b-a6006ad3dba1")), vec![2]),
        (one("ip", "eq", json!("9.9.9.9")), vec![MAX]),
        (one("fixed", "eq", json!("abd")), vec![2]),
        (one("we`ird \\ name", "eq", json!("it's")), vec![1]),
        (one("twice", "eq", json!(4)), vec![2]),
        (json!([{"column": "ok", "op": "eq", "value": true}, {"column": "delay", "op": "lt", "value": 0}]), vec![1]),
    ] {
        assert_eq!(ids(&engine, filter.clone()).await, expected, "{filter}");
    }
    let big = format!(
        r#"[{{"column":"big","op":"eq","value":{}}}]"#,
        "115792089237316195423570985008687907853269984665640564039457584007913129639935"
    );
    let body = format!(r#"{{"columns":["id","big"],"filters":{big}}}"#);
    let reply = engine.rig.send(post("/v1/query?table=t", "application/json", body)).await;
    assert!(reply.status == 200 || reply.outcome().1.as_deref() == Some("query.invalid"), "{}", reply.text());
}

#[tokio::test]
async fn a_range_of_time_is_inclusive_and_takes_ages() {
    let engine = Engine::new(&[TABLE, ROWS]).await;
    for column in ["at", "seen", "day"] {
        let range = |since: &str, until: Value| {
            json!({"columns": "id", "order_by": [{"column": "id"}],
            "time_range": {"column": column, "since": since, "until": until}})
        };
        let reply = engine.query(range("2001-01-02T00:00:00Z", json!("2001-01-03T00:00:00Z"))).await;
        assert_eq!(reply.value().as_array().unwrap().len(), 2, "{column}: {}", reply.text());
        let reply = engine.query(range("24h", Value::Null)).await;
        assert_eq!((reply.status.as_u16(), reply.text()), (200, "[]"), "{column}");
        let reply = engine.query(range("2000w", Value::Null)).await;
        assert_eq!(reply.value().as_array().unwrap().len(), 3, "{column}: {}", reply.text());
    }
}

#[tokio::test]
async fn rows_are_grouped_ordered_and_written_with_all_their_digits() {
    let engine = Engine::new(&[TABLE, ROWS]).await;
    let reply = engine
        .query(json!({"columns": ["ok"], "group_by": ["ok"], "order_by": [{"column": "rows", "dir": "desc"}],
            "aggregations": [{"fn": "COUNT", "alias": "rows"}, {"fn": "max", "column": "id"}]}))
        .await;
    let text = r#"[{"ok":true,"rows":2,"max(id)":18446744073709551615},{"ok":false,"rows":1,"max(id)":2}]"#;
    assert_eq!(reply.text(), text);
    let reply = engine.query(json!({"select_all": true, "limit": 1, "order_by": [{"column": "id"}]})).await;
    assert!(
        reply.text().contains(r#""at":"2001-01-01T00:00:00.000Z","seen":"2001-01-01T00:00:00Z""#),
        "{}",
        reply.text()
    );
    assert!(reply.text().contains(r#""twice":2"#) && !reply.text().contains("raw"));
    let reply = engine
        .query(json!({"columns": ["big", "price"], "order_by": [{"column": "id", "dir": "desc"}], "limit": 1}))
        .await;
    let text = r#"[{"big":115792089237316195423570985008687907853269984665640564039457584007913129639935,"price":-1}]"#;
    assert_eq!(reply.text(), text);
    assert_eq!(engine.query(json!({})).await.text(), "[]");
    for function in [
        "sum",
        "avg",
        "min",
        "countDistinct",
        "uniq",
        "uniqExact",
        "any",
        "anyLast",
        "groupArray",
        "median",
        "quantile",
        "stddevPop",
        "stddevSamp",
        "varPop",
        "varSamp",
    ] {
        let reply = engine.query(json!({"aggregations": [{"fn": function, "column": "delay"}]})).await;
        assert_eq!(reply.status, 200, "{function}: {}", reply.text());
    }
}

#[tokio::test]
async fn what_is_cut_off_is_said() {
    let limits = TenantLimits { max_result_rows: 10, ..TenantLimits::default() };
    let fill = "INSERT INTO t SELECT number FROM numbers(11)";
    let engine =
        Engine::with(&["CREATE TABLE t (id UInt64) ENGINE = Memory", fill], Setup { limits, ..Setup::default() }).await;
    let rows = |reply: &crate::rig::Reply| reply.value().as_array().unwrap().len();
    for (query, count, truncated) in [
        (json!({"columns": "id"}), 10, Some("rows=10")),
        (json!({"columns": "id", "limit": 1000}), 10, Some("rows=10")),
        (json!({"columns": "id", "limit": 10}), 10, None),
        (json!({"columns": "id", "limit": 3}), 3, None),
        (json!({"columns": "id", "filters": [{"column": "id", "op": "lt", "value": 10}]}), 10, None),
    ] {
        let reply = engine.query(query.clone()).await;
        assert_eq!((rows(&reply), reply.header("x-truncated")), (count, truncated), "{query}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_still_make_json() {
    let fill = "INSERT INTO t VALUES (unhex('FFFE41'))";
    let engine = Engine::new(&["CREATE TABLE t (s String) ENGINE = Memory", fill]).await;
    let reply = engine.query(json!({"columns": "s"})).await;
    assert_eq!(reply.value(), json!([{"s": "\u{fffd}A"}]));
}

#[tokio::test]
async fn what_clickhouse_refuses_is_the_askers_fault_where_it_is() {
    let engine = Engine::new(&[TABLE]).await;
    let reply =
        engine.query(json!({"columns": ["id", "ok"], "aggregations": [{"fn": "count"}], "group_by": ["id"]})).await;
    assert_eq!(reply.outcome(), (400, Some("query.invalid".into())));
    let reply = engine.query(json!({"aggregations": [{"fn": "sum", "column": "origin"}]})).await;
    assert_eq!(reply.outcome(), (400, Some("clickhouse.rejected".into())));
    for ours in [engine.database.name(), "SELECT", "version", "DB::Exception"] {
        assert!(!reply.text().contains(ours), "{ours} is ours to know: {}", reply.text());
    }
    let reply = engine.query(json!({"columns": "id", "filters": [{"column": "uid", "op": "eq", "value": "x"}]})).await;
    assert_eq!(reply.outcome(), (400, Some("clickhouse.rejected".into())), "{}", reply.text());
    let long = "x".repeat(200 << 10);
    let reply =
        engine.query(json!({"columns": "id", "filters": [{"column": "origin", "op": "eq", "value": long}]})).await;
    assert_eq!(reply.outcome(), (400, Some("query.invalid".into())), "a value beyond what ClickHouse takes");
}

#[tokio::test]
async fn an_error_names_the_column_of_a_value_and_none_of_our_own_names() {
    let engine = Engine::new(&[TABLE]).await;
    let long = "x".repeat(140 * 1024);
    for (column, value) in [
        ("uid", json!("no uuid")),
        ("ip", json!("1.2.3")),
        ("seen", json!("no time")),
        ("origin", json!(long)),
        ("kind", json!("z")),
        ("id", json!("99999999999999999999999999999999999999999999999999999999999999999999999999999")),
    ] {
        let filters = json!([{"column": "id", "op": "eq", "value": 1}, {"column": column, "op": "eq", "value": value}]);
        let reply = engine.query(json!({"columns": ["id"], "filters": filters})).await;
        let text = reply.text();
        for ours in ["p0", "p1", "param_"] {
            assert!(!text.contains(ours), "{column}: {ours} is in {text}");
        }
        if reply.status != 200 {
            assert_eq!(reply.status, 400, "{column}: {text}");
        }
        if ["uid", "ip"].contains(&column) {
            assert!(text.contains(&format!("for column \\\"{column}\\\"")), "{column} is not named: {text}");
        }
        if ["origin", "kind"].contains(&column) {
            assert!(text.contains("filters[1].value"), "the member is not named: {text}");
        }
    }
}

#[tokio::test]
async fn a_structure_is_an_object_and_never_a_list_of_its_members() {
    let engine = Engine::new(&[TABLE]).await;
    for query in [
        json!([["id"]]),
        json!({"columns": ["id"], "filters": [["id", "eq", 1]]}),
        json!({"columns": [], "aggregations": [["count", null, "n"]]}),
        json!({"columns": ["id"], "order_by": [["id", "asc"]]}),
        json!({"columns": ["id"], "time_range": ["seen", "1d", null]}),
    ] {
        let reply = engine.query(query.clone()).await;
        assert_eq!(reply.outcome().1.as_deref(), Some("query.invalid"), "{query}: {}", reply.text());
        assert!(reply.text().contains("expected an object"), "{query}: {}", reply.text());
    }
    let body = post("/v1/ops/query", "application/json", json!(["SELECT 1"]).to_string());
    let reply = engine.rig.send(crate::rig::keyed(body)).await;
    assert_eq!(
        (reply.status.as_u16(), reply.outcome().1.as_deref()),
        (400, Some("request.invalid")),
        "{}",
        reply.text()
    );
    assert!(engine.sql("SELECT 1").await.status.is_success());
}
