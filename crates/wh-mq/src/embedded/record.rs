//! The queue's records in the log: kinds and the fields of their metas. `docs/queue-format.md` has the bytes.
//!
//! Everything that recovery needs stands in the meta, so that opening reads no body.

use super::codec::{Reader, Writer};
use crate::{Allowance, DeadLetter, DeadLetterId};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use wh_types::{Block, BlockId, Chain, Cursor, Encoding, Epoch, RowCursor, Table, Tenant, Timestamp};

/// Names a table: the stream is its number.
pub(super) const TABLE: u8 = 1;
/// A block: the stream is its table's number, the sequence its cursor's, the time when it was stored.
pub(super) const BLOCK: u8 = 2;
/// Ranges of sequences of one table that were settled.
pub(super) const SETTLED: u8 = 3;
/// A dead letter: the sequence is its number.
pub(super) const LETTER: u8 = 4;
/// Dead letters that are gone.
pub(super) const PURGE: u8 = 5;
/// A tenant's allowance: the sequence is its revision.
pub(super) const ALLOWANCE: u8 = 6;
/// The queue was closed: the sequence is the next one it would have given.
pub(super) const SEAL: u8 = 7;

/// Most ranges or numbers one record's meta holds.
pub(super) const LIST: usize = 2_000;

const CHAIN: u8 = 1;
const TRACE: u8 = 2;
const HELD: u8 = 1;

pub(super) fn encode_table(out: &mut Vec<u8>, tenant: &Tenant, table: &Table) {
    let mut w = Writer(std::mem::take(out));
    w.text(tenant.as_str());
    w.text(table.as_str());
    *out = w.0;
}

pub(super) fn decode_table(meta: &[u8]) -> Option<(Tenant, Table)> {
    let mut r = Reader(meta);
    Some((Tenant::new(r.text()?).ok()?, Table::new(r.text()?).ok()?))
}

pub(super) fn encode_block(out: &mut Vec<u8>, block: &Block) {
    let mut w = Writer(std::mem::take(out));
    w.0.extend_from_slice(&block.id.0);
    w.i64(block.received.as_nanos());
    w.u32(block.decoded_bytes);
    w.u16(u16::try_from(block.rows).unwrap_or(u16::MAX));
    w.u8(match block.encoding {
        Encoding::Zstd => 1,
        Encoding::Lz4 => 2,
    });
    let chain = if block.chain.is_some() { CHAIN } else { 0 };
    w.u8(chain | if block.trace.is_some() { TRACE } else { 0 });
    if let Some(chain) = &block.chain {
        w.u64(chain.n);
        w.text(&chain.process);
    }
    if let Some(trace) = &block.trace {
        w.text(trace);
    }
    *out = w.0;
}

/// A block's meta: what the index needs of it, and the rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockMeta<'a> {
    pub(super) id: BlockId,
    pub(super) received: Timestamp,
    pub(super) decoded_bytes: u32,
    pub(super) rows: u32,
    encoding: Encoding,
    flags: u8,
    rest: &'a [u8],
}

impl<'a> BlockMeta<'a> {
    pub(super) fn decode(meta: &'a [u8]) -> Option<Self> {
        let mut r = Reader(meta);
        Some(Self {
            id: BlockId(r.bytes(16)?.try_into().ok()?),
            received: Timestamp::from_nanos(r.i64()?),
            decoded_bytes: r.u32()?,
            rows: u32::from(r.u16()?),
            encoding: match r.u8()? {
                1 => Encoding::Zstd,
                2 => Encoding::Lz4,
                _ => return None,
            },
            flags: r.u8()?,
            rest: r.0,
        })
    }

    pub(super) fn block(self, tenant: Tenant, table: Table, body: Bytes) -> Option<Block> {
        let mut r = Reader(self.rest);
        let mut chain = None;
        if self.flags & CHAIN != 0 {
            chain = Some(Chain { n: r.u64()?, process: r.text()?.into() });
        }
        let trace = if self.flags & TRACE != 0 { Some(r.text()?.into()) } else { None };
        let Self { id, received, decoded_bytes, rows, encoding, .. } = self;
        Some(Block { id, tenant, table, received, rows, decoded_bytes, encoding, body, chain, trace })
    }
}

pub(super) fn encode_settled(out: &mut Vec<u8>, ranges: &[(u64, u64)]) {
    let mut w = Writer(std::mem::take(out));
    for (first, last) in ranges {
        w.u64(*first);
        w.u64(*last);
    }
    *out = w.0;
}

pub(super) fn decode_settled(meta: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    let mut r = Reader(meta);
    std::iter::from_fn(move || Some((r.u64()?, r.u64()?)))
}

pub(super) fn encode_letter_meta(out: &mut Vec<u8>, letter: &DeadLetter, charge: u64) {
    let mut w = Writer(std::mem::take(out));
    w.text(letter.tenant.as_str());
    w.text(letter.table.as_str());
    let RowCursor { block, row } = letter.id.0;
    w.u32(block.epoch.0);
    w.u64(block.sequence);
    w.u32(row);
    w.u64(charge);
    // releases that do not know what follows stop reading here
    w.u8(if letter.retry_until.is_some() { HELD } else { 0 });
    if let Some(until) = letter.retry_until {
        w.i64(until.as_nanos());
    }
    w.text(&letter.code);
    *out = w.0;
}

/// What the index needs of a dead letter.
#[derive(Clone, Debug)]
pub(super) struct LetterMeta {
    pub(super) tenant: Tenant,
    pub(super) table: Table,
    pub(super) id: DeadLetterId,
    pub(super) charge: u64,
    pub(super) retry_until: Option<Timestamp>,
    /// `None`: written by a release that had it in the body only.
    pub(super) code: Option<Arc<str>>,
}

