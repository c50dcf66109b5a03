//! Records in, rows in the queue: their texts, their outcomes, their order.

use crate::rig::{Rig, Setup, post, rows_of};
use std::io::Write;
use wh_api::{ApiOptions, Mode, TenantLimits};
use wh_types::{Encoding, frame};

#[tokio::test]
async fn a_row_keeps_its_own_text() {
    let rig = Rig::new();
    let own = r#"{"id":18446744073709551615,"note":"a \u00e9 \"b\"  c","n":-0,"tags":["x, y"],"ça va":"é"}"#;
    assert_eq!(rig.json(own).await.text(), r#"{"total":1,"accepted":1,"duplicates":0,"rejected":0,"results":[]}"#);
    rig.json("  {\r\n  \"id\" : 1.0e0 ,\n\t\"note\": \" x \" }\r\n").await;
    rig.lines("\u{feff}{\"id\":1}\r\n\r\n  \n{\"id\": 2}\n{\"id\":3}").await;
    rig.json("\u{feff}[ {\"id\":4} , {\"note\":null,\"id\":5} ]").await;
    rig.json("[]").await;
    let rows = rig.rows().await;
    let expected = [own, r#"{"id":1}"#, r#"{"id":2}"#, r#"{"id":3}"#, r#"{"id":4}"#, r#"{"note":null,"id":5}"#];
    assert_eq!(rows, expected, "a float for a whole number is refused");
}

#[tokio::test]
async fn numbers_for_a_datetime64_are_quoted_with_their_digits() {
    let rig = Rig::new();
    let body = "{\"id\":1,\"at\":1750478400}\n{\"at\": 1750478400.50 , \"id\":2}\n{\"id\":3,\"at\":\"2025-06-21\"}\n\
                {\"id\":4,\"at\":null}\n{\"id\":5,\"at\":1750478400123}\n{\"id\":6,\"at\":-1}\n{\"id\":7,\"at\":1e9}";
    let reply = rig.lines(body).await;
    assert_eq!((reply.status.as_u16(), reply.counts()), (207, [7, 4, 3]));
    let refused = |index, code: &str| (index, "rejected".to_owned(), code.to_owned());
    let codes = ["column.range", "column.value", "column.value"];
    assert_eq!(reply.results(), [refused(4, codes[0]), refused(5, codes[1]), refused(6, codes[2])]);
    let expected = [
        r#"{"id":1,"at":"1750478400"}"#,
        r#"{"at":"1750478400.50","id":2}"#,
        r#"{"id":3,"at":"2025-06-21"}"#,
        r#"{"id":4,"at":null}"#,
    ];
    assert_eq!(rig.rows().await, expected);

    let limits = TenantLimits { table_modes: [("t".into(), Mode::Lenient)].into(), ..TenantLimits::default() };
    let rig = Rig::with(Setup { limits, ..Setup::default() });
    assert_eq!(rig.json(r#"{"at":1750478400123}"#).await.counts(), [1, 1, 0], "lenient lets ClickHouse decide");
    assert_eq!(rig.rows().await, [r#"{"at":"1750478400123"}"#]);
}

#[tokio::test]
async fn a_bad_record_changes_nothing_for_the_others() {
    let rig = Rig::new();
    let lines = [
        r#"{"id":1}"#,
        r#"{"id":2,"nope":1}"#,
        r#"{"id":3}{"id":33}"#,
        r#"{"id":4"#,
        r#"7"#,
        r#"{"id":5,"raw":"seen"}"#,
        r#"{"id":6,"id":6}"#,
        r#"{"note":"no id"}"#,
        r#"{"id":8,"tags":{}}"#,
        r#"{"id":9}"#,
    ];
    let reply = rig.lines(lines.join("\n")).await;
    assert_eq!((reply.status.as_u16(), reply.counts()), (207, [10, 3, 7]));
    let codes = [
        (1, "column.not_found"),
        (2, "json.trailing"),
        (3, "json.truncated"),
        (4, "json.not_object"),
        (6, "json.duplicate_key"),
        (7, "column.required"),
        (8, "column.type"),
    ];
    assert_eq!(reply.results(), codes.map(|(index, code)| (index, "rejected".to_owned(), code.to_owned())));
    let entries = reply.value()["results"].clone();
    assert_eq!(entries[0]["column"], "nope");
    assert_eq!(entries[6]["column"], "tags");
    assert!(entries[6]["reason"].as_str().unwrap().contains("Array(String)"), "{entries}");
    let at = lines[..2].iter().map(|line| line.len() + 1).sum::<usize>() + 8;
    assert!(entries[1]["reason"].as_str().unwrap().ends_with(&format!("at byte {at}")), "{entries}");
    assert_eq!(rig.rows().await, [lines[0], lines[5], lines[9]]);
}

#[tokio::test]
async fn a_line_that_is_not_utf8_is_one_refused_record() {
    let rig = Rig::new();
    let reply = rig.lines(b"{\"id\":1}\n{\"id\":2,\"note\":\"\xff\"}\n{\"id\":3}\n".to_vec()).await;
    assert_eq!((reply.status.as_u16(), reply.counts()), (207, [3, 2, 1]));
    assert!(reply.text().contains("at byte 25"), "{}", reply.text());
}

#[tokio::test]
async fn an_array_is_checked_to_its_end_before_anything_is_published() {
    let rig = Rig::new();
    let rows: Vec<String> = (0..2_000).map(|n| format!("{{\"id\":{n}}}")).collect();
    let whole = format!("[{}]", rows.join(","));
    for cut in [1, 2, 5, whole.len() / 2] {
        let reply = rig.json(whole[..whole.len() - cut].to_owned()).await;
        assert_eq!(reply.status, 400, "{cut}");
        assert_eq!(reply.counts(), [0, 0, 0]);
    }
    assert_eq!(rig.rows().await, Vec::<String>::new());
    assert_eq!(rig.json(whole).await.counts(), [2_000, 2_000, 0]);
    let blocks = rig.queued().await;
    assert_eq!(blocks.iter().flat_map(rows_of).collect::<Vec<_>>(), rows, "in order");
    assert_eq!(blocks.iter().map(|delivery| delivery.block.rows).collect::<Vec<_>>(), [500; 4]);
}

#[tokio::test]
async fn results_list_what_was_asked_for_up_to_their_bound() {
    let rig = Rig::new();
    let request = |results: &str, body: &str| {
        post(&format!("/v1/ingest?table=t{results}"), "application/x-ndjson", body.to_owned())
    };
    let body = "{\"id\":1}\n{}\n{\"id\":3}";
    let all = rig.send(request("&results=all", body)).await.results();
    assert_eq!(all.iter().map(|entry| entry.1.as_str()).collect::<Vec<_>>(), ["accepted", "rejected", "accepted"]);
    assert_eq!(rig.send(request("&results=failed", body)).await.results().len(), 1);
    let good = rig.send(request("&results=all", "{\"id\":1}")).await;
    assert_eq!((good.status.as_u16(), good.results().len()), (200, 1));

    let bad = format!("{{\"id\":1}}\n{}", "{}\n".repeat(10_500));
    let reply = rig.send(request("", &bad)).await;
    assert_eq!((reply.status.as_u16(), reply.counts()), (207, [10_501, 1, 10_500]));
    assert_eq!((reply.results().len(), &reply.value()["results_truncated"]), (10_000, &true.into()));
}

#[tokio::test]
async fn compressed_bodies_are_taken() {
    let rig = Rig::new();
    let body = "{\"id\":1}\n".repeat(1_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body.as_bytes()).unwrap();
    let bodies = [
        ("gzip", gzip.finish().unwrap()),
        ("zstd", frame::encode(Encoding::Zstd, body.as_bytes()).unwrap().to_vec()),
        ("lz4", frame::encode(Encoding::Lz4, body.as_bytes()).unwrap().to_vec()),
    ];
    for (coding, body) in bodies {
        let mut request = post("/v1/ingest?table=t", "application/x-ndjson", body);
        request.headers_mut().insert("content-encoding", coding.parse().unwrap());
        assert_eq!(rig.send(request).await.counts(), [1_000, 1_000, 0], "{coding}");
    }
    assert_eq!(rig.rows().await.len(), 3_000);
}

#[tokio::test]
async fn blocks_are_cut_by_rows_and_bytes_and_carry_their_envelope() {
    let options = ApiOptions { encoding: Encoding::Lz4, ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    let wide = format!("{{\"id\":1,\"note\":\"{}\"}}\n", "x".repeat(100 << 10)).repeat(7);
    let huge = format!("{{\"id\":2,\"note\":\"{}\"}}\n", "y".repeat(700 << 10));
    let mut request = post("/v1/ingest?table=a.b%2Fc", "application/x-ndjson", [wide, huge].concat());
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    request.headers_mut().insert("traceparent", trace.parse().unwrap());
    assert_eq!(rig.send(request).await.counts(), [8, 8, 0]);
    let blocks = rig.queued().await;
    assert_eq!(blocks.iter().map(|delivery| delivery.block.rows).collect::<Vec<_>>(), [5, 2, 1]);
    for (n, delivery) in (1..).zip(&blocks) {
        let block = &delivery.block;
        assert_eq!((block.table.as_str(), block.encoding), ("a.b/c", Encoding::Lz4));
        assert_eq!(block.trace.as_deref(), Some(trace));
        let chain = block.chain.as_ref().unwrap();
        assert_eq!((&chain.process[..7], chain.process.len(), chain.n), ("test-1.", 23, n));
        assert!(block.received.as_nanos() > 0);
    }
}

#[tokio::test]
async fn the_number_of_records_has_a_bound() {
    let limits = TenantLimits { mode: Mode::Lenient, ..TenantLimits::default() };
    let rig = Rig::with(Setup { limits, ..Setup::default() });
    let reply = rig.json(format!("[{}{{}}]", "{},".repeat(1_000_000))).await;
    assert_eq!(reply.outcome(), (413, Some("body.too_many_records".into())));
    assert_eq!(rig.rows().await, Vec::<String>::new());
}
