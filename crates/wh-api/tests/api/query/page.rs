//! Pages: together they are the whole, whatever orders them and however many rows are equal in it.

use crate::{engine::Engine, rig::Setup};
use serde_json::{Value, json};
use wh_api::TenantLimits;

const TABLE: &str = "CREATE TABLE t (id UInt64, small Int8, big UInt256, price Decimal(18, 2), ok Bool, origin LowCardinality(String), \
    fixed FixedString(3), kind Enum8('a' = 2, 'b' = 1), day Date, old Date32, at DateTime64(6, 'Asia/Tokyo'), seen DateTime, \
    uid UUID, ip4 IPv4, ip6 IPv6) ENGINE = MergeTree ORDER BY id";
const FILL: &str = "INSERT INTO t SELECT number, toInt8(number % 7) - 3, if(number % 2 = 0, number, \
    115792089237316195423570985008687907853269984665640564039457584007913129639935 - number), number / 4 - 3, number % 2, \
    concat('O\\'', toString(number % 6), '\\n'), toString(number % 10), 1 + number % 2, toDate('2001-01-01') + number % 9, \
    toDate32('1950-01-01') + number % 9, toDateTime64('2001-01-01 09:00:00.000001', 6, 'Asia/Tokyo') + number % 11, \
    toDateTime('2001-01-01 00:00:00', 'UTC') + number % 11, generateUUIDv4(number), toIPv4('1.2.3.4') + number % 5, \
    toIPv6('::1'), FROM numbers(40)";

/// Every page of a query, and the most rows of one.
async fn pages(engine: &Engine, query: &Value) -> (Vec<Value>, usize) {
    let (mut rows, mut largest, mut cursor) = (Vec::new(), 0, String::new());
    for _ in 0..100 {
        let mut page = query.clone();
        page["cursor"] = cursor.into();
        let reply = engine.query(page).await;
        assert_eq!(reply.status, 200, "{query}: {}", reply.text());
        let page = reply.value().as_array().unwrap().clone();
        largest = largest.max(page.len());
        rows.extend(page);
        match reply.header("x-next-cursor") {
            Some(next) => cursor = next.to_owned(),
            None => return (rows, largest),
        }
    }
    panic!("{query} has no end");
}

#[tokio::test]
async fn pages_together_are_the_whole() {
    let engine = Engine::new(&[TABLE, FILL]).await;
    for column in [
        "id", "small", "big", "price", "ok", "origin", "fixed", "kind", "day", "old", "at", "seen", "uid", "ip4", "ip6",
    ] {
        for dir in ["asc", "desc"] {
            let columns = if column == "id" { vec!["id"] } else { vec!["id", column] };
            let query = json!({"columns": columns,
                "order_by": [{"column": column, "dir": dir}], "limit": 3});
            let (rows, _) = pages(&engine, &query).await;
            let values: Vec<_> = rows.iter().map(|row| row[column].to_string()).collect();
            let whole = engine.query(json!({"columns": column, "order_by": query["order_by"]})).await.value();
            let expected: Vec<_> = whole.as_array().unwrap().iter().map(|row| row[column].to_string()).collect();
            assert_eq!(values, expected, "{column} {dir}");
            let mut ids: Vec<_> = rows.iter().map(|row| row["id"].as_u64().unwrap()).collect();
            ids.sort_unstable();
            assert_eq!(ids, (0..40).collect::<Vec<_>>(), "{column} {dir}: each row once");
        }
    }
}

#[tokio::test]
async fn equal_rows_are_never_parted_and_groups_have_pages_too() {
    let engine = Engine::new(&[TABLE, FILL]).await;
    let by_two = json!({"columns": ["ok", "small", "id"], "limit": 4,
        "order_by": [{"column": "ok", "dir": "desc"}, {"column": "small"}]});
    let (rows, largest) = pages(&engine, &by_two).await;
    assert_eq!((rows.len(), largest), (40, 6), "a page grows by the rows that are equal to its last");
    let by_id = json!({"columns": ["ok", "id"], "limit": 4, "order_by": [{"column": "ok"}, {"column": "id"}]});
    assert_eq!(pages(&engine, &by_id).await.1, 4);
    let groups = json!({"columns": "origin", "group_by": "origin", "aggregations": [{"fn": "max", "column": "id", "alias": "last"}],
        "filters": [{"column": "id", "op": "lt", "value": 30}], "having": [{"column": "last", "op": "gt", "value": 24}],
        "order_by": [{"column": "last", "dir": "desc"}], "limit": 2});
    let last: Vec<_> = pages(&engine, &groups).await.0.iter().map(|row| row["last"].as_u64().unwrap()).collect();
    assert_eq!(last, [29, 28, 27, 26, 25]);
    let buckets = json!({"time_bucket": {"column": "at", "interval": "2s"}, "aggregations": [{"fn": "count", "alias": "rows"}],
        "order_by": [{"column": "time_bucket", "dir": "desc"}], "limit": 1});
    let (rows, largest) = pages(&engine, &buckets).await;
    assert_eq!((rows.len(), largest), (6, 1));
    assert_eq!(rows.iter().map(|row| row["rows"].as_u64().unwrap()).sum::<u64>(), 40);
}

#[tokio::test]
async fn a_page_without_end_is_refused_and_told() {
    let limits = TenantLimits { max_result_rows: 10, ..TenantLimits::default() };
    let engine = Engine::with(&[TABLE, FILL], Setup { limits, ..Setup::default() }).await;
    let all_equal = json!({"columns": ["ip6", "id"], "order_by": [{"column": "ip6"}], "cursor": "", "limit": 3});
    let reply = engine.query(all_equal).await;
    assert_eq!(reply.outcome(), (400, Some("clickhouse.limit_exceeded".into())), "{}", reply.text());
    assert!(reply.text().contains("more than 13 rows"), "{}", reply.text());
    let reply = engine.query(json!({"columns": "id", "order_by": [{"column": "id"}], "cursor": "AAAA"})).await;
    assert_eq!(reply.outcome(), (400, Some("query.invalid".into())), "{}", reply.text());
}
