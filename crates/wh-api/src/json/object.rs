//! Structures that are read from JSON objects and from nothing else. A derived structure also takes an array, its
//! members by position: a request that nobody documented, and one that a new member would silently change.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::{fmt, marker::PhantomData};

/// A structure from an object. For members of a structure: [`object`], [`objects`], [`maybe`].
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// A whole text that is one object.
pub(crate) fn object<T: for<'de> Deserialize<'de>>(text: &[u8]) -> Result<T, Misread> {
    let mut from = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize::<_, Object<T>>(&mut from);
    let object = read.map_err(|error| {
        let way = error.path().iter().next().map(|_| error.path().to_string());
        Misread::new(way, &error.into_inner())
    })?;
    from.end().map_err(|error| Misread::new(None, &error))?;
    Ok(object.0)
}

/// Why a text is not the object it should be, and at which member.
#[derive(Debug)]
pub(crate) struct Misread(String);

/// Most characters of a reason: it may repeat what was sent.
const LONGEST_REASON: usize = 200;
/// What is expected, in words of JSON.
const WORDS: &[(&str, &str)] = &[
    ("expected i64", "expected a whole number"),
    ("expected u64", "expected a whole number, not negative"),
    ("expected f64", "expected a number"),
    ("expected a sequence", "expected an array"),
    ("expected a map", "expected an object"),
];

impl Misread {
    fn new(way: Option<String>, error: &serde_json::Error) -> Self {
        let text = error.to_string();
        // what was sent stands before it, whatever it says
        let (given, mut wanted) = match text.rfind("expected ") {
            Some(at) => (&text[..at], text[at..].to_owned()),
            None => (text.as_str(), String::new()),
        };
        for (word, plain) in WORDS {
            if let Some(rest) = wanted.strip_prefix(word) {
                wanted = format!("{plain}{rest}");
                break;
            }
        }
        let way = way.map(|way| format!("\"{}\": ", shortened(&way))).unwrap_or_default();
        Self(format!("{way}{}{}", shortened(given), shortened(&wanted)))
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_REASON) {
        Some((cut, _)) => format!("{}… ", &text[..cut]),
        None => text.to_owned(),
    }
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A member that is a list of objects.
pub(crate) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Object<T>>::deserialize(from)?.into_iter().map(|object| object.0).collect())
}

/// A member that is an object, null, or absent (with `default`).
pub(crate) fn maybe<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<Object<T>>::deserialize(from)?.map(|object| object.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[serde(default, deserialize_with = "objects")]
        list: Vec<Inner>,
        #[serde(default, deserialize_with = "maybe")]
        one: Option<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        value: Box<RawValue>,
    }

    #[test]
    fn members_keep_their_own_text() {
        let outer: Outer = object(br#"{"list":[{"value":1.50},{"value":"a"}],"one":{"value": [1] }}"#).unwrap();
        let texts: Vec<_> = outer.list.iter().map(|inner| inner.value.get()).collect();
        assert_eq!(texts, ["1.50", "\"a\""]);
        assert_eq!(outer.one.unwrap().value.get(), "[1]");
        assert!(object::<Outer>(b" {\"one\":null} ").unwrap().one.is_none());
    }

    #[test]
    fn lists_in_the_place_of_objects_are_refused() {
        for (text, told) in [
            ("[[],null]", "invalid type: sequence, expected an object"),
            (r#"{"list":[["a"]]}"#, "invalid type: sequence, expected an object"),
            (r#"{"one":["a"]}"#, "invalid type: sequence, expected an object"),
            ("7", "expected an object"),
            (r#"{"list":[{"value":1,"x":2}]}"#, "unknown field `x`"),
            (r#"{"one":{}}"#, "missing field `value`"),
            ("{} {}", "trailing characters"),
            (r#"{"list":[{"value":1},["a"]]}"#, "\"list[1]\": invalid type: sequence, expected an object"),
            (r#"{"one":{"value":1,"deep":[]}}"#, "\"one.deep\": unknown field"),
        ] {
            let said = object::<Outer>(text.as_bytes()).unwrap_err().to_string();
            assert!(said.contains(told), "{text}: {said}");
        }
    }

    #[derive(Debug, Deserialize)]
    struct Typed {
        #[serde(rename = "limit")]
        _limit: Option<i64>,
        #[serde(rename = "level")]
        _level: Option<f64>,
        #[serde(rename = "names")]
        _names: Option<Vec<String>>,
    }

    #[test]
    fn a_member_of_another_type_is_named() {
        for (text, told) in [
            (r#"{"limit":"5"}"#, "\"limit\": invalid type: string \"5\", expected a whole number at line 1 column 12"),
            (r#"{"limit":1.5}"#, "\"limit\": invalid type: floating point `1.5`, expected a whole number"),
            (r#"{"level":[]}"#, "\"level\": invalid type: sequence, expected a number"),
            (r#"{"names":"expected i64"}"#, "\"names\": invalid type: string \"expected i64\", expected an array"),
            (r#"{"names":["a",{}]}"#, "\"names[1]\": invalid type: map, expected a string"),
            (r#"{"limit":1,"limit":1}"#, "duplicate field `limit`"),
        ] {
            let said = object::<Typed>(text.as_bytes()).unwrap_err().to_string();
            assert!(said.starts_with(told), "{text}: {said}");
        }
        let long = object::<Typed>(format!("{{\"limit\":\"{}\"}}", "é".repeat(100_000)).as_bytes()).unwrap_err();
        assert!(long.to_string().len() < 1_000 && long.to_string().contains("expected a whole number"), "{long}");
    }
}
