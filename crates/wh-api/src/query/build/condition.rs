//! Conditions: comparisons and groups of them, over rows and over groups of rows. Pure.

use super::{Build, select::Outputs};
use crate::query::{
    ast::{Node, TimeRange},
    operand::Operand,
    refused::Refused,
    shape::{Comparison, Op, Shape},
    when,
};
use serde_json::value::RawValue;

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
        self.nodes.enter(member, depth)?;
        match node.shape(member)? {
            Shape::Compare(comparison) => self.comparison(&comparison, member, scope),
            Shape::And(nodes) => self.group(nodes, &format!("{member}.and"), " AND ", scope, depth),
            Shape::Or(nodes) => self.group(nodes, &format!("{member}.or"), " OR ", scope, depth),
            Shape::Not(node) => Ok(format!("NOT ({})", self.node(node, &format!("{member}.not"), scope, depth + 1)?)),
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
        let each = nodes.iter().enumerate();
        let each = each.map(|(at, node)| self.node(node, &format!("{member}[{at}]"), scope, depth + 1));
        Ok(format!("({})", each.collect::<Result<Vec<_>, _>>()?.join(between)))
    }

    fn comparison(&mut self, comparison: &Comparison<'_>, member: &str, scope: Scope<'_>) -> Result<String, Refused> {
        let operand = self.operand(&format!("{member}.column"), comparison.column, scope)?;
        let Operand { sql, .. } = &operand;
        let at = format!("{member}.value");
        let symbol = match comparison.op {
            Op::Eq => "=",
            Op::Neq => "!=",
            Op::Gt => ">",
            Op::Gte => ">=",
            Op::Lt => "<",
            Op::Lte => "<=",
            Op::Like if operand.is_text() => "LIKE",
            Op::Like => {
                let text = format!("\"like\" needs a text column, {:?} is {}", operand.name, operand.shown);
                return Err(Refused::at(&format!("{member}.op"), text));
            }
            Op::In => return self.one_of(&operand, &at, comparison.values(&at)?),
            Op::IsNull => return Ok(format!("{sql} IS NULL")),
            Op::NotNull => return Ok(format!("{sql} IS NOT NULL")),
        };
        let value = self.binder.value(&operand, &at, comparison.value(&at)?, self.bounds.zone)?;
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

    fn one_of(&mut self, operand: &Operand, member: &str, values: Vec<&RawValue>) -> Result<String, Refused> {
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
