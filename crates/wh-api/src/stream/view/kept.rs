//! A view that is held to its table as it is known now, while a stream is open.

use super::View;
use crate::error::ApiError;
use std::sync::Arc;
use wh_clickhouse::{Schema, SchemaHandle};

/// A view of one table.
#[derive(Clone, Debug)]
pub(in crate::stream) struct Kept {
    view: View,
    table: Box<str>,
    /// What it holds to; `None`: no change can matter.
    schema: Option<SchemaHandle>,
    /// The schema last looked at.
    seen: Option<Arc<Schema>>,
}

impl Kept {
    pub(in crate::stream) fn new(view: View, table: &str, schema: &SchemaHandle) -> Self {
        let schema = (view != View::whole()).then(|| schema.clone());
        Self { view, table: table.into(), schema, seen: None }
    }

    /// The view as it is for the table now. Costs next to nothing while nothing changed. A table that is gone keeps its
    /// view: that is another's to notice.
    ///
    /// # Errors
    /// The table no longer has what the view asks for, or has it so that a stream cannot decide it.
    pub(in crate::stream) fn now(&mut self) -> Result<&View, ApiError> {
        if let Some(schema) = self.schema.as_ref().and_then(SchemaHandle::get)
            && !self.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &schema))
        {
            if let Some(table) = schema.table(&self.table)
                && let Some(view) = self.view.renewed(table, &schema.timezone)?
            {
                self.view = view;
            }
            self.seen = Some(schema);
        }
        Ok(&self.view)
    }
}
