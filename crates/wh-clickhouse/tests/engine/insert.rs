//! Inserts that go well and inserts that ClickHouse refuses.

use crate::{Rig, frames, insert, of, table};
use bytes::Bytes;
use std::sync::Arc;
use wh_clickhouse::{Failure, Insert, Kind, ServerSettings};
use wh_types::{Class, Encoding, frame};

#[tokio::test]
async fn frames_of_either_encoding_are_stored_end_to_end() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id").await;
    let t = table("t");
    for encoding in [Encoding::Zstd, Encoding::Lz4] {
        let rows: Vec<String> =
            (0..300).map(|id| format!(r#"{{"id":{id},"s":"{}"}}"#, "é\\n".repeat(id % 200))).collect();
        let done = rig.client.insert(Insert { encoding, ..of(&t, &frames(encoding, &rows)) }).await.unwrap();
        assert_eq!(done.written_rows, Some(300), "{encoding:?}");
        assert!(done.query_id.is_some());
    }
    assert_eq!(rig.sql("SELECT count(), uniqExact(id), max(length(s)) FROM t").await, "600\t300\t597");
}

#[tokio::test]
async fn one_batch_is_one_part_and_a_token_is_stored_once() {
    let rig = Rig::new().await;
    rig.sql(
        "CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 100",
    )
    .await;
    rig.sql("SYSTEM STOP MERGES t").await;
    let plain: String = (0..10_000).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    let frames = [frame::encode(Encoding::Zstd, plain.as_bytes()).unwrap()];
    let t = table("t");
    // smaller than the batch, as a profile may have it: the pinned size wins
    rig.client.learn(Arc::new(ServerSettings::from_iter([("max_insert_block_size_bytes", "1000")])));
    let settings = [("min_insert_block_size_rows".to_owned(), "10".to_owned())];
    for token in ["a", "b", "a", "b", "a"] {
        let one = Insert { rows: 10_000, token: Some(token), settings: &settings, ..of(&t, &frames) };
        rig.client.insert(one).await.unwrap();
    }
    let parts = rig.sql("SELECT count() FROM system.parts WHERE database = currentDatabase() AND active").await;
    assert_eq!((rig.sql("SELECT count() FROM t").await, parts), ("20000".into(), "2".into()));
}

#[tokio::test]
async fn any_name_of_a_table_and_a_column_works() {
    let rig = Rig::new().await;
    let columns = ["a.b", "c`d", "e\\f", "é 'g'", "{h:String}", "i"];
    for name in ["plain", "a.b", "we`ird", "back\\slash", "событие", " ", "{x:Identifier}", "a+b%20&c=d"] {
        let quoted = wh_clickhouse::sql::quoted(name);
        let list = columns.map(|column| format!("{} Int32", wh_clickhouse::sql::quoted(column))).join(", ");
        rig.sql(&format!("CREATE TABLE {quoted} ({list}) ENGINE = Memory")).await;
        let row = r#"{"a.b":1,"c`d":2,"e\\f":3,"é 'g'":4,"{h:String}":5}"#;
        let named: Vec<String> = columns[..5].iter().map(|&column| column.to_owned()).collect();
        let (t, rows) = (table(name), frames(Encoding::Zstd, &[row]));
        rig.client.insert(Insert { columns: Some(&named), ..of(&t, &rows) }).await.unwrap();
        rig.client.insert(of(&t, &rows)).await.unwrap();
        let stored = rig.sql(&format!("SELECT * FROM {quoted}")).await;
        assert_eq!(stored, "1\t2\t3\t4\t5\t0\n1\t2\t3\t4\t5\t0", "{name}");
    }
}

#[tokio::test]
async fn a_list_of_columns_longer_than_a_request_line_works() {
    let rig = Rig::new().await;
    let names: Vec<String> = (0..2_000).map(|n| format!("column_with_a_long_name_{n}")).collect();
    let list = names.iter().map(|name| format!("{name} UInt8")).collect::<Vec<_>>().join(", ");
    rig.sql(&format!("CREATE TABLE wide ({list}) ENGINE = Memory")).await;
    let wide = table("wide");
    for encoding in [Encoding::Zstd, Encoding::Lz4] {
        let rows = frames(encoding, &[format!("{{\"{}\":7}}", names[1_999])]);
        rig.client.insert(Insert { columns: Some(&names), encoding, ..of(&wide, &rows) }).await.unwrap();
    }
    assert_eq!(rig.sql("SELECT sum(column_with_a_long_name_1999) FROM wide").await, "14");
}

#[tokio::test]
async fn rows_keep_absent_null_and_default_apart() {
    let rig = Rig::new().await;
    rig.sql(
        "CREATE TABLE t (id UInt64, a Nullable(Int32) DEFAULT 7, b Int32 DEFAULT 9, raw String EPHEMERAL, \
         n UInt64 DEFAULT length(raw), m UInt64 MATERIALIZED id * 2, x UInt64 ALIAS id + 1) ENGINE = MergeTree ORDER BY id",
    )
    .await;
    let columns: Vec<String> = ["id", "a", "b", "raw", "n"].map(String::from).into();
    let rows = [
        r#"{"id":1}"#,
        r#"{"id":2,"a":null}"#,
        r#"{"id":3,"b":null}"#,
        r#"{"id":4,"a":5,"b":6,"raw":"abc"}"#,
        r#"{"id":18446744073709551615,"n":3}"#,
    ];
    let (t, frames) = (table("t"), frames(Encoding::Zstd, &rows));
    rig.client.insert(Insert { columns: Some(&columns), ..of(&t, &frames) }).await.unwrap();
    let stored = rig.sql("SELECT id, a, b, n, m FROM t ORDER BY id LIMIT 4").await;
    assert_eq!(stored, "1\t7\t9\t0\t2\n2\t\\N\t9\t0\t4\n3\t7\t9\t0\t6\n4\t5\t6\t3\t8");
    assert_eq!(rig.sql("SELECT max(id) FROM t").await, "18446744073709551615", "no digit is lost");
    for computed in [r#"{"id":1,"m":5}"#, r#"{"id":1,"x":5}"#] {
        let error = rig.insert("t", &[computed]).await.unwrap_err();
        assert!(error.unknown_column() && error.code() == Some(117), "{error}");
    }
}

#[tokio::test]
async fn a_bad_row_stores_nothing_and_is_named() {
    let rig = Rig::new().await;
    rig.sql(
        "CREATE TABLE t (id UInt64, f FixedString(2), d DateTime, e Enum8('a' = 1), CONSTRAINT c CHECK id < 100) \
         ENGINE = MergeTree ORDER BY id",
    )
    .await;
    rig.client.learn(Arc::new(ServerSettings::from_iter([("input_format_column_name_matching_mode", "auto")])));
    let good = r#"{"id":1,"d":"2001/01/01 00:47"}"#;
    for (bad, code) in [
        (r#"{"id":"x"}"#, 27),
        (r#"{"id":-1}"#, 72),
        (r#"{"id":1.5}"#, 27),
        (r#"{"id":1,"f":"abc"}"#, 131),
        (r#"{"id":1,"d":"yesterday"}"#, 41),
        (r#"{"id":1,"e":"b"}"#, 691),
        (r#"{"id":1,"nope":1}"#, 117),
        (r#"{"ID":1}"#, 117),
        (r#"{"id":1,"id":2}"#, 117),
        (r#"{"id":100}"#, 469),
        ("[1]", 27),
    ] {
        let error = rig.insert("t", &[good, good, good, bad, good]).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (Kind::Exception, Some(code)), "{bad}: {error}");
        assert_eq!((error.failure(), error.class()), (Failure::Rejected, Class::Invalid), "{bad}");
        assert_eq!(error.row_hint(), Some(4), "{bad}: {error}");
        assert!(!error.in_doubt() && !error.splittable());
    }
    assert_eq!(rig.sql("SELECT count() FROM t").await, "0");
    rig.insert("t", &[good]).await.unwrap();
}

#[tokio::test]
async fn a_row_far_down_a_large_batch_is_named_by_its_number() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE t (id UInt64, s String) ENGINE = Memory").await;
    let block = |n: usize| {
        let row = |i: usize| {
            let id = if n * 500 + i == 7_123 { "oops".into() } else { i.to_string() };
            format!("{{\"id\":\"{id}\",\"s\":\"{}\"}}\n", "x".repeat(200))
        };
        frame::encode(Encoding::Zstd, (0..500).map(row).collect::<String>().as_bytes()).unwrap()
    };
    let frames: Vec<Bytes> = (0..20).map(block).collect();
    let error = rig.client.insert(Insert { rows: 10_000, ..of(&table("t"), &frames) }).await.unwrap_err();
    assert_eq!((error.code(), error.row_hint()), (Some(27), Some(7_124)));
    assert_eq!(rig.sql("SELECT count() FROM t").await, "0");
}

#[tokio::test]
async fn what_is_not_there_is_told_apart() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE t (id UInt64) ENGINE = Memory").await;
    let error = rig.insert("nope", &["{}"]).await.unwrap_err();
    assert_eq!((error.code(), error.class()), (Some(60), Class::NotFound));
    assert!(error.unknown_table() && !error.table_scoped() && error.failure() == Failure::Rejected);
    let (t, rows, columns) = (table("t"), frames(Encoding::Zstd, &[r#"{"id":1}"#]), ["id".into(), "gone".into()]);
    let error = rig.client.insert(Insert { columns: Some(&columns), ..of(&t, &rows) }).await.unwrap_err();
    assert!(error.code() == Some(16) && error.unknown_column() && !error.unknown_table(), "{error}");
    rig.sql(&format!("DROP DATABASE {}", rig.database.name())).await;
    let error = rig.insert("t", &["{}"]).await.unwrap_err();
    assert_eq!((error.code(), error.class()), (Some(81), Class::NotFound));
    assert!(error.unknown_table());
    rig.database
        .endpoint()
        .clone()
        .database("default")
        .query(&format!("CREATE DATABASE {}", rig.database.name()))
        .await
        .unwrap();
}

#[tokio::test]
async fn too_many_partitions_split_and_slow_merges_do_not() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE p (id UInt64) ENGINE = MergeTree ORDER BY id PARTITION BY id").await;
    rig.sql("CREATE TABLE m (id UInt64) ENGINE = MergeTree ORDER BY id SETTINGS parts_to_throw_insert = 1").await;
    rig.sql("SYSTEM STOP MERGES m").await;
    let rows: Vec<String> = (0..150).map(|id| format!("{{\"id\":{id}}}")).collect();
    let frames = frames(Encoding::Zstd, &rows);
    let partitions = rig.client.insert(of(&table("p"), &frames)).await.unwrap_err();
    assert_eq!((partitions.code(), partitions.failure()), (Some(252), Failure::Unavailable));
    assert!(partitions.splittable(), "{partitions}");
    rig.client.insert(of(&table("p"), &frames[..75])).await.unwrap();

    rig.insert("m", &[r#"{"id":1}"#]).await.unwrap();
    let merges = rig.insert("m", &[r#"{"id":2}"#]).await.unwrap_err();
    assert_eq!((merges.code(), merges.failure()), (Some(252), Failure::Unavailable));
    assert!(!merges.splittable() && merges.table_scoped(), "{merges}");
}

#[tokio::test]
async fn too_little_memory_splits() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s").await;
    let row = format!("{{\"s\":\"{}\"}}\n", "x".repeat(500_000)).repeat(40);
    let frames = [frame::encode(Encoding::Zstd, row.as_bytes()).unwrap()];
    let settings = [("max_memory_usage".to_owned(), "10000000".to_owned())];
    let t = table("t");
    let error = rig.client.insert(Insert { rows: 40, settings: &settings, ..of(&t, &frames) }).await.unwrap_err();
    assert_eq!((error.code(), error.failure(), error.splittable()), (Some(241), Failure::Unavailable, true), "{error}");
    insert(&rig.client, "t", &[r#"{"s":"y"}"#]).await.unwrap();
}

#[tokio::test]
async fn a_server_that_inserts_asynchronously_by_default_does_not_for_us() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id").await;
    rig.insert("t", &[r#"{"id":1}"#]).await.unwrap();
    rig.sql("SYSTEM FLUSH LOGS").await;
    let kinds = "SELECT DISTINCT Settings['async_insert'], Settings['input_format_parallel_parsing'] FROM system.query_log \
                 WHERE current_database = currentDatabase() AND query_kind = 'Insert' AND type = 'QueryFinish'";
    assert_eq!(rig.sql(kinds).await, "0\t0");
}
