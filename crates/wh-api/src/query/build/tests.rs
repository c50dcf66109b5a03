//! Queries to SQL, and the proof that no name or value leaves its quotes.

use super::*;
use crate::query::{
    function::Function,
    value::{MAX_VALUES, is_zone},
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use wh_clickhouse::{Column, ColumnKind, types::Type};

/// Names that break out of whatever does not quote them.
const ODD: &[&str] = &["we`ird \\ name", "{p0:String}", "a'b\"c", "x?", "/* y", "-- z\n", "ö\u{202e}字", "n.x", "*"];

fn table() -> TableSchema {
    let columns = [
        ("id", "UInt64", ColumnKind::Ordinary),
        ("delay", "Nullable(Int32)", ColumnKind::Ordinary),
        ("price", "Decimal(18, 2)", ColumnKind::Ordinary),
        ("ratio", "Float64", ColumnKind::Ordinary),
        ("ok", "Bool", ColumnKind::Ordinary),
        ("origin", "LowCardinality(String)", ColumnKind::Default),
        ("kind", "Enum8('a' = 1)", ColumnKind::Ordinary),
        ("day", "Date", ColumnKind::Ordinary),
        ("at", "DateTime64(3, 'Asia/Tokyo')", ColumnKind::Ordinary),
        ("seen", "DateTime", ColumnKind::Ordinary),
        ("uid", "UUID", ColumnKind::Ordinary),
        ("tags", "Array(String)", ColumnKind::Ordinary),
        ("twice", "UInt64", ColumnKind::Materialized),
        ("raw", "String", ColumnKind::Ephemeral),
    ];
    let odd = ODD.iter().map(|name| (*name, "String", ColumnKind::Ordinary));
    let columns = (1..).zip(columns.into_iter().chain(odd)).map(|(position, (name, ty, kind))| Column {
        name: name.to_owned(),
        type_text: ty.to_owned(),
        ty: Type::parse(ty),
        kind,
        default_expression: String::new(),
        position,
    });
    TableSchema::new("t`1", "MergeTree", columns.collect())
}

fn bounds(allowed: &Allowed) -> Bounds<'_> {
    Bounds {
        max_rows: 100,
        now: Timestamp::from_millis(1_000_000_000_000),
        step: Duration::ZERO,
        zone: "Europe/Paris",
        allowed,
    }
}

fn built(json: &str) -> Result<Option<Built>, Refused> {
    build(&serde_json::from_str(json).unwrap(), &table(), bounds(&Allowed::All))
}

fn sql(json: &str) -> (String, Vec<String>) {
    let built = built(json).unwrap().unwrap();
    let values = built.params.iter().enumerate().map(|(at, (name, value))| {
        assert_eq!(name, &format!("p{at}"));
        value.clone()
    });
    (built.sql.clone(), values.collect())
}

