//! Copying forward: what is still needed of a segment that is mostly dead is appended again, so that its file is free.
//! One unsettled block then holds up its own bytes and nothing else's.

use super::{Disk, batch::Batch, record};
use crate::{
    core::TableIndex,
    local::{Shared, Store as _},
};
use std::{collections::HashMap, sync::Arc};
use tokio::runtime::Handle;
use wh_log::{Detail, Place, Position};
use wh_types::Tenant;

/// Bytes moved by one step, about: what a step may keep the disk from others.
const STEP_BYTES: usize = 4 * 1024 * 1024;
/// Bytes moved by one append, about.
const APPEND_BYTES: usize = 512 * 1024;

/// A record that may still be needed.
#[derive(Clone, Debug)]
enum Needed {
    Block { at: TableIndex, sequence: u64 },
    Letter { tenant: Tenant, number: u64 },
}

/// Moves a part of what is needed of a segment.
pub(super) fn step(shared: &Arc<Shared<Disk>>, runtime: &Handle, segment: u64) -> wh_log::Result<()> {
    let parts = &shared.store.0;
    let most = APPEND_BYTES.min(parts.log.max_append_bytes() as usize / 4);
    let (mut moving, mut batch, mut moved, mut found) = (Vec::new(), Batch::default(), 0, 0);
    for (needed, place) in candidates(shared, segment)? {
        if moved >= STEP_BYTES {
            break;
        }
        if !still_there(shared, &needed, place) {
            continue;
        }
        let stored = match parts.log.read(place) {
            Ok(stored) => stored,
            Err(error) if error.kind() == wh_log::Kind::Corrupt => {
                tracing::error!(%error, "a record at {place} cannot be read and is put aside");
                put_aside(shared, &needed);
                found += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        found += 1;
        if batch.bytes() + place.len as usize > most {
            moved += batch.bytes();
            append(shared, runtime, &std::mem::take(&mut batch), std::mem::take(&mut moving))?;
        }
        batch.push(stored.head.kind, stored.head.stream, stored.head.sequence, stored.head.time, |out| {
            out.extend_from_slice(&stored.meta);
        });
        batch.body(|_| {}, &stored.body);
        moving.push(needed);
    }
    if found == 0 {
        // damage hides what is needed of it: to look again and again would not help
        parts.inner.lock().usage.give_up(segment);
    }
    append(shared, runtime, &batch, moving)
}

/// Takes out what can never be read again.
fn put_aside(shared: &Arc<Shared<Disk>>, needed: &Needed) {
    crate::metrics::quarantined();
    let now = shared.now();
    let mut state = shared.lock();
    match needed {
        Needed::Block { at, sequence } => drop(state.core.quarantine(*at, *sequence, now)),
        Needed::Letter { tenant, number } => {
            let body = state.core.letters(tenant).forget(*number);
            shared.store.freed(body.into_iter().collect());
        }
    }
    shared.sweep(&mut state, now);
}

/// Appends records anew and tells the state where they are now.
fn append(shared: &Arc<Shared<Disk>>, runtime: &Handle, batch: &Batch, moving: Vec<Needed>) -> wh_log::Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let parts = &shared.store.0;
    let places = batch.with(|records| runtime.block_on(parts.log.append_reserved(records)))?;
    let mut state = shared.lock();
    let mut inner = parts.inner.lock();
    for (needed, to) in moving.into_iter().zip(places.iter()) {
        let free = match needed {
            Needed::Block { at, sequence } => state.core.moved(at, sequence, to),
            Needed::Letter { tenant, number } => state.core.letter_moved(&tenant, number, to),
        };
        inner.usage.add(to);
        inner.usage.remove(free);
    }
    Ok(())
}

/// The blocks and dead letters of a segment, in its order.
fn candidates(shared: &Arc<Shared<Disk>>, segment: u64) -> wh_log::Result<Vec<(Needed, Place)>> {
    let parts = &shared.store.0;
    let tables: HashMap<u64, TableIndex> = {
        let inner = parts.inner.lock();
        (0_u32..).zip(&inner.tables).map(|(at, named)| (named.number, TableIndex(at))).collect()
    };
    let mut found = Vec::new();
    let on_record = |record: wh_log::RecordRef<'_>| {
        let (head, place) = (record.head, record.place);
        match head.kind {
            record::BLOCK => {
                if let Some(at) = tables.get(&head.stream) {
                    found.push((Needed::Block { at: *at, sequence: head.sequence }, place));
                }
            }
            record::LETTER => {
                if let Some(meta) = record::LetterMeta::decode(record.meta) {
                    found.push((Needed::Letter { tenant: meta.tenant, number: head.sequence }, place));
                }
            }
            _ => {}
        }
    };
    parts.log.scan(Position { segment, offset: 0 }, Detail::Heads, on_record, |_| {})?;
    Ok(found)
}

fn still_there(shared: &Arc<Shared<Disk>>, needed: &Needed, place: Place) -> bool {
    let mut state = shared.lock();
    let at = match needed {
        Needed::Block { at, sequence } => state.core.body(*at, *sequence),
        Needed::Letter { tenant, number } => state.core.letters(tenant).body(*number),
    };
    at == Some(place)
}
