//! What a condition is, told by its members: a comparison, or a group of others. Knows no columns. Pure.

use super::{ast::Node, refused::Refused};
use serde_json::value::RawValue;
use std::fmt;

/// Most conditions of one query, and how deep groups of them may stand in each other.
const MAX_NODES: usize = 1_000;
const MAX_DEPTH: usize = 16;

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Eq,
    Neq,
    Gt,
    Gte,
    Lt,
    Lte,
    In,
    Like,
    IsNull,
    NotNull,
}

impl Op {
    pub(crate) const ALL: [Self; 10] = [
        Self::Eq,
        Self::Neq,
        Self::Gt,
        Self::Gte,
        Self::Lt,
        Self::Lte,
        Self::In,
        Self::Like,
        Self::IsNull,
        Self::NotNull,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Neq => "neq",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::In => "in",
            Self::Like => "like",
            Self::IsNull => "is_null",
            Self::NotNull => "not_null",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A condition.
#[derive(Debug)]
pub(crate) enum Shape<'a> {
    Compare(Comparison<'a>),
    And(&'a [Node]),
    Or(&'a [Node]),
    Not(&'a Node),
}

/// A comparison as it was sent; its column and value are not looked at yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison<'a> {
    pub(crate) column: &'a str,
    pub(crate) op: Op,
    value: Option<&'a RawValue>,
}

/// Counts the conditions of one query.
#[derive(Debug, Default)]
pub(crate) struct Nodes(usize);

impl Nodes {
    /// One more condition, `depth` groups deep.
    pub(crate) fn enter(&mut self, member: &str, depth: usize) -> Result<(), Refused> {
        self.0 += 1;
        if self.0 > MAX_NODES {
            return Err(Refused::at(member, format!("is one too many: a query has at most {MAX_NODES} conditions")));
        }
        if depth > MAX_DEPTH {
            return Err(Refused::at(member, format!("stands deeper than {MAX_DEPTH} groups")));
        }
        Ok(())
    }
}

impl Node {
    /// What it is. `member`: where it stands in the query.
    pub(crate) fn shape(&self, member: &str) -> Result<Shape<'_>, Refused> {
        let Self { column, op, value, and, or, not } = self;
        let compares = column.is_some() || op.is_some() || value.is_some();
        let group = |nodes: &[Self], word: &str| {
            let empty = || Refused::at(&format!("{member}.{word}"), "is empty: it would hold for all rows or for none");
            if nodes.is_empty() { Err(empty()) } else { Ok(()) }
        };
        match (compares, and, or, not) {
            (true, None, None, None) => self.comparison(member).map(Shape::Compare),
            (false, Some(nodes), None, None) => group(nodes, "and").map(|()| Shape::And(nodes)),
            (false, None, Some(nodes), None) => group(nodes, "or").map(|()| Shape::Or(nodes)),
            (false, None, None, Some(node)) => Ok(Shape::Not(node)),
            _ => {
                let forms = "either \"column\", \"op\" and \"value\", or one of \"and\", \"or\", \"not\"";
                Err(Refused::at(member, format!("has {forms}")))
            }
        }
    }

    fn comparison(&self, member: &str) -> Result<Comparison<'_>, Refused> {
        let needed = |part: &str| Refused::at(&format!("{member}.{part}"), "is needed");
        let column = self.column.as_deref().ok_or_else(|| needed("column"))?;
        let text = self.op.as_deref().ok_or_else(|| needed("op"))?;
        let op = Op::ALL.into_iter().find(|op| op.name().eq_ignore_ascii_case(text)).ok_or_else(|| {
            let names = Op::ALL.map(Op::name).join(", ");
            let op = crate::error::shown(text.as_bytes());
            Refused::at(&format!("{member}.op"), format!("is {op}; there are {names}"))
        })?;
        let value = self.value.as_deref();
        if matches!(op, Op::IsNull | Op::NotNull) && value.is_some() {
            let text = format!("has no meaning for {:?}", op.name());
            return Err(Refused::at(&format!("{member}.value"), text));
        }
        Ok(Comparison { column, op, value })
    }
}

impl<'a> Comparison<'a> {
    /// What the column is compared with. `member`: where the value stands.
    pub(crate) fn value(&self, member: &str) -> Result<&'a RawValue, Refused> {
        self.value.ok_or_else(|| Refused::at(member, "is needed"))
    }

    /// The same of `in`.
    pub(crate) fn values(&self, member: &str) -> Result<Vec<&'a RawValue>, Refused> {
        let values = self.value.and_then(|value| serde_json::from_str(value.get()).ok());
        let values: Option<Vec<&RawValue>> = values.filter(|values: &Vec<_>| !values.is_empty());
        values.ok_or_else(|| Refused::at(member, "must be an array that is not empty for \"in\""))
    }
}
