//! `?slow=latest`: of the rows that wait, only the newest of each key. Pure.

use super::frame::{self, Frames};
use bytes::Bytes;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

/// The columns that a row is told from others by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(pub(super) Arc<[Box<str>]>);

/// Rows that wait, the newest of each key, in their order.
#[derive(Debug)]
pub(super) struct Latest<'k> {
    key: &'k Key,
    rows: BTreeMap<u64, Bytes>,
    newest: HashMap<Box<str>, u64>,
    bytes: usize,
    seen: u64,
}

impl<'k> Latest<'k> {
    pub(super) fn new(key: &'k Key) -> Self {
        Self { key, rows: BTreeMap::new(), newest: HashMap::new(), bytes: 0, seen: 0 }
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the rows of a block. One that lacks a column of the key stays as it is.
    pub(super) fn add(&mut self, frames: &Frames) {
        for (_, event) in frames.rows() {
            let number = self.seen;
            self.seen += 1;
            if let Some(key) = self.key.of(frame::data_of(&event))
                && let Some(older) = self.newest.insert(key, number)
                && let Some(older) = self.rows.remove(&older)
            {
                self.bytes -= older.len();
            }
            self.bytes += event.len();
            self.rows.insert(number, event);
        }
    }

    /// What is left, and how many rows are not.
    pub(super) fn frames(self) -> (Frames, u64) {
        let count = self.rows.len() as u64;
        let mut bytes = Vec::with_capacity(self.bytes);
        self.rows.values().for_each(|event| bytes.extend_from_slice(event));
        (Frames { bytes: bytes.into(), count }, self.seen - count)
    }
}

impl Key {
    /// The text of the key's values in a row; numbers that are written differently are different.
    fn of(&self, row: &[u8]) -> Option<Box<str>> {
        let mut values = vec![None; self.0.len()];
        let mut row = serde_json::Deserializer::from_slice(row);
        Columns { key: self, values: &mut values }.deserialize(&mut row).ok()?;
        let mut text = String::new();
        for value in values {
            // JSON has no bare line feed
            text.push_str(value?);
            text.push('\n');
        }
        Some(text.into())
    }
}

/// Picks the values of the key's columns.
struct Columns<'k, 'v, 'de> {
    key: &'k Key,
    values: &'v mut [Option<&'de str>],
}

impl<'de> DeserializeSeed<'de> for Columns<'_, '_, 'de> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, row: D) -> Result<(), D::Error> {
        row.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Columns<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        while let Some(name) = row.next_key::<std::borrow::Cow<'de, str>>()? {
            match self.key.0.iter().position(|column| **column == *name) {
                Some(index) => self.values[index] = Some(row.next_value::<&RawValue>()?.get()),
                None => drop(row.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{block::testing::cursor, view::View};

    fn key(columns: &[&str]) -> Key {
        Key(columns.iter().map(|column| (*column).into()).collect())
    }

    #[test]
    fn the_newest_row_of_each_key_stays_in_its_place() {
        let key = key(&["k", "l"]);
        let mut latest = Latest::new(&key);
        let rows = |sequence, text: &str| View::whole().rows(cursor(1, sequence), text.as_bytes(), false);
        let first =
            rows(1, "{\"k\":1,\"l\":\"a\",\"n\":0}\n{\"k\":2,\"l\":\"a\",\"n\":1}\n{\"n\":2}\n{\"k\":1,\"l\":\"a\"}\n");
        latest.add(&first);
        latest.add(&rows(2, "{\"l\":\"a\",\"\\u006b\":1,\"n\":3}\n{\"n\":4}\n{\"k\":1,\"l\":null}\n"));
        let bytes = latest.bytes();
        let (left, gone) = latest.frames();
        assert_eq!((left.count, gone, left.bytes.len()), (5, 2, bytes));
        let ids: Vec<_> = String::from_utf8(left.bytes.to_vec())
            .unwrap()
            .lines()
            .filter_map(|line| line.strip_prefix("id: 00000001-").map(str::to_owned))
            .collect();
        assert_eq!(ids, ["1.1", "1.2", "2.0", "2.1", "2.2"], "ids still grow");
    }
}