#[test]
fn queries_become_sql_with_bound_values() {
    let from = "FROM `t\\`1`";
    for (json, text, values) in [
        (r#"{"columns":"id"}"#, format!("SELECT `id` {from} LIMIT 101"), &[][..]),
        (
            r#"{"columns":["origin"],"aggregations":[{"fn":"COUNT"},{"fn":"avg","column":"delay","alias":"mean delay"}],
                "group_by":["origin"],"order_by":[{"column":"mean delay","dir":"DESC"},{"column":"origin"}],"limit":5}"#,
            format!(
                "SELECT `origin`, count() AS `count()`, avg(`delay`) AS `mean delay` {from} GROUP BY `origin` \
                 ORDER BY avg(`delay`) DESC, `origin` ASC LIMIT 5"
            ),
            &[],
        ),
        (
            r#"{"columns":["id"],"filters":[{"column":"delay","op":"GT","value":300},{"column":"origin","op":"neq","value":"O'Hare\n"},
                {"column":"id","op":"eq","value":18446744073709551615},{"column":"price","op":"lte","value":3.125},
                {"column":"ratio","op":"lt","value":"1e3"},{"column":"ok","op":"eq","value":true}]}"#,
            format!(
                "SELECT `id` {from} WHERE `delay` > {{p0:Int64}} AND `origin` != {{p1:String}} AND `id` = {{p2:UInt64}} \
                 AND `price` <= {{p3:Decimal(76, 3)}} AND `ratio` < {{p4:Float64}} AND `ok` = {{p5:Bool}} LIMIT 101"
            ),
            &["300", "O'Hare\n", "18446744073709551615", "3.125", "1e3", "true"],
        ),
        (
            r#"{"columns":["id"],"filters":[{"column":"kind","op":"in","value":["a",1]},{"column":"origin","op":"like","value":"%x%"}]}"#,
            format!(
                "SELECT `id` {from} WHERE `kind` IN ({{p0:String}}, {{p1:Int16}}) AND `origin` LIKE {{p2:String}} LIMIT 101"
            ),
            &["a", "1", "%x%"],
        ),
        (
            r#"{"columns":["id"],"time_range":{"column":"at","since":"1h","until":"2001-09-09T01:46:40Z"},
                "filters":[{"column":"at","op":"gt","value":"2001-01-01 00:00:00"},{"column":"seen","op":"in","value":[1.5,2]},
                {"column":"day","op":"eq","value":"2001-01-01"}]}"#,
            format!(
                "SELECT `id` {from} WHERE `at` >= fromUnixTimestamp64Nano({{p0:Int64}}, 'UTC') \
                 AND `at` <= fromUnixTimestamp64Nano({{p1:Int64}}, 'UTC') \
                 AND `at` > parseDateTime64BestEffort({{p2:String}}, 9, 'Asia/Tokyo') \
                 AND (`seen` = fromUnixTimestamp64Nano({{p3:Int64}}, 'UTC') OR `seen` = fromUnixTimestamp64Nano({{p4:Int64}}, 'UTC')) \
                 AND `day` = toDate32(parseDateTime64BestEffort({{p5:String}}, 9, 'Europe/Paris')) LIMIT 101"
            ),
            &[
                "999996400000000000",
                "1000000000000000000",
                "2001-01-01 00:00:00",
                "1500000000",
                "2000000000",
                "2001-01-01",
            ],
        ),
    ] {
        let (got, bound) = sql(json);
        assert_eq!(got, text, "{json}");
        assert_eq!(bound, values, "{json}");
    }
}

