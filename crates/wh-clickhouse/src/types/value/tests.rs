//! One example for each rule. The engine's own word is the differential test of `wh-api`.

use super::*;

fn verdict(ty: &str, value: &str) -> Verdict {
    let mut edits = Vec::new();
    let kind = JsonKind::of(value.as_bytes()).unwrap();
    judge(&Type::parse(ty), value.as_bytes(), 0..value.len(), kind, &mut edits)
}

#[track_caller]
fn all(name: &str, cases: &[(&str, &[&str])]) {
    for (ty, values) in cases {
        for value in *values {
            let verdict = verdict(ty, value);
            let got = match &verdict {
                Verdict::Takes => "takes",
                Verdict::CannotTell => "cannot tell",
                Verdict::Alters(_) => "alters",
                Verdict::Refuses(_) => "refuses",
                Verdict::WrongKind(_) => "wrong kind",
            };
            assert_eq!(got, name, "{ty} ← {value}: {verdict:?}");
        }
    }
}

#[test]
fn what_is_exact_is_taken() {
    all(
        "takes",
        &[
            ("UInt8", &["0", "255", "\"255\"", "\"+7\"", "\"007\"", "true", "\"false\""]),
            ("Int8", &["-128", "-0", "127"]),
            ("UInt64", &["18446744073709551615"]),
            ("Int256", &["-57896044618658097711785492504343953926634992332820282019728792003956564819968"]),
            ("Float64", &["1.7976931348623157e308", "5e-324", "1e-400", "\"-1.5e3\""]),
            ("Decimal(9, 2)", &["9999999.999", "1e2", "-0.00", "\"3.14\"", "100000000e-2"]),
            ("FixedString(3)", &["\"\"", "\"é\"", r#""\u00e9a""#]),
            ("String", &["1", "[ 1 ]", r#""\ud83d\ude00""#]),
            ("UUID", &["\"61f0c404-5cb3-11e7-907b-a6006ad3dba0\"", "\"61F0C4045CB311E7907BA6006AD3DBA0\""]),
            ("IPv6", &["\"::1\"", "\"1.2.3.4\""]),
            ("Date", &["\"2149-06-06\"", "\"2024-02-29\""]),
            ("DateTime('UTC')", &["\"1970-01-01 00:00:00\"", "\"2106-02-07T06:28:15.9Z\"", "4294967295"]),
            ("DateTime64(9)", &["\"2262-04-11T23:47:15.999999999+00:00\"", "1750478400.5", "0"]),
            ("Time", &["\"-999:59:59\"", "-3599999"]),
            ("Enum8('a' = 1)", &["1", r#""\u0061""#]),
            ("Array(Array(UInt8))", &["[]", "[[1, 2], []]"]),
            ("Map(Int8, Nullable(Int8))", &[r#"{"1": null, "-2": 3}"#]),
            ("Tuple(a Int8, b Nullable(Int8))", &[r#"{"a":1}"#]),
            ("Polygon", &["[[[0, 0], [1.5, 2]]]"]),
            ("JSON", &[r#"{"a":{"b":[1,"x",null]},"c":true}"#]),
            ("Nullable(UInt8)", &["null"]),
        ],
    );
}

#[test]
fn what_would_be_stored_otherwise_is_told() {
    all(
        "alters",
        &[
            ("UInt8", &["256", "\"256\"", "\"\"", "99999999999999999999999999"]),
            ("Int32", &["2147483648", "-2147483649"]),
            ("Float32", &["1e39"]),
            ("Decimal(9, 2)", &["\"\""]),
            ("Date", &["\"1969-12-31\"", "\"2149-06-07\"", "\"2023-02-29\"", "65536", "-1"]),
            ("DateTime", &["\"1960-01-01 00:00:00\"", "\"2106-02-07 06:28:16Z\"", "-1", "\"12\""]),
            ("DateTime64(3)", &["1750478400123", "20250101101112"]),
            ("Dynamic", &["18446744073709551616"]),
            ("Time", &["3600000", "\"12:60:00\""]),
            ("Enum8('a' = 1)", &["257"]),
            ("Array(UInt8)", &["[1,null]", "[256]"]),
            ("Tuple(a Int8)", &["{}", r#"{"a":1,"b":2}"#]),
            ("Map(String, UInt8)", &[r#"{"b":256}"#, r#"{"b":null}"#]),
        ],
    );
}

#[test]
fn what_clickhouse_refuses_is_refused() {
    all(
        "refuses",
        &[
            ("UInt8", &["-1", "-0", "\"abc\"", "\" 1\"", "\"1.0\"", r#""\u0031""#]),
            ("Bool", &["2", "-0"]),
            ("Float64", &["\"\"", "\"abc\""]),
            ("Decimal(9, 2)", &["10000000", "1e7", "\"abc\""]),
            ("FixedString(3)", &["\"éé\""]),
            ("String", &[r#""\ud83d""#, r#""\ud83dx""#]),
            ("UUID", &["\"\"", "\"61f0c404\""]),
            ("IPv4", &["\"\"", "\"::1\""]),
            ("IPv6", &["\"fe80::1%eth0\""]),
            ("Date", &["\"\"", "\"2023-01-01 00:00:00\"", "\"19358\""]),
            ("DateTime", &["\"\"", "\"2026-02-30 00:00:00\"", "\"2026-13-01\""]),
            ("DateTime64(9, 'UTC')", &["\"2262-04-11 23:47:17\"", "\"1677-09-21 00:12:43\""]),
            ("DateTime64(9)", &["\"2300-01-01 00:00:00\"", "-1", "1e9", "17504784001"]),
            ("Enum8('a' = 1)", &["\"b\"", "2"]),
            ("Array(UInt8)", &["[1.5]", "[[1]]"]),
            ("Tuple(Int8, Int8)", &["[1]", "[1,2,3]"]),
            ("Tuple(a Int8)", &[r#"{"a":1,"a":2}"#]),
            ("Map(UUID, Int8)", &[r#"{"x":1}"#]),
        ],
    );
    all("wrong kind", &[("UInt8", &["1.0", "[1]"]), ("Array(UInt8)", &["1", "{}"]), ("Bool", &["\"true\""])]);
}

#[test]
fn what_is_not_modelled_is_left_to_clickhouse() {
    all(
        "cannot tell",
        &[
            ("DateTime", &["\"2001/01/01 00:47\"", "\"20250101\"", "\"1970-01-01 00:00:00\"", "1.5"]),
            ("DateTime64(3)", &["\"2300-01-01 00:00:00\""]),
            ("DateTime64(9)", &["\"2262-04-11 23:47:16Z\""]),
            ("Date", &["1", "\"2023/01/01\""]),
            ("Float64", &["\"nan\"", "\"--1\""]),
            ("Decimal(9, 2)", &["0e10"]),
            ("Variant(Int8, String)", &["1", "\"a\""]),
            ("JSON", &[r#"{"a.b":1}"#, r#"{"a":1,"a":2}"#]),
            ("Dynamic", &["1e5"]),
        ],
    );
}

#[test]
fn edits_are_found_at_any_depth() {
    let edits = |ty: &str, value: &str| {
        let mut edits = Vec::new();
        let kind = JsonKind::of(value.as_bytes()).unwrap();
        let _verdict = judge(&Type::parse(ty), value.as_bytes(), 0..value.len(), kind, &mut edits);
        edits.into_iter().map(|(at, edit)| (value[at].to_owned(), edit)).collect::<Vec<_>>()
    };
    let own = |text: &str, edit| (text.to_owned(), edit);
    assert_eq!(edits("Nullable(DateTime64(3))", "12.5"), [own("12.5", Edit::Seconds)]);
    assert_eq!(edits("Nullable(DateTime64(3))", "null"), []);
    assert_eq!(
        edits("Map(String, Array(DateTime64(3)))", r#"{"a":[ 1 ,"x"],"b":[2]}"#),
        [own("1", Edit::Seconds), own("2", Edit::Seconds)]
    );
    assert_eq!(edits("Array(String)", r#"[{"a": 1},{"a":"b c"},[1]]"#), [own(r#"{"a": 1}"#, Edit::Text)]);
}

#[test]
fn a_moment_is_read_with_its_fraction_and_whether_it_named_its_offset() {
    let read = |text: &str| read_moment(text.as_bytes()).map(|at| (at.seconds, at.nanos, at.exact));
    for (text, expected) in [
        ("1970-01-02", Some((86_400, 0, false))),
        ("1970-01-01 00:00:01.5", Some((1, 500_000_000, false))),
        ("1970-01-01T01:00:00.1234567899+01:00", Some((0, 123_456_789, true))),
        ("1969-12-31T23:59:59Z", Some((-1, 0, true))),
        ("1970-01-01 24:00:00", None),
        ("1970-02-30", None),
        ("0000-01-01", None),
        ("1970-01-01 00:00", None),
        ("", None),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}
