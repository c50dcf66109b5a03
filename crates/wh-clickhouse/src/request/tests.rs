//! Requests as they go out; nothing is sent.

use super::*;
use crate::Options;
use http_body::Body;
use std::collections::HashMap;
use wh_types::{Encoding, Table};

const PURPOSE: Purpose = Purpose { op: "test", effect: true };

fn target() -> Target {
    Options { user: "u".into(), password: Some("hush".into()), ..Options::default() }.target().unwrap()
}

fn pairs(request: &Request<Pieces>) -> HashMap<String, String> {
    let query = request.uri().query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

fn insert_of<'a>(table: &'a Table, frames: &'a [Bytes]) -> Insert<'a> {
    Insert { table, columns: None, encoding: Encoding::Zstd, frames, rows: 2, token: Some("t1"), settings: &[] }
}

#[test]
fn an_insert_pins_what_changes_meaning_and_sends_its_frames_as_they_are() {
    let (table, frames) = (Table::new("a`b\\c").unwrap(), [Bytes::from_static(b"one"), Bytes::from_static(b"two")]);
    let known = ServerSettings::from_iter([("async_insert", "1"), ("input_format_column_name_matching_mode", "auto")]);
    let request = insert(PURPOSE, &target(), "db", Some(&known), &insert_of(&table, &frames)).unwrap();
    let pairs = pairs(&request);
    assert_eq!(pairs["query"], r"INSERT INTO `a\`b\\c` FORMAT JSONEachRow");
    for (name, value) in [
        ("database", "db"),
        ("async_insert", "0"),
        ("date_time_input_format", "best_effort"),
        ("input_format_null_as_default", "1"),
        ("input_format_skip_unknown_fields", "0"),
        ("input_format_column_name_matching_mode", "match_case"),
        ("input_format_parallel_parsing", "0"),
        ("max_insert_block_size", "1048449"),
        ("insert_deduplication_token", "t1"),
    ] {
        assert_eq!(pairs.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!pairs.contains_key("max_insert_block_size_bytes"), "the server does not know it");
    assert_eq!(request.headers()["content-encoding"], "zstd");
    assert_eq!(request.body().size_hint().exact(), Some(6), "a known length");
    assert!(!request.uri().to_string().contains("hush"));
    assert!(!format!("{:?}", request.headers()).contains("hush"));
}

#[test]
fn a_server_that_is_not_known_yet_gets_only_what_every_version_knows() {
    let (table, frames) = (Table::new("t").unwrap(), [Bytes::from_static(b"x")]);
    let one = Insert { rows: 5_000_000, token: None, ..insert_of(&table, &frames) };
    let pairs = pairs(&insert(PURPOSE, &target(), "db", None, &one).unwrap());
    for absent in
        ["input_format_column_name_matching_mode", "max_insert_block_size_bytes", "insert_deduplication_token"]
    {
        assert!(!pairs.contains_key(absent), "{absent}");
    }
    assert_eq!(pairs["max_insert_block_size"], "5000001", "always one block");
}

#[test]
fn a_statement_too_long_for_the_line_is_a_frame_before_the_rows() {
    let (table, frames) = (Table::new("t").unwrap(), [Bytes::from_static(b"rows")]);
    let columns: Vec<String> = (0..2_000).map(|n| format!("column_{n}")).collect();
    for encoding in [Encoding::Zstd, Encoding::Lz4] {
        let one = Insert { columns: Some(&columns), encoding, ..insert_of(&table, &frames) };
        let request = insert(PURPOSE, &target(), "db", None, &one).unwrap();
        assert!(!pairs(&request).contains_key("query"));
        assert!(request.body().size_hint().exact().unwrap() > 4);
    }
    let none = Insert { columns: Some(&[]), ..insert_of(&table, &frames) };
    assert_eq!(insert(PURPOSE, &target(), "db", None, &none).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn a_read_is_read_only_unless_its_user_is_already() {
    let read = Query::read("SELECT {x:String}").param("x", "a\tb\\").setting("max_threads", "1").format("JSONEachRow");
    let plain = pairs(&query(PURPOSE, &target(), "db", None, false, &read).unwrap());
    for (name, value) in [
        ("readonly", "2"),
        ("cancel_http_readonly_queries_on_client_close", "1"),
        ("param_x", "a\\tb\\\\"),
        ("max_threads", "1"),
        ("default_format", "JSONEachRow"),
    ] {
        assert_eq!(plain.get(name).map(String::as_str), Some(value), "{name}");
    }
    let locked = ServerSettings::from_iter([("readonly", "1"), ("http_write_exception_in_output_format", "1")]);
    let locked = pairs(&query(PURPOSE, &target(), "db", Some(&locked), true, &read).unwrap());
    for absent in ["readonly", "http_write_exception_in_output_format", "enable_http_compression"] {
        assert!(!locked.contains_key(absent), "{absent}");
    }
    let write = pairs(&query(PURPOSE, &target(), "db", None, false, &Query::any("DROP TABLE t")).unwrap());
    assert!(!write.contains_key("readonly"));
}

#[test]
fn parameters_beyond_the_line_are_a_form_and_beyond_that_are_refused() {
    let read = |length| Query::read("SELECT {x:String}").param("x", "é".repeat(length));
    let request = query(PURPOSE, &target(), "db", None, false, &read(60_000)).unwrap();
    assert!(request.headers()["content-type"].to_str().unwrap().starts_with("multipart/form-data"));
    assert!(!pairs(&request).contains_key("param_x") && pairs(&request).contains_key("readonly"));
    let error = query(PURPOSE, &target(), "db", None, false, &read(70_000)).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.message().contains("\"param_x\" is longer"), "{error}");
    let settings = Query::read("SELECT 1").setting("x", "y".repeat(70_000));
    let error = query(PURPOSE, &target(), "db", None, false, &settings).unwrap_err();
    assert!(error.kind() == Kind::Invalid && error.message().contains("request line"), "{error}");
}
