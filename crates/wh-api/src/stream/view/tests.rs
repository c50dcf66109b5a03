//! What a view shows of rows, which views are equal, and what becomes of one when its table changes.

use super::*;
use std::collections::HashSet;
use wh_clickhouse::{Column, ColumnKind, types::Type};
use wh_types::{Clock, Epoch, SystemClock};

const AT: Cursor = Cursor { epoch: Epoch(0xab), sequence: 7 };

fn table(columns: &[(&str, &str, ColumnKind, &str)]) -> Arc<TableSchema> {
    let column = |(at, (name, ty, kind, default)): (usize, &(&str, &str, ColumnKind, &str))| Column {
        name: (*name).to_owned(),
        type_text: (*ty).to_owned(),
        ty: Type::parse(ty),
        kind: *kind,
        default_expression: (*default).to_owned(),
        position: at as u64,
    };
    Arc::new(TableSchema::new("t", "MergeTree", columns.iter().enumerate().map(column).collect()))
}

fn events() -> Arc<TableSchema> {
    use ColumnKind::{Alias, Default, Ephemeral, Materialized, Ordinary};
    table(&[
        ("id", "UInt64", Ordinary, ""),
        ("note", "Nullable(String)", Ordinary, ""),
        ("big", "Int256", Ordinary, ""),
        ("at", "DateTime64(3, 'America/Chicago')", Ordinary, ""),
        ("level", "Int8", Default, "7"),
        ("kind", "LowCardinality(String)", Default, "'odd'"),
        ("seen", "DateTime", Default, "now()"),
        ("twice", "UInt64", Materialized, "id * 2"),
        ("next", "UInt64", Alias, "id + 1"),
        ("raw", "String", Ephemeral, ""),
        ("tags", "Array(String)", Ordinary, ""),
        ("a,b", "String", Ordinary, ""),
        ("ça va", "String", Ordinary, ""),
    ])
}

fn view(columns: Option<&str>, filter: Option<&str>) -> Result<View, (String, String)> {
    let told = |error: ApiError| (error.code().name.to_owned(), error.message().to_owned());
    View::of(&events(), "UTC", columns, filter).map_err(told)
}

/// The rows that a view shows, with their numbers.
fn shown(view: &View, rows: &str) -> Vec<(u32, String)> {
    let frames = view.rows(AT, rows.as_bytes(), false);
    let text = std::str::from_utf8(&frames.bytes).unwrap();
    let events: Vec<_> = text.split_terminator("\n\n").collect();
    assert_eq!(events.len() as u64, frames.count);
    let event = |event: &&str| {
        let (id, rest) = event.strip_prefix("id: 000000ab-7.").unwrap().split_once('\n').unwrap();
        (id.parse().unwrap(), rest.strip_prefix("event: row\ndata: ").unwrap().to_owned())
    };
    events.iter().map(event).collect()
}

fn numbers(filter: &str, rows: &str) -> Vec<u32> {
    shown(&view(None, Some(filter)).unwrap(), rows).into_iter().map(|(row, _)| row).collect()
}

#[test]
fn every_row_is_an_event_with_its_own_text_and_place() {
    let rows = "{\"id\":1}\n{\"id\": 2 }\n";
    let frames = View::whole().rows(AT, rows.as_bytes(), true);
    let expected = "id: 000000ab-7.0\nevent: row\nreplay: true\ndata: {\"id\":1}\n\n\
                    id: 000000ab-7.1\nevent: row\nreplay: true\ndata: {\"id\": 2 }\n\n";
    assert_eq!((&frames.bytes[..], frames.count), (expected.as_bytes(), 2));
    assert_eq!(shown(&View::whole(), "not even JSON\n"), [(0, "not even JSON".to_owned())], "it does not look");
    let many = "{}\n".repeat(1_234);
    assert_eq!(shown(&View::whole(), &many).last().unwrap().0, 1_233);
}

