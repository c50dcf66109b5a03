//! Settings of single tables, as one value: a section of sections in the file, a JSON object in a variable.
#![expect(clippy::wildcard_enum_match_arm, reason = "every other kind of value is refused alike")]

use crate::{
    amount::{parse_duration, show_duration},
    key::MAX_TEXT,
};
use figment::value::{Dict, Value};
use std::{collections::BTreeMap, time::Duration};

/// Most tables that are named.
const MAX_TABLES: usize = 10_000;
/// The longest time that a value names.
const MAX_SPAN: Duration = Duration::from_secs(3_650 * 86_400);

/// What is given for one table; the rest is as for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Override {
    pub enabled: Option<bool>,
    pub id_field: Option<String>,
    pub require_id: Option<bool>,
    /// Zero: for good.
    pub retention: Option<Duration>,
}

/// Reads them all.
pub(crate) fn parse(value: &Value) -> Result<BTreeMap<String, Override>, String> {
    let dict = match value {
        Value::Dict(_, dict) => dict.clone(),
        Value::String(_, json) => {
            serde_json::from_str::<Dict>(json).map_err(|_| "must be a JSON object of objects".to_owned())?
        }
        _ => return Err("must be tables with their settings".to_owned()),
    };
    if dict.len() > MAX_TABLES {
        return Err(format!("has more than {MAX_TABLES} entries"));
    }
    let table = |(name, value): (&String, &Value)| {
        let found = one(value).map_err(|problem| format!("{name:?}: {problem}"))?;
        Ok((name.clone(), found))
    };
    dict.iter().map(table).collect()
}

fn one(value: &Value) -> Result<Override, String> {
    let Value::Dict(_, dict) = value else { return Err("must be settings of a table".to_owned()) };
    let mut found = Override::default();
    for (name, value) in dict {
        let bad = |what: &str| Err(format!("{name} must be {what}"));
        match (name.as_str(), value) {
            ("enabled", Value::Bool(_, given)) => found.enabled = Some(*given),
            ("require_id", Value::Bool(_, given)) => found.require_id = Some(*given),
            ("enabled" | "require_id", _) => return bad("true or false"),
            ("id_field", Value::String(_, text))
                if !text.is_empty() && text.trim() == text && text.len() <= MAX_TEXT =>
            {
                found.id_field = Some(text.clone());
            }
            ("id_field", _) => return bad("the name of a column"),
            ("retention", value) => match span(value) {
                Some(span) if span <= MAX_SPAN => found.retention = Some(span),
                _ => return bad("0 or a duration with a unit, like \"30m\" or \"168h\""),
            },
            _ => {
                return Err(format!(
                    "{name:?} is no setting of a table: it has enabled, id_field, require_id, retention"
                ));
            }
        }
    }
    Ok(found)
}

fn span(value: &Value) -> Option<Duration> {
    match value {
        Value::Num(_, number) => number.to_u128().filter(|number| *number == 0).map(|_| Duration::ZERO),
        Value::String(_, text) if text.trim() == "0" => Some(Duration::ZERO),
        Value::String(_, text) => parse_duration(text).ok(),
        _ => None,
    }
}

/// As it would be written in a variable.
pub(crate) fn show(tables: &BTreeMap<String, Override>) -> String {
    let one = |given: &Override| {
        let mut members = serde_json::Map::new();
        let mut add = |name: &str, value: Option<serde_json::Value>| {
            value.map(|value| members.insert(name.to_owned(), value));
        };
        add("enabled", given.enabled.map(Into::into));
        add("id_field", given.id_field.clone().map(Into::into));
        add("require_id", given.require_id.map(Into::into));
        add("retention", given.retention.map(|span| show_duration(span).into()));
        serde_json::Value::Object(members)
    };
    let all: serde_json::Map<_, _> = tables.iter().map(|(name, given)| (name.clone(), one(given))).collect();
    serde_json::Value::Object(all).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_and_shown_alike() {
        let text = r#"{"a":{"enabled":true,"id_field":"uuid"},"b.c":{"require_id":false,"retention":"30m"},"d":{"retention":0}}"#;
        let tables = parse(&Value::from(text)).unwrap();
        assert_eq!(tables["a"].id_field.as_deref(), Some("uuid"));
        assert_eq!(tables["b.c"].retention, Some(Duration::from_secs(1_800)));
        assert_eq!(tables["d"].retention, Some(Duration::ZERO));
        assert_eq!(parse(&Value::from(show(&tables))), Ok(tables));
        assert_eq!(parse(&Value::from("{}")), Ok(BTreeMap::new()));
        for bad in [
            "[]",
            r#"{"a":1}"#,
            r#"{"a":{"enable":true}}"#,
            r#"{"a":{"enabled":"yes"}}"#,
            r#"{"a":{"id_field":" x"}}"#,
            r#"{"a":{"id_field":""}}"#,
            r#"{"a":{"retention":5}}"#,
            r#"{"a":{"retention":"1d"}}"#,
        ] {
            let problem = parse(&Value::from(bad));
            assert!(problem.is_err(), "{bad}: {problem:?}");
        }
    }
}
