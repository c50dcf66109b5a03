//! Measures the record scanner on 256-byte rows of 12 keys, single thread:
//! `cargo run --release -p wh-api --example bench_scan`.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a benchmark prints its table")]

use serde::de::{Deserializer, MapAccess, Visitor};
use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};
use wh_api::{Checker, Mode};
use wh_clickhouse::{Column, ColumnKind, TableSchema, types::Type};
use wh_types::{Clock, SystemClock};

const ROWS: usize = 500;
const ROUNDS: usize = 500;

fn main() {
    let keys: &[(&str, &str)] = &[
        ("date", "String"),
        ("delay", "Int32"),
        ("distance", "UInt32"),
        ("origin", "String"),
        ("destination", "String"),
        ("carrier", "LowCardinality(String)"),
        ("flight", "UInt32"),
        ("cancelled", "Bool"),
        ("ratio", "Float64"),
        ("note", "Nullable(String)"),
        ("seen", "DateTime"),
        ("pad", "String"),
    ];
    let columns = keys.iter().enumerate().map(|(at, (name, ty))| Column {
        name: (*name).to_owned(),
        type_text: (*ty).to_owned(),
        ty: Type::parse(ty),
        kind: ColumnKind::Ordinary,
        default_expression: String::new(),
        position: at as u64 + 1,
    });
    let schema = Arc::new(TableSchema::new("flights", "MergeTree", columns.collect()));
    let lines = body(false);
    let spaced = body(true);
    let array = [b"[", lines.trim_ascii().to_vec().as_slice(), b"]"].concat();
    let array: Vec<u8> = array.iter().map(|b| if *b == b'\n' { b',' } else { *b }).collect();
    println!("row: {} bytes, {} keys", lines.len() / ROWS - 1, keys.len());

    let checker = Checker::new(schema, Mode::Strict);
    time("scanner, NDJSON", || checker.check(&lines, true).expect("good").total as usize);
    time("scanner, array", || checker.check(&array, false).expect("good").total as usize);
    time("scanner, NDJSON with spaces", || checker.check(&spaced, true).expect("good").total as usize);
    let (csv, tsv) = (cells(","), cells("\t"));
    println!("CSV and TSV: {} bytes a row", csv.len() / ROWS - 1);
    time("CSV, judged and made", || checker.check_csv(&csv).expect("good").total as usize);
    time("TSV, judged and made", || checker.check_tsv(&tsv).expect("good").total as usize);
    let names: HashMap<&str, usize> = keys.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    time("serde_json, borrowed keys and RawValue, NDJSON", || {
        let mut rows = 0;
        for line in lines.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            let mut seen = vec![false; names.len()];
            let mut json = serde_json::Deserializer::from_slice(line);
            (&mut json).deserialize_map(Members { names: &names, seen: &mut seen }).expect("good");
            json.end().expect("one object");
            rows += usize::from(seen.iter().all(|seen| *seen));
        }
        rows
    });
    time("std UTF-8 check of the body alone", || std::str::from_utf8(&lines).map_or(0, |_| ROWS));
}

fn body(spaced: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for n in 0..ROWS {
        let row = format!(
            "{{\"date\":\"2001/01/{:02} 00:47\",\"delay\":{},\"distance\":{},\"origin\":\"DTW\",\"destination\":\"LAS\",\
             \"carrier\":\"NW\",\"flight\":{},\"cancelled\":false,\"ratio\":0.{:03},\"note\":null,\
             \"seen\":\"2001-01-01 00:47:00\",\"pad\":\"",
            n % 28 + 1,
            n % 90,
            400 + n,
            1_000 + n,
            n
        );
        let mut row = row.into_bytes();
        row.resize(254, b'x');
        row.extend_from_slice(b"\"}");
        if spaced {
            let text = String::from_utf8(row).expect("ASCII").replace("\":", "\": ").replace(",\"", ", \"");
            row = text.into_bytes();
        }
        out.extend_from_slice(&row);
        out.push(b'\n');
    }
    out
}

/// The same rows as cells with this between them.
fn cells(between: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for line in body(false).split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let row: serde_json::Value = serde_json::from_slice(line).expect("JSON");
        let names = [
            "date",
            "delay",
            "distance",
            "origin",
            "destination",
            "carrier",
            "flight",
            "cancelled",
            "ratio",
            "note",
            "seen",
            "pad",
        ];
        let cell = |name: &&str| match row[name].as_str() {
            Some(text) => text.to_owned(),
            None => row[name].to_string().replace("null", "\\N"),
        };
        out.extend_from_slice(names.iter().map(cell).collect::<Vec<_>>().join(between).as_bytes());
        out.push(b'\n');
    }
    out
}

/// The best of many rounds: other work on the machine only makes a round slower.
fn time(what: &str, mut run: impl FnMut() -> usize) {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = SystemClock.now();
        let rows: usize = (0..4).map(|_| run()).sum();
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / rows as f64);
    }
    println!("{what:<50} {best:>7.3} us a row");
}

struct Members<'a> {
    names: &'a HashMap<&'a str, usize>,
    seen: &'a mut [bool],
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            let value: &serde_json::value::RawValue = map.next_value()?;
            let first = value.get().as_bytes()[0];
            if let Some(at) = self.names.get(&*key)
                && first != b'!'
            {
                self.seen[*at] = true;
            }
        }
        Ok(())
    }
}

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
