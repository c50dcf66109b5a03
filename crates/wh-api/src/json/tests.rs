//! The scanner against `serde_json`, and by hand where the offset matters.

use super::*;
use proptest::prelude::*;
use wh_clickhouse::types::{Edit, JsonKind};

fn whole(text: &[u8]) -> Result<Value, Fault> {
    let mut scanner = Scanner::new(text, 0);
    let value = scanner.value(0)?;
    if scanner.peek().is_some() { Err(scanner.expected("the end")) } else { Ok(value) }
}

fn compact(text: &str) -> String {
    let mut out = Vec::new();
    push_compact(&mut out, text.as_bytes(), 0..text.len(), &[]);
    String::from_utf8(out).unwrap()
}

#[test]
fn half_of_a_surrogate_pair_is_found() {
    for (text, half) in [
        ("", false),
        ("plain", false),
        (r"\n\u0041", false),
        (r"\ud83d\ude00", false),
        (r"\\ud83d", false),
        (r"\ufffd \uFFFD", false),
        (r"\ud83d", true),
        (r"x\udc00", true),
        (r"\ud83d\u0041", true),
        (r"\ud83d\ude00\ude00", true),
        (r"\\\udc00", true),
    ] {
        assert_eq!(has_half_a_pair(text.as_bytes()), half, "{text}");
    }
}