impl LetterMeta {
    pub(super) fn decode(meta: &[u8]) -> Option<Self> {
        let mut r = Reader(meta);
        let (tenant, table) = (Tenant::new(r.text()?).ok()?, Table::new(r.text()?).ok()?);
        let block = Cursor { epoch: Epoch(r.u32()?), sequence: r.u64()? };
        let id = DeadLetterId(RowCursor { block, row: r.u32()? });
        let charge = r.u64()?;
        let retry_until = match r.u8() {
            Some(flags) if flags & HELD != 0 => Some(Timestamp::from_nanos(r.i64()?)),
            _ => None,
        };
        Some(Self { tenant, table, id, charge, retry_until, code: r.text().map(Into::into) })
    }
}

/// The rest of a dead letter but its body, which follows.
pub(super) fn encode_letter_head(out: &mut Vec<u8>, letter: &DeadLetter) {
    let mut w = Writer(std::mem::take(out));
    w.i64(letter.attempted.as_nanos());
    w.i64(letter.received.as_nanos());
    w.u8(u8::from(letter.column.is_some()));
    w.text(&letter.code);
    w.text(letter.column.as_deref().unwrap_or_default());
    w.u32(u32::try_from(letter.reason.len()).unwrap_or(u32::MAX));
    w.0.extend_from_slice(letter.reason.as_bytes());
    *out = w.0;
}

pub(super) fn decode_letter(meta: &[u8], body: &Bytes) -> Option<DeadLetter> {
    let LetterMeta { tenant, table, id, retry_until, .. } = LetterMeta::decode(meta)?;
    let mut r = Reader(body);
    let (attempted, received) = (Timestamp::from_nanos(r.i64()?), Timestamp::from_nanos(r.i64()?));
    let has_column = r.u8()? != 0;
    let (code, column) = (r.text()?.to_owned(), r.text()?.to_owned());
    let reason = r.u32()? as usize;
    let reason = std::str::from_utf8(r.bytes(reason)?).ok()?.to_owned();
    let body = body.slice_ref(r.0);
    let column = has_column.then_some(column);
    Some(DeadLetter { id, tenant, table, body, reason, code, column, attempted, received, retry_until })
}

pub(super) fn encode_purge(out: &mut Vec<u8>, tenant: &Tenant, dropped: Option<u64>, numbers: &[u64]) {
    let mut w = Writer(std::mem::take(out));
    w.text(tenant.as_str());
    w.u64(dropped.unwrap_or(0));
    numbers.iter().for_each(|number| w.u64(*number));
    *out = w.0;
}

pub(super) fn decode_purge(meta: &[u8]) -> Option<(Tenant, u64, Vec<u64>)> {
    let mut r = Reader(meta);
    let (tenant, dropped) = (Tenant::new(r.text()?).ok()?, r.u64()?);
    Some((tenant, dropped, std::iter::from_fn(|| r.u64()).collect()))
}

pub(super) fn encode_allowance(out: &mut Vec<u8>, tenant: &Tenant, allowance: Allowance) {
    let mut w = Writer(std::mem::take(out));
    w.text(tenant.as_str());
    w.u64(allowance.bytes);
    w.u64(allowance.table_bytes);
    w.u64(allowance.history.as_secs());
    w.u32(allowance.history.subsec_nanos());
    *out = w.0;
}

pub(super) fn decode_allowance(r: &mut Reader<'_>) -> Option<(Tenant, Allowance)> {
    let tenant = Tenant::new(r.text()?).ok()?;
    let (bytes, table_bytes) = (r.u64()?, r.u64()?);
    let (secs, nanos) = (r.u64()?, r.u32()?);
    let history = Duration::from_secs(secs).checked_add(Duration::from_nanos(u64::from(nanos)))?;
    Some((tenant, Allowance { bytes, table_bytes, history }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            decode_table(&bytes);
            if let Some(meta) = BlockMeta::decode(&bytes) {
                meta.block(Tenant::default(), Table::new("t").unwrap(), Bytes::new());
            }
            prop_assert!(decode_settled(&bytes).count() <= bytes.len() / 16);
            decode_letter(&bytes, &Bytes::copy_from_slice(&bytes));
            decode_purge(&bytes);
            decode_allowance(&mut Reader(&bytes));
        }
    }

    #[test]
    fn a_letter_comes_back_with_all_its_fields() {
        let block = Cursor { epoch: Epoch(3), sequence: 9 };
        let mut letter = DeadLetter {
            id: DeadLetterId(RowCursor { block, row: 4 }),
            tenant: Tenant::new("acme").unwrap(),
            table: Table::new("événements").unwrap(),
            body: Bytes::from_static(b"{\"a\":1}"),
            reason: "why\nnot".into(),
            code: "27".into(),
            column: None,
            attempted: Timestamp::from_nanos(5),
            received: Timestamp::from_nanos(-6),
            retry_until: Some(Timestamp::from_nanos(7)),
        };
        let (mut meta, mut body) = (Vec::new(), Vec::new());
        encode_letter_meta(&mut meta, &letter, 77);
        encode_letter_head(&mut body, &letter);
        body.extend_from_slice(&letter.body);
        let body = Bytes::from(body);
        assert_eq!(decode_letter(&meta, &body).as_ref(), Some(&letter));
        let known = LetterMeta::decode(&meta).unwrap();
        assert_eq!((known.charge, known.code.as_deref()), (77, Some("27")));
        // as it was written before letters could be held
        letter.retry_until = None;
        assert_eq!(decode_letter(&meta[..meta.len() - 13], &body), Some(letter));
    }
}
