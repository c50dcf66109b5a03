//! Events as they stand on the wire of a live stream. Pure.

use bytes::Bytes;
use wh_mq::Gap;
use wh_types::{Block, Cursor, RowCursor, frame};

/// A comment: nothing happened, but the stream lives.
pub(super) const KEEPALIVE: Bytes = Bytes::from_static(b":\n\n");

/// Events of one kind, ready to be sent to anybody.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    pub(super) bytes: Bytes,
    /// How many events.
    pub(super) count: u64,
    /// The block they are of, if any.
    pub(super) cursor: Option<Cursor>,
    pub(super) gap: bool,
}

/// Most decoded bytes of a block: its target, or one row alone, with room for the largest configured row.
const MAX_DECODED: usize = 64 << 20;

/// The rows of a block. `None` where its body cannot be read.
pub(super) fn rows(cursor: Cursor, block: &Block) -> Option<Frames> {
    let text = frame::decode(block.encoding, &block.body, MAX_DECODED).ok()?;
    let mut out = Vec::with_capacity(text.len() + block.rows as usize * 48);
    let mut count = 0;
    for (row, line) in (0..).zip(text.split(|b| *b == b'\n').filter(|line| !line.is_empty())) {
        out.extend_from_slice(format!("id: {}\nevent: row\ndata: ", RowCursor { block: cursor, row }).as_bytes());
        out.extend_from_slice(line);
        out.extend_from_slice(b"\n\n");
        count += 1;
    }
    Some(Frames { bytes: out.into(), count, cursor: Some(cursor), gap: false })
}

/// Something is missing between two places; either may be unknown.
pub(super) fn gap(gap: Gap) -> Frames {
    gap_between(gap.after.map(|at| at.to_string()).as_deref(), gap.before.map(|at| at.to_string()).as_deref())
}

/// The same with ids as a client knows them.
pub(super) fn gap_between(from: Option<&str>, to: Option<&str>) -> Frames {
    let data = serde_json::json!({ "from": from, "to": to });
    let bytes = format!("event: gap\ndata: {data}\n\n").into();
    Frames { bytes, count: 1, cursor: None, gap: true }
}

/// The stream is live: what is stored from now on is shown.
pub(super) fn ready(table: &str) -> Bytes {
    format!("event: ready\ndata: {}\n\n", serde_json::json!({ "table": table })).into()
}

/// The stream ends, and after what a client may go on.
pub(super) fn end(reason: &str, resume: Option<&str>) -> Bytes {
    format!("event: end\ndata: {}\n\n", serde_json::json!({ "reason": reason, "resume": resume })).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{BlockId, Encoding, Epoch, Table, Tenant, Timestamp};

    #[test]
    fn a_row_is_an_event_with_its_own_text_and_place() {
        let cursor = Cursor { epoch: Epoch(0xab), sequence: 7 };
        let text = b"{\"a\":1}\n{\"b\":\"x y\"}\n";
        let mut block = Block {
            id: BlockId([0; 16]),
            tenant: Tenant::default(),
            table: Table::new("t").unwrap(),
            received: Timestamp::default(),
            rows: 2,
            decoded_bytes: 20,
            encoding: Encoding::Zstd,
            body: frame::encode(Encoding::Zstd, text).unwrap(),
            chain: None,
            trace: None,
        };
        let frames = rows(cursor, &block).unwrap();
        let expected =
            "id: 000000ab-7.0\nevent: row\ndata: {\"a\":1}\n\nid: 000000ab-7.1\nevent: row\ndata: {\"b\":\"x y\"}\n\n";
        assert_eq!((frames.bytes, frames.count), (Bytes::from(expected), 2));
        block.body = Bytes::from_static(b"broken");
        assert!(rows(cursor, &block).is_none());
    }

    #[test]
    fn other_events_carry_json() {
        let cursor = Cursor { epoch: Epoch(1), sequence: 2 };
        let frames = gap(Gap { after: Some(cursor), before: None });
        assert_eq!(frames.bytes, "event: gap\ndata: {\"from\":\"00000001-2\",\"to\":null}\n\n");
        assert_eq!(ready("a\"b"), "event: ready\ndata: {\"table\":\"a\\\"b\"}\n\n");
        assert_eq!(end("stopping", None), "event: end\ndata: {\"reason\":\"stopping\",\"resume\":null}\n\n");
    }
}
