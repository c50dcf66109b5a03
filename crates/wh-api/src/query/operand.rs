//! What is compared, grouped and ordered: a column, or an expression over some.

use crate::types::bare;
use wh_clickhouse::{Column, sql::quoted, types::Type};

/// An expression with the name that the asker knows it by.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    /// Its text: checked names in quotes, and words of ours.
    pub(super) sql: String,
    pub(super) name: String,
    pub(super) ty: Type,
    /// The type as the asker is told it.
    pub(super) shown: String,
}

impl Operand {
    pub(super) fn column(column: &Column) -> Self {
        Self {
            sql: quoted(&column.name),
            name: column.name.clone(),
            ty: column.ty.clone(),
            shown: column.type_text.clone(),
        }
    }

    pub(super) fn is_time(&self) -> bool {
        matches!(bare(&self.ty), Type::Date | Type::Date32 | Type::DateTime(_) | Type::DateTime64 { .. })
    }

    pub(super) fn is_date(&self) -> bool {
        matches!(bare(&self.ty), Type::Date | Type::Date32)
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(bare(&self.ty), Type::String | Type::FixedString(_))
    }
}
