//! Queries: parameters, formats, answers large and broken, cancellation.

use crate::Rig;
use futures::StreamExt;
use std::time::Duration;
use wh_clickhouse::{Client, Error, Kind, Options, Query, QueryFailure, RoleCaps, sql};
use wh_testkit::until_equal;
use wh_types::Class;

const FAILS_LATE: &str = "SELECT number, hex(rand64()) AS pad, throwIf(number = 1500000, 'boom') AS t FROM numbers(2000000) SETTINGS max_block_size = 10000";

async fn text(client: &Client, query: Query) -> Result<String, Error> {
    let body = client.query(query).await?.bytes(64 << 20).await?;
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn parameters_arrive_as_they_were_given() {
    let rig = Rig::new().await;
    for value in
        ["", "plain", "a\tb\nc\rd\\e'f\"g`h", "a+b&c=d%20é#?", "\\N", "NULL", "[1]", "\0", "{x:String}", "日本"]
    {
        let query = Query::read("SELECT hex({x:String})").param("x", value);
        let expected: String = value.bytes().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(text(&rig.client, query).await.unwrap().trim_end(), expected, "{value:?}");
        let query = Query::read("SELECT hex({x:Array(String)}[2])")
            .param_wire("x", sql::string_array(["first", value, "it's"]));
        assert_eq!(text(&rig.client, query).await.unwrap().trim_end(), expected, "{value:?} in an array");
    }
    let typed = Query::read("SELECT {a:UInt64}, {b:DateTime64(3)}, {c:Nullable(Int8)}, {t:Identifier} FROM numbers(1)")
        .param("a", "18446744073709551615")
        .param("b", "2020-01-01 00:00:00.123")
        .param_wire("c", sql::NULL)
        .param("t", "number");
    let expected = "18446744073709551615\t2020-01-01 00:00:00.123\t\\N\t0\n";
    assert_eq!(text(&rig.client, typed).await.unwrap(), expected);
    let error = text(&rig.client, Query::read("SELECT {x:Int32}").param("x", "abc")).await.unwrap_err();
    assert_eq!(error.query_failure(RoleCaps::default()), QueryFailure::Rejected, "{error}");
}

#[tokio::test]
async fn parameters_too_long_for_a_request_line_arrive_too() {
    let rig = Rig::new().await;
    let values: Vec<String> = (0..3_000).map(|n| format!("é'\\{n}\r\n--wavehouse-0")).collect();
    let wire = sql::string_array(values.iter().map(String::as_str));
    let long = "x\t".repeat(30_000);
    let query = Query::read("SELECT length({a:Array(String)}), {a:Array(String)}[17] = {b:String}, length({c:String})")
        .param_wire("a", wire)
        .param("b", &values[16])
        .param("c", &long);
    assert_eq!(text(&rig.client, query).await.unwrap(), "3000\t1\t60000\n");
}

#[tokio::test]
async fn an_answer_says_what_it_is() {
    let rig = Rig::new().await;
    let answer = rig.client.query(Query::read("SELECT 1 AS x").format("JSONEachRow")).await.unwrap();
    assert_eq!(answer.format(), Some("JSONEachRow"));
    assert!(answer.content_type().unwrap().starts_with("application/x-ndjson"));
    assert!(answer.query_id().is_some() && answer.timezone().is_some() && answer.summary().is_some());
    assert_eq!(answer.bytes(100).await.unwrap(), "{\"x\":1}\n");
    let answer = rig.client.query(Query::read("SELECT 1 FORMAT CSV").format("JSONEachRow")).await.unwrap();
    assert_eq!(answer.format(), Some("CSV"), "the text's own format wins");
    let counted = Query { wait_end: true, ..Query::read("SELECT count() FROM numbers(1000)") };
    let answer = rig.client.query(counted).await.unwrap();
    assert_eq!(answer.summary().unwrap().read_rows, 1000);
}

#[tokio::test]
async fn statements_run_and_reads_may_not_write() {
    let rig = Rig::new().await;
    rig.client.execute("CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id").await.unwrap();
    let write = "INSERT INTO t SELECT number FROM numbers(10)";
    let error = rig.client.query(Query::read(write)).await.unwrap_err();
    assert_eq!((error.code(), error.query_failure(RoleCaps::default())), (Some(164), QueryFailure::Misconfigured));
    assert_eq!(text(&rig.client, Query::any(write)).await.unwrap(), "");
    assert_eq!(text(&rig.client, Query::read("SELECT count() FROM t")).await.unwrap(), "10\n");
    for (bad, code) in
        [("SELEC 1", 62), ("SELECT nope FROM t", 47), ("SELECT * FROM nope", 60), ("DROP TABLE nope", 60)]
    {
        let error = rig.client.execute(bad).await.unwrap_err();
        assert_eq!((error.code(), error.class().retryable()), (Some(code), false), "{error}");
        assert_eq!(error.query_failure(RoleCaps::default()), QueryFailure::Rejected);
    }
}

#[tokio::test]
async fn an_exception_after_the_data_began_is_found_compressed_or_not() {
    let rig = Rig::new().await;
    for compress in [false, true] {
        let client = Client::new(Options { compress, ..Rig::options(&rig.database) }).unwrap();
        for format in ["JSONEachRow", "JSON", "TabSeparated", "Native"] {
            let answer = client.query(Query::read(FAILS_LATE).format(format)).await.unwrap();
            let mut stream = answer.stream();
            let mut bytes = 0;
            let error = loop {
                match stream.next().await {
                    Some(Ok(piece)) => {
                        assert!(memchr::memmem::find(&piece, b"__exception__").is_none(), "no trace of it in the data");
                        bytes += piece.len();
                    }
                    Some(Err(error)) => break error,
                    None => panic!("{format}: a broken answer ended well after {bytes} bytes"),
                }
            };
            assert_eq!(
                (error.kind(), error.code(), error.status()),
                (Kind::Exception, Some(395), Some(200)),
                "{format}"
            );
            assert!(error.message().starts_with("Code: 395. DB::Exception: boom"), "{error}");
            assert!(error.message().trim_end().ends_with(')'), "nothing of the block around it: {error}");
            assert!(bytes > 1_000_000 && stream.next().await.is_none(), "{format}: {bytes}");
        }
    }
}

#[tokio::test]
async fn an_exception_while_all_data_is_still_in_the_buffer_is_found() {
    let rig = Rig::new().await;
    let small = "SELECT number, throwIf(number = 200000, 'boom') FROM numbers(300000) SETTINGS max_block_size = 1000";
    for compress in [false, true] {
        let client = Client::new(Options { compress, ..Rig::options(&rig.database) }).unwrap();
        for query in [Query::read(small), Query { wait_end: true, ..Query::read(small) }] {
            let waits = query.wait_end;
            let error = text(&client, query.format("JSONEachRow")).await.unwrap_err();
            assert_eq!((error.kind(), error.code()), (Kind::Exception, Some(395)), "{compress} {waits} {error:?}");
            assert!(error.message().starts_with("Code: 395. DB::Exception: boom"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_large_answer_is_whole_or_refused() {
    let rig = Rig::new().await;
    let rows = "SELECT number FROM numbers(3000000)";
    let expected: usize = (0..3_000_000_u32).map(|n| n.to_string().len() + 1).sum();
    for compress in [false, true] {
        let client = Client::new(Options { compress, ..Rig::options(&rig.database) }).unwrap();
        let body = client.query(Query::read(rows)).await.unwrap().bytes(expected).await.unwrap();
        assert_eq!(body.len(), expected, "compressed: {compress}");
        assert!(body.ends_with(b"\n2999999\n"));
        let error = client.query(Query::read(rows)).await.unwrap().bytes(expected - 1).await.unwrap_err();
        assert_eq!((error.kind(), error.query_failure(RoleCaps::default())), (Kind::TooLarge, QueryFailure::TooLarge));
        assert!(!error.class().retryable());
    }
}

#[tokio::test]
async fn limits_are_the_callers_when_the_caller_has_caps() {
    let rig = Rig::new().await;
    let slow = || Query::read("SELECT count() FROM numbers(100000000000) WHERE NOT ignore(sipHash64(number))");
    let error = text(&rig.client, slow().setting("max_execution_time", "0.2")).await.unwrap_err();
    assert_eq!(error.code(), Some(159));
    assert_eq!(error.query_failure(RoleCaps::default()), QueryFailure::Unavailable);
    assert_eq!(error.query_failure(RoleCaps { time: true, memory: false }), QueryFailure::Limit);
    let rows = Query::read("SELECT * FROM numbers(1000)").setting("max_result_rows", "10");
    let error = text(&rig.client, rows).await.unwrap_err();
    assert_eq!((error.code(), error.query_failure(RoleCaps::default())), (Some(396), QueryFailure::Limit));
}

async fn running(rig: &Rig, mark: &str) -> String {
    rig.sql(&format!(
        "SELECT count() FROM system.processes WHERE query LIKE '%{mark}%' AND query NOT LIKE '%processes%'"
    ))
    .await
}

#[tokio::test]
async fn a_read_that_nobody_waits_for_stops_in_clickhouse() {
    let rig = Rig::new().await;
    let within = Duration::from_secs(20);
    // before its answer began: by the end of its time, and by being dropped
    let endless =
        || Query::read("SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number), 'mark_a')");
    let error = rig.client.query(endless().timeout(Duration::from_millis(300))).await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (Kind::Timeout, Class::Unavailable));
    until_equal(within, "running reads", "0".to_owned(), || running(&rig, "mark_a")).await.unwrap();
    {
        let waiting = rig.client.query(endless());
        tokio::pin!(waiting);
        let started = until_equal(within, "running reads", "1".to_owned(), || running(&rig, "mark_a"));
        tokio::select! {
            answer = &mut waiting => panic!("it ended: {answer:?}"),
            started = started => started.unwrap(),
        }
    }
    until_equal(within, "running reads", "0".to_owned(), || running(&rig, "mark_a")).await.unwrap();
    // while its answer is read
    let rows = Query::read("SELECT number, repeat('mark_b', 20) FROM numbers(1000000000)");
    let mut stream = rig.client.query(rows).await.unwrap().stream();
    assert!(!stream.next().await.unwrap().unwrap().is_empty());
    assert_eq!(running(&rig, "mark_b").await, "1");
    drop(stream);
    until_equal(within, "running reads", "0".to_owned(), || running(&rig, "mark_b")).await.unwrap();
}

#[tokio::test]
async fn time_runs_out_in_the_middle_of_an_answer() {
    let rig = Rig::new().await;
    let rows = Query::read("SELECT number, sleepEachRow(0.01) FROM numbers(1000)")
        .setting("max_block_size", "1")
        .setting("http_response_buffer_size", "1")
        .setting("function_sleep_max_microseconds_per_block", "0");
    let answer = rig.client.query(rows.timeout(Duration::from_millis(500))).await;
    let error = match answer {
        Ok(answer) => answer.bytes(1 << 20).await.unwrap_err(),
        Err(early) => early,
    };
    assert_eq!((error.kind(), error.class()), (Kind::Timeout, Class::Unavailable), "{error:?}");
}
