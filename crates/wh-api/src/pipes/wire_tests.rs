//! Values of every type in their wire form, and what does not fit.

use super::*;

fn json(ty: &str, json: &str) -> Result<String, String> {
    of_json(&Type::parse(ty), json, "UTC")
}

fn texts(ty: &str, texts: &[&str]) -> Result<String, String> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    of_texts(&Type::parse(ty), &texts, "UTC")
}

#[test]
fn values_that_fit_become_what_clickhouse_reads() {
    for (ty, given, wire) in [
        ("UInt64", "18446744073709551615", "18446744073709551615"),
        ("UInt64", "\"5\"", "5"),
        ("Int8", "-128", "-128"),
        ("Float64", "1e5", "1e5"),
        ("Decimal(9, 2)", "3.15", "3.15"),
        ("Bool", "true", "true"),
        ("Bool", "0", "false"),
        ("String", r#""it's a\t\\b\n""#, r"it's a\t\\b\n"),
        ("LowCardinality(String)", "\"x\"", "x"),
        ("Nullable(Int32)", "null", r"\N"),
        ("Nullable(String)", r#""\\N""#, r"\\N"),
        ("UUID", "\"61f0c404-5cb3-11e7-907b-a6006ad3dba0\"", "61f0c404-5cb3-11e7-907b-a6006ad3dba0"),
        ("IPv4", "\"1.2.3.4\"", "1.2.3.4"),
        ("Date", "\"2001-12-31\"", "2001-12-31"),
        ("Enum8('a' = 1, 'b' = 2)", "\"b\"", "b"),
        ("Enum8('a' = 1, 'b' = 2)", "2", "b"),
        ("DateTime", "\"2001-09-09T01:46:40Z\"", "1000000000"),
        ("DateTime", "\"1970-01-01T00:01:40+00:00\"", "0000000100"),
        ("DateTime", "\"2001-09-09T01:46:40\"", "2001-09-09 01:46:40"),
        ("DateTime", "\"2001-09-09\"", "2001-09-09 00:00:00"),
        ("DateTime", "100", "0000000100"),
        ("DateTime64(3)", "\"2001-09-09T03:46:40.5+02:00\"", "1000000000.500000000"),
        ("DateTime64(3)", "\"2001-09-09 01:46:40.25\"", "2001-09-09 01:46:40.25"),
        ("DateTime64(3)", "1000000000.5", "1000000000.5"),
        ("DateTime64(3)", "\"1969-12-31T23:59:59.5Z\"", "1969-12-31 23:59:59.500000000"),
        ("Array(UInt8)", " [1, 2,\"3\"] ", "[1,2,3]"),
        ("Array(String)", r#"["a') OR 1=1 --", "\\'"]"#, r"['a\') OR 1=1 --','\\\'']"),
        ("Array(Nullable(Date))", "[null,\"2001-12-31\"]", "[NULL,'2001-12-31']"),
        ("Array(Array(Bool))", "[[true,0],[]]", "[[true,false],[]]"),
        ("Array(Enum8('a' = 1))", "[1]", "['a']"),
    ] {
        assert_eq!(json(ty, given).as_deref(), Ok(wire), "{ty} {given}");
    }
    for (ty, given, wire) in [
        ("UInt8", &["7"][..], "7"),
        ("Bool", &["true"], "true"),
        ("Nullable(Bool)", &["1"], "true"),
        ("String", &[""], ""),
        ("DateTime", &["1000000000"], "1000000000"),
        ("Array(UInt8)", &["1", "2"], "[1,2]"),
        ("Array(String)", &["[1,2]"], "['[1,2]']"),
    ] {
        assert_eq!(texts(ty, given).as_deref(), Ok(wire), "{ty} {given:?}");
    }
}

#[test]
fn values_that_do_not_fit_are_told_why() {
    for (ty, given, told) in [
        ("UInt8", "256", "out of range"),
        ("UInt8", "-1", "negative"),
        ("UInt8", "1.5", "a whole number"),
        ("UInt8", "true", "is a boolean, not a number"),
        ("UInt8", "\"+5\"", "is no number"),
        ("UInt8", "\" 5\"", "is no number"),
        ("UInt8", "\"5; DROP TABLE t\"", "is no number"),
        ("UInt8", "null", "is null, and its type has no NULL"),
        ("String", "5", "is a whole number, not a string"),
        ("String", "{}", "is an object, not a string"),
        ("String", r#""\ud800""#, "surrogate"),
        ("FixedString(2)", "\"abc\"", "has 3 bytes, more than 2"),
        ("Bool", "2", "true or false"),
        ("Bool", "\"true\"", "true or false"),
        ("UUID", "\"x\"", "is no UUID"),
        ("IPv4", "\"1.2.3\"", "address"),
        ("Date", "\"31.12.2001\"", "date"),
        ("Date", "\"2001-02-30\"", "does not exist"),
        ("Date", "5", "not a string"),
        ("DateTime", "\"yesterday\"", "is no time like"),
        ("DateTime", "\"2001-09-09 25:00:00\"", ""),
        ("DateTime", "1.5", "fraction"),
        ("DateTime", "4294967296", "out of range"),
        ("DateTime", "-5", "is no time like"),
        ("DateTime", "true", "not a string"),
        ("DateTime64(3)", "1000000000000", "more than 10 digits"),
        ("DateTime64(3, 'Asia/Tokyo')", "\"1969-12-31T23:59:59Z\"", "before 1970"),
        ("Enum8('a' = 1)", "\"c\"", ""),
        ("Enum8('a' = 1)", "7", ""),
        ("Array(UInt8)", "5", "is a whole number, not an array"),
        ("Array(UInt8)", "[1,\"x\"]", "has an element 1 that is no number"),
        ("Array(UInt8)", "[null]", "has an element 0 that is null"),
        ("Nullable(UInt8)", "[]", "is an array"),
    ] {
        let why = json(ty, given).unwrap_err();
        assert!(why.contains(told) && !why.is_empty(), "{ty} {given}: {why}");
    }
    assert!(texts("UInt8", &["1", "2"]).unwrap_err().contains("more than once"));
    let long = format!("\"{}\"", "x".repeat(LONGEST_PARAMETER + 1));
    assert!(json("String", &long).unwrap_err().contains("128 KiB"));
    let many = format!("[{}1]", "1,".repeat(LONGEST_PARAMETER));
    assert!(json("Array(UInt8)", &many).unwrap_err().contains("128 KiB"));
}

#[test]
fn what_a_parameter_cannot_be_is_told() {
    for (ty, good) in [
        ("Array(Array(Nullable(Decimal(9, 2))))", true),
        ("LowCardinality(Nullable(String))", true),
        ("DateTime64(3, 'UTC')", true),
        ("Identifier", false),
        ("Map(String, String)", false),
        ("Tuple(UInt8)", false),
        ("BFloat16", false),
        ("Array(Array(Array(Array(Array(UInt8)))))", false),
        ("AggregateFunction(sum, UInt64)", false),
    ] {
        assert_eq!(unusable(&Type::parse(ty)).is_none(), good, "{ty}");
    }
    assert!(unusable(&Type::parse("Identifier")).unwrap().starts_with("\"Identifier\" is no type"));
}
