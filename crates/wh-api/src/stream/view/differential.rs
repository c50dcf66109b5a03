//! Filters of streams against the engine: for each type, hundreds of values through every operator of the published
//! table, each against what a query with the same filter says of the stored row.
//!
//! Shown is only what the query gives; hidden only what it does not give. The rest is withheld, and bounded.

use super::{
    filter::Filter,
    pairs::{Family, PAIRS},
    project::{Fate, Pass, Plan},
};
use crate::{
    json::push_compact,
    query::{Ast, Form, Format, Numbers, Op, settings, statement},
};
use data::section;
use futures::{StreamExt, stream};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use wh_clickhouse::{
    Client, Column, ColumnKind, Insert, Options, Query, ServerSettings, TableSchema,
    types::{JsonKind, Type, Verdict, judge},
};
use wh_testkit::clickhouse::{Database, database};
use wh_types::{Encoding, Table, frame};

#[path = "../../../tests/api/differential/data.rs"]
#[allow(dead_code, reason = "the types are of another test")]
mod data;
#[path = "../../../tests/api/differential/generate.rs"]
mod generate;

/// A type, what its column is declared with, and what it is compared with besides some of its own values.
struct Subject {
    ty: &'static str,
    default: &'static str,
    constants: &'static [&'static str],
}

