//! `?columns=`: which of a row's members are shown. Pure.

use crate::{codes, query::Refused};
use std::collections::BTreeSet;
use wh_clickhouse::{ColumnKind, TableSchema};

/// Most bytes of the list.
const MAX_TEXT: usize = 16 << 10;

/// Reads a list: names with commas between them, or a JSON array of names.
pub(super) fn read(text: &str, table: &TableSchema) -> Result<BTreeSet<Box<str>>, Refused> {
    let wrong =
        |why: String| Refused { code: &codes::REQUEST_INVALID, text: format!("the parameter \"columns\" {why}") };
    if text.len() > MAX_TEXT {
        return Err(wrong(format!("is longer than {} KiB", MAX_TEXT >> 10)));
    }
    let names: Vec<String> = if text.starts_with('[') {
        serde_json::from_str(text).map_err(|error| wrong(format!("is no array of names: {error}")))?
    } else {
        text.split(',').map(str::to_owned).collect()
    };
    let mut columns = BTreeSet::new();
    for name in names {
        let column = table.column(&name).filter(|column| column.kind != ColumnKind::Ephemeral);
        let column = column.ok_or_else(|| Refused::unknown("columns", &name))?;
        if matches!(column.kind, ColumnKind::Materialized | ColumnKind::Alias) {
            let text = format!("names {name:?}, which ClickHouse computes: no row of a stream has it");
            return Err(wrong(text));
        }
        if !columns.insert(name.as_str().into()) {
            return Err(wrong(format!("names {name:?} twice")));
        }
    }
    if columns.is_empty() { Err(wrong("names no column".into())) } else { Ok(columns) }
}
