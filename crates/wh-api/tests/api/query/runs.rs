//! Whatever is accepted runs: generated queries of every form, and the forms themselves.

use crate::engine::Engine;
use serde_json::{Value, json};
use wh_types::{Entropy, SeededEntropy};

const TABLE: &str = "CREATE TABLE t (id UInt64, n Nullable(Int32), big Int256, price Decimal(18, 2), ratio Float64, ok Bool, \
    origin LowCardinality(String), kind Enum8('a' = 1, 'b' = 2), day Date, old Date32, at DateTime64(3, 'Asia/Tokyo'), \
    seen DateTime, uid UUID, ip IPv6, `we``ird \\\\ {p0:String}` String, tags Array(String)) ENGINE = MergeTree ORDER BY id";
const FILL: &str = "INSERT INTO t SELECT number, if(number % 3 = 0, NULL, number), number, number / 4, number / 7, number % 2, \
    toString(number % 5), 1 + number % 2, toDate('2001-01-01') + number, toDate32('1950-01-01') + number, \
    toDateTime64('2001-01-01 09:00:00', 3, 'Asia/Tokyo') + number * 1000, toDateTime('2001-01-01 00:00:00', 'UTC') + number * 1000, \
    generateUUIDv4(number), toIPv6('::1'), 'x', [] FROM numbers(100)";

const NAMES: &[&str] = &[
    "id",
    "n",
    "big",
    "price",
    "ratio",
    "ok",
    "origin",
    "kind",
    "day",
    "old",
    "at",
    "seen",
    "uid",
    "ip",
    "we`ird \\ {p0:String}",
];
const NUMBERS: &[&str] = &["id", "n", "price", "ratio"];

fn draw(seed: u64) -> Value {
    let chance = SeededEntropy::new(seed);
    let pick = |most: usize| usize::try_from(chance.next_u64() % most as u64).unwrap();
    let name = || NAMES[pick(NAMES.len())];
    let number = || NUMBERS[pick(NUMBERS.len())];
    let mut groups: Vec<&str> = (0..pick(3)).map(|_| name()).collect();
    groups.sort_unstable();
    groups.dedup();
    let aggregation = |at: usize| {
        let alias = format!("a{at} `\\'{{p0:String}}");
        match pick(7) {
            0 => json!({"fn": "count", "alias": alias}),
            1 => json!({"fn": "argMax", "column": name(), "by": number(), "alias": alias}),
            2 => json!({"fn": "quantile", "column": number(), "level": 0.9, "alias": alias}),
            3 => json!({"fn": "max", "column": name(), "alias": alias}),
            4 => json!({"fn": "sum", "column": number(), "alias": alias}),
            5 => json!({"fn": "uniqExact", "column": name(), "alias": alias}),
            _ => json!({"fn": "avg", "column": number(), "alias": alias}),
        }
    };
    let aggregations: Vec<Value> = (0..1 + pick(3)).map(aggregation).collect();
    let mut query = json!({"columns": groups, "group_by": groups, "aggregations": aggregations});
    let output = |at: usize| aggregations[at]["alias"].clone();
    query["having"] = match pick(4) {
        0 => {
            json!([{"or": [{"column": output(0), "op": "not_null"}, {"not": {"column": output(0), "op": "is_null"}}]}])
        }
        1 => {
            let counts = aggregations
                .iter()
                .find(|one| ["count", "quantile", "sum", "avg"].contains(&one["fn"].as_str().unwrap()));
            counts.map_or(json!([]), |one| json!([{"column": one["alias"], "op": "gte", "value": -1.5}]))
        }
        _ => json!([]),
    };
    query["order_by"] = json!([{"column": output(pick(aggregations.len())), "dir": "desc"}]);
    if pick(2) == 0 {
        let column = ["day", "old", "at", "seen"][pick(4)];
        let dates = column == "day" || column == "old";
        let units: &[&str] = if dates { &["d", "w", "mo", "y"] } else { &["s", "m", "h", "d", "w", "mo", "y"] };
        query["time_bucket"] =
            json!({"column": column, "interval": format!("{}{}", 1 + pick(12), units[pick(units.len())])});
        if !dates {
            query["time_bucket"]["zone"] = ["UTC", "Europe/Paris", "Asia/Kolkata"][pick(3)].into();
        }
    }
    query
}

