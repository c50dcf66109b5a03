//! CSV and TSV: rows as ClickHouse itself reads them, outcomes by record, and what is held meanwhile.

use crate::{
    engine::Engine,
    rig::{Reply, Rig, Setup, post},
};
use std::time::Duration;
use wh_api::{ApiOptions, Mode, TenantLimits};
use wh_mq::{
    Kind,
    faulty::{Fault, Op},
};

const CSV: &str = "text/csv; header=present";
const TSV: &str = "text/tab-separated-values; header=present";

#[tokio::test]
async fn lines_of_cells_become_rows_and_outcomes() {
    let rig = Rig::new();
    let body =
        "note,id,tags\r\n\"a, \"\"b\"\"\",18446744073709551615,\"[\"\"x\"\", \"\"y\"\"]\"\r\n\\N,2,\r\n,x,\r\nc,3\r\n";
    let reply = rig.post(CSV, body).await;
    assert_eq!((reply.status.as_u16(), reply.counts()), (207, [4, 2, 2]), "{}", reply.text());
    let expected = [r#"{"note":"a, \"b\"","id":18446744073709551615,"tags":["x","y"]}"#, r#"{"note":null,"id":2}"#];
    assert_eq!(rig.rows().await, expected);
    let results = reply.value()["results"].clone();
    assert_eq!(results[1]["code"], "csv.cells");
    let offsets: Vec<_> = results.as_array().unwrap().iter().map(|entry| entry["offset"].as_u64().unwrap()).collect();
    assert_eq!(offsets, [body.find(",x,").unwrap() as u64, body.find("c,3").unwrap() as u64]);

    let body = "id\tnote\n1\ta\\tb\n2\t\n3\t\\N";
    assert_eq!(rig.post(TSV, body).await.counts(), [3, 3, 0]);
    let expected = [r#"{"id":1,"note":"a\tb"}"#, r#"{"id":2,"note":""}"#, r#"{"id":3,"note":null}"#];
    assert_eq!(rig.rows().await, expected);

    let reply = rig.post(CSV, "id,note\n").await;
    assert_eq!((reply.status.as_u16(), reply.counts()), (200, [0, 0, 0]), "a header alone is an empty batch");
}

#[tokio::test]
async fn cells_are_read_to_their_end_before_anything_is_published() {
    let rig = Rig::new();
    let rows: String = (0..20_000).map(|n| format!("{n},x\n")).collect();
    let reply = rig.post(CSV, format!("id,note\n{rows}1,\"x\n")).await;
    assert_eq!(reply.outcome(), (400, Some("csv.malformed".into())));
    assert_eq!(rig.rows().await, Vec::<String>::new());
    assert_eq!(rig.post(CSV, format!("id,note\n{rows}")).await.counts(), [20_000, 20_000, 0]);
    let stored = rig.rows().await;
    assert!(stored.iter().enumerate().all(|(n, row)| *row == format!("{{\"id\":{n},\"note\":\"x\"}}")), "in order");
    assert_eq!(stored.len(), 20_000);
}

#[tokio::test]
async fn pieces_behind_a_failed_one_are_not_attempted() {
    let rig = Rig::new();
    let wide = "x".repeat(1_000);
    let rows: String = (0..8_000).map(|n| format!("{n},{wide}\n")).collect();
    rig.script.next(Op::Publish, Fault::Fail(Kind::Unavailable));
    let ok = rig.post(CSV, format!("id,note\n{rows}")).await;
    assert_eq!(ok.counts(), [8_000, 8_000, 0], "what is certainly not stored is tried again");

    let options = ApiOptions { publish_timeout: Duration::from_millis(50), ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    for _ in 0..1_000 {
        rig.script.next(Op::Publish, Fault::Fail(Kind::Unavailable));
    }
    let reply = rig.post(CSV, format!("id,note\nnone,x\n{rows}")).await;
    assert_eq!((reply.status.as_u16(), reply.counts()), (503, [8_001, 0, 1]), "{}", &reply.text()[..300]);
    assert!(reply.results().iter().skip(1).all(|(_, status, _)| status == "not_attempted"));
    assert!(reply.headers.contains_key("retry-after"));
}

/// What ClickHouse's own reading of a body stores is what ours does, for types where both take the same spellings.
#[tokio::test]
async fn rows_are_what_clickhouses_own_reading_stores() {
    let columns = "i Int64, u UInt256, f Float64, d Decimal(18, 4), b Bool, s String, n Nullable(String), \
                   l LowCardinality(String), x FixedString(3), g UUID, a4 IPv4, a6 IPv6, day Date, t DateTime('UTC'), \
                   t64 DateTime64(3, 'UTC'), e Enum8('one' = 1, 'two' = 2), k Int32 DEFAULT 42, q Nullable(Int32)";
    let create = |table: &str| format!("CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY tuple()");
    let limits = TenantLimits { mode: Mode::Lenient, ..TenantLimits::default() };
    let (ours, theirs) = (create("t"), create("theirs"));
    let engine = Engine::with(&[&ours, &theirs], Setup { limits, ..Setup::default() }).await;
    let csv = "-1,115792089237316195423570985008687907853269984665640564039457584007913129639935,1e-3,12.5000,true,\"a \"\"b\"\", c\",\
               \\N,lc,abc,61f0c404-5cb3-11e7-907b-a6006ad3dba0,1.2.3.4,::1,2026-01-02,2026-01-02 03:04:05,\
               2026-01-02 03:04:05.678,two,7,\\N\n\
               9223372036854775807,0,nan,-0.0001,false,\"line\nfeed\",\"\",\"\\N\",xyz,61f0c4045cb311e7907ba6006ad3dba0,\
               255.255.255.255,fe80::1,1970-01-01,1970-01-01 00:00:00,1970-01-01 00:00:00.000,one,,5\n\
                 5 ,\"12\",\"inf\", 3.25 ,1,  trimmed\t,' single ',é,\"é\",61f0c404-5cb3-11e7-907b-a6006ad3dba0,\"8.8.8.8\",\
               ::ffff:1.2.3.4,\"2149-06-06\",1750478400,\"2025-06-21T04:00:00.5Z\",\"one\",,-0\n";
    let tsv = "-1\t7\t0.1\t12.5\ttrue\ta\\tb\\\\c\\n\\'\\x41\\0\t\\N\tlc\tabc\t61f0c404-5cb3-11e7-907b-a6006ad3dba0\t1.2.3.4\t::1\t\
               2026-01-02\t2026-01-02 03:04:05\t2026-01-02 03:04:05.678\ttwo\t7\t\\N\n\
               2\t0\t-1.5e300\t0\tfalse\t\t\t\\\\N\tx\\ty\t61f0c404-5cb3-11e7-907b-a6006ad3dba0\t0.0.0.0\t::\t1970-01-01\t\
               1970-01-01 00:00:00\t2026-01-02 03:04:05\tone\t1\t5\n";
    for (format, media, body) in [("CSV", "text/csv", csv), ("TSV", "text/tab-separated-values", tsv)] {
        for table in ["t", "theirs"] {
            engine.database.query(&format!("TRUNCATE TABLE {table}")).await.unwrap();
        }
        let settings = "SETTINGS date_time_input_format = 'best_effort', input_format_csv_detect_header = 0, \
                        input_format_tsv_detect_header = 0";
        engine.database.query(&format!("INSERT INTO theirs {settings} FORMAT {format}\n{body}")).await.unwrap();
        let records = engine.database.query("SELECT count() FROM theirs").await.unwrap();
        let reply: Reply = engine.rig.send(post("/v1/ingest?table=t", media, body)).await;
        assert_eq!(reply.status, 200, "{format}: {}", reply.text());
        let rows = engine.rig.rows().await;
        assert_eq!(rows.len().to_string(), records.trim());
        let settings = "SETTINGS date_time_input_format = 'best_effort', input_format_null_as_default = 1";
        engine
            .database
            .query(&format!("INSERT INTO t {settings} FORMAT JSONEachRow\n{}", rows.join("\n")))
            .await
            .unwrap();
        let read = |table: &str| format!("SELECT * FROM {table} ORDER BY i FORMAT JSONEachRow");
        let (ours, theirs) =
            (engine.database.query(&read("t")).await.unwrap(), engine.database.query(&read("theirs")).await.unwrap());
        for (ours, theirs) in ours.lines().zip(theirs.lines()) {
            assert_eq!(ours, theirs, "{format}");
        }
        assert_eq!(ours.lines().count(), theirs.lines().count());
    }
}
