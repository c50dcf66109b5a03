//! From a structured query to SQL: every name checked against the schema and quoted, every value bound. Pure.

use super::{
    ast::{Aggregation, Ast, Filter, Names, Order, TimeRange},
    value::Binder,
    when,
};
use crate::{
    codes::{self, Code},
    types::bare,
};
use std::collections::BTreeSet;
use wh_clickhouse::{Column, ColumnKind, TableSchema, sql::quoted, types::Type};
use wh_types::Timestamp;

/// Functions that a query may name, without regard to case.
const FUNCTIONS: &[&str] = &[
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "countDistinct",
    "uniq",
    "uniqExact",
    "any",
    "anyLast",
    "groupArray",
    "median",
    "quantile",
    "stddevPop",
    "stddevSamp",
    "varPop",
    "varSamp",
];

/// Why a query is not run.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) code: &'static Code,
    pub(super) text: String,
}

impl Refused {
    pub(super) fn query(text: impl Into<String>) -> Self {
        Self { code: &codes::QUERY_INVALID, text: text.into() }
    }

    fn unknown(column: &str) -> Self {
        Self { code: &codes::COLUMN_NOT_FOUND, text: format!("unknown column: {column:?}") }
    }
}

/// What is sent to ClickHouse.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) sql: String,
    pub(super) params: Vec<(String, String)>,
    /// The column that each of them is compared with.
    pub(super) columns: Vec<String>,
    /// Most rows to answer with.
    pub(super) most: u64,
    /// One row more was asked for, to know whether the answer is cut.
    pub(super) probes: bool,
}

/// What a query is built under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds<'a> {
    pub(super) max_rows: u64,
    pub(super) now: Timestamp,
    /// The server's time zone.
    pub(super) zone: &'a str,
}

/// Builds a query; `None` where it asks for nothing.
pub(super) fn build(ast: &Ast, table: &TableSchema, bounds: Bounds<'_>) -> Result<Option<Built>, Refused> {
    let mut build = Build { table, bounds, binder: Binder::default() };
    let (selected, outputs) = build.select(ast)?;
    let mut sql = format!("SELECT {} FROM {}", selected.join(", "), quoted(&table.name));
    let mut conditions = Vec::new();
    if let Some(range) = &ast.time_range {
        build.time_range(range, &mut conditions)?;
    }
    for filter in &ast.filters {
        conditions.push(build.filter(filter)?);
    }
    if !conditions.is_empty() {
        sql.push_str(" WHERE ");
        sql.push_str(&conditions.join(" AND "));
    }
    let groups = ast.group_by.as_slice().iter().map(|name| build.column(name).map(|c| quoted(&c.name)));
    let groups = groups.collect::<Result<Vec<_>, _>>()?;
    if !groups.is_empty() {
        sql.push_str(" GROUP BY ");
        sql.push_str(&groups.join(", "));
    }
    let order = ast.order_by.iter().map(|order| build.order(order, &outputs)).collect::<Result<Vec<_>, _>>()?;
    if !order.is_empty() {
        sql.push_str(" ORDER BY ");
        sql.push_str(&order.join(", "));
    }
    let asked = match ast.limit {
        None => None,
        Some(limit) => match u64::try_from(limit) {
            Ok(limit) if limit > 0 => Some(limit),
            Ok(_) | Err(_) => return Err(Refused::query("\"limit\" must be at least 1")),
        },
    };
    let most = asked.unwrap_or(u64::MAX).min(bounds.max_rows);
    let probes = asked.is_none_or(|asked| asked > bounds.max_rows);
    sql.push_str(&format!(" LIMIT {}", most + u64::from(probes)));
    let built = Built { sql, params: build.binder.params, columns: build.binder.columns, most, probes };
    Ok((!selected.is_empty()).then_some(built))
}

struct Build<'a> {
    table: &'a TableSchema,
    bounds: Bounds<'a>,
    binder: Binder,
}