#[tokio::test]
async fn generated_groups_run() {
    let engine = Engine::new(&[TABLE, FILL]).await;
    let mut rows = 0;
    for seed in 0..300 {
        let query = draw(seed);
        let reply = engine.query(query.clone()).await;
        assert_eq!(reply.status, 200, "seed {seed}: {query}: {}", reply.text());
        rows += reply.value().as_array().unwrap().len();
    }
    assert!(rows > 1_000, "{rows}");
}

#[tokio::test]
async fn times_are_grouped_by_intervals_of_any_zone() {
    let engine = Engine::new(&[TABLE, FILL]).await;
    let starts = async |column: &str, interval: &str, zone: Value| {
        let mut bucket = json!({"column": column, "interval": interval, "alias": "start"});
        if !zone.is_null() {
            bucket["zone"] = zone;
        }
        let query = json!({"time_bucket": bucket, "aggregations": [{"fn": "count", "alias": "rows"}],
            "order_by": [{"column": "start"}]});
        let reply = engine.query(query).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let row = |row: &Value| (row["start"].as_str().unwrap().to_owned(), row["rows"].as_u64().unwrap());
        reply.value().as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    let at = |text: &str, rows: u64| (text.to_owned(), rows);
    // 100 rows, one every 1000 s, from midnight UTC of the first day on
    for column in ["at", "seen"] {
        let days = [at("2001-01-01T00:00:00Z", 87), at("2001-01-02T00:00:00Z", 13)];
        assert_eq!(starts(column, "1d", Value::Null).await, days, "{column}");
        let days = [at("2000-12-31T23:00:00Z", 83), at("2001-01-01T23:00:00Z", 17)];
        assert_eq!(starts(column, "1d", json!("Europe/Paris")).await, days, "{column}");
        assert_eq!(starts(column, "12h", Value::Null).await.len(), 3, "{column}");
        assert_eq!(starts(column, "1y", Value::Null).await, [at("2001-01-01T00:00:00Z", 100)], "{column}");
    }
    assert_eq!(starts("day", "2mo", Value::Null).await[0], at("2001-01-01", 59));
    assert_eq!(starts("old", "1y", Value::Null).await, [at("1950-01-01", 100)]);
    let reply = engine.query(json!({"time_bucket": {"column": "at", "interval": "1d", "zone": "No/Where"}})).await;
    assert_eq!(reply.outcome(), (400, Some("clickhouse.rejected".into())), "{}", reply.text());
}

#[tokio::test]
async fn values_are_chosen_by_others_and_groups_by_what_came_of_them() {
    let engine = Engine::new(&[TABLE, FILL]).await;
    let reply = engine
        .query(json!({"columns": "origin", "group_by": "origin", "order_by": [{"column": "origin"}],
            "aggregations": [{"fn": "argMax", "column": "id", "by": "id", "alias": "last"},
                {"fn": "argMin", "column": "kind", "by": "id", "alias": "first"},
                {"fn": "quantile", "column": "id", "level": 0, "alias": "least"}],
            "having": [{"or": [{"column": "last", "op": "gte", "value": 98}, {"column": "origin", "op": "eq", "value": "0"}]}]}))
        .await;
    let expected = json!([{"origin": "0", "last": 95, "first": "a", "least": 0}, {"origin": "3", "last": 98, "first": "b", "least": 3},
        {"origin": "4", "last": 99, "first": "a", "least": 4}]);
    assert_eq!(reply.value(), expected);
}
