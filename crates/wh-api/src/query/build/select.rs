//! What an answer's rows consist of. Pure.

use super::Build;
use crate::query::{
    ast::{Aggregation, Ast},
    function::{Function, Takes},
    operand::Operand,
    refused::Refused,
};
use wh_clickhouse::sql::quoted;

/// Longest name of an output, in bytes.
const MAX_ALIAS: usize = 255;

/// The columns of the answer, in order.
#[derive(Debug, Default)]
pub(in crate::query) struct Outputs(Vec<(Operand, bool)>);

impl Outputs {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn named(&self, name: &str) -> Option<&Operand> {
        self.0.iter().map(|(output, _)| output).find(|output| output.name == name)
    }

    /// A plain column needs no name beside its own. No other place of a statement names an alias.
    pub(super) fn selected(&self) -> String {
        let text = |(output, plain): &(Operand, bool)| {
            if *plain { output.sql.clone() } else { format!("{} AS {}", output.sql, quoted(&output.name)) }
        };
        self.0.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    fn push(&mut self, member: &str, output: Operand, plain: bool) -> Result<(), Refused> {
        if self.named(&output.name).is_some() {
            let text = format!("names the output {:?} a second time; an \"alias\" tells them apart", output.name);
            return Err(Refused::at(member, text));
        }
        self.0.push((output, plain));
        Ok(())
    }
}

impl Build<'_> {
    /// `groups`: what the rows are grouped by, if they are.
    pub(super) fn select(&self, ast: &Ast, groups: Option<&[Operand]>) -> Result<Outputs, Refused> {
        let mut outputs = Outputs::default();
        if ast.time_bucket.is_some()
            && let Some(bucket) = groups.and_then(<[Operand]>::first)
        {
            outputs.push("time_bucket", bucket.clone(), false)?;
        }
        let mut plain = |member: &str, column: Operand| {
            let free = groups.is_none_or(|groups| groups.iter().any(|group| group.sql == column.sql));
            if !free {
                let text = format!("names {:?}, which is neither grouped by nor aggregated", column.name);
                return Err(Refused::at(member, text));
            }
            outputs.push(member, column, true)
        };
        if ast.select_all {
            if !ast.columns.as_slice().is_empty() || !ast.aggregations.is_empty() {
                return Err(Refused::at("select_all", "excludes \"columns\" and \"aggregations\""));
            }
            for column in self.bounds.allowed.columns(self.table) {
                plain("select_all", Operand::column(column))?;
            }
        }
        for (at, name) in ast.columns.as_slice().iter().enumerate() {
            let member = format!("columns[{at}]");
            plain(&member, self.column(&member, name)?)?;
        }
        for (at, aggregation) in ast.aggregations.iter().enumerate() {
            let member = format!("aggregations[{at}]");
            outputs.push(&member, self.aggregation(&member, aggregation)?, false)?;
        }
        Ok(outputs)
    }

    fn aggregation(&self, member: &str, aggregation: &Aggregation) -> Result<Operand, Refused> {
        let Aggregation { function, column, by, level, alias } = aggregation;
        let known = Function::find(function).ok_or_else(|| {
            let asked = crate::error::shown(function.as_bytes());
            Refused::at(&format!("{member}.fn"), format!("is {asked}; there are {}", Function::names()))
        })?;
        let name = known.name;
        let of = match column.as_deref() {
            None | Some("*") if known.takes == Takes::Maybe => None,
            None | Some("*") => {
                return Err(Refused::at(&format!("{member}.column"), format!("is needed: {name} is of one")));
            }
            Some(column) => Some(self.column(&format!("{member}.column"), column)?),
        };
        let by = match (known.takes, by) {
            (Takes::Two, Some(by)) => Some(self.column(&format!("{member}.by"), by)?),
            (Takes::Two, None) => {
                let text = format!("is needed: {name} gives the value of one column by the order of another");
                return Err(Refused::at(&format!("{member}.by"), text));
            }
            (_, Some(_)) => return Err(Refused::at(&format!("{member}.by"), "is for argMin and argMax")),
            (_, None) => None,
        };
        let level = match (known.takes, level) {
            (Takes::Level, Some(level)) if (0.0..=1.0).contains(level) => format!("({level})"),
            (Takes::Level, Some(_)) => return Err(Refused::at(&format!("{member}.level"), "is a number from 0 to 1")),
            (_, Some(_)) => return Err(Refused::at(&format!("{member}.level"), "is for quantile")),
            (_, None) => String::new(),
        };
        let arguments =
            |text: fn(&Operand) -> &str| [&of, &by].into_iter().flatten().map(text).collect::<Vec<_>>().join(", ");
        let plain = format!("{name}{level}({})", arguments(|operand| &operand.name));
        let sql = format!("{name}{level}({})", arguments(|operand| &operand.sql));
        let shown = format!("a result of {name}");
        let named = self.alias(&format!("{member}.alias"), alias.clone().unwrap_or(plain))?;
        Ok(Operand { sql, name: named, ty: known.result(of.as_ref().map(|of| &of.ty)), shown })
    }

    /// A name for an output that is no column. One of a column would hide it from the rest of the statement.
    pub(super) fn alias(&self, member: &str, name: String) -> Result<String, Refused> {
        if name.is_empty() || name.len() > MAX_ALIAS || name.contains('\0') {
            return Err(Refused::at(member, format!("has 1 to {MAX_ALIAS} bytes and no NUL")));
        }
        if self.table.column(&name).is_some() {
            let text = format!("would be {:?}, which the rest of the query could mean, too", name);
            return Err(Refused::at(member, text));
        }
        Ok(name)
    }
}