#[test]
fn faults_name_the_byte_they_are_at() {
    for (text, at, what) in [
        ("", 0, What::Truncated),
        ("{", 1, What::Truncated),
        (r#"{"a""#, 4, What::Truncated),
        (r#"{"a" 1}"#, 5, What::Expected("':'")),
        (r#"{"a":}"#, 5, What::Expected("a value")),
        (r#"{"a":1,}"#, 7, What::Expected("a key in quotes")),
        (r#"{a:1}"#, 1, What::Expected("a key in quotes or '}'")),
        (r#"{"a":1 "b":2}"#, 7, What::Expected("',' or '}'")),
        (r#"{"a":[1,2"#, 9, What::Truncated),
        (r#"[1 2]"#, 3, What::Expected("',' or ']'")),
        (r#"[1,]"#, 3, What::Expected("a value")),
        (r#"{"a":"x"#, 7, What::Truncated),
        ("{\"a\":\"x\ny\"}", 7, What::Control),
        (r#"{"a":"\x"}"#, 6, What::Escape),
        (r#"{"a":"\u12G4"}"#, 6, What::Escape),
        (r#"{"a":"\u12"#, 10, What::Truncated),
        (r#"{"a":01}"#, 6, What::Expected("',' or '}'")),
        (r#"{"a":-}"#, 6, What::Expected("a digit")),
        (r#"{"a":1.}"#, 7, What::Expected("a digit")),
        (r#"{"a":1e}"#, 7, What::Expected("a digit")),
        (r#"{"a":+1}"#, 5, What::Expected("a value")),
        (r#"{"a":nul}"#, 5, What::Expected("true, false or null")),
        (r#"{"a":nul"#, 8, What::Truncated),
        (r#"{"a":NaN}"#, 5, What::Expected("a value")),
        ("{'a':1}", 1, What::Expected("a key in quotes or '}'")),
    ] {
        assert_eq!(whole(text.as_bytes()), Err(Fault { at, what }), "{text}");
    }
}

#[test]
fn nesting_has_a_bound() {
    let nested = |n: usize| [b"[".repeat(n), b"]".repeat(n)].concat();
    assert!(whole(&nested(128)).is_ok());
    assert_eq!(whole(&nested(129)), Err(Fault { at: 128, what: What::TooDeep }));
    assert_eq!(whole(&b"{\"a\":".repeat(100_000)).unwrap_err().what, What::TooDeep, "no stack is overrun");
}

#[test]
fn kinds_are_told_apart() {
    for (text, kind) in [
        ("0", JsonKind::Integer),
        ("-12345678901234567890123", JsonKind::Integer),
        ("-0.5", JsonKind::Float),
        ("1E+9", JsonKind::Float),
        ("true", JsonKind::Bool),
        ("false", JsonKind::Bool),
        ("null", JsonKind::Null),
        (r#""""#, JsonKind::String),
        ("[]", JsonKind::Array),
        ("{}", JsonKind::Object),
    ] {
        assert_eq!(whole(text.as_bytes()).map(|v| v.kind), Ok(kind), "{text}");
    }
}

#[test]
fn only_white_space_between_tokens_goes() {
    assert_eq!(
        compact("{\r\n\t\"a b\" : [ 1 , 2.50 ],\n \"c\\\" d\": \" e\\\\\" }"),
        r#"{"a b":[1,2.50],"c\" d":" e\\"}"#
    );
    let text = br#" {"t": 1750478400.5 ,"u":1}"#;
    let mut out = Vec::new();
    push_compact(&mut out, text, 1..text.len(), &[(7..19, Edit::Seconds), (25..26, Edit::Seconds)]);
    assert_eq!(out, br#"{"t":"1750478400.5","u":"0000000001"}"#);
}

#[test]
fn values_whose_white_space_counts_keep_it() {
    let text = b"{ \"s\" : [1,\n \"a\\n\"], \"v\" : { \"x\":\n\t1 } }";
    let (s, v) = (8..19, 27..38);
    assert_eq!((&text[s.clone()], &text[v.clone()]), (&b"[1,\n \"a\\n\"]"[..], &b"{ \"x\":\n\t1 }"[..]));
    let mut out = Vec::new();
    push_compact(&mut out, text, 0..text.len(), &[(s, Edit::Text), (v, Edit::Verbatim)]);
    let row: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(row["s"], "[1,\n \"a\\n\"]");
    assert!(out.ends_with(b"\"v\":{ \"x\": \t1 }}") && !out.contains(&b'\n'), "{}", String::from_utf8_lossy(&out));
}

#[test]
fn strings_are_unescaped_as_json_says() {
    for (escaped, plain) in [
        (r"a\u0062c", "abc"),
        (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
        (r"\ud83d\ude00!", "😀!"),
        (r"\ud83dx", "\u{fffd}x"),
        (r"\udead\u0041", "\u{fffd}A"),
        ("é", "é"),
    ] {
        assert_eq!(unescape(escaped.as_bytes(), true), plain.as_bytes(), "{escaped}");
    }
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(|f| serde_json::json!(f)),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            proptest::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_serde_writes_is_taken_and_compacts_to_itself(value in json(), pretty in any::<bool>()) {
        let plain = serde_json::to_string(&value).unwrap();
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { plain.clone() };
        let got = whole(text.as_bytes()).unwrap();
        prop_assert_eq!(got.span, 0..text.len());
        prop_assert_eq!(compact(&text), plain);
    }

    #[test]
    fn any_text_is_taken_exactly_when_serde_takes_it(text in r#"[\[\]{}:,"\\ux0-9a-f.eE+\- \ntrulsn\x01é]{0,40}"#) {
        let serde = serde_json::from_str::<Box<serde_json::value::RawValue>>(&text).is_ok();
        prop_assert_eq!(whole(text.as_bytes()).is_ok(), serde, "{}", text);
    }

    #[test]
    fn a_damaged_text_is_judged_as_serde_judges_it(value in json(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = serde_json::to_vec(&value).unwrap();
        let at = at.index(text.len());
        text[at] = byte;
        if std::str::from_utf8(&text).is_ok() {
            let serde = serde_json::from_slice::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(whole(&text).is_ok(), serde, "{}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn strings_come_out_as_serde_reads_them(text in any::<String>(), ascii in any::<bool>()) {
        let mut json = serde_json::to_string(&text).unwrap();
        if ascii {
            let mut escaped = String::new();
            for c in json.chars() {
                if c.is_ascii() { escaped.push(c) } else {
                    for unit in c.encode_utf16(&mut [0; 2]) { escaped.push_str(&format!("\\u{unit:04x}")) }
                }
            }
            json = escaped;
        }
        prop_assert_eq!(&*unescape(&json.as_bytes()[1..json.len() - 1], true), text.as_bytes());
    }
}
