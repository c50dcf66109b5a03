//! A held block's rows, read back for halving and parking. The normal way never comes here: bodies pass as they are.

use bytes::Bytes;
use std::io;
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
