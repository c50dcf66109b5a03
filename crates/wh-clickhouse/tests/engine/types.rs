//! The type model against the engine: every verdict of `accepts` is put to the test.

use crate::{Rig, frames, of, table};
use futures::{StreamExt, stream};
use std::sync::Arc;
use wh_clickhouse::{
    Insert,
    types::{Accept, JsonKind, Type, accepts},
};
use wh_types::Encoding;

/// Types as one writes them in a definition.
const TYPES: &[&str] = &[
    "Int8",
    "Int64",
    "Int256",
    "UInt8",
    "UInt64",
    "UInt128",
    "Float32",
    "Float64",
    "BFloat16",
    "Decimal(9, 2)",
    "Decimal(76, 10)",
    "Bool",
    "String",
    "FixedString(3)",
    "UUID",
    "IPv4",
    "IPv6",
    "Date",
    "Date32",
    "DateTime",
    "DateTime('Europe/Berlin')",
    "DateTime64(3)",
    "DateTime64(9, 'UTC')",
    "Time",
    "Time64(3)",
    "Enum8('a' = 1, 'b' = 2)",
    "Enum16('zero' = 0, 'a' = 1)",
    "Nullable(Int32)",
    "Nullable(String)",
    "Nullable(DateTime)",
    "Nullable(Enum8('a' = 1))",
    "LowCardinality(String)",
    "LowCardinality(Nullable(String))",
    "LowCardinality(UInt64)",
    "Array(Int32)",
    "Array(Nullable(Int32))",
    "Array(String)",
    "Array(Array(Int32))",
    "Array(Tuple(a Int32))",
    "Array(JSON)",
    "Map(String, Int32)",
    "Map(Int32, String)",
    "Map(String, Array(Int32))",
    "Tuple()",
    "Tuple(Int32, String)",
    "Tuple(a Int32, b String)",
    "Nested(a Int32, b String)",
    "JSON",
    "JSON(a Int32)",
    "Variant(Int32, String)",
    "Variant(Array(Int32), UUID)",
    "Dynamic",
    "Point",
    "Ring",
    "LineString",
    "MultiLineString",
    "Polygon",
    "MultiPolygon",
    "Geometry",
    "SimpleAggregateFunction(sum, Int64)",
    "SimpleAggregateFunction(anyLast, Nullable(String))",
    "AggregateFunction(sum, Int64)",
    "IntervalDay",
];

/// Values of each kind, such that every type finds one it takes if it takes the kind at all.
fn samples(kind: JsonKind) -> &'static [&'static str] {
    match kind {
        JsonKind::Null => &["null"],
        JsonKind::Bool => &["true", "false"],
        JsonKind::Integer => &["0", "1", "-1", "2", "300", "1700000000"],
        JsonKind::Float => &["1.5", "1.0", "1e2", "0.5", "1E0", "-2.25", "1700000000.5"],
        JsonKind::String => &[
            r#""""#,
            r#""1""#,
            r#""1.5""#,
            r#""a""#,
            r#""abc""#,
            r#""true""#,
            r#""2020-01-01""#,
            r#""2020-01-01 00:00:00""#,
            r#""12:34:56""#,
            r#""1.2.3.4""#,
            r#""::1""#,
            r#""61f0c404-5cb3-11e7-907b-a6006ad3dba0""#,
            r#""[1]""#,
            r#""{\"a\":1}""#,
            r#""(1,2)""#,
            r#""null""#,
        ],
        JsonKind::Array => &[
            "[]",
            "[1]",
            r#"[1,"x"]"#,
            r#"["a"]"#,
            "[null]",
            "[1.5,2.5]",
            "[[1]]",
            "[[0,0],[1,1]]",
            "[[[0,0],[1,1]]]",
            "[[[[0,0],[1,1]]]]",
            r#"[{"a":1}]"#,
        ],
        JsonKind::Object => &[
            "{}",
            r#"{"a":1}"#,
            r#"{"a":"x"}"#,
            r#"{"1":"x"}"#,
            r#"{"a":1,"b":"x"}"#,
            r#"{"a":[1]}"#,
            r#"{"a":[1],"b":["x"]}"#,
            r#"{"z":1}"#,
        ],
    }
}

