//! Publishing: admit under the lock, hand to the store, wait for the end.

use super::{Change, Pending, Shared, Store, pending::Slot};
use crate::{Error, Kind, Receipt, Result, core::Admission};
use std::sync::Arc;
use tokio::sync::oneshot;
use wh_types::{Block, MAX_BLOCK_ROWS};

pub(super) async fn publish<S: Store>(shared: &Arc<Shared<S>>, blocks: &[Block]) -> Vec<Result<Receipt>> {
    match begin(shared, blocks) {
        Ok(outcomes) => outcomes,
        // an answer that never comes was lost with the task that had it: nobody knows
        Err(answer) => match answer.await {
            Ok(outcomes) => outcomes,
            Err(_) => blocks.iter().map(|_| Err(Error::new("publish", Kind::Unknown))).collect(),
        },
    }
}

type Answer = oneshot::Receiver<Vec<Result<Receipt>>>;

fn begin<S: Store>(shared: &Arc<Shared<S>>, blocks: &[Block]) -> std::result::Result<Vec<Result<Receipt>>, Answer> {
    let (now, stored) = (shared.now(), shared.clock.wall());
    let mut guard = shared.lock();
    let state = &mut *guard;
    if state.closing {
        return Ok(blocks.iter().map(|_| Err(Error::new("publish", Kind::Stopping))).collect());
    }
    shared.sweep(state, now);
    let mut writes = Vec::with_capacity(blocks.len());
    let mut wait = false;
    let admit = |block: &Block| {
        if let Err(bad) = check::<S>(block) {
            return Slot::Done(Err(Error::new("publish", bad)));
        }
        match state.core.admit(block, now) {
            Admission::New(ticket) => {
                wait = true;
                writes.push((ticket.sequence, block.clone()));
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
    let woken = shared.submit(state, change, Pending::Blocks { slots, reply });
    drop(guard);
    if let Some(woken) = woken {
        woken.wake(shared);
    }
    Err(answer)
}

fn check<S: Store>(block: &Block) -> std::result::Result<(), Kind> {
    let Block { rows, body, .. } = block;
    if *rows > MAX_BLOCK_ROWS {
        return Err(Kind::BadBlock(format!("it has {rows} rows, at most {MAX_BLOCK_ROWS} are allowed").into()));
    }
    if body.len() > S::MAX_BODY {
        let (len, most) = (body.len(), S::MAX_BODY);
        return Err(Kind::BadBlock(format!("its body has {len} bytes, at most {most} are allowed").into()));
    }
    if *rows == 0 && !body.is_empty() {
        return Err(Kind::BadBlock("it has a body and no rows".into()));
    }
    Ok(())
}
