//! One given value, checked against what its key takes. Knows nothing about other keys.
#![expect(clippy::wildcard_enum_match_arm, reason = "every other kind of YAML value is refused alike")]

use crate::{
    amount::{parse_duration, parse_size, show_duration, show_size},
    key::{Kind, MAX_TEXT},
    overrides::{self, Override},
};
use figment::value::Value;
use std::{collections::BTreeMap, time::Duration};

/// A value that its key takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Bool(bool),
    /// Of `Int` and `Size`.
    Number(u64),
    /// Of `Duration` and `Seconds`.
    Span(Duration),
    /// Of `Text`, `Optional`, `Secret` and `Choice`.
    Text(String),
    /// Of `Choices` and `Texts`.
    Words(Vec<String>),
    Pairs(BTreeMap<String, String>),
    Tables(BTreeMap<String, Override>),
}

/// Reads a value as what its key takes. The problem it gives never repeats a secret.
pub(crate) fn parse(kind: Kind, value: &Value) -> Result<Parsed, String> {
    match kind {
        Kind::Bool => parse_bool(value),
        Kind::Int(min, max) => match whole(value) {
            Some(number) => within(number, min, max, |n| n.to_string()).map(Parsed::Number),
            None => Err(format!("must be a whole number, {min} to {max}")),
        },
        Kind::Size(min, max) => {
            let bytes = match value {
                Value::String(_, text) => parse_size(text)?,
                other => whole(other).ok_or("must be a size like \"8MiB\"")?,
            };
            within(bytes, min, max, show_size).map(Parsed::Number)
        }
        Kind::Duration(min, max) => span(value, false, min, max),
        Kind::Seconds(min, max) => span(value, true, min, max),
        Kind::Text => match text(value)? {
            text if text.is_empty() => Err("must not be empty".to_owned()),
            text => Ok(Parsed::Text(text)),
        },
        Kind::Optional | Kind::Secret => text(value).map(Parsed::Text),
        Kind::Choice(words) => choice(&text(value)?, words).map(Parsed::Text),
        Kind::Choices(words) => parse_words(value, words),
        Kind::Texts => parse_texts(value).map(Parsed::Words),
        Kind::Tables => overrides::parse(value).map(Parsed::Tables),
        Kind::Pairs => parse_pairs(value).map(Parsed::Pairs),
    }
}

fn parse_bool(value: &Value) -> Result<Parsed, String> {
    let text = match value {
        Value::Bool(_, given) => return Ok(Parsed::Bool(*given)),
        Value::String(_, text) => text.to_ascii_lowercase(),
        _ => String::new(),
    };
    match text.as_str() {
        "true" | "1" => Ok(Parsed::Bool(true)),
        "false" | "0" => Ok(Parsed::Bool(false)),
        _ => Err("must be true or false".to_owned()),
    }
}

/// A number that is whole, also when it was written as text.
fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::String(_, text) => text.trim().parse().ok(),
        Value::Num(_, number) => {
            number.to_u128().or_else(|| number.to_i128().and_then(|n| u128::try_from(n).ok()))?.try_into().ok()
        }
        _ => None,
    }
}

fn within<T: PartialOrd + Copy>(value: T, min: T, max: T, show: impl Fn(T) -> String) -> Result<T, String> {
    if value < min || value > max {
        return Err(format!("{} is outside of {} to {}", show(value), show(min), show(max)));
    }
    Ok(value)
}

fn span(value: &Value, bare_seconds: bool, min: Duration, max: Duration) -> Result<Parsed, String> {
    let span = match (whole(value), value) {
        (Some(0), _) => Duration::ZERO,
        (Some(seconds), _) if bare_seconds => Duration::from_secs(seconds),
        (None, Value::String(_, text)) => parse_duration(text)?,
        _ => return Err("must be a duration with a unit, like \"250ms\", \"1s\" or \"1m 30s\"".to_owned()),
    };
    within(span, min, max, show_duration).map(Parsed::Span)
}

fn text(value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(_, text) => text.clone(),
        Value::Char(_, one) => one.to_string(),
        // YAML reads 0123, no and 1e3 as something else than what was typed
        Value::Bool(..) | Value::Num(..) => return Err("must be text: put it in quotes".to_owned()),
        Value::Empty(..) | Value::Dict(..) | Value::Array(..) => return Err("must be text".to_owned()),
    };
    if text.len() > MAX_TEXT {
        return Err(format!("has more than {MAX_TEXT} bytes"));
    }
    if text.contains(['\0', '\r', '\n']) {
        return Err("must not hold line ends or NUL".to_owned());
    }
    Ok(text)
}

fn choice(given: &str, words: &[&str]) -> Result<String, String> {
    let known = words.iter().find(|word| word.eq_ignore_ascii_case(given.trim()));
    let shown: String = given.chars().take(40).collect();
    known.map(|word| (*word).to_owned()).ok_or_else(|| format!("{shown:?} is not one of {}", words.join(", ")))
}

fn parse_words(value: &Value, words: &[&str]) -> Result<Parsed, String> {
    let given = match value {
        Value::Array(_, items) => items.iter().map(text).collect::<Result<Vec<_>, _>>()?,
        other => text(other)?.split(',').map(str::to_owned).collect(),
    };
    let mut list = Vec::new();
    for word in &given {
        let word = choice(word, words)?;
        if list.contains(&word) {
            return Err(format!("names {word} twice"));
        }
        list.push(word);
    }
    if list.is_empty() { Err("must not be empty".to_owned()) } else { Ok(Parsed::Words(list)) }
}