const ALLOW: &str = "SETTINGS allow_suspicious_low_cardinality_types = 1, allow_suspicious_variant_types = 1, \
                     flatten_nested = 0, enable_time_time64_type = 1";

/// Which samples the engine takes, and whether what it stored can be read.
async fn taken(rig: &Rig, name: &str, kind: JsonKind) -> (Vec<&'static str>, bool) {
    let (t, mut taken) = (table(name), Vec::new());
    let mut readable = true;
    for sample in samples(kind) {
        let rows = frames(Encoding::Zstd, &[format!(r#"{{"k":1,"v":{sample}}}"#)]);
        if rig.client.insert(Insert { rows: 1, ..of(&t, &rows) }).await.is_ok() {
            taken.push(*sample);
            readable &= rig.database.query(&format!("SELECT v FROM {name} FORMAT JSONEachRow")).await.is_ok();
            rig.sql(&format!("TRUNCATE TABLE {name}")).await;
        }
    }
    (taken, readable)
}

#[tokio::test]
async fn every_verdict_is_the_engines() {
    let rig = Arc::new(Rig::new().await);
    let verdicts = stream::iter(TYPES.iter().enumerate().map(|(at, text)| {
        let rig = rig.clone();
        async move {
            let name = format!("t{at}");
            rig.sql(&format!("CREATE TABLE {name} (k UInt8, v {text}) ENGINE = Memory {ALLOW}")).await;
            let column = format!(
                "SELECT type FROM system.columns WHERE database = currentDatabase() AND table = '{name}' AND name = 'v' \
                 FORMAT TSVRaw"
            );
            let ty = Type::parse(&rig.sql(&column).await);
            let mut wrong = Vec::new();
            for kind in JsonKind::ALL {
                let (taken, readable) = taken(&rig, &name, kind).await;
                let right = match accepts(&ty, kind) {
                    Accept::Yes => !taken.is_empty() && readable,
                    // refused, or taken so that nothing can be read any more
                    Accept::No(_) => taken.is_empty() || !readable,
                    Accept::CannotTell => true,
                };
                if !right {
                    wrong.push(format!("{text}: {kind:?} is {:?}, the engine takes {taken:?}", accepts(&ty, kind)));
                }
            }
            if matches!(ty, Type::Opaque(_)) {
                wrong.push(format!("{text} is not modelled"));
            }
            wrong
        }
    }))
    .buffer_unordered(4)
    .concat()
    .await;
    assert!(verdicts.is_empty(), "{verdicts:#?}");
}

#[tokio::test]
async fn null_in_an_enumeration_without_zero_would_spoil_the_table() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE t (k UInt8, v Enum8('a' = 1)) ENGINE = MergeTree ORDER BY k").await;
    rig.insert("t", &[r#"{"k":1,"v":null}"#]).await.unwrap();
    let error = rig.database.query("SELECT v FROM t").await.unwrap_err().to_string();
    assert!(error.contains("691"), "the reason why this null is refused: {error}");
    rig.sql("TRUNCATE TABLE t").await;
    rig.insert("t", &[r#"{"k":1}"#]).await.unwrap();
    assert_eq!(rig.sql("SELECT v FROM t").await, "a", "left out it is the first name");
}

#[tokio::test]
async fn types_of_a_running_server_are_all_read() {
    let rig = Rig::new().await;
    let types = rig.sql("SELECT DISTINCT type FROM system.columns FORMAT TSVRaw").await;
    let unknown: Vec<&str> = types.lines().filter(|text| matches!(Type::parse(text), Type::Opaque(_))).collect();
    assert!(types.lines().count() > 20 && unknown.is_empty(), "{unknown:?}");
}
