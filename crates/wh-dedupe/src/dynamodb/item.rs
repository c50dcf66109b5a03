//! What an item of the table holds.
//!
//! | Attribute | Type | Meaning |
//! |---|---|---|
//! | `pk` | S | the key's text |
//! | `st` | N | 1 claimed, 2 committed |
//! | `un` | N | claimed: when the lease is over; committed: when it is forgotten, absent for never. Unix milliseconds |
//! | `ex` | N | when DynamoDB may delete it, Unix seconds: a claim a day after its lease, a committed key when it is forgotten; absent for never |
//! | `tk` | B | the token of who claimed it last |
//! | `og` | B | where its row may have gone out: stream u32, epoch u32, block id (16 bytes), at i64 in ms, lease u32 in ms, little-endian |
//! | `pl` | B | what it was claimed with; absent for nothing |

use crate::{Origin, Retention, Token};
use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};
use bytes::Bytes;
use std::{collections::HashMap, time::Duration};
use wh_types::{BlockId, Epoch, Timestamp};

pub(super) const PK: &str = "pk";
pub(super) const STATE: &str = "st";
pub(super) const UNTIL: &str = "un";
pub(super) const EXPIRES: &str = "ex";
pub(super) const TOKEN: &str = "tk";
pub(super) const ORIGIN: &str = "og";
pub(super) const PAYLOAD: &str = "pl";

/// How long after its lease a claim that nobody asked for is kept.
const CLAIM_KEPT: Duration = Duration::from_secs(86_400);

pub(super) type Attributes = HashMap<String, AttributeValue>;

/// An item as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) committed: bool,
    /// Milliseconds; `None`: never.
    pub(super) until: Option<i64>,
    pub(super) token: Token,
    pub(super) origin: Option<Origin>,
    pub(super) payload: Bytes,
}

pub(super) fn number(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(super) fn bytes(value: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(Blob::new(value))
}

pub(super) fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

pub(super) fn millis(at: Timestamp) -> i64 {
    at.as_nanos().div_euclid(1_000_000)
}

fn seconds_up(millis: i64) -> i64 {
    millis.div_euclid(1_000) + 1
}

/// When the lease is over, and when the claim may be deleted.
pub(super) fn claim_ends(now: Timestamp, lease: Duration) -> (i64, i64) {
    // rounded up, as a lease lasts at least its length
    let until = millis(now + lease + Duration::from_nanos(999_999));
    (until, seconds_up(millis(now + lease + CLAIM_KEPT)))
}

/// When a committed key is forgotten, and when it may be deleted.
pub(super) fn commit_ends(now: Timestamp, retention: Retention) -> Option<(i64, i64)> {
    let Retention::For(span) = retention else { return None };
    let until = millis(now + span + Duration::from_nanos(999_999));
    Some((until, seconds_up(until)))
}

pub(super) fn origin(origin: &Origin) -> AttributeValue {
    let mut out = Vec::with_capacity(36);
    out.extend_from_slice(&origin.stream.to_le_bytes());
    out.extend_from_slice(&origin.epoch.0.to_le_bytes());
    out.extend_from_slice(&origin.block.0);
    out.extend_from_slice(&millis(origin.at).to_le_bytes());
    out.extend_from_slice(&u32::try_from(origin.lease.as_millis()).unwrap_or(u32::MAX).to_le_bytes());
    bytes(out)
}

fn read_origin(bytes: &[u8]) -> Option<Origin> {
    let (stream, rest) = bytes.split_first_chunk()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (block, rest) = rest.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let (lease, _) = rest.split_first_chunk()?;
    Some(Origin {
        stream: u32::from_le_bytes(*stream),
        epoch: Epoch(u32::from_le_bytes(*epoch)),
        block: BlockId(*block),
        at: Timestamp::from_millis(i64::from_le_bytes(*at)),
        lease: Duration::from_millis(u64::from(u32::from_le_bytes(*lease))),
    })
}

impl Item {
    /// `None`: it is none of ours.
    pub(super) fn read(attributes: &Attributes) -> Option<Self> {
        let number = |name| attributes.get(name)?.as_n().ok()?.parse::<i64>().ok();
        let bytes = |name| Some(attributes.get(name)?.as_b().ok()?.as_ref());
        let committed = match number(STATE)? {
            1 => false,
            2 => true,
            _ => return None,
        };
        Some(Self {
            committed,
            until: number(UNTIL),
            token: Token(bytes(TOKEN)?.try_into().ok()?),
            origin: bytes(ORIGIN).and_then(read_origin),
            payload: bytes(PAYLOAD).map(Bytes::copy_from_slice).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_as_they_are_written() {
        let from = Origin {
            stream: 1,
            epoch: Epoch(2),
            block: BlockId([3; 16]),
            at: Timestamp::from_millis(1_750_000_000_123),
            lease: Duration::from_millis(600),
        };
        let mut item = Attributes::from([
            (STATE.to_owned(), number(1)),
            (UNTIL.to_owned(), number(5)),
            (TOKEN.to_owned(), bytes([4; 16])),
            (ORIGIN.to_owned(), origin(&from)),
            (PAYLOAD.to_owned(), bytes(*b"p")),
        ]);
        let read = Item::read(&item).unwrap();
        let payload = Bytes::from_static(b"p");
        assert_eq!(read, Item { committed: false, until: Some(5), token: Token([4; 16]), origin: Some(from), payload });
        item.insert(STATE.to_owned(), number(3));
        assert_eq!(Item::read(&item), None);
    }

    #[test]
    fn ends_are_never_early() {
        let now = Timestamp::from_nanos(1_000_000_000_001);
        assert_eq!(claim_ends(now, Duration::from_secs(1)), (1_001_001, 1_000 + 86_400 + 2));
        assert_eq!(commit_ends(now, Retention::For(Duration::from_secs(1))), Some((1_001_001, 1_002)));
        assert_eq!(commit_ends(now, Retention::Forever), None);
    }
}