#[test]
fn chosen_columns_keep_their_own_text_and_absent_ones_stay_absent() {
    let some = view(Some("note,id"), None).unwrap();
    let rows = concat!(
        r#"{"id":18446744073709551615,"big":1e5,"note":"x  \u00e9\n"}"#,
        "\n",
        r#"{"note":null,"tags":["a",{"note":1}]}"#,
        "\n",
        r#"{"big":1}"#,
        "\n",
        r#"{"\u0069d":1.50}"#,
    );
    let expected = [
        (0, r#"{"id":18446744073709551615,"note":"x  \u00e9\n"}"#),
        (1, r#"{"note":null}"#),
        (2, "{}"),
        (3, r#"{"\u0069d":1.50}"#),
    ];
    assert_eq!(shown(&some, rows), expected.map(|(row, text)| (row, text.to_owned())));
    let odd = view(Some(r#"["a,b","ça va"]"#), None).unwrap();
    assert_eq!(shown(&odd, r#"{"ça va":"oui","a,b":"x","id":1}"#)[0].1, r#"{"ça va":"oui","a,b":"x"}"#);
}

#[test]
fn columns_that_a_stream_cannot_show_are_refused() {
    for (columns, code, told) in [
        ("id,nope", "column.not_found", "\"columns\" names an unknown column: \"nope\""),
        ("id,", "column.not_found", "unknown column: \"\""),
        ("", "column.not_found", "unknown column: \"\""),
        ("raw", "column.not_found", "unknown column: \"raw\""),
        ("twice", "request.invalid", "ClickHouse computes"),
        ("next", "request.invalid", "ClickHouse computes"),
        ("id,id", "request.invalid", "names \"id\" twice"),
        ("[]", "request.invalid", "names no column"),
        ("[1]", "request.invalid", "is no array of names"),
    ] {
        let (refused, text) = view(Some(columns), None).unwrap_err();
        assert!(refused == code && text.contains(told), "{columns}: {refused} {text}");
    }
    let long = "id,".repeat(6_000);
    assert_eq!(view(Some(&long), None).unwrap_err().0, "request.invalid");
}

#[test]
fn filters_that_a_stream_cannot_decide_are_refused_with_the_reason() {
    for (filter, code, told) in [
        ("", "query.invalid", "invalid filter"),
        ("[]", "query.invalid", "is empty"),
        ("{}", "query.invalid", "\"filter\" has either"),
        (r#"[{"or":[]}]"#, "query.invalid", "\"filter[0].or\" is empty"),
        (r#"{"column":"id","op":"is","value":1}"#, "query.invalid", "\"filter.op\" is \"is\"; there are eq, neq"),
        (r#"{"column":"id","op":"eq"}"#, "query.invalid", "\"filter.value\" is needed"),
        (r#"{"column":"id","op":"eq","value":null}"#, "query.invalid", "is null, not a string"),
        (r#"{"column":"id","op":"in","value":[]}"#, "query.invalid", "not empty for \"in\""),
        (r#"{"column":"id","op":"eq","value":"x"}"#, "query.invalid", "is a string, not a number"),
        (r#"{"column":"id","op":"eq","value":1,"x":2}"#, "query.invalid", "unknown field `x`"),
        (r#"{"column":"nope","op":"eq","value":1}"#, "column.not_found", "\"filter.column\" names an unknown column"),
        (r#"{"column":"raw","op":"eq","value":1}"#, "column.not_found", "unknown column: \"raw\""),
        (
            r#"{"not":{"column":"twice","op":"eq","value":1}}"#,
            "stream.filter_unsupported",
            "\"twice\", which is MATERIALIZED",
        ),
        (r#"{"column":"next","op":"is_null"}"#, "stream.filter_unsupported", "is ALIAS"),
        (r#"{"column":"seen","op":"gt","value":0}"#, "stream.filter_unsupported", "default that is not a constant"),
        (
            r#"{"column":"tags","op":"is_null"}"#,
            "stream.filter_unsupported",
            "is Array(String), which a stream does not",
        ),
        (r#"{"column":"id","op":"like","value":"1%"}"#, "stream.filter_unsupported", "\"filter.op\" is \"like\""),
        (r#"{"column":"id","op":"gt","value":1.5}"#, "stream.filter_unsupported", "\"filter.value\" has a fraction"),
        (
            r#"{"column":"at","op":"gt","value":"yesterday"}"#,
            "stream.filter_unsupported",
            "none of the forms of a time",
        ),
        (r#"{"column":"at","op":"gt","value":"2024-03-10 02:30:00"}"#, "stream.filter_unsupported", "twice or never"),
        (r#"{"column":"kind","op":"like","value":"a\\"}"#, "stream.filter_unsupported", "ends in a backslash"),
    ] {
        let (refused, text) = view(None, Some(filter)).unwrap_err();
        assert!(refused == code && text.contains(told), "{filter}: {refused} {text}");
    }
    let many = |count: usize| {
        let values = vec!["1"; count].join(",");
        format!(r#"{{"column":"id","op":"in","value":[{values}]}}"#)
    };
    assert!(view(None, Some(&many(1_000))).is_ok());
    assert!(view(None, Some(&many(1_001))).unwrap_err().1.contains("one value too many"));
    let deep =
        |depth| format!("{}{}{}", r#"{"not":"#.repeat(depth), r#"{"column":"id","op":"is_null"}"#, "}".repeat(depth));
    assert!(view(None, Some(&deep(15))).is_ok());
    assert!(view(None, Some(&deep(16))).unwrap_err().1.contains("deeper than 16"));
    let long = format!("{}{}", " ".repeat(20_000), deep(1));
    assert!(view(None, Some(&long)).unwrap_err().1.contains("longer than 16 KiB"));
}

#[test]
fn a_filter_shows_the_rows_for_which_it_holds() {
    let rows = concat!(
        r#"{"id":1,"note":"a","big":"9007199254740993"}"#,
        "\n",
        r#"{"id":"2","note":null}"#,
        "\n",
        r#"{"note":"A%","id":3,"big":9007199254740992}"#,
        "\n",
    );
    for (filter, expected) in [
        (r#"{"column":"id","op":"gte","value":2}"#, vec![1, 2]),
        (r#"{"column":"note","op":"is_null"}"#, vec![1]),
        (r#"{"not":{"column":"note","op":"eq","value":"a"}}"#, vec![2]),
        (r#"{"column":"note","op":"like","value":"_\\%"}"#, vec![2]),
        (r#"{"column":"big","op":"gt","value":9007199254740992}"#, vec![0]),
        (r#"{"column":"big","op":"in","value":[0,9007199254740992]}"#, vec![1, 2]),
        (r#"[{"column":"id","op":"lt","value":3},{"column":"note","op":"not_null"}]"#, vec![0]),
        (r#"{"or":[{"column":"id","op":"EQ","value":3},{"column":"note","op":"eq","value":"a"}]}"#, vec![0, 2]),
        (r#"{"column":"level","op":"eq","value":7}"#, vec![0, 1, 2]),
        (r#"{"column":"kind","op":"neq","value":"odd"}"#, vec![]),
    ] {
        assert_eq!(numbers(filter, rows), expected, "{filter}");
    }
}

#[test]
fn times_are_instants_in_the_columns_zone() {
    let rows = concat!(
        r#"{"at":"2024-01-01 00:00:00"}"#,
        "\n",
        r#"{"at":"2024-01-01T06:00:00.001Z"}"#,
        "\n",
        r#"{"at":"1704088800.0019"}"#,
        "\n",
        r#"{"at":"2024-11-03 01:30:00"}"#,
        "\n",
    );
    let same = r#"{"column":"at","op":"eq","value":"2024-01-01T06:00:00Z"}"#;
    assert_eq!(numbers(same, rows), [0], "midnight in Chicago");
    assert_eq!(numbers(r#"{"column":"at","op":"eq","value":1704088800.001}"#, rows), [1, 2], "cut to milliseconds");
    let later = r#"{"column":"at","op":"gt","value":"2024-06-01"}"#;
    assert_eq!(numbers(later, rows), [0_u32; 0], "an hour that came twice is withheld");
}

#[test]
fn what_cannot_be_evaluated_is_withheld_unless_it_does_not_matter() {
    let rows = "{\"id\":1,\"level\":300}\n{\"id\":2,\"level\":\"x\"}\n{\"id\":3,\"level\":5}\nbroken\n";
    let level = r#"{"column":"level","op":"gt","value":1}"#;
    assert_eq!(numbers(level, rows), [2]);
    assert_eq!(numbers(&format!(r#"{{"not":{level}}}"#), rows), [0_u32; 0]);
    let either = format!(r#"{{"or":[{{"column":"id","op":"lte","value":2}},{level}]}}"#);
    assert_eq!(numbers(&either, rows), [0, 1, 2]);
    assert_eq!(shown(&view(Some("id"), None).unwrap(), rows).len(), 3, "a row that is none is not shown in parts");
}

#[test]
fn equal_views_are_one_however_they_were_asked_for() {
    let id = |value: &str| format!(r#"{{"column":"id","op":"in","value":[{value}]}}"#);
    let views = [
        view(Some("id,note"), Some(&id("1,2"))),
        view(Some("note,id"), Some(&id(" 2, 1 , 1"))),
        view(Some("note,id"), Some(&id("2,\"1\""))),
        view(Some("note,id"), Some(&id("1,3"))),
        view(Some("note"), Some(&id("1,2"))),
        view(None, Some(&id("1,2"))),
        view(None, None),
        Ok(View::whole()),
    ];
    let views: Vec<View> = views.into_iter().map(Result::unwrap).collect();
    assert_eq!((&views[0], &views[1]), (&views[1], &views[2]));
    assert_eq!(views.iter().collect::<HashSet<_>>().len(), 5);
    assert_eq!(views.into_iter().collect::<HashSet<_>>().len(), 5);
}

#[test]
fn a_view_is_made_again_for_a_table_that_changed() {
    use ColumnKind::Ordinary;
    let first = table(&[("id", "Int32", Ordinary, ""), ("note", "String", Ordinary, "")]);
    let filter = r#"{"column":"id","op":"gt","value":1}"#;
    let old = View::of(&first, "UTC", Some("id"), Some(filter)).unwrap();
    assert_eq!(old.renewed(&first, "UTC").unwrap(), None);
    let unrelated = table(&[("id", "Int32", Ordinary, ""), ("other", "String", Ordinary, "")]);
    assert_eq!(old.renewed(&unrelated, "UTC").unwrap(), Some(old.clone()), "the same for an equal part of the table");
    let wider = table(&[("id", "Int64", Ordinary, "")]);
    let new = old.renewed(&wider, "UTC").unwrap().unwrap();
    assert_ne!(new, old);
    let large = "{\"id\":5000000000}\n";
    assert_eq!((shown(&old, large).len(), shown(&new, large).len()), (0, 1));
    for gone in [table(&[("note", "String", Ordinary, "")]), table(&[("id", "Array(Int8)", Ordinary, "")])] {
        old.renewed(&gone, "UTC").unwrap_err();
    }
    assert_eq!(View::whole().renewed(&wider, "UTC").unwrap(), None);
}

#[test]
fn a_block_goes_through_a_view_in_one_pass() {
    let row = |n: u32| {
        format!(
            "{{\"id\":{n},\"note\":\"a note of some length, as they come\",\"big\":{n},\"at\":\"2024-01-01T00:00:0{}Z\",\
             \"level\":{},\"kind\":\"k{}\",\"tags\":[\"a\",\"b\"]}}\n",
            n % 10,
            n % 100,
            n % 7
        )
    };
    let block: String = (0..500).map(row).collect();
    let views = [
        ("whole", View::whole(), 500),
        ("two columns", view(Some("id,kind"), None).unwrap(), 500),
        ("a filter", view(None, Some(r#"{"column":"level","op":"lt","value":50}"#)).unwrap(), 250),
        (
            "columns and a filter of three",
            view(
                Some("id,at"),
                Some(
                    r#"[{"column":"level","op":"lt","value":50},{"column":"kind","op":"in","value":["k1","k2","k3"]},
                    {"column":"at","op":"gte","value":"2024-01-01T00:00:00Z"}]"#,
                ),
            )
            .unwrap(),
            107,
        ),
    ];
    for (name, view, expected) in views {
        let begun = SystemClock.now();
        let rounds = 20;
        for _ in 0..rounds {
            assert_eq!(view.rows(AT, block.as_bytes(), false).count, expected, "{name}");
        }
        let each = begun.elapsed() / (rounds * 500);
        wh_testkit::say(&format!("{name}: {each:?} a row"));
    }
}
