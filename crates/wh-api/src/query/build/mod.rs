//! From a structured query to SQL: every name checked and quoted, every value bound. Pure.

mod bucket;
mod condition;
mod page;
mod select;

pub(super) use page::Page;

use super::{
    allowed::Allowed,
    ast::{Ast, Order},
    operand::Operand,
    refused::Refused,
    shape::Nodes,
    value::Binder,
};
use condition::Scope;
use select::Outputs;
use std::time::Duration;
use wh_clickhouse::{TableSchema, sql::quoted};
use wh_types::Timestamp;

/// Most names in `columns`, and in `group_by`, `order_by` and `aggregations` each.
const MAX_COLUMNS: usize = 1_000;
const MAX_LIST: usize = 100;
/// Most bytes of a text: what ClickHouse takes as a field of a form.
const MAX_TEXT: usize = 128 * 1024;

/// What is sent to ClickHouse.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) sql: String,
    pub(super) params: Vec<(String, String)>,
    /// What each of them is compared with, in the asker's words.
    pub(super) columns: Vec<String>,
    /// Most rows to answer with.
    pub(super) most: u64,
    /// How the answer ends.
    pub(super) end: End,
}

/// How an answer ends.
#[derive(Debug)]
pub(super) enum End {
    /// Where its asker said.
    Asked,
    /// One row more than is given was asked for, to know whether our own bound cuts it.
    Probed,
    /// Behind a row from which the next page can go on, and all that are equal to it in order.
    Page(Page),
}

/// What a query is built under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds<'a> {
    pub(super) max_rows: u64,
    pub(super) now: Timestamp,
    /// Ages are counted from whole steps of it; zero: they are exact.
    pub(super) step: Duration,
    /// The server's time zone.
    pub(super) zone: &'a str,
    pub(super) allowed: &'a Allowed,
}

/// Builds a query; `None` where it asks for nothing.
pub(super) fn build(ast: &Ast, table: &TableSchema, bounds: Bounds<'_>) -> Result<Option<Built>, Refused> {
    let mut build = Build { table, bounds, binder: Binder::default(), nodes: Nodes::default() };
    for (member, length, most) in [
        ("columns", ast.columns.as_slice().len(), MAX_COLUMNS),
        ("aggregations", ast.aggregations.len(), MAX_LIST),
        ("group_by", ast.group_by.as_slice().len(), MAX_LIST),
        ("order_by", ast.order_by.len(), MAX_LIST),
    ] {
        if length > most {
            return Err(Refused::at(member, format!("has {length} entries, at most {most}")));
        }
    }
    let groups = build.groups(ast)?;
    let outputs = build.select(ast, groups.as_deref())?;
    let (mut wheres, mut havings) = (Vec::new(), Vec::new());
    if let Some(range) = &ast.time_range {
        build.time_range(range, &mut wheres)?;
    }
    build.conditions(&ast.filters, "filters", Scope::Rows, &mut wheres)?;
    match &groups {
        Some(groups) => {
            build.conditions(&ast.having, "having", Scope::Groups { groups, outputs: &outputs }, &mut havings)?;
        }
        None if ast.having.is_empty() => {}
        None => return Err(Refused::at("having", "needs \"aggregations\", \"group_by\" or \"time_bucket\"")),
    }
    let order = ast.order_by.iter().enumerate();
    let order = order.map(|(at, order)| build.order(at, order, groups.as_deref(), &outputs));
    let order: Vec<(Operand, bool)> = order.collect::<Result<_, _>>()?;
    let page = match &ast.cursor {
        None => None,
        Some(cursor) => {
            let page = Page::new(table, &order, &outputs)?;
            let behind = page.behind(cursor, &order, &mut build.binder, bounds.zone)?;
            if groups.is_some() { &mut havings } else { &mut wheres }.extend(behind);
            Some(page)
        }
    };
    if outputs.is_empty() {
        return Ok(None);
    }
    let mut sql = format!("SELECT {} FROM {}", outputs.selected(), quoted(&table.name));
    let mut clause = |word: &str, parts: Vec<String>, between: &str| {
        if !parts.is_empty() {
            sql.push_str(word);
            sql.push_str(&parts.join(between));
        }
    };
    clause(" WHERE ", wheres, " AND ");
    clause(" GROUP BY ", groups.into_iter().flatten().map(|group| group.sql).collect(), ", ");
    clause(" HAVING ", havings, " AND ");
    let direction =
        |(operand, descends): (Operand, bool)| format!("{} {}", operand.sql, if descends { "DESC" } else { "ASC" });
    clause(" ORDER BY ", order.into_iter().map(direction).collect(), ", ");
    let asked = asked(ast.limit)?;
    let most = asked.unwrap_or(u64::MAX).min(bounds.max_rows);
    let end = match page {
        Some(page) => End::Page(page),
        None if asked.is_some_and(|asked| asked <= bounds.max_rows) => End::Asked,
        None => End::Probed,
    };
    sql.push_str(&match end {
        End::Asked => format!(" LIMIT {most}"),
        End::Probed => format!(" LIMIT {}", most.saturating_add(1)),
        End::Page(_) => format!(" LIMIT {most} WITH TIES"),
    });
    if sql.len() > MAX_TEXT {
        let text = format!("the query makes a statement of {} bytes, at most {MAX_TEXT}", sql.len());
        return Err(Refused::query(text));
    }
    Ok(Some(Built { sql, params: build.binder.params, columns: build.binder.columns, most, end }))
}

