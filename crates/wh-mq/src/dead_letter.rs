//! A row ClickHouse refused for good, kept with its reason (decision D5). Not how it is stored.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::{fmt, io, str::FromStr};
use wh_types::{Block, BlockId, Encoding, RowCursor, Table, Tenant, Timestamp, frame};

/// Identifies a dead letter: where the row stood in the queue. The same row parked twice is one dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadLetterId(pub RowCursor);

impl DeadLetterId {
    /// The id under which the row is published again with this text. It follows from the row's place and the text, so
    /// that a second replay of the same text within the queue's duplicate window, by whomever, stores nothing, and a
    /// duplicate says that this very text was stored, not another version of the row.
    #[must_use]
    pub fn block_id(self, text: &[u8]) -> BlockId {
        let RowCursor { block, row } = self.0;
        let place = Sha256::new()
            .chain_update(block.epoch.0.to_be_bytes())
            .chain_update(block.sequence.to_be_bytes())
            .chain_update(row.to_be_bytes());
        let digest: [u8; 32] = place.chain_update(text).finalize().into();
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        BlockId(id)
    }
}

impl FromStr for DeadLetterId {
    type Err = <RowCursor as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for DeadLetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A parked row, or a whole block that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it stood.
    pub id: DeadLetterId,
    /// Whose row it is.
    pub tenant: Tenant,
    /// The table it was for.
    pub table: Table,
    /// The row's own text; for an unreadable block its body as it was stored.
    pub body: Bytes,
    /// Why, in words: what ClickHouse said, or what was unreadable.
    pub reason: String,
    /// ClickHouse's exception code, or one of ours (`block.unreadable`).
    pub code: String,
    /// The column at fault, where the reason named one.
    pub column: Option<String>,
    /// When the insert was refused.
    pub attempted: Timestamp,
    /// When the row came in.
    pub received: Timestamp,
    /// Held: until then the row is published again by itself as soon as its reason is gone (decision D8); after that it
    /// stays as any other.
    pub retry_until: Option<Timestamp>,
}

impl DeadLetter {
    /// The row as a block of its own, under [`DeadLetterId::block_id`], to be published again: with this text, which may
    /// be another than the letter's, and then the id is another too. It belongs to no process's chain.
    ///
    /// # Errors
    /// It cannot be compressed, or is too large to be a row.
    pub fn block(&self, text: &[u8], received: Timestamp, encoding: Encoding) -> io::Result<Block> {
        let mut plain = Vec::with_capacity(text.len() + 1);
        plain.extend_from_slice(text);
        plain.push(b'\n');
        Ok(Block {
            id: self.id.block_id(text),
            tenant: self.tenant.clone(),
            table: self.table.clone(),
            received,
            rows: 1,
            decoded_bytes: u32::try_from(plain.len()).map_err(io::Error::other)?,
            encoding,
            body: frame::encode(encoding, &plain)?,
            chain: None,
            trace: None,
        })
    }
}

/// Which of a tenant's dead letters are meant: those that match all that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterFilter {
    /// Only this table's.
    pub table: Option<Table>,
    /// Only those with this code.
    pub code: Option<String>,
    /// Only those whose reason contains this, whatever the case. Callers bound it.
    pub reason: Option<String>,
    /// Only those attempted at this time or later.
    pub from: Option<Timestamp>,
    /// Only those attempted before this time.
    pub until: Option<Timestamp>,
    /// Only those held at this time: [`DeadLetter::retry_until`] is later.
    pub held_at: Option<Timestamp>,
}

impl DeadLetterFilter {
    /// Whether a letter is meant.
    #[must_use]
    pub fn matches(&self, letter: &DeadLetter) -> bool {
        self.matches_place(&letter.table, letter.attempted, letter.retry_until) && self.matches_text(letter)
    }

