//! Keys of answers that end with marks of inserts: a mark that was heard makes another key. Nothing waits for one.

use super::Asked;
use wh_cache::Key;
use wh_mq::Marks;
use wh_types::Table;

/// The key of an answer as far as its tables are known to be now.
pub(super) fn key(marks: &dyn Marks, asked: &Asked<'_>) -> Key {
    let mut parts = vec![asked.key.as_bytes().to_vec()];
    for table in asked.reads.tables.iter().filter(|table| table.database == asked.database) {
        let reader = Table::new(&table.name).ok().and_then(|name| marks.watch(asked.tenant, &name).ok());
        if let Some(known) = reader.and_then(|reader| reader.latest()) {
            parts.push(table.name.clone().into_bytes());
            parts.push(format!("{} {} {}", known.epoch, known.committed, known.inserting).into_bytes());
        }
    }
    Key::of(parts.iter().map(Vec::as_slice))
}
