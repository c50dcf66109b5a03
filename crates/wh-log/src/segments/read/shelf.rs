//! Where records that were read together are kept: small ones share a buffer, large ones have one each.
//!
//! A buffer of each record's own costs more than the reading. What is shared is bounded, because one record that somebody
//! keeps holds the whole buffer.

use crate::{
    error::Result,
    format::RECORD_HEADER,
    record::{Head, Stored},
};
use bytes::Bytes;

/// Most bytes that share a buffer.
const SHARED: usize = 64 * 1024;
/// A record of more has a buffer of its own.
const SMALL: usize = 4 * 1024;

/// Small records that still wait for their buffer.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    bytes: Vec<u8>,
    /// Which of the answers they are.
    waiting: Vec<usize>,
}

impl Shelf {
    /// Adds a record's answer. A small one has its bytes only after [`Self::give`].
    pub(super) fn put(&mut self, head: Head, record: &[u8], all: &mut Vec<Result<Stored>>) {
        let content = record.get(RECORD_HEADER as usize..).unwrap_or_default();
        if content.len() > SMALL {
            let (meta, body) = content.split_at(usize::from(head.meta_len).min(content.len()));
            let (meta, body) = (Bytes::copy_from_slice(meta), Bytes::copy_from_slice(body));
            all.push(Ok(Stored { head, meta, body }));
            return;
        }
        if self.bytes.len() + content.len() > SHARED {
            self.give(all);
        }
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(SHARED);
        }
        self.bytes.extend_from_slice(content);
        self.waiting.push(all.len());
        all.push(Ok(Stored { head, meta: Bytes::new(), body: Bytes::new() }));
    }

    /// Gives those that wait their part of the buffer.
    pub(super) fn give(&mut self, all: &mut [Result<Stored>]) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.shrink_to_fit();
        let (bytes, mut at) = (Bytes::from(bytes), 0);
        for index in self.waiting.drain(..) {
            let Some(Ok(stored)) = all.get_mut(index) else { continue };
            let body = at + usize::from(stored.head.meta_len);
            let end = body + stored.head.body_len as usize;
            (stored.meta, stored.body) = (bytes.slice(at..body), bytes.slice(body..end));
            at = end;
        }
    }
}
