//! A held block's rows, read back for halving and parking. The normal way never comes here: bodies pass as they are.

use bytes::Bytes;
use serde::de::IgnoredAny;
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    io,
};
use wh_types::{Block, frame};

/// A block whose body cannot be read as the rows it says it has.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    Frame(#[from] frame::FrameError),
    #[error("the body holds {found} rows, its header says {said}")]
    Count { found: usize, said: u32 },
}

/// The rows' texts, without line ends.
pub(crate) fn rows(block: &Block) -> Result<Vec<Bytes>, Unreadable> {
    let plain = Bytes::from(frame::decode(block.encoding, &block.body, block.decoded_bytes as usize)?);
    let (mut rows, mut from) = (Vec::with_capacity(block.rows as usize), 0);
    for at in plain.iter().enumerate().filter_map(|(at, byte)| (*byte == b'\n').then_some(at)) {
        rows.push(plain.slice(from..at));
        from = at + 1;
    }
    if rows.len() != block.rows as usize || from != plain.len() {
        return Err(Unreadable::Count { found: rows.len(), said: block.rows });
    }
    Ok(rows)
}

/// The first top-level key of a row that `known` does not hold, after JSON unescaping. A row that is no object names
/// none: the sink will say what it thinks of it.
pub(crate) fn unknown_key(row: &[u8], known: &BTreeSet<String>) -> Option<String> {
    let keys = serde_json::from_slice::<BTreeMap<Cow<'_, str>, IgnoredAny>>(row).ok()?;
    keys.into_keys().find(|key| !known.contains(key.as_ref())).map(Cow::into_owned)
}

/// A frame of some of a block's rows.
pub(crate) fn frame_of(block: &Block, rows: &[Bytes]) -> io::Result<Bytes> {
    let mut plain = Vec::with_capacity(rows.iter().map(|row| row.len() + 1).sum());
    for row in rows {
        plain.extend_from_slice(row);
        plain.push(b'\n');
    }
    frame::encode(block.encoding, &plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::block;

    #[test]
    fn rows_are_read_back_and_framed_again() {
        let block = block(1, &["{\"a\":1}", "{\"a\":2}", "{\"a\":3}"]);
        let rows = rows(&block).unwrap();
        assert_eq!(rows, ["{\"a\":1}", "{\"a\":2}", "{\"a\":3}"]);
        let frame = frame_of(&block, &rows[1..]).unwrap();
        assert_eq!(wh_types::frame::decode(block.encoding, &frame, 99).unwrap(), b"{\"a\":2}\n{\"a\":3}\n");
    }

    #[test]
    fn a_key_is_compared_after_unescaping() {
        let known = BTreeSet::from(["a".to_owned(), "é".to_owned()]);
        assert_eq!(unknown_key(br#"{"\u0061":1,"\u00e9":{"zz":1}}"#, &known), None);
        assert_eq!(unknown_key(br#"{"a":1,"\u0062":2}"#, &known).as_deref(), Some("b"));
        assert_eq!(unknown_key(b"[1]", &known), None);
    }

    #[test]
    fn a_body_that_is_not_what_its_header_says_is_unreadable() {
        let mut wrong = block(1, &["{}", "{}"]);
        wrong.rows = 3;
        assert!(matches!(rows(&wrong), Err(Unreadable::Count { found: 2, said: 3 })));
        wrong.body = Bytes::from_static(b"not a frame");
        assert!(matches!(rows(&wrong), Err(Unreadable::Frame(_))));
        let mut short = block(1, &["{}", "{}"]);
        short.decoded_bytes = 2;
        assert!(rows(&short).is_err(), "never more bytes than the header says");
    }
}
