//! Conditions: comparisons and groups of them, over rows and over groups of rows. Pure.

use super::{Build, select::Outputs};
use crate::query::{
    ast::{Node, TimeRange},
    operand::Operand,
    refused::Refused,
    when,
};
use serde_json::value::RawValue;

/// Most conditions of one query, and how deep groups of them may stand in each other.
const MAX_NODES: usize = 1_000;
const MAX_DEPTH: usize = 16;
const OPS: &str = "eq, neq, gt, gte, lt, lte, in, like, is_null, not_null";

/// What the names of conditions mean.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope<'a> {
    /// Columns.
    Rows,
    /// What rows are grouped by and what comes of each group.
    Groups { groups: &'a [Operand], outputs: &'a Outputs },
}

impl Build<'_> {
    /// Adds conditions that must all hold.
    pub(super) fn conditions(
        &mut self,
        nodes: &[Node],
        member: &str,
        scope: Scope<'_>,
        all: &mut Vec<String>,
    ) -> Result<(), Refused> {
        for (at, node) in nodes.iter().enumerate() {
            all.push(self.node(node, &format!("{member}[{at}]"), scope, 1)?);
        }
        Ok(())
    }

    fn node(&mut self, node: &Node, member: &str, scope: Scope<'_>, depth: usize) -> Result<String, Refused> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Refused::at(member, format!("is one too many: a query has at most {MAX_NODES} conditions")));
        }
        if depth > MAX_DEPTH {
            return Err(Refused::at(member, format!("stands deeper than {MAX_DEPTH} groups")));
        }
        let Node { column, op, value, and, or, not } = node;
        let compares = column.is_some() || op.is_some() || value.is_some();
        match (compares, and, or, not) {
            (true, None, None, None) => self.comparison(node, member, scope),
            (false, Some(nodes), None, None) => self.group(nodes, &format!("{member}.and"), " AND ", scope, depth),
            (false, None, Some(nodes), None) => self.group(nodes, &format!("{member}.or"), " OR ", scope, depth),
            (false, None, None, Some(node)) => {
                Ok(format!("NOT ({})", self.node(node, &format!("{member}.not"), scope, depth + 1)?))
            }
            _ => {
                let forms = "either \"column\", \"op\" and \"value\", or one of \"and\", \"or\", \"not\"";
                Err(Refused::at(member, format!("has {forms}")))
            }
        }
    }

    fn group(
        &mut self,
        nodes: &[Node],
        member: &str,
        between: &str,
        scope: Scope<'_>,
        depth: usize,
    ) -> Result<String, Refused> {
        if nodes.is_empty() {
            return Err(Refused::at(member, "is empty: it would hold for all rows or for none"));
        }
        let each = nodes.iter().enumerate();
        let each = each.map(|(at, node)| self.node(node, &format!("{member}[{at}]"), scope, depth + 1));
        Ok(format!("({})", each.collect::<Result<Vec<_>, _>>()?.join(between)))
    }

    fn comparison(&mut self, node: &Node, member: &str, scope: Scope<'_>) -> Result<String, Refused> {
        let needed = |part: &str| Refused::at(&format!("{member}.{part}"), "is needed");
        let name = node.column.as_deref().ok_or_else(|| needed("column"))?;
        let operand = self.operand(&format!("{member}.column"), name, scope)?;
        let op = node.op.as_deref().ok_or_else(|| needed("op"))?;
        let Operand { sql, .. } = &operand;
        let value = node.value.as_deref();
        let at = format!("{member}.op");
        let symbol = match op.to_ascii_lowercase().as_str() {
            "eq" => "=",
            "neq" => "!=",
            "gt" => ">",
            "gte" => ">=",
            "lt" => "<",
            "lte" => "<=",
            "like" if operand.is_text() => "LIKE",
            "like" => {
                let text = format!("\"like\" needs a text column, {:?} is {}", operand.name, operand.shown);
                return Err(Refused::at(&at, text));
            }
            "in" => return self.one_of(&operand, &format!("{member}.value"), value),
            null @ ("is_null" | "not_null") => {
                if value.is_some() {
                    return Err(Refused::at(&format!("{member}.value"), format!("has no meaning for {null:?}")));
                }
                return Ok(format!("{sql} IS {}NULL", if null == "not_null" { "NOT " } else { "" }));
            }
            _ => {
                let op = crate::error::shown(op.as_bytes());
                return Err(Refused::at(&at, format!("is {op}; there are {OPS}")));
            }
        };
        let value = value.ok_or_else(|| needed("value"))?;
        let value = self.binder.value(&operand, &format!("{member}.value"), value, self.bounds.zone)?;
        Ok(format!("{sql} {symbol} {value}"))
    }

    fn operand(&self, member: &str, name: &str, scope: Scope<'_>) -> Result<Operand, Refused> {
        let Scope::Groups { groups, outputs } = scope else { return self.column(member, name) };
        if let Some(found) = outputs.named(name).or_else(|| groups.iter().find(|group| group.name == name)) {
            return Ok(found.clone());
        }
        let column = self.column(member, name)?;
        let text = format!("names {:?}, which is neither grouped by nor aggregated", column.name);
        Err(Refused::at(member, text))
    }

    fn one_of(&mut self, operand: &Operand, member: &str, value: Option<&RawValue>) -> Result<String, Refused> {
        let values: Vec<&RawValue> = value.and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default();
        if values.is_empty() {
            return Err(Refused::at(member, "must be an array that is not empty for \"in\""));
        }
        let values = values.into_iter().enumerate();
        let zone = self.bounds.zone;
        let values = values.map(|(at, value)| self.binder.value(operand, &format!("{member}[{at}]"), value, zone));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let name = &operand.sql;
        // IN wants values of the column's own type, which an instant is not
        Ok(if operand.is_time() {
            let each: Vec<_> = values.iter().map(|value| format!("{name} = {value}")).collect();
            format!("({})", each.join(" OR "))
        } else {
            format!("{name} IN ({})", values.join(", "))
        })
    }

    pub(super) fn time_range(&mut self, range: &TimeRange, conditions: &mut Vec<String>) -> Result<(), Refused> {
        let column = self.column("time_range.column", &range.column)?;
        if !column.is_time() {
            let text = format!("needs a date or time column, {:?} is {}", column.name, column.shown);
            return Err(Refused::at("time_range.column", text));
        }
        let bounds = [("since", ">=", Some(&range.since)), ("until", "<=", range.until.as_ref())];
        for (name, symbol, text) in bounds {
            let (Some(text), member) = (text, format!("time_range.{name}")) else { continue };
            let end = if name == "until" { when::Side::Until } else { when::Side::Since };
            let at = when::bound(text, self.bounds.now, self.bounds.step, end).ok_or_else(|| {
                let text = crate::error::shown(text.as_bytes());
                Refused::at(&member, format!("is {text}, not an RFC 3339 time or an age like 90s, 24h or 7d"))
            })?;
            let at = self.binder.instant(&column, &member, at)?;
            let at = if column.is_date() { format!("toDate32({at})") } else { at };
            conditions.push(format!("{} {symbol} {at}", column.sql));
        }
        Ok(())
    }
}
