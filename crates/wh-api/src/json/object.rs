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
pub(crate) fn object<T: for<'de> Deserialize<'de>>(text: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice::<Object<T>>(text).map(|object| object.0)
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
        ] {
            let said = object::<Outer>(text.as_bytes()).unwrap_err().to_string();
            assert!(said.contains(told), "{text}: {said}");
        }
    }
}
