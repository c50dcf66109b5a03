//! A filter, made ready for one table: which columns it reads, and whether it holds for a row. Pure.

use super::{
    constant::{constant, listed, pattern},
    datum::Datum,
    field::Field,
    pattern::Pattern,
    truth::Truth,
};
use crate::{
    codes,
    json::{Object, Value},
    query::{Comparison, MAX_VALUES, Node, Nodes, Op, Refused, Shape},
};
use std::cmp::Ordering;
use wh_clickhouse::{ColumnKind, TableSchema, types::Edited};

/// Most bytes of a filter's text.
const MAX_TEXT: usize = 16 << 10;

/// A filter over the columns of a table.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Filter {
    pub(super) fields: Vec<Field>,
    root: Condition,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Condition {
    Test {
        /// Its place among the fields.
        field: usize,
        test: Test,
    },
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Test {
    Compare(Op, Datum<'static>),
    /// In order.
    OneOf(Vec<Datum<'static>>),
    Like(Pattern),
    Null(bool),
}

/// The values of one row that a filter reads, each looked at once.
#[derive(Debug, Default)]
pub(super) struct Values<'t> {
    /// Where each stands; `None`: the row does not have it.
    pub(super) given: Vec<Option<Value>>,
    known: Vec<Option<Option<Datum<'t>>>>,
    edits: Vec<Edited>,
}

impl Filter {
    /// Reads a filter: a condition, or an array of such that must all hold.
    pub(super) fn read(text: &str, table: &TableSchema, zone: &str) -> Result<Self, Refused> {
        if text.len() > MAX_TEXT {
            return Err(Refused::at("filter", format!("is longer than {} KiB", MAX_TEXT >> 10)));
        }
        let invalid = |error: serde_json::Error| Refused::query(format!("invalid filter: {error}"));
        let mut reading = Reading { table, zone, fields: Vec::new(), nodes: Nodes::default(), values: 0 };
        let root = if text.trim_start().starts_with('[') {
            let nodes: Vec<Object<Node>> = serde_json::from_str(text).map_err(invalid)?;
            if nodes.is_empty() {
                return Err(Refused::at("filter", "is empty: it would hold for all rows"));
            }
            let nodes: Vec<Node> = nodes.into_iter().map(|node| node.0).collect();
            Condition::All(reading.each(&nodes, "filter", 0)?)
        } else {
            let node: Object<Node> = serde_json::from_str(text).map_err(invalid)?;
            reading.node(&node.0, "filter", 1)?
        };
        Ok(Self { fields: reading.fields, root })
    }

    /// Whether it holds for a row.
    pub(super) fn holds<'t>(&self, text: &'t [u8], values: &mut Values<'t>) -> Truth {
        values.known.clear();
        values.known.resize(self.fields.len(), None);
        self.truth(&self.root, text, values)
    }

    fn truth<'t>(&self, condition: &Condition, text: &'t [u8], values: &mut Values<'t>) -> Truth {
        match condition {
            Condition::Test { field, test } => {
                let Values { given, known, edits } = values;
                let own = &self.fields[*field];
                let datum = known[*field].get_or_insert_with(|| match &given[*field] {
                    Some(value) => own.stored(text, value, edits),
                    None => Some(own.absent()),
                });
                datum.as_ref().map_or(Truth::Unknown, |datum| test.of(datum))
            }
            Condition::All(each) => Truth::all(each.iter().map(|one| self.truth(one, text, values))),
            Condition::Any(each) => Truth::any(each.iter().map(|one| self.truth(one, text, values))),
            Condition::Not(one) => self.truth(one, text, values).not(),
        }
    }
}

