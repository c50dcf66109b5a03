//! Dead letters: parking, listing, purging.

use super::{Change, Pending, Shared, Store, pending::LetterSlot, publish::PIECE_BYTES};
use crate::{
    DeadLetter, DeadLetterCursor, DeadLetterId, DeadLetterPage, DeadLetterQuery, Error, Kind, Result,
    core::{LetterNote, Stretch},
};
use std::sync::Arc;
use tokio::sync::oneshot;
use wh_types::Tenant;

/// Most letters of one page, and most bytes of their texts.
const MOST: usize = 1_000;
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// Most letters, and bytes, that are read for one page, and how often the index is looked into for it.
const READ: usize = 10_000;
const READ_BYTES: u64 = 32 * 1024 * 1024;
const LOOKS: usize = 20;
/// Letters read at once where only their texts tell whether they match.
const READ_AT_ONCE: usize = 256;
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
                tenant: letter.tenant.clone(),
                note: LetterNote {
                    id: letter.id,
                    table: letter.table.clone(),
                    bytes: charge(letter),
                    attempted: letter.attempted,
                    retry_until: letter.retry_until,
                    code: Some(letter.code.as_str().into()),
                },
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
    let limit = query.limit.clamp(1, MOST);
    // only a letter's text tells whether it matches: then more of them are read at once than are wanted
    let least = if query.filter.reason.is_some() { READ_AT_ONCE } else { 1 };
    let mut page = DeadLetterPage::default();
    let (mut next, mut looks) = (Some(query.cursor.map_or(0, DeadLetterCursor::place)), 0);
    let (mut bytes, mut read, mut read_bytes) = (0, 0, 0);
    'looking: while let Some(first) = next {
        let full = page.letters.len() >= limit || bytes >= MOST_BYTES;
        if full || read >= READ || read_bytes >= READ_BYTES || looks >= LOOKS {
            break;
        }
        let wanted = (limit - page.letters.len()).max(least);
        let stretch = stretch(shared, tenant, query, first, wanted, MOST_BYTES - bytes)?;
        looks += 1;
        next = stretch.next;
        for (number, letter) in read_letters(shared, tenant, stretch.found).await? {
            if page.letters.len() >= limit {
                next = Some(number);
                break 'looking;
            }
            read += 1;
            read_bytes += charge(&letter);
            if query.filter.matches_text(&letter) {
                bytes += charge(&letter);
                page.letters.push(letter);
            }
        }
    }
    page.next = next.map(DeadLetterCursor::new);
    Ok(page)
}

fn stretch<S: Store>(
    shared: &Arc<Shared<S>>,
    tenant: &Tenant,
    query: &DeadLetterQuery,
    first: u64,
    wanted: usize,
    bytes: u64,
) -> Result<Stretch<S::Body>> {
    let mut state = shared.lock();
    if state.closing {
        return Err(Error::new("dead letters", Kind::Stopping));
    }
    let letters = state.core.letters(tenant);
    Ok(match &query.ids {
        Some(ids) => letters.picked(ids, first, &query.filter, wanted, bytes),
        None => letters.stretch(first, &query.filter, wanted, bytes),
    })
}

async fn read_letters<S: Store>(
    shared: &Arc<Shared<S>>,
    tenant: &Tenant,
    found: Vec<(u64, S::Body)>,
) -> Result<Vec<(u64, DeadLetter)>> {
    let (numbers, bodies): (Vec<u64>, Vec<S::Body>) = found.into_iter().unzip();
    let mut letters = Vec::with_capacity(bodies.len());
    for (number, letter) in numbers.into_iter().zip(shared.store.letters(bodies).await) {
        match letter {
            Ok(letter) => letters.push((number, letter)),
            // purged while we read
            Err(Kind::NotFound(_)) => {}
            Err(kind @ (Kind::Stopping | Kind::Unavailable)) => return Err(Error::new("dead letters", kind)),
            Err(kind) => {
                tracing::error!(%tenant, error = %kind, "a dead letter of tenant {tenant} cannot be read");
                crate::metrics::quarantined();
            }
        }
    }
    Ok(letters)
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