fn asked(limit: Option<i64>) -> Result<Option<u64>, Refused> {
    let Some(limit) = limit else { return Ok(None) };
    let asked = u64::try_from(limit).ok().filter(|limit| *limit > 0);
    asked.map(Some).ok_or_else(|| Refused::at("limit", "must be at least 1"))
}

struct Build<'a> {
    table: &'a TableSchema,
    bounds: Bounds<'a>,
    binder: Binder,
    /// Conditions so far.
    nodes: Nodes,
}

impl Build<'_> {
    /// A column that may be named.
    fn column(&self, member: &str, name: &str) -> Result<Operand, Refused> {
        let found = self.bounds.allowed.column(self.table, name);
        found.map(Operand::column).ok_or_else(|| Refused::unknown(member, name))
    }

    /// What the rows are grouped by; `None` where they are not.
    fn groups(&self, ast: &Ast) -> Result<Option<Vec<Operand>>, Refused> {
        let mut groups = Vec::new();
        if let Some(bucket) = &ast.time_bucket {
            groups.push(self.bucket(bucket)?);
        }
        for (at, name) in ast.group_by.as_slice().iter().enumerate() {
            groups.push(self.column(&format!("group_by[{at}]"), name)?);
        }
        Ok((!groups.is_empty() || !ast.aggregations.is_empty()).then_some(groups))
    }

    /// What the rows are ordered by, and whether it descends.
    fn order(
        &self,
        at: usize,
        order: &Order,
        groups: Option<&[Operand]>,
        outputs: &Outputs,
    ) -> Result<(Operand, bool), Refused> {
        let member = format!("order_by[{at}]");
        let operand = match outputs.named(&order.column) {
            Some(output) => output.clone(),
            None => {
                let column = self.column(&member, &order.column)?;
                let grouped = groups.is_none_or(|groups| groups.iter().any(|group| group.name == column.name));
                if !grouped {
                    let text = format!("names {:?}, which is neither grouped by nor aggregated", column.name);
                    return Err(Refused::at(&member, text));
                }
                column
            }
        };
        let dir = order.dir.as_deref().unwrap_or("asc");
        match () {
            () if dir.eq_ignore_ascii_case("asc") => Ok((operand, false)),
            () if dir.eq_ignore_ascii_case("desc") => Ok((operand, true)),
            () => Err(Refused::at(&format!("{member}.dir"), "is \"asc\" or \"desc\"")),
        }
    }
}

#[cfg(test)]
mod tests;
