//! The structured query as it is sent. Knows no schema.

use super::when;
use crate::json::{Object, maybe, objects};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// A query. Unknown members are refused: a misspelt `filters` must not answer with everything.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ast {
    /// Names of columns.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub(super) columns: Names,
    /// Every column, in the order of the table.
    #[serde(default)]
    pub(super) select_all: bool,
    /// What is computed of each group, or of all rows.
    #[serde(default, deserialize_with = "objects")]
    pub(super) aggregations: Vec<Aggregation>,
    /// Conditions on rows; all must hold.
    #[serde(default, deserialize_with = "objects")]
    pub(super) filters: Vec<Node>,
    /// A range of times, both ends inclusive.
    #[serde(default, deserialize_with = "maybe")]
    pub(super) time_range: Option<TimeRange>,
    /// Groups by intervals of time.
    #[serde(default, deserialize_with = "maybe")]
    pub(super) time_bucket: Option<TimeBucket>,
    /// Columns that rows are grouped by.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub(super) group_by: Names,
    /// Conditions on groups; all must hold.
    #[serde(default, deserialize_with = "objects")]
    pub(super) having: Vec<Node>,
    /// Names of outputs or columns.
    #[serde(default, deserialize_with = "objects")]
    pub(super) order_by: Vec<Order>,
    /// Most rows, at least 1.
    pub(super) limit: Option<i64>,
    /// Asks for pages: empty or null for the first one, then the `X-Next-Cursor` of the one before.
    #[serde(default, deserialize_with = "first_page")]
    pub(super) cursor: Option<String>,
    /// Most time, like `500ms`; never more than the server allows.
    pub(super) timeout: Option<String>,
}

/// A member that is there asks for pages, also when it is null.
fn first_page<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(value).map(|cursor| Some(cursor.unwrap_or_default()))
}

/// One name, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a name or an array of names")]
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

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Aggregation {
    /// An aggregate function, in any case.
    #[serde(rename = "fn")]
    pub(super) function: String,
    /// What it is of.
    pub(super) column: Option<String>,
    /// What the second argument of `argMin` and `argMax` is.
    pub(super) by: Option<String>,
    /// Which quantile.
    pub(super) level: Option<f64>,
    /// The name of the output.
    pub(super) alias: Option<String>,
}

/// A condition: either a comparison, or a group of others. Which of them is told by its members.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Condition)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    /// What is compared.
    pub(super) column: Option<String>,
    /// How: `eq`, `neq`, `gt`, `gte`, `lt`, `lte`, `in`, `like`, `is_null`, `not_null`.
    pub(super) op: Option<String>,
    // its own text: numbers keep their digits; `null` is a text, too
    /// With what: a string, a number, a boolean; for `in` an array of these.
    #[serde(default, deserialize_with = "text")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub(super) value: Option<Box<RawValue>>,
    /// All of these.
    #[serde(default, deserialize_with = "some_nodes")]
    #[schema(no_recursion)]
    pub(super) and: Option<Vec<Node>>,
    /// Any of these.
    #[serde(default, deserialize_with = "some_nodes")]
    #[schema(no_recursion)]
    pub(super) or: Option<Vec<Node>>,
    /// Not this.
    #[serde(default, deserialize_with = "boxed")]
    #[schema(no_recursion)]
    pub(super) not: Option<Box<Node>>,
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

fn some_nodes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Node>>, D::Error> {
    objects(from).map(Some)
}

fn boxed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<Node>>, D::Error> {
    Object::<Node>::deserialize(from).map(|node| Some(Box::new(node.0)))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// An output or a column.
    pub(super) column: String,
    /// `asc` (the default) or `desc`.
    pub(super) dir: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeRange {
    /// A column of dates or times.
    pub(super) column: String,
    /// RFC 3339, or an age like `24h`.
    pub(super) since: String,
    /// The same; no end where it is absent.
    pub(super) until: Option<String>,
}

impl TimeRange {
    /// Whether it is another range at another time: nothing else of a query depends on when it is asked.
    pub(super) fn moves(&self) -> bool {
        when::age(&self.since).is_some() || self.until.as_deref().and_then(when::age).is_some()
    }
}

/// Groups by the intervals that a column's times fall into.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeBucket {
    /// A column of dates or times.
    pub(super) column: String,
    /// A number and one of s, m, h, d, w, mo, y.
    pub(super) interval: String,
    /// The zone whose days, weeks, months and years they are; UTC where it is absent.
    pub(super) zone: Option<String>,
    /// The name of the output; `time_bucket` where it is absent.
    pub(super) alias: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_that_is_there_asks_for_pages() {
        for (text, cursor) in [("{}", None), (r#"{"cursor":null}"#, Some("")), (r#"{"cursor":"x"}"#, Some("x"))] {
            assert_eq!(serde_json::from_str::<Ast>(text).unwrap().cursor.as_deref(), cursor, "{text}");
        }
    }
}