#[test]
fn everything_readable_is_selected_in_the_order_of_the_schema() {
    let (text, _) = sql(r#"{"select_all":true,"limit":1000}"#);
    assert!(text.starts_with("SELECT `id`, `delay`, `price`,") && text.contains("`twice`, `we\\`ird \\\\ name`,"));
    assert!(!text.contains("`raw`") && text.ends_with("LIMIT 101"), "a limit beyond the bound is probed: {text}");
}

#[test]
fn a_query_for_nothing_is_no_query() {
    assert!(built("{}").unwrap().is_none());
    assert!(built(r#"{"columns":[],"limit":1}"#).unwrap().is_none());
}

#[test]
fn groups_of_conditions_buckets_and_having_become_sql() {
    let from = "FROM `t\\`1`";
    for (json, text, values) in [
        (
            r#"{"columns":"id","filters":[{"or":[{"column":"ok","op":"eq","value":true},{"and":[
                {"not":{"column":"id","op":"in","value":[1,2]}},{"column":"delay","op":"not_null"}]}]},{"column":"delay","op":"IS_NULL"}]}"#,
            format!(
                "SELECT `id` {from} WHERE (`ok` = {{p0:Bool}} OR (NOT (`id` IN ({{p1:Int64}}, {{p2:Int64}})) AND \
                 `delay` IS NOT NULL)) AND `delay` IS NULL LIMIT 101"
            ),
            &["true", "1", "2"][..],
        ),
        (
            r#"{"time_bucket":{"column":"at","interval":"5m"},"aggregations":[{"fn":"argMax","column":"origin","by":"at"},
                {"fn":"quantile","column":"delay","level":0.95,"alias":"p95"}],"having":[{"column":"p95","op":"gt","value":3},
                {"column":"argMax(origin, at)","op":"like","value":"D%"}],"order_by":[{"column":"time_bucket"}]}"#,
            format!(
                "SELECT toDateTime64(toStartOfInterval(`at`, INTERVAL 5 MINUTE, 'UTC'), 0, 'UTC') AS `time_bucket`, \
                 argMax(`origin`, `at`) AS `argMax(origin, at)`, quantile(0.95)(`delay`) AS `p95` {from} \
                 GROUP BY toDateTime64(toStartOfInterval(`at`, INTERVAL 5 MINUTE, 'UTC'), 0, 'UTC') \
                 HAVING quantile(0.95)(`delay`) > {{p0:Float64}} AND argMax(`origin`, `at`) LIKE {{p1:String}} \
                 ORDER BY toDateTime64(toStartOfInterval(`at`, INTERVAL 5 MINUTE, 'UTC'), 0, 'UTC') ASC LIMIT 101"
            ),
            &["3", "D%"],
        ),
        (
            r#"{"columns":["ok"],"group_by":["ok"],"time_bucket":{"column":"day","interval":"1mo","alias":"month"},
                "having":[{"column":"month","op":"gte","value":"2001-01-01"},{"column":"ok","op":"eq","value":1}]}"#,
            format!(
                "SELECT toDate32(toStartOfInterval(`day`, INTERVAL 1 MONTH)) AS `month`, `ok` {from} \
                 GROUP BY toDate32(toStartOfInterval(`day`, INTERVAL 1 MONTH)), `ok` \
                 HAVING toDate32(toStartOfInterval(`day`, INTERVAL 1 MONTH)) >= \
                 toDate32(parseDateTime64BestEffort({{p0:String}}, 9, 'Europe/Paris')) AND `ok` = {{p1:Bool}} LIMIT 101"
            ),
            &["2001-01-01", "1"],
        ),
        (
            r#"{"columns":["id","origin"],"order_by":[{"column":"origin","dir":"desc"},{"column":"id"}],"cursor":"","limit":7}"#,
            format!("SELECT `id`, `origin` {from} ORDER BY `origin` DESC, `id` ASC LIMIT 7 WITH TIES"),
            &[],
        ),
    ] {
        let (got, bound) = sql(json);
        assert_eq!(got, text, "{json}");
        assert_eq!(bound, values, "{json}");
    }
}

