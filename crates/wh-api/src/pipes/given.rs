//! The values that a request gives: by query string and by body, the body's first.

use super::refused::Refused;
use crate::{codes, error::shown, json};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, fmt};

/// Parameters of the query string that are not the pipe's.
pub(super) const OURS: &[&str] = &["format", "numbers"];

/// A value as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// JSON, from the body.
    Json(String),
    /// Every text of that name in the query string.
    Texts(Vec<String>),
}

/// Every value by its name.
pub(super) type AllGiven = BTreeMap<String, Given>;

/// Reads a request.
///
/// # Errors
/// The body is no object, or has a member twice.
pub(super) fn read(query: &str, body: &[u8]) -> Result<AllGiven, Refused> {
    let mut all = AllGiven::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if OURS.contains(&name.as_ref()) {
            continue;
        }
        match all.entry(name.into_owned()).or_insert_with(|| Given::Texts(Vec::new())) {
            Given::Texts(texts) => texts.push(value.into_owned()),
            Given::Json(_) => {}
        }
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(all);
    }
    let members: Members = json::object(body).map_err(|error| Refused {
        code: &codes::PIPE_BODY,
        text: format!("the body is not an object of parameters: {error}"),
    })?;
    all.extend(members.0);
    Ok(all)
}

/// An object's members, each once.
struct Members(AllGiven);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut all = AllGiven::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            let again = all.insert(name.clone(), Given::Json(value.get().to_owned())).is_some();
            if again {
                let text = format!("the member {} stands there twice", shown(name.as_bytes()));
                return Err(serde::de::Error::custom(text));
            }
        }
        Ok(Members(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_comes_before_the_query_string() {
        let all = read("a=1&b=x+y&b=%5B&format=csv&numbers=string", br#" {"a": [1, 2.50], "c": null} "#).unwrap();
        let texts = |texts: &[&str]| Given::Texts(texts.iter().map(|text| (*text).to_owned()).collect());
        let expected = [
            ("a", Given::Json("[1, 2.50]".to_owned())),
            ("b", texts(&["x y", "["])),
            ("c", Given::Json("null".to_owned())),
        ];
        assert_eq!(all, expected.map(|(name, given)| (name.to_owned(), given)).into());
        assert_eq!(read("", b" \n").unwrap(), AllGiven::new());
    }

    #[test]
    fn a_body_that_is_no_object_of_parameters_is_refused() {
        for (body, told) in [
            ("{", "EOF"),
            ("[]", "an object"),
            ("null", "an object"),
            ("{} {}", "trailing"),
            (r#"{"a":1,"a":1}"#, "\"a\" stands there twice"),
            ("{\"a\":01}", "number"),
            ("\u{feff}{}", ""),
        ] {
            let refused = read("", body.as_bytes()).unwrap_err();
            assert!(refused.text.contains(told), "{body}: {}", refused.text);
        }
    }
}
