//! Forms of answers: what they hold, how numbers are written, what is compressed, what is too much.

use crate::{
    engine::Engine,
    rig::{Reply, Setup, post},
};
use http::Request;
use serde_json::{Value, json};
use std::io::Read;
use wh_api::TenantLimits;

const TABLE: &str = "CREATE TABLE t (id UInt64, price Decimal(38, 2), ratio Float64, s String, n Nullable(Int64)) ENGINE = MergeTree ORDER BY id";
const FILL: &str = "INSERT INTO t VALUES (1875924584784080993, 12345678901234567890.12, nan, 'a,\"b\\nc', NULL), (18446744073709551615, 1, 0.1, 'é', -9223372036854775808)";

async fn ask(engine: &Engine, path: &str, headers: &[(&str, &str)], query: &Value) -> Reply {
    let mut request: Request<_> = post(&format!("/v1/query?table=t{path}"), "application/json", query.to_string());
    for (name, value) in headers {
        request.headers_mut().append(name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
    }
    engine.rig.send(request).await
}

#[tokio::test]
async fn numbers_keep_their_digits_in_every_form() {
    let engine = Engine::new(&[TABLE, FILL]).await;
    let query = json!({"select_all": true, "order_by": [{"column": "id"}]});
    let bare = r#"{"id":1875924584784080993,"price":12345678901234567890.12,"ratio":null,"s":"a,\"b\nc","n":null}"#;
    let quoted = r#"{"id":"18446744073709551615","price":"1","ratio":0.1,"s":"é","n":"-9223372036854775808"}"#;
    let reply = ask(&engine, "", &[], &query).await;
    assert!(reply.text().starts_with(&format!("[{bare},")), "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("vary"), Some("X-Tenant-ID, Accept, Accept-Encoding"));
    assert_eq!(ask(&engine, "&numbers=number", &[], &query).await.text(), reply.text());
    let reply = ask(&engine, "&numbers=string", &[], &query).await;
    assert!(reply.text().ends_with(&format!(",{quoted}]")), "{}", reply.text());
    for (path, headers) in [
        ("&format=ndjson", &[][..]),
        ("", &[("accept", "application/x-ndjson")]),
        ("", &[("accept", "application/jsonl, */*;q=0.1")]),
    ] {
        let reply = ask(&engine, path, headers, &query).await;
        assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
        let lines: Vec<_> = reply.text().lines().collect();
        assert_eq!((lines.len(), lines[0]), (2, bare));
    }
    let reply = ask(&engine, "&format=ndjson&numbers=string", &[], &query).await;
    assert_eq!(reply.text().lines().nth(1), Some(quoted));
    let reply = ask(&engine, "", &[("accept", "text/csv")], &query).await;
    assert_eq!(reply.header("content-type"), Some("text/csv"));
    let text = "\"id\",\"price\",\"ratio\",\"s\",\"n\"\n1875924584784080993,12345678901234567890.12,nan,\"a,\"\"b\nc\",\\N\n\
                18446744073709551615,1,0.1,\"é\",-9223372036854775808\n";
    assert_eq!(reply.text(), text);
    let reply = ask(&engine, "&format=arrow", &[], &query).await;
    assert_eq!(reply.header("content-type"), Some("application/vnd.apache.arrow.stream"));
    let body = &reply.body;
    assert!(
        body.starts_with(&[0xff; 4]) && body.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
        "a stream with its end"
    );
    assert!(memchr::memmem::find(body, &18_446_744_073_709_551_615_u64.to_le_bytes()).is_some());
    let nothing = ask(&engine, "&format=ndjson", &[], &json!({})).await;
    assert_eq!((nothing.status.as_u16(), nothing.text()), (200, ""));
}

#[tokio::test]
async fn a_form_that_is_not_there_is_refused() {
    let engine = Engine::new(&[TABLE]).await;
    let query = json!({"columns": "id"});
    for (path, headers, outcome) in [
        ("", &[("accept", "text/html")][..], (406, "accept.unsupported")),
        ("&format=xml", &[], (400, "request.invalid")),
        ("&fromat=csv", &[], (400, "request.invalid")),
        ("&numbers=float", &[], (400, "request.invalid")),
        ("&format=csv&numbers=string", &[], (400, "request.invalid")),
    ] {
        let reply = ask(&engine, path, headers, &query).await;
        assert_eq!(reply.outcome(), (outcome.0, Some(outcome.1.to_owned())), "{path}: {}", reply.text());
    }
    let paged = json!({"columns": "id", "order_by": [{"column": "id"}], "cursor": ""});
    let reply = ask(&engine, "&format=csv", &[], &paged).await;
    assert_eq!(reply.outcome(), (400, Some("query.invalid".into())), "{}", reply.text());
    assert_eq!(ask(&engine, "&format=ndjson", &[], &paged).await.status, 200);
}

#[tokio::test]
async fn what_is_streamed_is_whole_or_refused_and_never_cut() {
    let limits = TenantLimits { max_result_rows: 10, ..TenantLimits::default() };
    let fill = "INSERT INTO t (id) SELECT number FROM numbers(11)";
    let engine = Engine::with(&[TABLE, fill], Setup { limits, ..Setup::default() }).await;
    for format in ["ndjson", "csv", "arrow"] {
        let path = format!("&format={format}");
        for query in [json!({"columns": "id"}), json!({"columns": "id", "limit": 11})] {
            let reply = ask(&engine, &path, &[], &query).await;
            assert_eq!(reply.outcome(), (400, Some("clickhouse.limit_exceeded".into())), "{format} {query}: {reply:?}");
            assert!(reply.text().contains("more than 10 rows"), "{}", reply.text());
        }
        for query in [
            json!({"columns": "id", "limit": 10}),
            json!({"columns": "id", "filters": [{"column": "id", "op": "lt", "value": 10}]}),
        ] {
            let reply = ask(&engine, &path, &[], &query).await;
            assert_eq!((reply.status.as_u16(), reply.header("x-truncated")), (200, None), "{format} {query}");
        }
    }
}

#[tokio::test]
async fn answers_are_compressed_for_those_who_read_it() {
    let fill = "INSERT INTO t (id, s) SELECT number, repeat('wavehouse ', 20) FROM numbers(1000)";
    let engine = Engine::new(&[TABLE, fill]).await;
    let query = json!({"columns": ["id", "s"], "order_by": [{"column": "id"}]});
    for format in ["json", "ndjson", "csv", "arrow"] {
        let path = format!("&format={format}");
        let plain = ask(&engine, &path, &[], &query).await;
        assert_eq!(plain.header("content-encoding"), None);
        let none = ask(&engine, &path, &[("accept-encoding", "gzip;q=0, *;q=0")], &query).await;
        assert_eq!((none.status.as_u16(), none.header("content-encoding")), (200, None), "nothing else is asked for");
        for encoding in ["gzip", "zstd"] {
            let reply = ask(&engine, &path, &[("accept-encoding", encoding)], &query).await;
            assert_eq!(reply.header("content-encoding"), Some(encoding), "{format}");
            let mut unpacked = Vec::new();
            let read = match encoding {
                "gzip" => flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut unpacked),
                _ => zstd::stream::read::Decoder::new(&reply.body[..]).unwrap().read_to_end(&mut unpacked),
            };
            read.unwrap();
            assert!(unpacked == plain.body && reply.body.len() * 5 < plain.body.len(), "{format} {encoding}");
        }
    }
    let refused = ask(&engine, "", &[("accept-encoding", "gzip")], &json!({"columns": "nope"})).await;
    assert_eq!(refused.outcome(), (400, Some("column.not_found".into())), "an error is readable as it is");
}
