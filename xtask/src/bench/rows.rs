//! The rows that are sent: the real flights, padded to 256 bytes.

use anyhow::{Context, Result, ensure};
use std::{fmt::Write, fs, path::Path};
use wh_testkit::workspace;

/// Bytes of a row with its line feed.
pub(crate) const ROW_BYTES: usize = 256;

/// The table they go to.
pub(crate) const TABLE: &str = "CREATE TABLE flights (date DateTime, delay Int32, distance UInt32, origin String, \
                                destination String, pad String) ENGINE = MergeTree ORDER BY date";

/// The same for rows that have ids.
pub(super) const TABLE_WITH_IDS: &str = "CREATE TABLE flights (id String, date DateTime, delay Int32, distance UInt32, \
    origin String, destination String, pad String) ENGINE = MergeTree ORDER BY date";

/// In the place of an id, until `wh-load` sends the row.
const ID: &str = "00000000-0000-0000-0000-000000000000";

/// The rows of a file, with ids, as cells in the order of the table's columns.
pub(super) fn write_cells(from: &Path, to: &Path, between: char) -> Result<()> {
    let text = fs::read_to_string(from).with_context(|| from.display().to_string())?;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line)?;
        for (at, column) in ["id", "date", "delay", "distance", "origin", "destination", "pad"].iter().enumerate() {
            if at > 0 {
                out.push(between);
            }
            match row[column].as_str() {
                Some(text) => out.push_str(text),
                None => write!(out, "{}", row[column])?,
            }
        }
        out.push('\n');
    }
    fs::write(to, out)?;
    Ok(())
}

/// Writes the padded flights and gives how many there are. The padding is hexadecimal noise from a fixed seed: text
/// that compresses about as well as ids and hashes do, not to nothing. `with_ids`: each has a place for an id.
pub(crate) fn write(to: &Path, with_ids: bool) -> Result<usize> {
    let source = workspace::root()?.join("examples/data/flights.ndjson");
    let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
    let (mut out, mut state, mut rows) = (String::with_capacity(text.lines().count() * ROW_BYTES), 42_u64, 0);
    for line in text.lines() {
        let open = line.strip_suffix('}').and_then(|line| line.strip_prefix('{')).context("a row is no object")?;
        let id = if with_ids { format!("\"id\":\"{ID}\",") } else { String::new() };
        // {…,"pad":"…"}\n
        let pad = ROW_BYTES.saturating_sub(id.len() + open.len() + 12);
        ensure!(pad > 0, "a row is longer than {ROW_BYTES} bytes");
        write!(out, "{{{id}{open},\"pad\":\"")?;
        for _ in 0..pad {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            write!(out, "{:x}", (state >> 40) % 16)?;
        }
        out.push_str("\"}\n");
        rows += 1;
    }
    fs::write(to, out)?;
    Ok(rows)
}
