//! Which column each cell of a line is for.

use super::{Header, cell::Takes, split::Cells};
use crate::{
    codes,
    error::shown,
    ingest::{judge::Refusal, plan::Plan},
};
use std::collections::HashSet;
use wh_clickhouse::ColumnKind;

/// The columns of a body's cells, in their order.
#[derive(Debug)]
pub(super) struct Layout(Vec<Slot>);

/// One column.
#[derive(Debug)]
pub(super) struct Slot {
    /// Its place in the plan.
    pub(super) column: usize,
    pub(super) name: Box<str>,
    pub(super) type_text: Box<str>,
    /// Its name as the key of a member, with the colon.
    pub(super) key: Box<[u8]>,
    pub(super) takes: Takes,
}

impl Slot {
    fn new(plan: &Plan, at: usize) -> Self {
        let column = &plan.columns[at];
        let mut key = serde_json::to_vec(&*column.name).unwrap_or_default();
        key.push(b':');
        Self {
            column: at,
            name: column.name.clone(),
            type_text: column.type_text.clone(),
            key: key.into(),
            takes: Takes::of(&plan.schema.columns()[at].ty),
        }
    }
}

impl Layout {
    /// The table's own order, without what no insert names: computed and ephemeral columns.
    pub(super) fn positional(plan: &Plan) -> Self {
        let columns = plan.schema.columns().iter().enumerate();
        let wire = columns.filter(|(_, column)| column.writable() && column.kind != ColumnKind::Ephemeral);
        Self(wire.map(|(at, _)| Slot::new(plan, at)).collect())
    }

    /// From a first line; `None` if that is no header but the first record.
    ///
    /// # Errors
    /// The whole body is refused: its cells cannot be told apart.
    pub(super) fn of_header(header: Header, plan: &Plan, cells: &Cells, body: &[u8]) -> Result<Option<Self>, Refusal> {
        if cells.count() > plan.columns.len() {
            return match header {
                Header::Present => {
                    let text = format!("the header names {} columns, the table has fewer", cells.count());
                    Err(Refusal::new(&codes::CSV_HEADER, text))
                }
                Header::Absent | Header::Unsaid => Ok(None),
            };
        }
        let mut seen = HashSet::new();
        let (mut slots, mut stranger) = (Vec::new(), None);
        for (_, name, _) in cells.iter(body) {
            match plan.column(name) {
                Some(at) if seen.insert(at) => slots.push(Slot::new(plan, at)),
                Some(_) => {
                    let text = format!("the header names the column {} twice", shown(name));
                    return Err(Refusal::new(&codes::CSV_HEADER, text));
                }
                None => stranger = Some(name),
            }
        }
        match (header, stranger) {
            (_, None) => Ok(Some(Self(slots))),
            (Header::Present, Some(name)) => {
                let text = format!("the header names a column {}, which does not exist", shown(name));
                Err(Refusal::new(&codes::COLUMN_NOT_FOUND, text))
            }
            (_, Some(_)) if slots.is_empty() => Ok(None),
            (_, Some(name)) => {
                let text = format!(
                    "the first line may be a header or not: {} is no column, but another of its cells is; say \
                     header=present or header=absent in Content-Type",
                    shown(name)
                );
                Err(Refusal::new(&codes::CSV_HEADER, text))
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.0.iter()
    }
}