impl Test {
    fn of(&self, datum: &Datum<'_>) -> Truth {
        match (self, datum) {
            (Self::Null(wanted), datum) => Truth::of((*datum == Datum::Null) == *wanted),
            (_, Datum::Null) => Truth::Null,
            (Self::Compare(op, with), datum) => {
                let order = datum.cmp(with);
                Truth::of(match op {
                    Op::Eq => order == Ordering::Equal,
                    Op::Neq => order != Ordering::Equal,
                    Op::Gt => order == Ordering::Greater,
                    Op::Gte => order != Ordering::Less,
                    Op::Lt => order == Ordering::Less,
                    Op::Lte => order != Ordering::Greater,
                    Op::In | Op::Like | Op::IsNull | Op::NotNull => return Truth::Unknown,
                })
            }
            (Self::OneOf(values), datum) => Truth::of(values.binary_search_by(|value| value.cmp(datum)).is_ok()),
            (Self::Like(pattern), Datum::Text(text)) => pattern.matches(text).map_or(Truth::Unknown, Truth::of),
            (Self::Like(_), _) => Truth::Unknown,
        }
    }
}

/// A filter while it is read.
struct Reading<'a> {
    table: &'a TableSchema,
    zone: &'a str,
    fields: Vec<Field>,
    nodes: Nodes,
    /// Values so far.
    values: usize,
}

impl Reading<'_> {
    fn node(&mut self, node: &Node, member: &str, depth: usize) -> Result<Condition, Refused> {
        self.nodes.enter(member, depth)?;
        Ok(match node.shape(member)? {
            Shape::Compare(comparison) => self.comparison(&comparison, member)?,
            Shape::And(nodes) => Condition::All(self.each(nodes, &format!("{member}.and"), depth)?),
            Shape::Or(nodes) => Condition::Any(self.each(nodes, &format!("{member}.or"), depth)?),
            Shape::Not(node) => Condition::Not(Box::new(self.node(node, &format!("{member}.not"), depth + 1)?)),
        })
    }

    fn each(&mut self, nodes: &[Node], member: &str, depth: usize) -> Result<Vec<Condition>, Refused> {
        let each = nodes.iter().enumerate();
        each.map(|(at, node)| self.node(node, &format!("{member}[{at}]"), depth + 1)).collect()
    }

    fn comparison(&mut self, comparison: &Comparison<'_>, member: &str) -> Result<Condition, Refused> {
        let at = self.field(comparison.column, &format!("{member}.column"))?;
        let field = &self.fields[at];
        let op = comparison.op;
        if !field.family.has(op) {
            let text = format!(
                "\"{member}.op\" is {:?}, which a stream does not decide: column {:?} is {}",
                op.name(),
                field.column,
                field.type_text
            );
            return Err(Refused { code: &codes::STREAM_FILTER_UNSUPPORTED, text });
        }
        let place = format!("{member}.value");
        let test = match op {
            Op::IsNull | Op::NotNull => Test::Null(op == Op::IsNull),
            Op::In => {
                let given = comparison.values(&place)?;
                self.values += given.len();
                let given = given.into_iter().enumerate();
                let values = given.map(|(at, value)| listed(field, &format!("{place}[{at}]"), value));
                let mut values = values.collect::<Result<Vec<_>, _>>()?;
                values.sort_unstable();
                values.dedup();
                Test::OneOf(values)
            }
            Op::Like => Test::Like(pattern(field, &place, comparison.value(&place)?)?),
            Op::Eq | Op::Neq | Op::Gt | Op::Gte | Op::Lt | Op::Lte => {
                Test::Compare(op, constant(field, &place, comparison.value(&place)?)?)
            }
        };
        self.values += usize::from(!matches!(op, Op::In | Op::IsNull | Op::NotNull));
        if self.values > MAX_VALUES {
            return Err(Refused::at(&place, format!("is one value too many: a filter has at most {MAX_VALUES}")));
        }
        Ok(Condition::Test { field: at, test })
    }

    fn field(&mut self, name: &str, member: &str) -> Result<usize, Refused> {
        if let Some(known) = self.fields.iter().position(|field| &*field.column == name) {
            return Ok(known);
        }
        let column = self.table.column(name).filter(|column| column.kind != ColumnKind::Ephemeral);
        let column = column.ok_or_else(|| Refused::unknown(member, name))?;
        let field = Field::new(column, self.zone).map_err(|why| Refused {
            code: &codes::STREAM_FILTER_UNSUPPORTED,
            text: format!("\"{member}\" names {name:?}, which {why}"),
        })?;
        self.fields.push(field);
        Ok(self.fields.len() - 1)
    }
}