const fn of(ty: &'static str, constants: &'static [&'static str]) -> Subject {
    Subject { ty, default: "", constants }
}

const NUMBERS: &[&str] = &["0", "-1", "1", "7", "\"7\"", "127", "128", "255", "256", "-128", "100000"];
const WIDE: &[&str] = &[
    "0",
    "-1",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "170141183460469231731687303715884105727",
    "-170141183460469231731687303715884105728",
    "340282366920938463463374607431768211455",
    "9999999999999999999999999999999999999999999999999999999999999999999999999999",
];
const REALS: &[&str] =
    &["0", "-0.0", "1", "1.5", "-1.5", "0.1", "1e10", "\"2.5\"", "3.4e38", "1e308", "1e-300", "16777217"];
const DECIMALS: &[&str] = &["0", "1", "-1", "0.1", "3.14", "3.149", "\"9999999.99\"", "1000000", "-0.01", "0.00001"];
const TEXTS: &[&str] =
    &["\"\"", "\"a\"", "\"x\"", "\"é\"", "\"xx\"", "\"true\"", "1", "1.50", "true", "\"[1]\"", "\"A\"", "\"~\""];
const TIMES: &[&str] = &[
    "\"2023-05-06 12:00:00\"",
    "\"2023-05-06T12:00:00Z\"",
    "\"2023-05-06 12:34:56.789+05:30\"",
    "\"1970-01-01T00:00:00Z\"",
    "\"2024-01-01\"",
    "\"2100-01-01 00:00:00\"",
    "1750478400",
    "1750478400.5",
    "0",
];
const DAYS: &[&str] = &[
    "\"2023-05-06\"",
    "\"1970-01-01\"",
    "\"1969-12-31\"",
    "\"2023-05-06T23:30:00-08:00\"",
    "1750478400",
    "\"1900-01-01\"",
];
const IDS: &[&str] = &["\"00000000-0000-0000-0000-000000000000\"", "\"61F0C4045CB311E7907BA6006AD3DBA0\""];
const FOURS: &[&str] = &["\"0.0.0.0\"", "\"127.0.0.1\"", "\"255.255.255.255\"", "\"10.0.0.1\""];
const SIXES: &[&str] = &["\"::\"", "\"::1\"", "\"::ffff:1.2.3.4\"", "\"1.2.3.4\"", "\"fe80::1\""];

static SUBJECTS: &[Subject] = &[
    of("Int8", NUMBERS),
    of("UInt8", NUMBERS),
    of("Int32", WIDE),
    of("Int64", WIDE),
    of("UInt64", WIDE),
    of("Int128", WIDE),
    of("UInt128", WIDE),
    of("Int256", WIDE),
    of("UInt256", WIDE),
    of("Nullable(Int32)", NUMBERS),
    of("LowCardinality(UInt64)", WIDE),
    Subject { ty: "Int32", default: "DEFAULT 7", constants: NUMBERS },
    of("Float32", REALS),
    of("Float64", REALS),
    of("Nullable(Float64)", REALS),
    of("Decimal(9, 2)", DECIMALS),
    of("Decimal(18, 4)", DECIMALS),
    of("Decimal(38, 10)", DECIMALS),
    of("Decimal(76, 20)", DECIMALS),
    of("Decimal(5, 0)", DECIMALS),
    of("Nullable(Decimal(9, 2))", DECIMALS),
    of("Bool", &["true", "false", "0", "1"]),
    of("Nullable(Bool)", &["true", "false"]),
    Subject { ty: "Bool", default: "DEFAULT true", constants: &["true", "false"] },
    of("String", TEXTS),
    of("LowCardinality(String)", TEXTS),
    of("Nullable(String)", TEXTS),
    of("LowCardinality(Nullable(String))", TEXTS),
    Subject { ty: "String", default: "DEFAULT 'xx'", constants: TEXTS },
    of("FixedString(3)", TEXTS),
    of("FixedString(32)", TEXTS),
    of("UUID", IDS),
    of("Nullable(UUID)", IDS),
    of("IPv4", FOURS),
    of("IPv6", SIXES),
    of("Enum8('a' = 1, 'b' = 2)", &["\"a\"", "\"b\""]),
    of("Enum8('' = 0, 'x y' = -128)", &["\"\"", "\"x y\""]),
    of("Enum16('zero' = 0, '1' = 5, 'é' = -300)", &["\"zero\"", "\"1\"", "\"é\""]),
    of("Nullable(Enum8('a' = 1))", &["\"a\""]),
    of("Date", DAYS),
    of("Date32", DAYS),
    of("Nullable(Date)", DAYS),
    of("DateTime", TIMES),
    of("DateTime('UTC')", TIMES),
    of("DateTime('America/Chicago')", TIMES),
    of("DateTime('Asia/Kolkata')", TIMES),
    of("DateTime64(0)", TIMES),
    of("DateTime64(3)", TIMES),
    of("DateTime64(3, 'UTC')", TIMES),
    of("DateTime64(6, 'America/Chicago')", TIMES),
    of("DateTime64(9, 'UTC')", TIMES),
    of("Nullable(DateTime64(3))", TIMES),
];

/// What was found of a type.
#[derive(Debug, Default)]
struct Found {
    /// Rows that are stored, and how many of them the judge takes for what they say.
    rows: usize,
    /// Filters that were put to both.
    filters: usize,
    verdicts: usize,
    withheld: usize,
    faults: Vec<String>,
    ops: BTreeSet<&'static str>,
}

struct Engine {
    database: Database,
    client: Client,
    zone: String,
    known: ServerSettings,
}

impl Engine {
    async fn new() -> Self {
        let database = database().await.unwrap();
        let endpoint = database.endpoint();
        let client = Client::new(Options {
            url: endpoint.url().into(),
            database: database.name().into(),
            user: endpoint.user_name().into(),
            password: Some(endpoint.password().into()),
            request_timeout: Duration::from_secs(60),
            ..Options::default()
        })
        .unwrap();
        client.learn(Arc::new(ServerSettings::from_iter([("input_format_column_name_matching_mode", "auto")])));
        let zone = database.query("SELECT timezone() FORMAT TSVRaw").await.unwrap().trim().to_owned();
        let names = database.query("SELECT name FROM system.settings FORMAT TSVRaw").await.unwrap();
        let known = names.lines().map(|name| (name, "")).collect();
        Self { database, client, zone, known }
    }

    async fn insert(&self, table: &str, rows: &[String]) -> bool {
        let body = frame::encode(Encoding::Zstd, format!("{}\n", rows.join("\n")).as_bytes()).unwrap();
        let insert = Insert {
            table: &Table::new(table).unwrap(),
            columns: None,
            encoding: Encoding::Zstd,
            frames: &[body],
            rows: rows.len() as u64,
            token: None,
            settings: &[],
        };
        self.client.insert(insert).await.is_ok()
    }

    /// The ids of the rows that a query with this filter gives.
    async fn asked(&self, schema: &TableSchema, filter: &str) -> Result<BTreeSet<usize>, String> {
        let ast: Ast = serde_json::from_str(&format!(r#"{{"columns":"id","filters":[{filter}]}}"#)).unwrap();
        let (sql, params) = statement(&ast, schema, &self.zone).map_err(|refused| refused.text)?;
        let query = params.iter().fold(Query::read(sql).format("TSV"), |query, (name, value)| query.param(name, value));
        let form = Form { format: Format::Csv, numbers: Numbers::default() };
        let query =
            settings(form, &self.known).into_iter().fold(query, |query, (name, value)| query.setting(name, value));
        let answer = self.client.query(query).await.map_err(|error| error.to_string())?;
        let text = answer.bytes(16 << 20).await.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&text).lines().map(|id| id.parse().unwrap()).collect())
    }
}

/// The row that the api makes of a value; `None` where it makes none in any mode.
fn row(ty: &Type, id: usize, value: Option<&str>) -> Option<String> {
    let Some(value) = value else { return Some(format!(r#"{{"id":{id}}}"#)) };
    let record = format!(r#"{{"id":{id},"v":{value}}}"#);
    let at = record.len() - 1 - value.len()..record.len() - 1;
    let mut edits = Vec::new();
    let kind = JsonKind::of(value.as_bytes()).unwrap();
    let verdict = judge(ty, record.as_bytes(), at, kind, &mut edits);
    if matches!(verdict, Verdict::Refuses(_) | Verdict::WrongKind(_)) {
        return None;
    }
    let mut out = Vec::new();
    push_compact(&mut out, record.as_bytes(), 0..record.len(), &edits);
    Some(String::from_utf8(out).unwrap())
}

fn schema(table: &str, columns: &str) -> TableSchema {
    let columns = columns.lines().zip(1..).map(|(line, position)| {
        let parts: Vec<&str> = line.split('\t').collect();
        Column {
            name: parts[0].to_owned(),
            type_text: parts[1].to_owned(),
            ty: Type::parse(parts[1]),
            kind: if parts[2] == "DEFAULT" { ColumnKind::Default } else { ColumnKind::Ordinary },
            default_expression: parts[3].to_owned(),
            position,
        }
    });
    TableSchema::new(table, "Memory", columns.collect())
}

/// The filters of one operator over these values.
fn filters(op: Op, constants: &[String]) -> Vec<String> {
    let with = |value: &str| format!(r#"{{"column":"v","op":"{op}","value":{value}}}"#);
    match op {
        Op::IsNull | Op::NotNull => vec![format!(r#"{{"column":"v","op":"{op}"}}"#)],
        Op::In => {
            let one = constants.iter().map(|value| with(&format!("[{value}]")));
            one.chain(constants.chunks(3).map(|values| with(&format!("[{}]", values.join(","))))).collect()
        }
        Op::Like => ["%", "x%", "%x", "_", "__", "%é%", "", "tr_e", "\\\\%", "%\\\\_%", "\\\\\\\\", "%1%", "é%"]
            .map(|pattern| with(&format!("\"{pattern}\"")))
            .to_vec(),
        Op::Eq | Op::Neq => {
            // as a chain, which the engine may read as a list
            let word = if op == Op::Eq { "or" } else { "and" };
            let one = constants.iter().map(|value| with(value));
            let chain = |values: &[String]| {
                let each: Vec<String> = values.iter().map(|value| with(value)).collect();
                format!(r#"{{"{word}":[{}]}}"#, each.join(","))
            };
            one.chain(constants.chunks(4).map(chain)).collect()
        }
        Op::Gt | Op::Gte | Op::Lt | Op::Lte => constants.iter().map(|value| with(value)).collect(),
    }
}

async fn judged(engine: &Engine, at: usize, subject: &Subject) -> Found {
    let Subject { ty: text, default, constants } = subject;
    let table = format!("views_{at}");
    let sql = format!(
        "CREATE TABLE {table} (id UInt32, v {text} {default}) ENGINE = Memory SETTINGS allow_suspicious_low_cardinality_types = 1"
    );
    engine.database.query(&sql).await.unwrap();
    let sql = format!(
        "SELECT name, type, default_kind, default_expression FROM system.columns \
         WHERE table = '{table}' AND database = currentDatabase() ORDER BY position FORMAT TSVRaw"
    );
    let schema = schema(&table, &engine.database.query(&sql).await.unwrap());
    let ty = schema.column("v").unwrap().ty.clone();
    let values = generate::values(text);
    let given = std::iter::once(None).chain(values.iter().map(|value| Some(value.as_str())));
    let rows: Vec<(usize, String)> =
        given.enumerate().filter_map(|(id, value)| Some((id, row(&ty, id, value)?))).collect();
    // beside one that it cannot compare the engine answers nothing of the others
    let compared = |row: &str| {
        let anything = Filter::read(r#"{"column":"v","op":"not_null"}"#, &schema, &engine.zone).unwrap();
        let plan = Plan::new(None, Some(&anything));
        Pass::new(&plan, Some(&anything)).row(row.as_bytes(), &(0..row.len())) != Fate::Withheld
    };
    let rows: Vec<_> = rows.into_iter().filter(|(_, row)| !text.contains("DateTime64") || compared(row)).collect();
    // those that the engine refuses are never stored
    let mut stored = Vec::new();
    let mut parts = vec![rows];
    while let Some(mut part) = parts.pop() {
        let texts: Vec<String> = part.iter().map(|(_, row)| row.clone()).collect();
        if engine.insert(&table, &texts).await {
            stored.append(&mut part);
        } else if part.len() > 1 {
            parts.push(part.split_off(part.len() / 2));
            parts.push(part);
        }
    }
    let family = Family::of(&ty).unwrap();
    let some = values.iter().step_by(values.len() / 8 + 1).cloned();
    let constants: Vec<String> = constants.iter().map(|text| (*text).to_owned()).chain(some).collect();
    let pair = PAIRS.iter().find(|pair| pair.family == family).unwrap();
    let filters =
        pair.ops.iter().flat_map(|op| filters(*op, &constants).into_iter().map(move |text| (op.name(), text)));
    let filters = filters.enumerate().flat_map(|(at, (op, text))| {
        let negated = (at % 2 == 0).then(|| (op, format!(r#"{{"not":{text}}}"#)));
        [(op, text)].into_iter().chain(negated)
    });
    let mut found = Found { rows: stored.len(), ..Found::default() };
    for (op, text) in filters {
        // what cannot be compared with the column is refused when a stream is opened
        let Ok(filter) = Filter::read(&text, &schema, &engine.zone) else { continue };
        found.ops.insert(op);
        found.filters += 1;
        let asked = match engine.asked(&schema, &text).await {
            Ok(asked) => asked,
            Err(error) => {
                found.faults.push(format!("{text} {default} {filter}: {error}", text = subject.ty, filter = text));
                continue;
            }
        };
        let plan = Plan::new(None, Some(&filter));
        let mut pass = Pass::new(&plan, Some(&filter));
        for (id, row) in &stored {
            let said = match pass.row(row.as_bytes(), &(0..row.len())) {
                Fate::Shown => true,
                Fate::Hidden => false,
                Fate::Withheld => {
                    found.withheld += 1;
                    continue;
                }
            };
            found.verdicts += 1;
            if said != asked.contains(id) {
                found.faults.push(format!("{} {default} ← {row}, {text}: shown is {said}", subject.ty));
            }
        }
    }
    found
}

#[tokio::test]
async fn what_a_stream_shows_is_what_a_query_gives_of_the_stored_row() {
    assert!(!section("common").is_empty());
    let engine = Arc::new(Engine::new().await);
    let all: Vec<(&Subject, Found)> = stream::iter(SUBJECTS.iter().enumerate())
        .map(|(at, subject)| {
            let engine = Arc::clone(&engine);
            async move { (subject, judged(&engine, at, subject).await) }
        })
        .buffer_unordered(4)
        .collect()
        .await;
    let (mut faults, mut few) = (Vec::new(), Vec::new());
    let (mut verdicts, mut withheld) = (0, 0);
    for (subject, found) in &all {
        wh_testkit::say(&format!(
            "{} {}: {} rows, {} filters, {} verdicts, {} withheld, {} faults",
            subject.ty,
            subject.default,
            found.rows,
            found.filters,
            found.verdicts,
            found.withheld,
            found.faults.len()
        ));
        faults.extend(found.faults.iter().take(12));
        let family = Family::of(&Type::parse(subject.ty)).unwrap();
        let ops = PAIRS.iter().find(|pair| pair.family == family).unwrap().ops;
        if found.ops.len() != ops.len() || found.verdicts < 25 {
            few.push((subject.ty, found));
        }
        verdicts += found.verdicts;
        withheld += found.withheld;
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(few.is_empty(), "not every operator was put to {few:#?}");
    assert!(withheld * 4 < verdicts, "{withheld} of {verdicts} are withheld");
}
