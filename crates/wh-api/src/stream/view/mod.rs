//! What a subscriber sees of a table: some of its columns, and the rows for which a filter holds.
//!
//! A view reads rows' own text and never writes a value anew. It is made for the table as it is known at the time; once
//! the table is another, [`View::renewed`] makes it again.

mod columns;
mod constant;
mod datum;
mod field;
mod filter;
mod kept;
mod number;
mod pairs;
mod pattern;
mod project;
mod truth;
mod zone;

pub(super) use kept::Kept;
pub use pairs::markdown as filters_markdown;

use super::frame::Frames;
use crate::error::ApiError;
use filter::Filter;
use metrics::{Counter, counter};
use project::{Fate, Pass, Plan};
use std::{
    collections::BTreeSet,
    hash::{Hash, Hasher},
    ops::Range,
    sync::Arc,
};
use wh_clickhouse::TableSchema;
use wh_types::Cursor;

/// Columns and a filter. Equal views show the same; a clone costs nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct View(Option<Arc<Parts>>);

#[derive(Debug)]
struct Parts {
    columns: Option<BTreeSet<Box<str>>>,
    filter: Option<Filter>,
    plan: Plan,
    /// As they were asked for.
    asked: Asked,
    /// What it was made for.
    table: Arc<TableSchema>,
    zone: Box<str>,
    withheld: Counter,
}

#[derive(Clone, Debug)]
struct Asked {
    columns: Option<Box<str>>,
    filter: Option<Box<str>>,
}

impl View {
    /// Every column of every row, without a look at them.
    pub(super) fn whole() -> Self {
        Self::default()
    }

    /// As a request asks for it. `zone`: the server's time zone.
    ///
    /// # Errors
    /// There is no such column, the filter has the wrong form, or asks for what a stream cannot decide as ClickHouse does.
    pub(super) fn of(
        table: &Arc<TableSchema>,
        zone: &str,
        columns: Option<&str>,
        filter: Option<&str>,
    ) -> Result<Self, ApiError> {
        let asked = Asked { columns: columns.map(Into::into), filter: filter.map(Into::into) };
        Self::made(table, zone, asked)
    }

    fn made(table: &Arc<TableSchema>, zone: &str, asked: Asked) -> Result<Self, ApiError> {
        if asked.columns.is_none() && asked.filter.is_none() {
            return Ok(Self::whole());
        }
        let columns = asked.columns.as_deref().map(|text| columns::read(text, table)).transpose()?;
        let filter = asked.filter.as_deref().map(|text| Filter::read(text, table, zone)).transpose()?;
        let plan = Plan::new(columns.as_ref(), filter.as_ref());
        let withheld = counter!("wavehouse_sse_rows_withheld_total");
        let (table, zone) = (Arc::clone(table), zone.into());
        Ok(Self(Some(Arc::new(Parts { columns, filter, plan, asked, table, zone, withheld }))))
    }

    /// The same for the table as it is now; `None`: this one still holds.
    ///
    /// # Errors
    /// What it asks for cannot be had of the table any more: a stream of it ends.
    pub(super) fn renewed(&self, table: &Arc<TableSchema>, zone: &str) -> Result<Option<Self>, ApiError> {
        let Some(parts) = &self.0 else { return Ok(None) };
        if Arc::ptr_eq(&parts.table, table) && *parts.zone == *zone {
            return Ok(None);
        }
        Self::made(table, zone, parts.asked.clone()).map(Some)
    }

    /// The rows of one block, by its decoded text, that it shows. `replay`: they are marked as such.
    pub(super) fn rows(&self, cursor: Cursor, decoded: &[u8], replay: bool) -> Frames {
        let head = format!("id: {cursor}.");
        let tail: &[u8] = if replay { b"\nevent: row\nreplay: true\ndata: " } else { b"\nevent: row\ndata: " };
        let mut out = Vec::with_capacity(self.room(decoded, head.len() + tail.len()));
        let mut count = 0;
        let mut begin = |out: &mut Vec<u8>, row: u32| {
            out.extend_from_slice(head.as_bytes());
            push_digits(out, row);
            out.extend_from_slice(tail);
            count += 1;
        };
        match &self.0 {
            None => {
                for (row, line) in lines(decoded) {
                    begin(&mut out, row);
                    out.extend_from_slice(&decoded[line]);
                    out.extend_from_slice(b"\n\n");
                }
            }
            Some(parts) => {
                let mut withheld = 0;
                let mut pass = Pass::new(&parts.plan, parts.filter.as_ref());
                for (row, line) in lines(decoded) {
                    match pass.row(decoded, &line) {
                        Fate::Shown => {
                            begin(&mut out, row);
                            pass.append(&mut out, decoded, &line);
                            out.extend_from_slice(b"\n\n");
                        }
                        Fate::Hidden => {}
                        Fate::Withheld => withheld += 1,
                    }
                }
                if withheld > 0 {
                    parts.withheld.increment(withheld);
                }
            }
        }
        Frames { bytes: out.into(), count }
    }

    /// How much room the events of a block may need.
    fn room(&self, decoded: &[u8], around: usize) -> usize {
        match &self.0 {
            None => decoded.len() + memchr::memchr_iter(b'\n', decoded).count() * (around + 12),
            Some(_) => 0,
        }
    }
}

impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                Arc::ptr_eq(one, other) || one.columns == other.columns && one.filter == other.filter
            }
            _ => false,
        }
    }
}

impl Eq for View {}

impl Hash for View {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_ref().map(|parts| (&parts.columns, &parts.filter)).hash(state);
    }
}

/// The rows of a block, numbered.
fn lines(decoded: &[u8]) -> impl Iterator<Item = (u32, Range<usize>)> {
    let mut at = 0;
    let ends = memchr::memchr_iter(b'\n', decoded).chain(std::iter::once(decoded.len()));
    let lines = ends.map(move |end| std::mem::replace(&mut at, end + 1)..end);
    (0..).zip(lines.filter(|line| !line.is_empty()))
}

fn push_digits(out: &mut Vec<u8>, number: u32) {
    let mut digits = [0; 10];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod differential;
#[cfg(test)]
mod tests;