    /// As far as can be told without the letter's texts.
    pub(crate) fn matches_place(&self, table: &Table, attempted: Timestamp, retry_until: Option<Timestamp>) -> bool {
        self.table.as_ref().is_none_or(|wanted| wanted == table)
            && self.from.is_none_or(|from| attempted >= from)
            && self.until.is_none_or(|until| attempted < until)
            && self.held_at.is_none_or(|at| retry_until.is_some_and(|until| until > at))
    }

    /// The rest.
    pub(crate) fn matches_text(&self, letter: &DeadLetter) -> bool {
        self.code.as_ref().is_none_or(|code| *code == letter.code)
            && self.reason.as_ref().is_none_or(|part| letter.reason.to_lowercase().contains(&part.to_lowercase()))
    }
}

/// Which dead letters to list, and from where on.
#[derive(Clone, Debug, Default)]
pub struct DeadLetterQuery {
    /// Only these, in this order. An id that is not there is passed over; a page's cursor counts how many ids are behind.
    pub ids: Option<Vec<DeadLetterId>>,
    /// Only those that match.
    pub filter: DeadLetterFilter,
    /// Where the page before said to go on. It belongs to the same ids and filter.
    pub cursor: Option<DeadLetterCursor>,
    /// At most so many; 0 counts as 1, more than 1,000 as 1,000.
    pub limit: usize,
}

/// Some dead letters, in the order of parking.
#[derive(Clone, Debug, Default)]
pub struct DeadLetterPage {
    /// At most `limit` of them; fewer, even none, where the search for them took long or their texts are large.
    pub letters: Vec<DeadLetter>,
    /// Where to go on; `None` where there are no more.
    pub next: Option<DeadLetterCursor>,
}

/// A place in a list of dead letters. To others it is a text that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterCursor(u64);

#[cfg(any(feature = "embedded", feature = "nats", feature = "sim", test))]
impl DeadLetterCursor {
    /// The first place not yet looked at, in the backend's own counting.
    pub(crate) fn new(place: u64) -> Self {
        Self(place)
    }

    pub(crate) fn place(self) -> u64 {
        self.0
    }
}

impl fmt::Display for DeadLetterCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{:x}", self.0)
    }
}

/// In a query with ids the place is how many of them are behind it.
impl DeadLetterCursor {
    /// The place behind the first `count` ids of a query.
    #[must_use]
    pub fn after_ids(count: usize) -> Self {
        Self(count as u64)
    }

    /// How many ids are behind it, where it belongs to a query with ids.
    #[must_use]
    pub fn ids(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A text that is no cursor of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no cursor that a list of dead letters gave")]
pub struct BadCursor;

impl FromStr for DeadLetterCursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let digits = text.strip_prefix('c').filter(|digits| !digits.starts_with('+')).ok_or(BadCursor)?;
        u64::from_str_radix(digits, 16).map(Self).map_err(|_| BadCursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{Cursor, Epoch};

    #[test]
    fn a_block_id_follows_from_the_rows_place_and_its_text() {
        let at =
            |epoch, sequence, row| DeadLetterId(RowCursor { block: Cursor { epoch: Epoch(epoch), sequence }, row });
        let id = at(1, 2, 3).block_id(b"{}");
        assert_eq!(id, at(1, 2, 3).block_id(b"{}"));
        for other in [
            at(1, 2, 3).block_id(b"{ }"),
            at(1, 2, 3).block_id(b""),
            at(0, 2, 3).block_id(b"{}"),
            at(1, 0, 3).block_id(b"{}"),
            at(1, 2, 0).block_id(b"{}"),
        ] {
            assert_ne!(other, id);
        }
    }

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is() {
        for place in [0, 1, 255, u64::MAX] {
            let cursor = DeadLetterCursor::new(place);
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "c", "c+1", "1", "cg", "c-1", "c11111111111111111"] {
            assert_eq!(text.parse::<DeadLetterCursor>(), Err(BadCursor), "{text}");
        }
    }
}
