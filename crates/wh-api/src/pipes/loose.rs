//! Parameters of older files, whose type follows from each value (decision D26). Pure.

use super::wire;
use serde_json::value::RawValue;
use wh_clickhouse::{
    sql,
    types::{JsonKind, Type},
};

/// What an older file says of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Loose {
    /// Nothing.
    #[default]
    Any,
    /// `string`.
    String,
    /// `number`.
    Number,
    /// `boolean`.
    Boolean,
    /// `array`.
    Array,
}

/// A type and the wire form of a value of it.
pub(super) type Typed = (String, String);

impl Loose {
    /// Of the word that stands for it.
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "string" => Self::String,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            _ => return None,
        })
    }

    /// Its word.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
        }
    }

    /// A JSON value. NULL is a value of every kind.
    pub(super) fn of_json(self, json: &str) -> Result<Typed, String> {
        let json = json.trim();
        let kind = JsonKind::of(json.as_bytes()).ok_or("is nothing")?;
        let fits = match self {
            Self::Any => true,
            Self::String => kind == JsonKind::String,
            Self::Number => matches!(kind, JsonKind::Integer | JsonKind::Float),
            Self::Boolean => kind == JsonKind::Bool,
            Self::Array => kind == JsonKind::Array,
        };
        if kind == JsonKind::Null {
            return Ok(("Nullable(String)".to_owned(), sql::NULL.to_owned()));
        }
        if !fits {
            return Err(format!("is {}, and its type is {}", kind.name(), self.name()));
        }
        if kind == JsonKind::Array {
            return array(json);
        }
        let ty = scalar(kind, json).ok_or("is an object, which no parameter can be")?;
        let wire = wire::of_json(&Type::parse(ty), json, "UTC")?;
        Ok((ty.to_owned(), wire))
    }

    /// Texts, as a query string has them. What looks like a number is one where nothing says what it is.
    pub(super) fn of_texts(self, texts: &[String]) -> Result<Typed, String> {
        let quoted = |text: &String| serde_json::to_string(text).unwrap_or_default();
        let json_of = |text: &String| match self {
            Self::String => quoted(text),
            Self::Boolean if matches!(text.as_str(), "true" | "false") => text.clone(),
            Self::Any | Self::Number if wire::is_number(text) => text.clone(),
            Self::Any | Self::Number | Self::Boolean | Self::Array => quoted(text),
        };
        match (self, texts) {
            (Self::Array, _) => {
                let numbers = texts.iter().all(|text| wire::is_number(text));
                let elements = texts.iter().map(|text| if numbers { text.clone() } else { quoted(text) });
                array(&format!("[{}]", elements.collect::<Vec<_>>().join(",")))
            }
            (_, [one]) => self.of_json(&json_of(one)),
            _ => Err("is given more than once, and is no array".to_owned()),
        }
    }
}

/// The type of a value that is no array.
fn scalar(kind: JsonKind, json: &str) -> Option<&'static str> {
    match kind {
        JsonKind::String => Some("String"),
        JsonKind::Bool => Some("Bool"),
        JsonKind::Integer if json.parse::<i64>().is_ok() => Some("Int64"),
        JsonKind::Integer if json.parse::<u64>().is_ok() => Some("UInt64"),
        JsonKind::Integer | JsonKind::Float => Some("Float64"),
        JsonKind::Null | JsonKind::Array | JsonKind::Object => None,
    }
}

/// An array: of the one type that all its elements have. `IN []` has none, so an empty one is refused.
fn array(json: &str) -> Result<Typed, String> {
    let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(|error| format!("is no array: {error}"))?;
    let (mut common, mut nullable) = (None, false);
    for (at, element) in elements.iter().enumerate() {
        let text = element.get().trim();
        let kind = JsonKind::of(text.as_bytes()).ok_or("has an element that is nothing")?;
        if kind == JsonKind::Null {
            nullable = true;
            continue;
        }
        let ty = scalar(kind, text).ok_or_else(|| format!("has an element {at} that is {}", kind.name()))?;
        common = Some(match common {
            None => ty,
            Some(common) => both(common, ty).ok_or("has elements of several kinds")?,
        });
    }
    let mut common = common.ok_or("is an array without a value, whose type nobody can tell")?;
    let whole =
        |element: &&RawValue| matches!(element.get().trim(), "null") || element.get().trim().parse::<u64>().is_ok();
    if common == "Float64" && elements.iter().all(whole) {
        common = "UInt64";
    }
    let ty = if nullable { format!("Array(Nullable({common}))") } else { format!("Array({common})") };
    let wire = wire::of_json(&Type::parse(&ty), json, "UTC")?;
    Ok((ty, wire))
}

/// The type that has the values of both.
fn both(a: &'static str, b: &'static str) -> Option<&'static str> {
    let number = |ty| matches!(ty, "Int64" | "UInt64" | "Float64");
    match (a, b) {
        _ if a == b => Some(a),
        _ if number(a) && number(b) => Some("Float64"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_follows_from_the_value() {
        for (loose, json, ty, wire) in [
            (Loose::Any, "\"5\"", "String", "5"),
            (Loose::Any, "-5", "Int64", "-5"),
            (Loose::Any, "18446744073709551615", "UInt64", "18446744073709551615"),
            (Loose::Number, "1.5", "Float64", "1.5"),
            (Loose::Any, "36893488147419103232", "Float64", "36893488147419103232"),
            (Loose::Boolean, "true", "Bool", "true"),
            (Loose::String, "null", "Nullable(String)", "\\N"),
            (Loose::Any, "[1,2]", "Array(Int64)", "[1,2]"),
            (Loose::Array, "[1,1.5]", "Array(Float64)", "[1,1.5]"),
            (Loose::Any, "[1,18446744073709551615]", "Array(UInt64)", "[1,18446744073709551615]"),
            (Loose::Any, "[\"a') OR 1=1 --\",null]", "Array(Nullable(String))", "['a\\') OR 1=1 --',NULL]"),
        ] {
            assert_eq!(loose.of_json(json), Ok((ty.to_owned(), wire.to_owned())), "{json}");
        }
        for (loose, texts, ty, wire) in [
            (Loose::Any, &["5"][..], "Int64", "5"),
            (Loose::String, &["5"], "String", "5"),
            (Loose::Any, &["05"], "String", "05"),
            (Loose::Any, &["true"], "String", "true"),
            (Loose::Boolean, &["true"], "Bool", "true"),
            (Loose::Array, &["5", "6"], "Array(Int64)", "[5,6]"),
            (Loose::Array, &["5", "x"], "Array(String)", "['5','x']"),
        ] {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(loose.of_texts(&texts), Ok((ty.to_owned(), wire.to_owned())), "{texts:?}");
        }
    }

    #[test]
    fn what_no_type_has_is_refused() {
        for (loose, json, told) in [
            (Loose::Any, "{}", "an object"),
            (Loose::Any, "[]", "nobody can tell"),
            (Loose::Array, "[null]", "nobody can tell"),
            (Loose::Any, "[[1]]", "has an element 0 that is an array"),
            (Loose::Any, "[1,\"a\"]", "several kinds"),
            (Loose::Number, "\"5\"", "is a string, and its type is number"),
            (Loose::Boolean, "1", "and its type is boolean"),
        ] {
            let why = loose.of_json(json).unwrap_err();
            assert!(why.contains(told), "{json}: {why}");
        }
        let texts = ["yes".to_owned()];
        assert!(Loose::Number.of_texts(&texts).is_err() && Loose::Boolean.of_texts(&texts).is_err());
    }
}
