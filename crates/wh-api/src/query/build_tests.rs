//! Queries to SQL, and the proof that no name or value leaves its quotes.

use super::*;
use proptest::prelude::*;

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
        ("we`ird \\ name", "String", ColumnKind::Ordinary),
    ];
    let columns = (1..).zip(columns).map(|(position, (name, ty, kind))| Column {
        name: name.to_owned(),
        type_text: ty.to_owned(),
        ty: Type::parse(ty),
        kind,
        default_expression: String::new(),
        position,
    });
    TableSchema::new("t`1", "MergeTree", columns.collect())
}

fn bounds() -> Bounds<'static> {
    Bounds { max_rows: 100, now: Timestamp::from_millis(1_000_000_000_000), zone: "Europe/Paris" }
}

fn built(json: &str) -> Result<Option<Built>, Refused> {
    build(&serde_json::from_str(json).unwrap(), &table(), bounds())
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
                 ORDER BY `mean delay` DESC, `origin` ASC LIMIT 5"
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
    assert!(text.starts_with("SELECT `id`, `delay`, `price`,") && text.contains("`twice`, `we\\`ird \\\\ name` FROM"));
    assert!(!text.contains("`raw`") && text.ends_with("LIMIT 101"), "a limit beyond the bound is probed: {text}");
}

