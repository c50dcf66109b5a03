//! Events as they stand on the wire of a live stream. Pure.

use bytes::Bytes;
use serde::Serialize;

/// A comment: nothing happened, but the stream lives.
pub(super) const KEEPALIVE: Bytes = Bytes::from_static(b":\n\n");

/// The rows of one block as events of a stream of one table, ready to be sent to anybody. Each is lines and an empty line;
/// the first line is `id: ` and the row's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frames {
    pub(super) bytes: Bytes,
    /// How many events.
    pub(super) count: u64,
}

const ID: &[u8] = b"id: ";
const DATA: &[u8] = b"\ndata: ";

impl Frames {
    /// Each event with its row's number.
    pub(super) fn rows(&self) -> impl Iterator<Item = (u32, Bytes)> {
        let mut rest = self.bytes.clone();
        std::iter::from_fn(move || {
            // rows are compact JSON: they hold no line feed
            let end = memchr::memmem::find(&rest, b"\n\n")? + 2;
            let event = rest.split_to(end);
            Some((row_of(&event), event))
        })
    }

    /// Only the events from this row on: what is beyond a client's place.
    pub(super) fn beyond(self, first: u32) -> Self {
        if first == 0 {
            return self;
        }
        let skipped: Vec<usize> =
            self.rows().take_while(|(row, _)| *row < first).map(|(_, event)| event.len()).collect();
        let bytes = self.bytes.slice(skipped.iter().sum::<usize>()..);
        Self { bytes, count: self.count - skipped.len() as u64 }
    }

    /// The same in a stream of several tables: the ids of the others around each row's own, and the table around the row.
    pub(super) fn among(&self, others: (&str, &str), table: &str) -> Self {
        let table = serde_json::Value::from(table).to_string();
        let mut out = Vec::with_capacity(self.bytes.len() + self.count as usize * (table.len() + 128));
        for (_, event) in self.rows() {
            let line = event.iter().position(|b| *b == b'\n').unwrap_or(event.len());
            let data = memchr::memmem::find(&event, DATA).unwrap_or(line);
            let replay: &[u8] = if data > line && memchr::memmem::find(&event[line..data], b"\nreplay: true").is_some()
            {
                b",\"replay\":true"
            } else {
                b""
            };
            for part in [
                ID,
                others.0.as_bytes(),
                &event[ID.len().min(line)..line],
                others.1.as_bytes(),
                &event[line..data],
                DATA,
                b"{\"table\":",
                table.as_bytes(),
                replay,
                b",\"row\":",
                event.get(data + DATA.len()..event.len() - 2).unwrap_or_default(),
                b"}\n\n",
            ] {
                out.extend_from_slice(part);
            }
        }
        Self { bytes: out.into(), count: self.count }
    }
}

/// The row's number: what follows the last point of the first line.
fn row_of(event: &[u8]) -> u32 {
    let line = event.split(|b| *b == b'\n').next().unwrap_or_default();
    let number = line.rsplit(|b| *b == b'.').next().unwrap_or_default();
    std::str::from_utf8(number).ok().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// The row's own text.
pub(super) fn data_of(event: &[u8]) -> &[u8] {
    let data = memchr::memmem::find(event, DATA).map_or(event.len(), |at| at + DATA.len());
    event.get(data..event.len().saturating_sub(2)).unwrap_or_default()
}

fn event(id: Option<&str>, kind: &str, data: &impl Serialize) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{id}event: {kind}\ndata: {data}\n\n").into()
}

/// How long a client should wait before it comes back.
pub(super) fn retry(milliseconds: u64) -> Bytes {
    format!("retry: {milliseconds}\n\n").into()
}

/// Nothing to show, but a new place to go on from: clients keep the id, and see no event.
pub(super) fn at(id: &str) -> Bytes {
    format!(":\nid: {id}\n\n").into()
}

#[derive(Serialize)]
struct Ready<'a> {
    table: &'a str,
}

/// The table is live: what is stored from now on is shown.
pub(super) fn ready(id: &str, table: &str) -> Bytes {
    event((!id.is_empty()).then_some(id), "ready", &Ready { table })
}

/// Why rows are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Why {
    /// They are not to be had from here.
    Lost,
    /// The client was too slow for the live rows; they follow from the history.
    Slow,
}

#[derive(Serialize)]
struct Gap<'a> {
    table: &'a str,
    from: Option<&'a str>,
    to: Option<&'a str>,
    reason: Why,
}

/// Something is missing between two places of a table; either may be unknown.
pub(super) fn gap(table: &str, from: Option<&str>, to: Option<&str>, reason: Why) -> Bytes {
    event(None, "gap", &Gap { table, from, to, reason })
}

#[derive(Serialize)]
struct End<'a> {
    reason: &'a str,
    resume: Option<&'a str>,
}

/// The stream ends, and after what a client may go on.
pub(super) fn end(reason: &str, resume: Option<&str>) -> Bytes {
    event(None, "end", &End { reason, resume })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::view::View;
    use wh_types::{Cursor, Epoch};

    const CURSOR: Cursor = Cursor { epoch: Epoch(0xab), sequence: 7 };

    #[test]
    fn rows_are_told_apart_and_can_be_left_out_from_the_front() {
        let frames = View::whole().rows(CURSOR, b"{\"a\":\"x.y\"}\n{\"id\":2}\n{}\n", true);
        let rows: Vec<_> = frames.rows().collect();
        assert_eq!(rows.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(data_of(&rows[0].1), b"{\"a\":\"x.y\"}");
        assert_eq!(frames.clone().beyond(0), frames);
        assert_eq!(frames.clone().beyond(2), Frames { bytes: rows[2].1.clone(), count: 1 });
        assert_eq!(frames.beyond(3), Frames::default());
    }

    #[test]
    fn among_other_tables_a_row_has_all_ids_and_its_tables_name() {
        let live = View::whole().rows(CURSOR, b"{\"a\":1}\n{}\n", false);
        let among = live.among(("000000ab-1,", ",000000ab-3.9"), "a\"b");
        let expected = "id: 000000ab-1,000000ab-7.0,000000ab-3.9\nevent: row\n\
             data: {\"table\":\"a\\\"b\",\"row\":{\"a\":1}}\n\n\
             id: 000000ab-1,000000ab-7.1,000000ab-3.9\nevent: row\ndata: {\"table\":\"a\\\"b\",\"row\":{}}\n\n";
        assert_eq!((&among.bytes[..], among.count), (expected.as_bytes(), 2));
        let replayed = View::whole().rows(CURSOR, b"{}\n", true).among(("", ","), "t");
        let expected =
            "id: 000000ab-7.0,\nevent: row\nreplay: true\ndata: {\"table\":\"t\",\"replay\":true,\"row\":{}}\n\n";
        assert_eq!(&replayed.bytes[..], expected.as_bytes());
    }

    #[test]
    fn other_events_carry_json() {
        let told = gap("t", Some("00000001-2"), None, Why::Lost);
        let expected = r#"{"table":"t","from":"00000001-2","to":null,"reason":"lost"}"#;
        assert_eq!(told, format!("event: gap\ndata: {expected}\n\n"));
        assert_eq!(ready("00000001-2", "a\"b"), "id: 00000001-2\nevent: ready\ndata: {\"table\":\"a\\\"b\"}\n\n");
        assert_eq!(ready("", "t"), "event: ready\ndata: {\"table\":\"t\"}\n\n");
        assert_eq!(end("stopping", None), "event: end\ndata: {\"reason\":\"stopping\",\"resume\":null}\n\n");
    }
}
