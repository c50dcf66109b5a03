//! Pages by keyset: the next one begins behind the last row of this one, whatever was stored or deleted meanwhile.
//!
//! A page ends only where the values that rows are ordered by change: rows that are equal in these are never parted, so
//! none is lost or given twice. A cursor holds these values of the last row. It is the asker's to keep and proves
//! nothing: its values are bound like those of filters.

use super::select::Outputs;
use crate::query::{operand::Operand, refused::Refused, value::Binder};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::{borrow::Cow, collections::HashMap};
use wh_clickhouse::{TableSchema, types::Type};

/// Longest cursor, in bytes: it travels in a header.
const MAX_CURSOR: usize = 4_096;

/// How the rows of a page are ordered.
#[derive(Debug)]
pub(in crate::query) struct Page {
    /// Tells the cursors of one order from those of others.
    shape: String,
    names: Vec<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Cursor<'a> {
    o: Cow<'a, str>,
    k: Vec<Box<RawValue>>,
}

impl Page {
    pub(super) fn new(table: &TableSchema, order: &[(Operand, bool)], outputs: &Outputs) -> Result<Self, Refused> {
        if order.is_empty() {
            return Err(Refused::at("cursor", "needs an \"order_by\""));
        }
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        part(&table.name);
        for (operand, descends) in order {
            part(&operand.sql);
            part(if *descends { "desc" } else { "asc" });
            if outputs.named(&operand.name).is_none() {
                let text = format!("needs the columns of \"order_by\" in the answer; {:?} is not in it", operand.name);
                return Err(Refused::at("cursor", text));
            }
            if !exact(&operand.ty) {
                let text = format!(
                    "cannot go on by {:?} ({}): floats, values that may be NULL and structures have no place to go on from",
                    operand.name, operand.shown
                );
                return Err(Refused::at("cursor", text));
            }
        }
        let shape = hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { shape, names: order.iter().map(|(operand, _)| operand.name.clone()).collect() })
    }

    /// The condition of rows behind a cursor; none for the first page.
    pub(super) fn behind(
        &self,
        cursor: &str,
        order: &[(Operand, bool)],
        binder: &mut Binder,
        zone: &str,
    ) -> Result<Option<String>, Refused> {
        if cursor.is_empty() {
            return Ok(None);
        }
        let unreadable = || Refused::at("cursor", "is none that this server gave");
        if cursor.len() > MAX_CURSOR {
            return Err(unreadable());
        }
        let text = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| unreadable())?;
        let cursor: Cursor<'_> = serde_json::from_slice(&text).map_err(|_| unreadable())?;
        if cursor.o != self.shape || cursor.k.len() != order.len() {
            return Err(Refused::at("cursor", "is of another table or another \"order_by\""));
        }
        let mut behind = String::new();
        for ((operand, descends), key) in order.iter().zip(&cursor.k).rev() {
            let symbol = if *descends { "<" } else { ">" };
            let value = binder.value(operand, "cursor", key, zone)?;
            let name = &operand.sql;
            behind = if behind.is_empty() {
                format!("{name} {symbol} {value}")
            } else {
                format!("({name} {symbol} {value} OR ({name} = {value} AND {behind}))")
            };
        }
        Ok(Some(behind))
    }

    /// The cursor of the page behind this row, which is one of JSON.
    pub(in crate::query) fn next(&self, last: &[u8]) -> Result<String, Refused> {
        let cannot = |why: &str| Refused::at("cursor", format!("cannot go on behind this page: {why}"));
        let row: HashMap<Cow<'_, str>, &RawValue> =
            serde_json::from_slice(last).map_err(|_| cannot("its last row cannot be read"))?;
        let mut keys = Vec::with_capacity(self.names.len());
        for name in &self.names {
            let value = row.get(name.as_str()).ok_or_else(|| cannot("its last row lacks a column"))?;
            if value.get().contains('\u{fffd}') {
                return Err(cannot(&format!("the value of {name:?} in its last row is no text")));
            }
            keys.push((*value).to_owned());
        }
        let cursor = Cursor { o: Cow::Borrowed(&self.shape), k: keys };
        let text = serde_json::to_vec(&cursor).map_err(|_| cannot("its last row cannot be written"))?;
        let cursor = URL_SAFE_NO_PAD.encode(text);
        if cursor.len() > MAX_CURSOR {
            return Err(cannot("the values that its last row is ordered by are too long"));
        }
        Ok(cursor)
    }
}

/// Whether a printed value is the value, and every value has its place in the order.
fn exact(ty: &Type) -> bool {
    if let Type::LowCardinality(inner) | Type::Simple(inner) = ty {
        return exact(inner);
    }
    matches!(
        ty,
        Type::Int { .. }
            | Type::Decimal { .. }
            | Type::Bool
            | Type::String
            | Type::FixedString(_)
            | Type::Uuid
            | Type::Ipv4
            | Type::Ipv6
            | Type::Date
            | Type::Date32
            | Type::DateTime(_)
            | Type::DateTime64 { .. }
            | Type::Enum { .. }
    )
}
