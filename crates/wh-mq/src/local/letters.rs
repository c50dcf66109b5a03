//! Dead letters: parking, listing, purging.

use super::{Change, Pending, Shared, Store, pending::LetterSlot, publish::PIECE_BYTES};
use crate::{DeadLetter, DeadLetterId, DeadLetterPage, DeadLetterQuery, Error, Kind, Result};
use std::sync::Arc;
use tokio::sync::oneshot;
use wh_types::Tenant;

/// Most letters of one page.
const MOST: usize = 1_000;
/// Longest reason of a letter, and longest code and column.
const MAX_REASON: usize = 64 * 1024;
const MAX_NAME: usize = 1_024;

pub(super) async fn park<S: Store>(shared: &Arc<Shared<S>>, letters: &[DeadLetter]) -> Vec<Result<()>> {
    let (mut outcomes, mut rest) = (Vec::with_capacity(letters.len()), letters);
    let most = PIECE_BYTES.min(2 * shared.store.max_body());
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|letter| {
            bytes += size(letter);
            bytes <= most
        });
        let (piece, later) = rest.split_at(fits.count().max(1));
        outcomes.extend(park_piece(shared, piece).await);
        rest = later;
    }
    outcomes
}

async fn park_piece<S: Store>(shared: &Arc<Shared<S>>, letters: &[DeadLetter]) -> Vec<Result<()>> {
    let refuse = |kind: Kind| letters.iter().map(|_| Err(Error::new("park", kind.clone()))).collect();
    if let Some(bad) = letters.iter().find_map(|letter| check(letter, shared.store.max_body()).err()) {
        return refuse(bad);
    }
    let bytes = letters.iter().map(size).sum();
    let room = match shared.store.room(bytes).await {
        Ok(room) => room,
        Err(kind) => return refuse(kind),
    };
    let answer = {
        let mut guard = shared.lock();
        let state = &mut *guard;
        if state.closing {
            return refuse(Kind::Stopping);
        }
        let mut writes = Vec::with_capacity(letters.len());
        let slots = letters.iter().map(|letter| {
            if state.core.letters(&letter.tenant).contains(letter.id) {
                return LetterSlot::Kept;
            }
            let number = state.core.draw_sequence();
            writes.push((number, letter.clone()));
            LetterSlot::Written {
                number,
                id: letter.id,
                tenant: letter.tenant.clone(),
                table: letter.table.clone(),
                bytes: charge(letter),
            }
        });
        let slots: Vec<LetterSlot> = slots.collect();
        if writes.is_empty() {
            return letters.iter().map(|_| Ok(())).collect();
        }
        let (reply, answer) = oneshot::channel();
        let woken = shared.submit(room, state, Change::Letters { letters: writes }, Pending::Letters { slots, reply });
        drop(guard);
        if let Some(woken) = woken {
            woken.wake(shared);
        }
        answer
    };
    answer.await.unwrap_or_else(|_| letters.iter().map(|_| Err(Error::new("park", Kind::Unknown))).collect())
}

/// More than a letter takes in any store.
fn size(letter: &DeadLetter) -> usize {
    letter.body.len() + letter.reason.len() + letter.code.len() + 2_048
}

fn check(letter: &DeadLetter, max_body: usize) -> std::result::Result<(), Kind> {
    let long = |what, len: usize, most: usize| {
        (len > most).then(|| Kind::BadBlock(format!("its {what} has {len} bytes, at most {most} are allowed").into()))
    };
    let column = letter.column.as_deref().unwrap_or_default();
    let found = long("body", letter.body.len(), max_body)
        .or_else(|| long("reason", letter.reason.len(), MAX_REASON.min(max_body)))
        .or_else(|| long("code", letter.code.len(), MAX_NAME))
        .or_else(|| long("column", column.len(), MAX_NAME));
    found.map_or(Ok(()), Err)
}

/// What a letter is charged with in its tenant's share: its texts and a fixed sum for the rest.
pub(crate) fn charge(letter: &DeadLetter) -> u64 {
    (letter.body.len() + letter.reason.len() + letter.code.len() + 128) as u64
}

pub(super) async fn list<S: Store>(
    shared: &Arc<Shared<S>>,
    tenant: &Tenant,
    query: &DeadLetterQuery,
) -> Result<DeadLetterPage> {
    let (found, more) = {
        let mut state = shared.lock();
        if state.closing {
            return Err(Error::new("dead letters", Kind::Stopping));
        }
        let query = DeadLetterQuery { limit: query.limit.clamp(1, MOST), ..query.clone() };
        state.core.letters(tenant).page(&query)
    };
    let read = shared.store.letters(found).await;
    let mut letters = Vec::with_capacity(read.len());
    for letter in read {
        match letter {
            Ok(letter) => letters.push(letter),
            // purged while we read
            Err(Kind::NotFound(_)) => {}
            Err(kind) => {
                tracing::error!(%tenant, error = %kind, "a dead letter of tenant {tenant} cannot be read");
                crate::metrics::quarantined();
            }
        }
    }
    Ok(DeadLetterPage { letters, more })
}

pub(super) async fn purge<S: Store>(shared: &Arc<Shared<S>>, tenant: &Tenant, ids: &[DeadLetterId]) -> Result<usize> {
    let room = shared.store.room(ids.len() * 8 + 1_024).await.map_err(|kind| Error::new("purge dead letters", kind))?;
    let answer = {
        let mut guard = shared.lock();
        let state = &mut *guard;
        if state.closing {
            return Err(Error::new("purge dead letters", Kind::Stopping));
        }
        let numbers = state.core.letters(tenant).numbers(ids);
        if numbers.is_empty() {
            return Ok(0);
        }
        let (reply, answer) = oneshot::channel();
        let change = Change::Purge { tenant: tenant.clone(), numbers };
        let pending = Pending::Purge { tenant: tenant.clone(), ids: ids.to_vec(), reply };
        let woken = shared.submit(room, state, change, pending);
        drop(guard);
        if let Some(woken) = woken {
            woken.wake(shared);
        }
        answer
    };
    answer.await.unwrap_or(Err(Error::new("purge dead letters", Kind::Unknown)))
}
