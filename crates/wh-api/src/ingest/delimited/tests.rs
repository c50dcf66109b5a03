//! Cells by hand where each rule matters; against another reader of CSV; and whatever bytes come.

use super::{Dialect, Header, Piece, Sheet, Syntax};
use crate::{
    ingest::{Judge, Plan, Records, judge::Refusal},
    tenant::Mode,
};
use proptest::prelude::*;
use std::sync::Arc;
use wh_clickhouse::{Column, ColumnKind, TableSchema, types::Type};

const CSV: Syntax = Syntax::Csv;
const TSV: Syntax = Syntax::Tsv;

fn plan(columns: &[(&str, &str, ColumnKind)]) -> Plan {
    let columns = (1..).zip(columns).map(|(position, (name, ty, kind))| Column {
        name: (*name).to_owned(),
        type_text: (*ty).to_owned(),
        ty: Type::parse(ty),
        kind: *kind,
        default_expression: String::new(),
        position,
    });
    Plan::new(Arc::new(TableSchema::new("t", "MergeTree", columns.collect())), Mode::Lenient)
}

fn ordinary(columns: &[(&str, &str)]) -> Plan {
    plan(&columns.iter().map(|(name, ty)| (*name, *ty, ColumnKind::Ordinary)).collect::<Vec<_>>())
}