#[test]
fn a_page_goes_on_behind_the_last_row_of_the_one_before() {
    let query = r#"{"columns":["id","origin"],"order_by":[{"column":"origin","dir":"desc"},{"column":"id"}],"cursor":"CURSOR"}"#;
    let End::Page(page) = built(&query.replace("CURSOR", "")).unwrap().unwrap().end else { panic!("no page") };
    let cursor = page.next(br#"{"id":18446744073709551615,"origin":"O'Hare\n{p0:String}"}"#).unwrap();
    let (text, values) = sql(&query.replace("CURSOR", &cursor));
    assert_eq!(
        text,
        "SELECT `id`, `origin` FROM `t\\`1` WHERE (`origin` < {p1:String} OR (`origin` = {p1:String} AND `id` > {p0:UInt64})) \
         ORDER BY `origin` DESC, `id` ASC LIMIT 100 WITH TIES"
    );
    assert_eq!(values, ["18446744073709551615", "O'Hare\n{p0:String}"]);
    for (query, words) in [
        (query.replace("CURSOR", "nonsense!"), "none that this server gave"),
        (query.replace("CURSOR", &cursor[..20]), "none that this server gave"),
        (query.replace("CURSOR", &cursor).replace("desc", "asc"), "another \"order_by\""),
        (query.replace("CURSOR", &cursor).replace(r#"["id","origin"]"#, r#"["origin"]"#), "\"id\" is not in it"),
    ] {
        let text = built(&query).unwrap_err().text;
        assert!(text.starts_with("\"cursor\"") && text.contains(words), "{text}");
    }
    for (row, words) in [
        (&b"{"[..], "cannot be read"),
        (br#"{"id":1}"#, "lacks a column"),
        ("{\"id\":1,\"origin\":\"\u{fffd}\"}".as_bytes(), "is no text"),
        (format!(r#"{{"id":1,"origin":"{}"}}"#, "x".repeat(5_000)).as_bytes(), "too long"),
    ] {
        assert!(page.next(row).unwrap_err().text.contains(words), "{words}");
    }
}

#[test]
fn what_cannot_work_is_refused_and_named() {
    for (json, code, words) in [
        (r#"{"columns":["nope"]}"#, "column.not_found", "\"columns[0]\" names an unknown column: \"nope\""),
        (r#"{"columns":["raw"]}"#, "column.not_found", "\"raw\""),
        (r#"{"columns":["id","id"]}"#, "query.invalid", "\"columns[1]\" names the output \"id\" a second time"),
        (r#"{"select_all":true,"columns":"id"}"#, "query.invalid", "\"select_all\" excludes"),
        (r#"{"aggregations":[{"fn":"system"}]}"#, "query.invalid", "\"aggregations[0].fn\" is \"system\"; there are"),
        (r#"{"aggregations":[{"fn":"sum","column":"*"}]}"#, "query.invalid", "\"aggregations[0].column\" is needed"),
        (r#"{"aggregations":[{"fn":"sum","column":"id","alias":"delay"}]}"#, "query.invalid", "\"delay\", which"),
        (
            r#"{"aggregations":[{"fn":"sum","column":"id","alias":""}]}"#,
            "query.invalid",
            "\"aggregations[0].alias\" has",
        ),
        (r#"{"aggregations":[{"fn":"count"},{"fn":"count"}]}"#, "query.invalid", "an \"alias\" tells them apart"),
        (r#"{"aggregations":[{"fn":"argMin","column":"id"}]}"#, "query.invalid", "\"aggregations[0].by\" is needed"),
        (r#"{"aggregations":[{"fn":"sum","column":"id","by":"id"}]}"#, "query.invalid", "argMin and argMax"),
        (r#"{"aggregations":[{"fn":"argMin","column":"id","by":"x"}]}"#, "column.not_found", "\"aggregations[0].by\""),
        (r#"{"aggregations":[{"fn":"quantile","column":"id","level":1.5}]}"#, "query.invalid", "from 0 to 1"),
        (r#"{"aggregations":[{"fn":"sum","column":"id","level":0.5}]}"#, "query.invalid", "is for quantile"),
        (
            r#"{"columns":"ok","aggregations":[{"fn":"count"}]}"#,
            "query.invalid",
            "\"columns[0]\" names \"ok\", which is neither",
        ),
        (r#"{"select_all":true,"group_by":["id"]}"#, "query.invalid", "neither grouped by nor aggregated"),
        (r#"{"columns":"id","group_by":["x"]}"#, "column.not_found", "\"group_by[0]\""),
        (r#"{"columns":"id","order_by":[{"column":"x"}]}"#, "column.not_found", "\"order_by[0]\""),
        (r#"{"columns":"id","order_by":[{"column":"id","dir":"up"}]}"#, "query.invalid", "\"order_by[0].dir\""),
        (
            r#"{"columns":"id","group_by":"id","order_by":[{"column":"ok"}]}"#,
            "query.invalid",
            "\"order_by[0]\" names \"ok\"",
        ),
        (r#"{"columns":"id","limit":0}"#, "query.invalid", "\"limit\""),
        (r#"{"columns":"id","limit":-5}"#, "query.invalid", "\"limit\""),
        (
            r#"{"columns":"id","filters":[{"column":"x","op":"eq","value":1}]}"#,
            "column.not_found",
            "\"filters[0].column\"",
        ),
        (
            r#"{"columns":"id","filters":[{"column":"id","op":"is","value":1}]}"#,
            "query.invalid",
            "\"filters[0].op\" is \"is\"",
        ),
        (r#"{"columns":"id","filters":[{"column":"id","op":"eq","value":null}]}"#, "query.invalid", "is null"),
        (
            r#"{"columns":"id","filters":[{"column":"id","op":"eq"}]}"#,
            "query.invalid",
            "\"filters[0].value\" is needed",
        ),
        (r#"{"columns":"id","filters":[{"column":"id"}]}"#, "query.invalid", "\"filters[0].op\" is needed"),
        (r#"{"columns":"id","filters":[{"op":"eq","value":1}]}"#, "query.invalid", "\"filters[0].column\" is needed"),
        (r#"{"columns":"id","filters":[{}]}"#, "query.invalid", "\"filters[0]\" has either"),
        (r#"{"columns":"id","filters":[{"and":[],"column":"id"}]}"#, "query.invalid", "\"filters[0]\" has either"),
        (r#"{"columns":"id","filters":[{"and":[{"or":[]}]}]}"#, "query.invalid", "\"filters[0].and[0].or\" is empty"),
        (r#"{"columns":"id","filters":[{"column":"id","op":"is_null","value":1}]}"#, "query.invalid", "no meaning"),
        (r#"{"columns":"id","filters":[{"column":"id","op":"eq","value":"1 OR 1"}]}"#, "query.invalid", "a number"),
        (r#"{"columns":"id","filters":[{"column":"id","op":"in","value":[]}]}"#, "query.invalid", "not empty"),
        (r#"{"columns":"id","filters":[{"column":"id","op":"in","value":7}]}"#, "query.invalid", "not empty"),
        (
            r#"{"columns":"id","filters":[{"column":"id","op":"in","value":[1,"x"]}]}"#,
            "query.invalid",
            "\"filters[0].value[1]\"",
        ),
        (r#"{"columns":"id","filters":[{"column":"id","op":"like","value":"1"}]}"#, "query.invalid", "text column"),
        (r#"{"columns":"id","filters":[{"column":"tags","op":"eq","value":"1"}]}"#, "query.invalid", "Array(String)"),
        (r#"{"columns":"id","filters":[{"column":"ok","op":"eq","value":2}]}"#, "query.invalid", "true or false"),
        (
            r#"{"columns":"id","filters":[{"column":"kind","op":"eq","value":"z"}]}"#,
            "query.invalid",
            "one of its names",
        ),
        (r#"{"columns":"id","having":[{"column":"id","op":"eq","value":2}]}"#, "query.invalid", "\"having\" needs"),
        (
            r#"{"columns":"id","group_by":"id","having":[{"column":"ok","op":"eq","value":2}]}"#,
            "query.invalid",
            "neither",
        ),
        (r#"{"columns":"id","time_range":{"column":"id","since":"1h"}}"#, "query.invalid", "\"time_range.column\""),
        (r#"{"columns":"id","time_range":{"column":"at","since":"soon"}}"#, "query.invalid", "\"time_range.since\""),
        (r#"{"time_bucket":{"column":"id","interval":"1h"}}"#, "query.invalid", "\"time_bucket.column\""),
        (r#"{"time_bucket":{"column":"at","interval":"1x"}}"#, "query.invalid", "\"time_bucket.interval\""),
        (r#"{"time_bucket":{"column":"day","interval":"1h"}}"#, "query.invalid", "\"time_bucket.interval\""),
        (r#"{"time_bucket":{"column":"at","interval":"1h","zone":"x') --"}}"#, "query.invalid", "\"time_bucket.zone\""),
        (r#"{"time_bucket":{"column":"at","interval":"1h","alias":"id"}}"#, "query.invalid", "\"time_bucket.alias\""),
        (r#"{"columns":"id","cursor":""}"#, "query.invalid", "\"cursor\" needs an \"order_by\""),
        (r#"{"columns":"delay","order_by":[{"column":"delay"}],"cursor":""}"#, "query.invalid", "may be NULL"),
    ] {
        let refused = built(json).unwrap_err();
        assert_eq!(refused.code.name, code, "{json}: {}", refused.text);
        assert!(refused.text.contains(words), "{json}: {}", refused.text);
    }
    for json in [
        r#"{"filter":[]}"#,
        r#"{"columns":1}"#,
        r#"{"limit":"5"}"#,
        r#"{"limit":1,"limit":2}"#,
        r#"{"filters":[{"column":"id","op":"eq","value":1,"x":1}]}"#,
        r#"{"filters":[{"not":[]}]}"#,
        "[]",
        "{} {}",
    ] {
        assert!(serde_json::from_str::<Ast>(json).is_err(), "{json}");
    }
}

#[test]
fn a_query_is_bounded() {
    let compare = r#"{"column":"id","op":"eq","value":1}"#;
    let nested = |depth: usize| format!("{}{compare}{}", r#"{"not":"#.repeat(depth), "}".repeat(depth));
    let filters = |text: String| format!(r#"{{"columns":"id","filters":[{text}]}}"#);
    let values = |count: usize| format!(r#"{{"column":"id","op":"in","value":{:?}}}"#, vec![1; count]);
    assert!(built(&filters(nested(15))).is_ok() && built(&filters(values(MAX_VALUES))).is_ok());
    for (json, words) in [
        (filters(nested(16)), "deeper than 16"),
        (filters(values(MAX_VALUES + 1)), "at most 1000"),
        (filters(vec![r#"{"column":"id","op":"not_null"}"#; 1_001].join(",")), "at most 1000 conditions"),
        (format!(r#"{{"columns":{:?}}}"#, vec!["id"; 1_001]), "\"columns\" has 1001 entries"),
        (format!(r#"{{"columns":"id","group_by":{:?}}}"#, vec!["id"; 101]), "\"group_by\" has 101 entries"),
    ] {
        let text = built(&json).unwrap_err().text;
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_hidden_column_is_as_one_that_is_not_there() {
    let allowed = Allowed::Only(BTreeSet::from(["id".to_owned(), "at".to_owned(), "raw".to_owned()]));
    let ask = |json: &str| build(&serde_json::from_str(json).unwrap(), &table(), bounds(&allowed));
    let all = ask(r#"{"select_all":true}"#).unwrap().unwrap();
    assert!(all.sql.starts_with("SELECT `id`, `at` FROM"), "{}", all.sql);
    for json in [
        r#"{"columns":["COLUMN"]}"#,
        r#"{"columns":"id","filters":[{"not":{"column":"COLUMN","op":"is_null"}}]}"#,
        r#"{"columns":"id","order_by":[{"column":"COLUMN"}]}"#,
        r#"{"columns":"id","group_by":["id","COLUMN"]}"#,
        r#"{"aggregations":[{"fn":"max","column":"COLUMN"}]}"#,
        r#"{"aggregations":[{"fn":"argMax","column":"id","by":"COLUMN"}]}"#,
        r#"{"aggregations":[{"fn":"count"}],"having":[{"column":"COLUMN","op":"not_null"}]}"#,
        r#"{"columns":"id","time_range":{"column":"COLUMN","since":"1h"}}"#,
        r#"{"time_bucket":{"column":"COLUMN","interval":"1h"}}"#,
    ] {
        let texts = ["seen", "nope"].map(|name| {
            let refused = ask(&json.replace("COLUMN", name)).unwrap_err();
            assert_eq!(refused.code.name, "column.not_found", "{json}");
            refused.text.replace(name, "")
        });
        assert_eq!(texts[0], texts[1], "{json}");
    }
}

/// What a generated text consists of when nothing has left its quotes. Gives the quoted names with the word before each.
fn lex(sql: &str) -> Result<Vec<(String, String)>, String> {
    const WORDS: &[&str] = &[
        "SELECT",
        "FROM",
        "WHERE",
        "AND",
        "OR",
        "NOT",
        "GROUP",
        "HAVING",
        "ORDER",
        "BY",
        "LIMIT",
        "WITH",
        "TIES",
        "AS",
        "ASC",
        "DESC",
        "IN",
        "LIKE",
        "IS",
        "NULL",
        "INTERVAL",
        "SECOND",
        "MINUTE",
        "HOUR",
        "DAY",
        "WEEK",
        "MONTH",
        "YEAR",
        "toDate32",
        "toDateTime64",
        "toStartOfInterval",
        "fromUnixTimestamp64Nano",
        "parseDateTime64BestEffort",
    ];
    let functions = Function::names();
    let functions: Vec<&str> = functions.split(", ").collect();
    let (mut names, mut rest, mut word) = (Vec::new(), sql, String::new());
    while let Some(c) = rest.chars().next() {
        if c == '`' {
            let (mut name, mut chars) = (String::new(), rest[1..].char_indices());
            let end = loop {
                match chars.next().ok_or("an open name")? {
                    (_, '\\') => name.push(chars.next().ok_or("an open escape")?.1),
                    (at, '`') => break at + 2,
                    (_, other) => name.push(other),
                }
            };
            names.push((std::mem::take(&mut word), name));
            rest = &rest[end..];
        } else if c == '\'' {
            let (text, after) = rest[1..].split_once('\'').ok_or("an open text")?;
            if !is_zone(text) {
                return Err(format!("the text {text:?}"));
            }
            rest = after;
        } else if c == '{' {
            let end = rest.find('}').ok_or("an open parameter")?;
            let (name, ty) = rest[1..end].split_once(':').ok_or("a parameter without a type")?;
            let known =
                ["Int64", "UInt64", "Int256", "UInt256", "Float64", "Bool", "String", "Int16", "UUID"].contains(&ty);
            let decimal = ty.strip_prefix("Decimal(76, ").is_some_and(|scale| scale.ends_with(')'));
            if !name.starts_with('p') || !(known || decimal) {
                return Err(format!("the parameter {name}:{ty}"));
            }
            rest = &rest[end + 1..];
        } else if c.is_ascii_alphabetic() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            word = rest[..end].to_owned();
            if !WORDS.contains(&&*word) && !functions.contains(&&*word) {
                return Err(format!("the word {word:?}"));
            }
            rest = &rest[end..];
        } else if c.is_ascii_digit() || " ,()=!<>.".contains(c) {
            rest = &rest[1..];
        } else {
            return Err(format!("the character {c:?}"));
        }
    }
    Ok(names)
}

fn name() -> impl Strategy<Value = String> {
    let known: Vec<String> = table().columns().iter().map(|column| column.name.clone()).collect();
    prop_oneof![
        8 => prop::sample::select(known),
        1 => any::<String>(),
        1 => "[`'\"\\\\;{}:?/*-]{1,8}",
        1 => Just("count()".to_owned()),
        1 => Just("time_bucket".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        any::<String>().prop_map(Into::into),
        "['`{}:\\\\; a-z0-9]{0,20}".prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        (-1e20..1e20).prop_map(|f: f64| serde_json::json!(f)),
        any::<bool>().prop_map(Into::into),
        Just("2001-01-01T00:00:00Z".into()),
        prop::collection::vec(any::<String>(), 0..3).prop_map(Into::into),
        prop::collection::vec(any::<i16>(), 1..3).prop_map(Into::into),
    ]
}

fn node() -> impl Strategy<Value = serde_json::Value> {
    let ops = vec!["eq", "neq", "gt", "gte", "lt", "lte", "in", "like", "is_null", "not_null", "x"];
    let leaf = (name(), prop::sample::select(ops), value()).prop_map(|(column, op, value)| {
        let null = op.ends_with("null");
        if null {
            serde_json::json!({"column": column, "op": op})
        } else {
            serde_json::json!({"column": column, "op": op, "value": value})
        }
    });
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(|all| serde_json::json!({ "and": all })),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|any| serde_json::json!({ "or": any })),
            inner.prop_map(|one| serde_json::json!({ "not": one })),
        ]
    })
}

fn aggregation() -> impl Strategy<Value = serde_json::Value> {
    let function = prop::sample::select(vec!["count", "SUM", "avg", "countdistinct", "argMax", "quantile", "sleep"]);
    (function, name(), name(), prop::option::of(any::<String>())).prop_map(|(function, column, by, alias)| {
        let mut json = serde_json::json!({"fn": function, "column": column});
        match function {
            "argMax" => json["by"] = by.into(),
            "quantile" => json["level"] = 0.125.into(),
            _ => {}
        }
        if let Some(alias) = alias {
            json["alias"] = alias.into();
        }
        json
    })
}

fn query() -> impl Strategy<Value = serde_json::Value> {
    let lists = (
        prop::collection::vec(name(), 0..4),
        prop::collection::vec(aggregation(), 0..3),
        prop::collection::vec(node(), 0..3),
        prop::collection::vec(name(), 0..3),
        prop::collection::vec(node(), 0..2),
        prop::collection::vec((name(), prop::option::of("asc|desc|x")), 0..3),
    );
    let rest = (
        prop::option::of((name(), prop::option::of("[0-9]{1,3}[hdm]"))),
        prop::option::of((name(), "[0-9]{1,2}[smhdwy]", prop::option::of(".*"))),
        prop::option::of(Just("")),
        any::<bool>(),
    );
    (lists, rest).prop_map(|((columns, aggregations, filters, mut groups, having, orders), (range, bucket, cursor, fits))| {
        if fits {
            // what stands in the answer is grouped by: otherwise most queries are refused for that
            groups.extend(columns.iter().cloned());
        }
        let mut json = serde_json::json!({
            "columns": columns,
            "aggregations": aggregations,
            "filters": filters,
            "group_by": groups,
            "order_by": orders.into_iter().map(|(column, dir)| serde_json::json!({"column": column, "dir": dir})).collect::<Vec<_>>(),
        });
        let mut set = |member: &str, value: serde_json::Value| json[member] = value;
        if fits {
            set("having", having.into());
        }
        if let Some((column, since)) = range {
            set("time_range", serde_json::json!({"column": column, "since": since.unwrap_or_else(|| "1h".into())}));
        }
        if let Some((column, interval, zone)) = bucket {
            set("time_bucket", serde_json::json!({"column": column, "interval": interval, "zone": zone}));
        }
        if let Some(cursor) = cursor {
            set("cursor", cursor.into());
        }
        json
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]
    #[test]
    fn no_query_leaves_its_quotes_or_reaches_a_column_outside_the_set(query in query(), hidden in 0..40_usize) {
        let table = table();
        let ast: Ast = serde_json::from_str(&query.to_string()).unwrap();
        let visible = table.columns().iter().enumerate().filter(|(at, _)| hidden == 0 || at % 4 != hidden % 4);
        let visible: BTreeSet<String> = visible.map(|(_, column)| column.name.clone()).collect();
        let allowed = Allowed::Only(visible.clone());
        if let Ok(Some(built)) = build(&ast, &table, bounds(&allowed)) {
            let names = lex(&built.sql).map_err(|what| TestCaseError::fail(format!("{what} in {}", built.sql)))?;
            for (word, name) in names {
                match &*word {
                    "FROM" => prop_assert_eq!(name, table.name.clone()),
                    "AS" => prop_assert!(table.column(&name).is_none(), "{name:?} hides a column"),
                    _ => prop_assert!(visible.contains(&name) && name != "raw", "{name:?} in {}", built.sql),
                }
            }
        }
    }
}