#[test]
fn a_query_for_nothing_is_no_query() {
    assert!(built("{}").unwrap().is_none());
    assert!(built(r#"{"columns":[],"limit":1}"#).unwrap().is_none());
}

#[test]
fn what_cannot_work_is_refused_and_named() {
    for (json, code, words) in [
        (r#"{"columns":["nope"]}"#, "column.not_found", "\"nope\""),
        (r#"{"columns":["*"]}"#, "column.not_found", "\"*\""),
        (r#"{"columns":["raw"]}"#, "column.not_found", "\"raw\""),
        (r#"{"columns":["id","id"]}"#, "query.invalid", "twice"),
        (r#"{"select_all":true,"columns":"id"}"#, "query.invalid", "select_all"),
        (r#"{"aggregations":[{"fn":"system"}]}"#, "query.invalid", "unknown aggregation"),
        (r#"{"aggregations":[{"fn":"sum","column":"*"}]}"#, "query.invalid", "needs a \"column\""),
        (r#"{"aggregations":[{"fn":"sum","column":"id","alias":"delay"}]}"#, "query.invalid", "name of a column"),
        (r#"{"aggregations":[{"fn":"count"},{"fn":"count"}]}"#, "query.invalid", "alias"),
        (r#"{"columns":"id","group_by":["x"]}"#, "column.not_found", "\"x\""),
        (r#"{"columns":"id","order_by":[{"column":"x"}]}"#, "column.not_found", "\"x\""),
        (r#"{"columns":"id","order_by":[{"column":"id","dir":"up"}]}"#, "query.invalid", "dir"),
        (r#"{"columns":"id","limit":0}"#, "query.invalid", "limit"),
        (r#"{"columns":"id","limit":-5}"#, "query.invalid", "limit"),
        (r#"{"columns":"id","filters":[{"column":"x","op":"eq","value":1}]}"#, "column.not_found", "\"x\""),
        (r#"{"columns":"id","filters":[{"column":"id","op":"is","value":1}]}"#, "query.invalid", "op"),
        (r#"{"columns":"id","filters":[{"column":"id","op":"eq","value":null}]}"#, "query.invalid", "null"),
        (r#"{"columns":"id","filters":[{"column":"id","op":"eq","value":"1 OR 1"}]}"#, "query.invalid", "a number"),
        (r#"{"columns":"id","filters":[{"column":"id","op":"in","value":[]}]}"#, "query.invalid", "not empty"),
        (r#"{"columns":"id","filters":[{"column":"id","op":"in","value":7}]}"#, "query.invalid", "not empty"),
        (r#"{"columns":"id","filters":[{"column":"id","op":"like","value":"1"}]}"#, "query.invalid", "text column"),
        (r#"{"columns":"id","filters":[{"column":"tags","op":"eq","value":"1"}]}"#, "query.invalid", "Array(String)"),
        (r#"{"columns":"id","filters":[{"column":"ok","op":"eq","value":2}]}"#, "query.invalid", "true or false"),
        (r#"{"columns":"id","time_range":{"column":"id","since":"1h"}}"#, "query.invalid", "time_range"),
        (r#"{"columns":"id","time_range":{"column":"at","since":"soon"}}"#, "query.invalid", "time_range.since"),
    ] {
        let refused = built(json).unwrap_err();
        assert_eq!(refused.code.name, code, "{json}: {}", refused.text);
        assert!(refused.text.contains(words), "{json}: {}", refused.text);
    }
    let many = format!(r#"{{"columns":"id","filters":[{{"column":"id","op":"in","value":{:?}}}]}}"#, vec![1; 1_001]);
    assert!(built(&many).unwrap_err().text.contains("1000"));
    for json in [r#"{"filter":[]}"#, r#"{"columns":1}"#, r#"{"limit":"5"}"#, r#"{"limit":1,"limit":2}"#, "[]", "{} {}"]
    {
        assert!(serde_json::from_str::<Ast>(json).is_err(), "{json}");
    }
}

/// What a generated text consists of when nothing has left its quotes. Gives the quoted names.
fn lex(sql: &str) -> Result<Vec<String>, String> {
    const WORDS: &[&str] = &[
        "SELECT",
        "FROM",
        "WHERE",
        "AND",
        "OR",
        "GROUP",
        "ORDER",
        "BY",
        "LIMIT",
        "AS",
        "ASC",
        "DESC",
        "IN",
        "LIKE",
        "UTC",
        "toDate32",
        "fromUnixTimestamp64Nano",
        "parseDateTime64BestEffort",
        "Asia",
        "Tokyo",
        "Europe",
        "Paris",
    ];
    let (mut names, mut rest) = (Vec::new(), sql);
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
            names.push(name);
            rest = &rest[end..];
        } else if c == '{' {
            let end = rest.find('}').ok_or("an open parameter")?;
            let (name, ty) = rest[1..end].split_once(':').ok_or("a parameter without a type")?;
            let known = ["Int64", "UInt64", "Int256", "Float64", "Bool", "String", "Int16", "UUID"].contains(&ty);
            let decimal = ty.strip_prefix("Decimal(76, ").is_some_and(|scale| scale.ends_with(')'));
            if !name.starts_with('p') || !(known || decimal) {
                return Err(format!("the parameter {name}:{ty}"));
            }
            rest = &rest[end + 1..];
        } else if c.is_ascii_alphabetic() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            if !WORDS.contains(&&rest[..end]) && !FUNCTIONS.contains(&&rest[..end]) {
                return Err(format!("the word {:?}", &rest[..end]));
            }
            rest = &rest[end..];
        } else if c.is_ascii_digit() || " ,()=!<>'/".contains(c) {
            rest = &rest[1..];
        } else {
            return Err(format!("the character {c:?}"));
        }
    }
    Ok(names)
}

fn name() -> impl Strategy<Value = String> {
    let known: Vec<String> = table().columns().iter().map(|column| column.name.clone()).collect();
    prop_oneof![8 => prop::sample::select(known), 1 => any::<String>(), 1 => "[`'\"\\\\;{}:?]{1,8}"]
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
    ]
}

fn query() -> impl Strategy<Value = serde_json::Value> {
    let op = prop::sample::select(vec!["eq", "neq", "gt", "gte", "lt", "lte", "in", "like", "x"]);
    let function = prop::sample::select(vec!["count", "SUM", "avg", "countdistinct", "sleep"]);
    (
        prop::collection::vec(name(), 0..4),
        prop::collection::vec((function, name(), prop::option::of(any::<String>())), 0..3),
        prop::collection::vec((name(), op, value()), 0..4),
        prop::collection::vec(name(), 0..3),
        prop::collection::vec((name(), prop::option::of("asc|desc|x")), 0..3),
        prop::option::of((name(), prop::option::of("[0-9]{1,3}[hdm]"))),
    )
        .prop_map(|(columns, aggregations, filters, groups, orders, range)| {
            let json = serde_json::json!({
                "columns": columns,
                "aggregations": aggregations.into_iter().map(|(function, column, alias)| {
                    serde_json::json!({ "fn": function, "column": column, "alias": alias })
                }).collect::<Vec<_>>(),
                "filters": filters.into_iter().map(|(column, op, value)| {
                    serde_json::json!({ "column": column, "op": op, "value": value })
                }).collect::<Vec<_>>(),
                "group_by": groups,
                "order_by": orders.into_iter().map(|(column, dir)| {
                    serde_json::json!({ "column": column, "dir": dir })
                }).collect::<Vec<_>>(),
                "time_range": range.map(|(column, since)| {
                    serde_json::json!({ "column": column, "since": since.unwrap_or_default() })
                }),
            });
            json
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    #[test]
    fn no_query_leaves_its_quotes(query in query()) {
        let table = table();
        let ast: Ast = serde_json::from_str(&query.to_string()).unwrap();
        if let Ok(Some(built)) = build(&ast, &table, bounds()) {
            let names = lex(&built.sql).map_err(|what| TestCaseError::fail(format!("{what} in {}", built.sql)))?;
            for name in names {
                let alias = ast.aggregations.iter().any(|a| {
                    a.alias.as_deref() == Some(&*name) || name.ends_with(')') || name == "count()"
                });
                prop_assert!(name == table.name || table.column(&name).is_some() || alias, "{name:?}");
            }
        }
    }
}
