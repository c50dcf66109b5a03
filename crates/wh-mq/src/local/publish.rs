//! Publishing: make room, admit under the lock, hand to the store, wait for the end.

use super::{Change, Pending, Shared, Store, pending::Slot};
use crate::{Error, Kind, Receipt, Result, core::Admission};
use std::sync::Arc;
use tokio::sync::oneshot;
use wh_types::{Block, MAX_BLOCK_ROWS};

/// A call of more bytes is stored in several pieces.
pub(super) const PIECE_BYTES: usize = 2 * 1024 * 1024;
/// More than a block takes in any store beside its body and its names.
const ENVELOPE: usize = 512;
/// Longest process name of a chain, and longest trace.
const MAX_TEXT: usize = 512;

pub(super) async fn publish<S: Store>(shared: &Arc<Shared<S>>, blocks: &[Block]) -> Vec<Result<Receipt>> {
    let mut outcomes = Vec::with_capacity(blocks.len());
    let mut rest = blocks;
    let mut begun = Vec::new();
    while !rest.is_empty() {
        let (count, bytes) = piece(rest, shared.store.max_body());
        let (piece, later) = rest.split_at(count);
        rest = later;
        begun.push((piece, begin(shared, piece, bytes).await));
    }
    for (piece, begun) in begun {
        match begun {
            Ok(done) => outcomes.extend(done),
            // an answer that never comes was lost with the task that had it: nobody knows
            Err(answer) => match answer.await {
                Ok(done) => outcomes.extend(done),
                Err(_) => outcomes.extend(piece.iter().map(|_| Err(Error::new("publish", Kind::Unknown)))),
            },
        }
    }
    outcomes
}

/// How many blocks go together, and how many bytes they take at most.
fn piece(blocks: &[Block], max_body: usize) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    let most = PIECE_BYTES.min(2 * max_body);
    for block in blocks {
        // one that is too large is refused and takes nothing
        let body = if block.body.len() > max_body { 0 } else { block.body.len() };
        let names = 2 * (block.tenant.as_str().len() + block.table.as_str().len());
        let texts = block.chain.as_ref().map_or(0, |chain| chain.process.len().min(MAX_TEXT))
            + block.trace.as_ref().map_or(0, |trace| trace.len().min(MAX_TEXT));
        let size = body + names + texts + ENVELOPE;
        if count > 0 && bytes + size > most {
            break;
        }
        count += 1;
        bytes += size;
    }
    (count, bytes)
}

type Answer = oneshot::Receiver<Vec<Result<Receipt>>>;

async fn begin<S: Store>(
    shared: &Arc<Shared<S>>,
    blocks: &[Block],
    bytes: usize,
) -> std::result::Result<Vec<Result<Receipt>>, Answer> {
    let refuse = |kind: Kind| Ok(blocks.iter().map(|_| Err(Error::new("publish", kind.clone()))).collect());
    let room = match shared.store.room(bytes).await {
        Ok(room) => room,
        Err(kind) => return refuse(kind),
    };
    let (now, stored) = (shared.now(), shared.clock.wall());
    let mut guard = shared.lock();
    let state = &mut *guard;
    if state.closing {
        return refuse(Kind::Stopping);
    }
    shared.sweep(state, now);
    let mut writes = Vec::with_capacity(blocks.len());
    let mut wait = false;
    let max_body = shared.store.max_body();
    let admit = |block: &Block| {
        if let Err(bad) = check(block, max_body) {
            return Slot::Done(Err(Error::new("publish", bad)));
        }
        match state.core.admit(block, now) {
            Admission::New(ticket) => {
                wait = true;
                writes.push((ticket, block.clone()));
                Slot::Written(ticket)
            }
            Admission::Known { known, stored: true } => {
                Slot::Done(Ok(Receipt::Duplicate(state.core.cursor(known.sequence))))
            }
            Admission::Known { stored: false, .. } => {
                wait = true;
                Slot::Awaited(block.id)
            }
            Admission::Refused(kind) => {
                crate::metrics::refused();
                Slot::Done(Err(Error::new("publish", kind)))
            }
        }
    };
    let mut slots: Vec<Slot> = blocks.iter().map(admit).collect();
    if !wait {
        let done = |slot| match slot {
            Slot::Done(outcome) => Some(outcome),
            Slot::Written(_) | Slot::Awaited(_) => None,
        };
        return Ok(slots.drain(..).filter_map(done).collect());
    }
    let (reply, answer) = oneshot::channel();
    let change = Change::Blocks { stored, blocks: writes };
    let woken = shared.submit(room, state, change, Pending::Blocks { slots, reply });
    drop(guard);
    if let Some(woken) = woken {
        woken.wake(shared);
    }
    Err(answer)
}

fn check(block: &Block, max_body: usize) -> std::result::Result<(), Kind> {
    let bad = |text: String| Err(Kind::BadBlock(text.into()));
    let Block { rows, body, .. } = block;
    if *rows > MAX_BLOCK_ROWS {
        return bad(format!("it has {rows} rows, at most {MAX_BLOCK_ROWS} are allowed"));
    }
    if body.len() > max_body {
        return bad(format!("its body has {} bytes, at most {max_body} are allowed", body.len()));
    }
    if *rows == 0 && !body.is_empty() {
        return bad("it has a body and no rows".to_owned());
    }
    let texts = [block.chain.as_ref().map(|chain| &chain.process), block.trace.as_ref()];
    if let Some(text) = texts.into_iter().flatten().find(|text| text.len() > MAX_TEXT) {
        let len = text.len();
        return bad(format!("its chain or trace has {len} bytes, at most {MAX_TEXT} are allowed"));
    }
    Ok(())
}
