//! A stored block as the history's subjects carry it: live, or read from the history. Pure.

use crate::nats::envelope::{self, Fields};
use bytes::Bytes;
use std::sync::Arc;
use wh_types::{Block, Timestamp, TopicKey};

/// A message that a partition stored and sent on.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The partition's stream.
    pub(super) stream: Arc<str>,
    /// Its sequence there.
    pub(super) sequence: u64,
    /// When it was stored there.
    pub(super) stored: Timestamp,
    /// Whose table it is of; `None` where the subject names none.
    pub(super) key: Option<TopicKey>,
    /// The block; `None` where it cannot be read.
    pub(super) block: Option<Arc<Block>>,
}

/// Bytes that a message costs in memory besides its body.
pub(super) const OVERHEAD: usize = 512;

impl Message {
    /// Bytes it is counted with in memory.
    pub(super) fn cost(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.body.len()) + OVERHEAD
    }
}

/// The part of a subject of the history that names the table.
pub(super) fn tail<'a>(prefix: &str, subject: &'a str) -> Option<&'a str> {
    subject.strip_prefix(prefix)?.strip_prefix(".hist.")
}

/// Reads a message. `tail` is its subject after the history's prefix; of several headers of a name the first counts: a
/// message that the history stored has those of the partition first and its own after them.
///
/// `None`: no partition sent it. A body is copied: one that shares memory with what else was received would hold more
/// than it is counted with.
pub(super) fn read<'a>(tail: &str, headers: impl Iterator<Item = (&'a str, &'a str)>, body: &[u8]) -> Option<Message> {
    let (mut sequence, mut stored, mut stream) = (None, None, None);
    let fields = Fields::of(headers.inspect(|(name, value)| {
        let field = match *name {
            "Nats-Sequence" => &mut sequence,
            "Nats-Time-Stamp" => &mut stored,
            "Nats-Stream" => &mut stream,
            _ => return,
        };
        field.get_or_insert(*value);
    }));
    let sequence = sequence?.parse().ok().filter(|sequence| *sequence > 0)?;
    let stored = stored?.parse().ok()?;
    let stream = Arc::from(stream?);
    let key = envelope::topic(tail);
    let block = key.as_ref().map_err(Clone::clone);
    let block = match block.and_then(|key| envelope::decode(key, &fields, Bytes::copy_from_slice(body))) {
        Ok(block) => Some(Arc::new(block)),
        Err(error) => {
            tracing::debug!(%stream, sequence, %error, "message {sequence} of {stream} is no block");
            None
        }
    };
    Some(Message { stream, sequence, stored, key: key.ok(), block })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nats::envelope::headers;
    use wh_types::{BlockId, Encoding, Table, Tenant};

    fn block() -> Block {
        Block {
            id: BlockId([7; 16]),
            tenant: Tenant::new("acme").unwrap(),
            table: Table::new("t").unwrap(),
            received: Timestamp::from_millis(5),
            rows: 1,
            decoded_bytes: 3,
            encoding: Encoding::Zstd,
            body: Bytes::from_static(b"xyz"),
            chain: None,
            trace: None,
        }
    }

    #[test]
    fn the_partitions_headers_count_not_those_that_the_history_added() {
        let own = headers(&block());
        let mut all: Vec<(&str, &str)> = own.iter().collect();
        let sent =
            [("Nats-Stream", "WH_INGEST_3"), ("Nats-Sequence", "17"), ("Nats-Time-Stamp", "2026-01-01T00:00:00Z")];
        let added =
            [("Nats-Stream", "WH_HISTORY"), ("Nats-Sequence", "900"), ("Nats-Time-Stamp", "2026-01-02T00:00:00Z")];
        all.extend(sent.into_iter().chain(added));
        let first = || all.iter().copied();
        let message = read("acme.t", first(), b"xyz").unwrap();
        assert_eq!((&*message.stream, message.sequence), ("WH_INGEST_3", 17));
        assert_eq!(message.stored.to_string(), "2026-01-01T00:00:00.000000000Z");
        assert_eq!(message.block.as_deref(), Some(&block()));
        assert!(read("acme.t", first(), b"").unwrap().block.is_none(), "unreadable, but it is known which it was");
        assert!(read("a.b.c.d", first(), b"xyz").unwrap().key.is_none());
    }

    #[test]
    fn what_no_partition_sent_is_nothing() {
        assert!(read("acme.t", std::iter::empty(), b"xyz").is_none());
        for bad in ["0", "-1", "x", ""] {
            let headers = [("Nats-Stream", "S"), ("Nats-Sequence", bad), ("Nats-Time-Stamp", "2026-01-01T00:00:00Z")];
            assert!(read("acme.t", headers.into_iter(), b"").is_none(), "{bad:?}");
        }
    }
}
