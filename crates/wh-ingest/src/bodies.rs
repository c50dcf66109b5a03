//! What a table's work is made of for others: frames for the sink, letters for the dead letters, the token. Reads held
//! blocks and changes nothing.

use crate::{
    chunk::{Chunk, Piece},
    line::{Trust, Work, WorkId},
    rows::{self, Unreadable},
    sink::{Refusal, SinkError},
    table::{TableRows, UNREADABLE},
};
use bytes::Bytes;
use std::{collections::BTreeSet, time::Duration};
use wh_mq::{DeadLetter, DeadLetterId};
use wh_types::{Block, BlockId, Encoding, Epoch, RowCursor, Timestamp};

/// Which block cannot be read, and why.
pub(crate) type Broken = (u64, String);

impl TableRows {
    /// The token of a chunk of held blocks.
    pub(crate) fn token(&self, chunk: &Chunk) -> String {
        let held = |sequence: &u64| self.held.get(sequence).map(|held| &held.delivery);
        let first = chunk.pieces.first().and_then(|piece| held(&piece.sequence));
        let epoch = first.map_or(Epoch(0), |delivery| delivery.cursor.epoch);
        // every piece of a chunk is of a held block
        let id = |sequence| held(&sequence).map_or(BlockId([0; 16]), |delivery| delivery.block.id);
        chunk.token(epoch, &self.tenant, &self.table, id)
    }

    /// The chunk as frames, one for each block: whole blocks as they are, pieces of a block framed anew.
    pub(crate) fn frames(&self, chunk: &Chunk) -> Result<(Encoding, Vec<Bytes>), Broken> {
        let (mut frames, mut encoding) = (Vec::with_capacity(chunk.pieces.len()), Encoding::Zstd);
        for pieces in chunk.pieces.chunk_by(|a, b| a.sequence == b.sequence) {
            let sequence = pieces[0].sequence;
            let block = self.block(sequence)?;
            encoding = block.encoding;
            if pieces[0].rows() == u64::from(block.rows) {
                frames.push(block.body.clone());
                continue;
            }
            let all = self.rows_of(sequence)?;
            let rows = pieces.iter().flat_map(|piece| cut(&all, *piece)).cloned().collect::<Vec<_>>();
            frames.push(rows::frame_of(block, &rows).map_err(|e| (sequence, e.to_string()))?);
        }
        Ok((encoding, frames))
    }

    /// The rows of a work to be parked as dead letters, each under the id of its place in the queue. Those that are to
    /// be published again by themselves are so for as long as `hold`.
    pub(crate) fn letters(&self, work: &Work, attempted: Timestamp, hold: Duration) -> Result<Vec<DeadLetter>, Broken> {
        let (chunk, refusal, retry_until) = match work {
            Work::Insert(_) => return Ok(Vec::new()),
            Work::Park(chunk, refusal) => (chunk, refusal, None),
            Work::Hold(chunk, refusal) => (chunk, refusal, Some(attempted + hold)),
        };
        let mut letters = Vec::new();
        for piece in &chunk.pieces {
            let bodies = if refusal.code == UNREADABLE {
                vec![self.block(piece.sequence)?.body.clone()]
            } else {
                cut(&self.rows_of(piece.sequence)?, *piece).to_vec()
            };
            let held = self.held.get(&piece.sequence).ok_or((piece.sequence, String::new()))?;
            letters.extend((piece.first..).zip(bodies).map(|(row, body)| DeadLetter {
                id: DeadLetterId(RowCursor { block: held.delivery.cursor, row }),
                tenant: self.tenant.clone(),
                table: self.table.clone(),
                body,
                reason: refusal.reason.clone(),
                code: refusal.code.clone(),
                column: refusal.column.clone(),
                attempted,
                received: held.delivery.block.received,
                retry_until,
            }));
        }
        Ok(letters)
    }

    /// A work's rows in two parts: those that name known columns only, and those that do not, to be held together.
    /// `None` where there are none of the latter, or a block cannot be read.
    pub(crate) fn without_columns(
        &self,
        id: WorkId,
        known: &BTreeSet<String>,
        error: &SinkError,
    ) -> Option<Vec<(Work, Trust)>> {
        let item = self.line.get(id)?;
        let (mut good, mut bad, mut column) = (Chunk::default(), Chunk::default(), None);
        for pieces in item.work.chunk().pieces.chunk_by(|a, b| a.sequence == b.sequence) {
            let all = self.rows_of(pieces[0].sequence).ok()?;
            for (piece, at) in pieces.iter().flat_map(|piece| (piece.first..piece.end).map(move |at| (piece, at))) {
                let unknown = rows::unknown_key(all.get(at as usize)?, known);
                let part = if unknown.is_some() { &mut bad } else { &mut good };
                column = column.or(unknown);
                part.push(Piece { first: at, end: at + 1, ..*piece });
            }
        }
        let column = column?;
        let reason = format!("held: the column {column:?} is not in the table: {}", error.refusal.reason);
        let refusal = Refusal { column: Some(column), reason, code: error.refusal.code.clone() };
        let parts = [(Work::Insert(good), item.trust), (Work::Hold(bad, refusal), Trust::No)];
        Some(parts.into_iter().filter(|(part, _)| !part.chunk().is_empty()).collect())
    }

    fn block(&self, sequence: u64) -> Result<&Block, Broken> {
        let held = self.held.get(&sequence).ok_or_else(|| (sequence, "the block is not held".to_owned()))?;
        Ok(&held.delivery.block)
    }

    fn rows_of(&self, sequence: u64) -> Result<Vec<Bytes>, Broken> {
        rows::rows(self.block(sequence)?).map_err(|e: Unreadable| (sequence, e.to_string()))
    }
}

fn cut(rows: &[Bytes], piece: Piece) -> &[Bytes] {
    rows.get(piece.first as usize..piece.end as usize).unwrap_or_default()
}
