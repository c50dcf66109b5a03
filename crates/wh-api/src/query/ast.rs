//! The structured query as it is sent. Knows no schema.

use crate::json::{maybe, objects};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A query. Unknown members are refused: a misspelt `filters` must not answer with everything.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ast {
    #[serde(default)]
    pub(super) columns: Names,
    #[serde(default)]
    pub(super) select_all: bool,
    #[serde(default, deserialize_with = "objects")]
    pub(super) aggregations: Vec<Aggregation>,
    #[serde(default, deserialize_with = "objects")]
    pub(super) filters: Vec<Filter>,
    #[serde(default)]
    pub(super) group_by: Names,
    #[serde(default, deserialize_with = "objects")]
    pub(super) order_by: Vec<Order>,
    pub(super) limit: Option<i64>,
    #[serde(default, deserialize_with = "maybe")]
    pub(super) time_range: Option<TimeRange>,
}

/// One name, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Names {
    One(String),
    Many(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Names {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Aggregation {
    #[serde(rename = "fn")]
    pub(super) function: String,
    pub(super) column: Option<String>,
    pub(super) alias: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    pub(super) column: String,
    pub(super) op: String,
    /// Its own text: numbers keep their digits.
    pub(super) value: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) column: String,
    pub(super) dir: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TimeRange {
    pub(super) column: String,
    pub(super) since: String,
    pub(super) until: Option<String>,
}