/// The rows, and of each refused record its number, offset, code and reason.
type Read = (Vec<String>, Vec<(u32, usize, &'static str, String)>);

fn read(plan: &Plan, syntax: Syntax, header: Header, body: &[u8], max_row: usize) -> Result<Read, Refusal> {
    let mut sheet = Sheet::begin(Dialect { syntax, header }, body, plan, max_row)?;
    let (mut judge, mut records) = (Judge::new(plan), Records::default());
    while sheet.step(&mut judge, &mut records)? {}
    let mut rows = Vec::new();
    let (mut places, mut piece) = (records.places(), Piece::default());
    loop {
        sheet.piece(&mut places, &mut judge, &mut piece);
        if piece.len() == 0 {
            break;
        }
        rows.extend(piece.rows().map(|row| String::from_utf8(row.to_vec()).unwrap()));
    }
    assert_eq!((rows.len(), rows.len() + records.rejected() as usize), (records.accepted(), records.total as usize));
    let of = |one: &crate::ingest::records::Refused| {
        (one.index, one.offset, one.refusal.code.name, one.refusal.reason.to_string())
    };
    Ok((rows, records.refusals.iter().map(of).collect()))
}

fn rows(plan: &Plan, syntax: Syntax, header: Header, body: &str) -> Vec<String> {
    let (rows, refused) = read(plan, syntax, header, body.as_bytes(), 1 << 20).unwrap();
    assert_eq!(refused, [], "{body}");
    rows
}

fn refused(plan: &Plan, syntax: Syntax, header: Header, body: &[u8]) -> &'static str {
    read(plan, syntax, header, body, 1 << 20).unwrap_err().code.name
}

#[test]
fn a_cell_becomes_json_by_its_columns_type() {
    let plan = ordinary(&[
        ("i", "UInt64"),
        ("f", "Nullable(Float64)"),
        ("b", "Bool"),
        ("s", "LowCardinality(String)"),
        ("d", "DateTime64(3)"),
        ("a", "Array(UInt8)"),
        ("m", "Map(String, UInt8)"),
    ]);
    let body = concat!(
        "18446744073709551615,-0.50,true,plain,2026-01-01 00:00:00,\"[1, 2]\",\"{\"\"k\"\": 1}\"\r\n",
        "  7 ,\\N, 0 , \"a \"\"b\"\"\nc\" ,1750478400,[],{}\n",
        "\n\r\n",
        "007,nan,yes,\"\",,,\n",
        "1,,,\"\\N\",,,"
    );
    let expected = [
        r#"{"i":18446744073709551615,"f":-0.50,"b":true,"s":"plain","d":"2026-01-01 00:00:00","a":[1,2],"m":{"k":1}}"#,
        r#"{"i":7,"f":null,"b":0,"s":"a \"b\"\nc","d":"1750478400","a":[],"m":{}}"#,
        r#"{"i":"007","f":"nan","b":"yes","s":""}"#,
        r#"{"i":1,"s":"\\N"}"#,
    ];
    let read = read(&plan, CSV, Header::Absent, body.as_bytes(), 1 << 20).unwrap();
    // which spellings ClickHouse takes is judged as for JSON
    let of_row = |n: usize| read.0.iter().find(|row| **row == expected[n]);
    for n in [0, 1, 3] {
        assert!(of_row(n).is_some(), "{n}: {read:?}");
    }
    assert_eq!(read.0.len() + read.1.len(), 4, "{read:?}");
}

#[test]
fn tsv_has_escapes_for_quotes_and_an_empty_text_for_nothing() {
    let plan = ordinary(&[("s", "String"), ("n", "Nullable(Int32)"), ("d", "Date")]);
    let body = "a\\tb\\\\\\n\\x41\\q\\0\"\t-5\t2026-01-01\n\t\\N\t\r\n\\N\t\t2026-01-01\\\n";
    let (made, bad) = read(&plan, TSV, Header::Absent, body.as_bytes(), 1 << 20).unwrap();
    assert_eq!(made[0], r#"{"s":"a\tb\\\nA\\q\u0000\"","n":-5,"d":"2026-01-01"}"#);
    assert_eq!(made[1], r#"{"s":"","n":null}"#);
    assert_eq!(made.len() + bad.len(), 3, "{made:?} {bad:?}");

    let single = ordinary(&[("s", "String")]);
    assert_eq!(rows(&single, TSV, Header::Absent, "a\n\nb\n"), [r#"{"s":"a"}"#, r#"{"s":""}"#, r#"{"s":"b"}"#]);
    assert_eq!(rows(&single, TSV, Header::Unsaid, "\nb"), [r#"{"s":""}"#, r#"{"s":"b"}"#]);
    assert_eq!(rows(&single, CSV, Header::Absent, "a\n\n\"\"\n"), [r#"{"s":"a"}"#, r#"{"s":""}"#], "as NDJSON does");
}

#[test]
fn cells_without_a_header_are_for_the_columns_that_an_insert_names() {
    let plan = plan(&[
        ("a", "String", ColumnKind::Ordinary),
        ("m", "String", ColumnKind::Materialized),
        ("l", "String", ColumnKind::Alias),
        ("e", "String", ColumnKind::Ephemeral),
        ("b \"x\"", "String", ColumnKind::Default),
    ]);
    assert_eq!(rows(&plan, CSV, Header::Absent, "1,2"), [r#"{"a":"1","b \"x\"":"2"}"#]);
    let head = "\u{feff}\"b \"\"x\"\"\",e,a\n1,2,3\n";
    for header in [Header::Present, Header::Unsaid] {
        assert_eq!(rows(&plan, CSV, header, head), [r#"{"b \"x\"":"1","e":"2","a":"3"}"#]);
    }
    assert_eq!(rows(&plan, TSV, Header::Unsaid, "x\ty\n"), [r#"{"a":"x","b \"x\"":"y"}"#]);
    assert_eq!(rows(&plan, CSV, Header::Present, "a\n"), Vec::<String>::new(), "a header alone is an empty batch");
    for (header, body, code) in [
        (Header::Present, "a,c\n1,2", "column.not_found"),
        (Header::Unsaid, "a,c\n1,2", "csv.header"),
        (Header::Present, "a,a\n1,2", "csv.header"),
        (Header::Unsaid, "a,a\n1,2", "csv.header"),
        (Header::Present, "a,b,c,d,e,f\n", "csv.header"),
        (Header::Unsaid, "\n\r\n", "body.empty"),
        (Header::Absent, "\u{feff}", "body.empty"),
    ] {
        assert_eq!(refused(&plan, CSV, header, body.as_bytes()), code, "{body}");
    }
    let (made, bad) = read(&plan, CSV, Header::Present, b"a,m\n1,2\n", 1 << 20).unwrap();
    assert_eq!((made.len(), bad[0].2), (0, "column.not_writable"));
}

#[test]
fn a_bad_line_is_one_record_and_a_bad_quote_the_whole_body() {
    let plan = ordinary(&[("i", "Int32"), ("s", "String"), ("a", "Array(String)")]);
    let body = b"1,z,[]\n2,b\n3,c,[],x\n4,\xff,[]\n5,e,[1\n6,f,['x']\n7,ok,\"[\"\"x\"\"]\"\n";
    for header in [Header::Absent, Header::Unsaid] {
        let (made, bad) = read(&plan, CSV, header, body, 1 << 20).unwrap();
        assert_eq!(made, [r#"{"i":1,"s":"z","a":[]}"#, r#"{"i":7,"s":"ok","a":["x"]}"#]);
        let told: Vec<_> = bad.iter().map(|(index, offset, code, _)| (*index, *offset, *code)).collect();
        let expected = [
            (1, 7, "csv.cells"),
            (2, 11, "csv.cells"),
            (3, 20, "json.utf8"),
            (4, 27, "column.type"),
            (5, 34, "column.type"),
        ];
        assert_eq!(told, expected, "{bad:?}");
        assert!(bad[4].3.contains("column \"a\" (Array(String)) takes JSON in a cell"), "{bad:?}");
    }
    for body in [&b"1,\"a,[]\n2,b,[]"[..], b"1,\"a\"b,[]\n", b"1,a\r,[]\n", b"1,\"a\" \"b\",[]", b"\""] {
        assert_eq!(refused(&plan, CSV, Header::Absent, body), "csv.malformed", "{}", body.escape_ascii());
    }
    let deep = format!("1,a,{}1{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(read(&plan, CSV, Header::Absent, deep.as_bytes(), 1 << 20).unwrap().1[0].2, "json.depth");
    let wide = format!("1,{},[]\n2,{},[]\n", "x".repeat(2_000), "\u{1}".repeat(300));
    let (made, bad) = read(&plan, CSV, Header::Absent, wide.as_bytes(), 1_000).unwrap();
    assert_eq!((made.len(), bad[0].2, bad[1].2), (0, "row.too_large", "row.too_large"), "{bad:?}");
}

#[test]
fn a_line_of_very_many_cells_keeps_none_of_them() {
    let plan = ordinary(&[("i", "Int32")]);
    for (syntax, cell) in [(CSV, ","), (TSV, "\t")] {
        let (made, bad) = read(&plan, syntax, Header::Unsaid, cell.repeat(1 << 20).as_bytes(), 1_000).unwrap();
        assert_eq!((made.len(), bad.len(), bad[0].3.as_str()), (0, 1, "the line has 1048577 cells, not 1"));
    }
}

#[test]
fn rows_come_in_pieces_of_a_bounded_size_and_in_order() {
    let plan = ordinary(&[("a_column_with_quite_a_long_name", "UInt32"), ("s", "String")]);
    let body: String = (0..200_000).map(|n| format!("{n},x\n")).collect();
    let mut sheet =
        Sheet::begin(Dialect { syntax: CSV, header: Header::Unsaid }, body.as_bytes(), &plan, 1 << 20).unwrap();
    let (mut judge, mut records) = (Judge::new(&plan), Records::default());
    while sheet.step(&mut judge, &mut records).unwrap() {}
    assert!(sheet.held() <= 6 << 20);
    let (mut places, mut piece, mut next, mut pieces) = (records.places(), Piece::default(), 0, 0);
    loop {
        sheet.piece(&mut places, &mut judge, &mut piece);
        if piece.len() == 0 {
            break;
        }
        assert!(piece.rows().map(<[u8]>::len).sum::<usize>() < (2 << 20) + 100);
        for row in piece.rows() {
            assert_eq!(row, format!("{{\"a_column_with_quite_a_long_name\":{next},\"s\":\"x\"}}").as_bytes());
            next += 1;
        }
        pieces += 1;
    }
    assert_eq!(next, 200_000);
    assert!(pieces > 3, "{pieces}");
}

/// A cell as it is written, and the text that it is.
fn csv_cell() -> impl Strategy<Value = (String, String)> {
    let bare = "[a-z0-9éß'\\\\.;]([a-z0-9 \\t\"'\\\\.;é]{0,8}[a-z0-9\"'.;é])?".prop_map(|text| (text.clone(), text));
    let quoted = "[a-z\", \n\r\té\\\\]{0,12}".prop_map(|text| (format!("\"{}\"", text.replace('"', "\"\"")), text));
    prop_oneof![bare, quoted].prop_filter("no null", |(written, _)| written != "\\N")
}

proptest! {
    #[test]
    fn csv_is_read_as_it_was_written_and_as_others_read_it(
        cells in proptest::collection::vec(proptest::collection::vec(csv_cell(), 3), 1..8), crlf in any::<bool>()
    ) {
        let plan = ordinary(&[("a", "String"), ("b", "String"), ("c", "String")]);
        let line = |row: &Vec<(String, String)>| row.iter().map(|cell| cell.0.clone()).collect::<Vec<_>>().join(",");
        let body = cells.iter().map(line).collect::<Vec<_>>().join(if crlf { "\r\n" } else { "\n" });
        let made = rows(&plan, CSV, Header::Absent, &body);
        prop_assert_eq!(made.len(), cells.len());
        let mut other = csv_core::Reader::new();
        let mut rest = body.as_bytes();
        for (row, written) in made.iter().zip(&cells) {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            for (name, cell) in ["a", "b", "c"].iter().zip(written) {
                prop_assert_eq!(row[name].as_str().unwrap(), &cell.1);
                let mut out = [0; 256];
                let (_, read, wrote) = other.read_field(rest, &mut out);
                rest = &rest[read..];
                prop_assert_eq!(std::str::from_utf8(&out[..wrote]).unwrap(), &cell.1);
            }
        }
    }

    #[test]
    fn tsv_is_read_as_it_was_written(
        cells in proptest::collection::vec(proptest::collection::vec("[a-z\"\\\\\t\n\r\u{0}\u{8}é]{0,10}", 2), 1..8)
    ) {
        let plan = ordinary(&[("a", "String"), ("b", "String")]);
        let escape = |text: &String| {
            let mut out = String::new();
            for c in text.chars() {
                match c {
                    '\\' => out.push_str("\\\\"), '\t' => out.push_str("\\t"), '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"), '\0' => out.push_str("\\0"), '\u{8}' => out.push_str("\\b"),
                    other => out.push(other),
                }
            }
            out
        };
        let body: String = cells.iter().map(|row| format!("{}\t{}\n", escape(&row[0]), escape(&row[1]))).collect();
        let made = rows(&plan, TSV, Header::Absent, &body);
        let read: Vec<Vec<String>> = made.iter().map(|row| {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            ["a", "b"].map(|name| row[name].as_str().unwrap().to_owned()).to_vec()
        }).collect();
        prop_assert_eq!(read, cells);
    }

    #[test]
    fn a_row_is_judged_as_its_json_would_be(
        cells in proptest::collection::vec(prop_oneof![
            4 => "-?[0-9]{1,12}", 1 => "[0-9]{1,4}\\.[0-9]{1,4}", 1 => "true|false|nan|\\\\N", 2 => "[a-zé]{0,6}",
            1 => "2026-0[1-9]-[0-3][0-9]( [0-2][0-9]:00:00)?", 1 => "\\[[0-9]?\\]|\\{\\}|\\[1 ; 2\\]|\\{\"a\": 1\\}"
        ], 10),
        strict in any::<bool>()
    ) {
        let columns = [
            ("i", "UInt8"), ("f", "Nullable(Float32)"), ("b", "Bool"), ("s", "String"), ("d", "DateTime64(3)"),
            ("a", "Array(UInt8)"), ("v", "Dynamic"), ("n.x", "Array(UInt8)"), ("n.y", "Array(String)"), ("e", "Date"),
        ];
        let mut plan = ordinary(&columns);
        if strict {
            plan = Plan::new(Arc::clone(&plan.schema), Mode::Strict);
        }
        // tabs are no trouble for these cells
        let body = cells.join("\t") + "\n";
        let dialect = Dialect { syntax: TSV, header: Header::Absent };
        let mut sheet = Sheet::begin(dialect, body.as_bytes(), &plan, 1 << 20).unwrap();
        let (mut one, mut other) = (Judge::new(&plan), Judge::new(&plan));
        while let Some((row, [as_cells, as_json])) = sheet.both_ways(&mut one, &mut other) {
            prop_assert_eq!(as_cells, as_json, "{}", row);
        }
    }

    #[test]
    fn whatever_the_bytes_are_each_record_has_one_outcome_and_each_row_is_json(
        body in proptest::collection::vec(prop_oneof![
            Just(b','), Just(b'\t'), Just(b'\n'), Just(b'\r'), Just(b'"'), Just(b'\\'), Just(b'N'), Just(b'x'),
            Just(b'['), Just(b'1'), Just(b'{'), any::<u8>()
        ], 0..200),
        tsv in any::<bool>(), header in 0_usize..3
    ) {
        let plan = ordinary(&[("x", "Int32"), ("N", "String"), ("a", "Array(String)"), ("v", "Dynamic")]);
        let header = [Header::Absent, Header::Present, Header::Unsaid][header];
        if let Ok((made, _)) = read(&plan, if tsv { TSV } else { CSV }, header, &body, 100) {
            for row in made {
                prop_assert!(serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&row).is_ok(), "{}", row);
                prop_assert!(row.len() <= 100 && !row.contains('\n'));
            }
        }
    }
}