fn parse_texts(value: &Value) -> Result<Vec<String>, String> {
    const MAX: usize = 64;
    let given = match value {
        Value::Array(_, items) => items.iter().map(text).collect::<Result<Vec<_>, _>>()?,
        other => match text(other)? {
            none if none.is_empty() => Vec::new(),
            list => list.split(',').map(|one| one.trim().to_owned()).collect(),
        },
    };
    match given.iter().any(String::is_empty) {
        true => Err("has an empty entry".to_owned()),
        false if given.len() > MAX => Err(format!("has more than {MAX} entries")),
        false => Ok(given),
    }
}

fn parse_pairs(value: &Value) -> Result<BTreeMap<String, String>, String> {
    const MAX: usize = 64;
    let pairs: BTreeMap<String, String> = match value {
        Value::Dict(_, dict) => {
            let each = |(name, value)| text(value).map(|text| (String::clone(name), text));
            dict.iter().map(each).collect::<Result<_, _>>()?
        }
        Value::String(_, json) => {
            serde_json::from_str(json).map_err(|_| "must be a JSON object whose values are texts".to_owned())?
        }
        _ => return Err("must be names with texts".to_owned()),
    };
    if pairs.len() > MAX { Err(format!("has more than {MAX} entries")) } else { Ok(pairs) }
}

impl Parsed {
    /// The value as it would be written, for people. Not for hidden keys.
    pub(crate) fn show(&self, kind: Kind) -> String {
        match self {
            Self::Bool(given) => given.to_string(),
            Self::Number(bytes) if matches!(kind, Kind::Size(..)) => show_size(*bytes),
            Self::Number(number) => number.to_string(),
            Self::Span(span) => show_duration(*span),
            Self::Text(text) => format!("{text:?}"),
            Self::Words(words) => words.join(","),
            Self::Tables(tables) => overrides::show(tables),
            Self::Pairs(pairs) => pairs.keys().cloned().collect::<Vec<_>>().join(","),
        }
    }

    /// Whether nothing is in it: then a hidden value may be shown as nothing.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Pairs(pairs) => pairs.is_empty(),
            Self::Tables(tables) => tables.is_empty(),
            Self::Words(words) => words.is_empty(),
            Self::Bool(_) | Self::Number(_) | Self::Span(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Kind = Kind::Duration(Duration::ZERO, Duration::from_secs(60));

    #[test]
    fn false_zero_and_the_empty_text_are_values() {
        assert_eq!(parse(Kind::Bool, &Value::from(false)), Ok(Parsed::Bool(false)));
        assert_eq!(parse(Kind::Int(0, 9), &Value::from(0)), Ok(Parsed::Number(0)));
        assert_eq!(parse(SPAN, &Value::from(0)), Ok(Parsed::Span(Duration::ZERO)));
        assert_eq!(parse(Kind::Optional, &Value::from("")), Ok(Parsed::Text(String::new())));
        assert!(parse(Kind::Text, &Value::from("")).is_err());
    }

    #[test]
    fn a_number_is_no_text_and_a_bare_number_is_seconds_only_where_config_json_says_so() {
        assert!(parse(Kind::Text, &Value::from(123)).unwrap_err().contains("quotes"));
        assert!(parse(SPAN, &Value::from(5)).unwrap_err().contains("unit"));
        assert!(parse(SPAN, &Value::from("5")).unwrap_err().contains("unit"));
        let seconds = Kind::Seconds(Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(parse(seconds, &Value::from(30)), Ok(Parsed::Span(Duration::from_secs(30))));
        assert_eq!(parse(seconds, &Value::from("1m")), Ok(Parsed::Span(Duration::from_secs(60))));
        assert!(parse(seconds, &Value::from(0)).unwrap_err().contains("outside of 1s to"));
    }

    #[test]
    fn numbers_outside_their_bounds_or_not_whole_are_refused() {
        for bad in
            [Value::from(0), Value::from(70_000), Value::from(-1), Value::from(1.5), Value::from("tcp://10.0.0.1:80")]
        {
            assert!(parse(Kind::Int(1, 65_535), &bad).is_err(), "{bad:?}");
        }
        assert_eq!(parse(Kind::Int(1, 65_535), &Value::from("8080")), Ok(Parsed::Number(8080)));
    }

    #[test]
    fn lists_hold_each_known_word_once() {
        let kind = Kind::Choices(&["api", "ingest"]);
        assert_eq!(parse(kind, &Value::from("API, ingest")), Ok(Parsed::Words(vec!["api".into(), "ingest".into()])));
        assert!(parse(kind, &Value::from(vec!["api", "api"])).unwrap_err().contains("twice"));
        assert!(parse(kind, &Value::from("api,")).unwrap_err().contains("not one of"));
        assert!(parse(kind, &Value::from(Vec::<String>::new())).is_err());
    }

    #[test]
    fn lists_of_texts_have_no_empty_entry() {
        let both = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(parse(Kind::Texts, &Value::from("a, b")), Ok(Parsed::Words(both.clone())));
        assert_eq!(parse(Kind::Texts, &Value::from(both.clone())), Ok(Parsed::Words(both)));
        assert_eq!(parse(Kind::Texts, &Value::from("")), Ok(Parsed::Words(Vec::new())));
        for bad in [Value::from("a,"), Value::from(","), Value::from(vec![""]), Value::from(vec!["x"; 65])] {
            assert!(parse(Kind::Texts, &bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn pairs_come_as_a_section_or_as_json() {
        let json = parse(Kind::Pairs, &Value::from(r#"{"X-Team":"a"}"#)).unwrap();
        assert_eq!(json, Parsed::Pairs([("X-Team".to_owned(), "a".to_owned())].into()));
        assert!(parse(Kind::Pairs, &Value::from("X-Team=a")).is_err());
        assert!(parse(Kind::Pairs, &Value::from(r#"{"X-Team":1}"#)).is_err());
    }
}