impl<'a> Build<'a> {
    /// A column that can be read.
    fn column(&self, name: &str) -> Result<&'a Column, Refused> {
        let readable = |column: &&Column| column.kind != ColumnKind::Ephemeral;
        self.table.column(name).filter(readable).ok_or_else(|| Refused::unknown(name))
    }

    /// The expressions of the answer, and their names.
    fn select(&self, ast: &Ast) -> Result<(Vec<String>, BTreeSet<String>), Refused> {
        let all: Names;
        let columns = if ast.select_all {
            if !ast.columns.as_slice().is_empty() || !ast.aggregations.is_empty() {
                return Err(Refused::query("\"select_all\" excludes \"columns\" and \"aggregations\""));
            }
            let readable = self.table.columns().iter().filter(|column| column.kind != ColumnKind::Ephemeral);
            all = Names::Many(readable.map(|column| column.name.clone()).collect());
            &all
        } else {
            &ast.columns
        };
        let (mut selected, mut outputs) = (Vec::new(), BTreeSet::new());
        for name in columns.as_slice() {
            selected.push(quoted(&self.column(name)?.name));
            if !outputs.insert(name.clone()) {
                return Err(Refused::query(format!("column {name:?} is named twice")));
            }
        }
        for aggregation in &ast.aggregations {
            let (expression, name) = self.aggregation(aggregation)?;
            selected.push(format!("{expression} AS {}", quoted(&name)));
            if self.table.column(&name).is_some() {
                return Err(Refused::query(format!("the alias {name:?} is the name of a column")));
            }
            if !outputs.insert(name.clone()) {
                return Err(Refused::query(format!("two aggregations are named {name:?}; give them an \"alias\"")));
            }
        }
        Ok((selected, outputs))
    }

    fn aggregation(&self, aggregation: &Aggregation) -> Result<(String, String), Refused> {
        let Aggregation { function, column, alias } = aggregation;
        let known = FUNCTIONS.iter().find(|known| known.eq_ignore_ascii_case(function));
        let function = known.ok_or_else(|| {
            Refused::query(format!("unknown aggregation {function:?}; there are {}", FUNCTIONS.join(", ")))
        })?;
        let (argument, plain) = match column.as_deref() {
            None | Some("*") if *function == "count" => (String::new(), ""),
            None | Some("*") => return Err(Refused::query(format!("the aggregation {function} needs a \"column\""))),
            Some(name) => (quoted(&self.column(name)?.name), name),
        };
        let name = alias.clone().unwrap_or_else(|| format!("{function}({plain})"));
        if name.is_empty() || name.len() > 255 || name.contains('\0') {
            return Err(Refused::query("an \"alias\" has 1 to 255 bytes and no NUL"));
        }
        Ok((format!("{function}({argument})"), name))
    }

    fn filter(&mut self, filter: &Filter) -> Result<String, Refused> {
        let column = self.column(&filter.column)?;
        let name = quoted(&column.name);
        let zone = self.bounds.zone;
        let symbol = match filter.op.to_ascii_lowercase().as_str() {
            "eq" => "=",
            "neq" => "!=",
            "gt" => ">",
            "gte" => ">=",
            "lt" => "<",
            "lte" => "<=",
            "like" if matches!(bare(&column.ty), Type::String | Type::FixedString(_)) => "LIKE",
            "like" => {
                let text = format!("\"like\" needs a text column, {:?} is {}", column.name, column.type_text);
                return Err(Refused::query(text));
            }
            "in" => {
                let values: Vec<&serde_json::value::RawValue> =
                    serde_json::from_str(filter.value.get()).unwrap_or_default();
                if values.is_empty() {
                    let text = format!("\"in\" on column {:?} needs an array that is not empty", column.name);
                    return Err(Refused::query(text));
                }
                let values = values.into_iter().map(|value| self.binder.value(column, value, zone));
                let values = values.collect::<Result<Vec<_>, _>>()?;
                // IN wants values of the column's own type, which an instant is not
                return Ok(if is_time(&column.ty) {
                    let each: Vec<_> = values.iter().map(|value| format!("{name} = {value}")).collect();
                    format!("({})", each.join(" OR "))
                } else {
                    format!("{name} IN ({})", values.join(", "))
                });
            }
            _ => {
                let text = format!("unknown filter op {:?}; there are eq, neq, gt, gte, lt, lte, in, like", filter.op);
                return Err(Refused::query(text));
            }
        };
        Ok(format!("{name} {symbol} {}", self.binder.value(column, &filter.value, zone)?))
    }

    fn time_range(&mut self, range: &TimeRange, conditions: &mut Vec<String>) -> Result<(), Refused> {
        let column = self.column(&range.column)?;
        let date = matches!(bare(&column.ty), Type::Date | Type::Date32);
        if !is_time(&column.ty) {
            let text = format!("\"time_range\" needs a date or time column, {:?} is {}", column.name, column.type_text);
            return Err(Refused::query(text));
        }
        let bounds = [("since", ">=", Some(&range.since)), ("until", "<=", range.until.as_ref())];
        for (member, symbol, text) in bounds {
            let Some(text) = text else { continue };
            let at = when::instant(text, self.bounds.now).ok_or_else(|| {
                let forms = "an RFC 3339 time or an age like 90s, 24h or 7d";
                Refused::query(format!("\"time_range.{member}\" is {text:?}, not {forms}"))
            })?;
            let at = self.binder.instant(column, at)?;
            let at = if date { format!("toDate32({at})") } else { at };
            conditions.push(format!("{} {symbol} {at}", quoted(&column.name)));
        }
        Ok(())
    }

    fn order(&self, order: &Order, outputs: &BTreeSet<String>) -> Result<String, Refused> {
        let name = match self.column(&order.column) {
            Ok(column) => &column.name,
            Err(unknown) => outputs.get(&order.column).ok_or(unknown)?,
        };
        match order.dir.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None | Some("asc") => Ok(format!("{} ASC", quoted(name))),
            Some("desc") => Ok(format!("{} DESC", quoted(name))),
            Some(_) => Err(Refused::query("\"order_by.dir\" is \"asc\" or \"desc\"")),
        }
    }
}

fn is_time(ty: &Type) -> bool {
    matches!(bare(ty), Type::Date | Type::Date32 | Type::DateTime(_) | Type::DateTime64 { .. })
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
