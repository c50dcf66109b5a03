//! Listing: pages by batched direct get, in the stream's order, and counts from the stream's subjects.

use super::letter;
use crate::{
    DeadLetter, DeadLetterId, DeadLetterPage, DeadLetterQuery, Result,
    nats::{error, shared::Shared},
};
use std::collections::BTreeMap;
use wh_nats::{BatchStart, DirectBatch, DirectGet, Stored};
use wh_types::{Table, Tenant, TopicKey};

const OP: &str = "dead letters";
/// Most letters of one page, and most bytes asked for at once.
const MOST: usize = 1_000;
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// A page of a tenant's letters.
///
/// # Errors
/// Unavailable, Denied, Stopping.
pub(crate) async fn list(shared: &Shared, tenant: &Tenant, query: &DeadLetterQuery) -> Result<DeadLetterPage> {
    shared.running(OP)?;
    let filter = filter(shared, tenant, query.table.as_ref());
    let mut from = match query.after {
        Some(after) => place(shared, &filter, after).await?.map_or(1, |sequence| sequence + 1),
        None => 1,
    };
    let limit = query.limit.clamp(1, MOST);
    let mut page = DeadLetterPage::default();
    loop {
        let Some(batch) = batch(shared, &filter, from, limit - page.letters.len()).await? else {
            page.more = false;
            return Ok(page);
        };
        from = batch.next;
        page.more = batch.more;
        for (sequence, letter) in batch.letters {
            shared.letters.index.put(letter.id, sequence);
            page.letters.push(letter);
        }
        if !page.more || page.letters.len() >= limit {
            return Ok(page);
        }
    }
}

/// Where a letter stands in the stream; `None` where it is not known and not found.
pub(super) async fn place(shared: &Shared, filter: &str, id: DeadLetterId) -> Result<Option<u64>> {
    if let Some(sequence) = shared.letters.index.get(id) {
        // one that was purged since still says where its successors are; one that is another letter's does not
        match at(shared, sequence).await? {
            Some(stored) if letter::id(&|name: &str| stored.header_first(name)) != Some(id) => {
                shared.letters.index.clear()
            }
            _ => return Ok(Some(sequence)),
        }
    }
    let mut from = 1;
    while let Some(batch) = batch(shared, filter, from, MOST).await? {
        if let Some((sequence, _)) = batch.letters.iter().find(|(_, letter)| letter.id == id) {
            return Ok(Some(*sequence));
        }
        if !batch.more {
            break;
        }
        from = batch.next;
    }
    Ok(None)
}

/// What stands at a sequence.
pub(super) async fn at(shared: &Shared, sequence: u64) -> Result<Option<Stored>> {
    let get = DirectGet::Sequence(sequence);
    let stored = shared.connection.api().direct_get(&shared.names().dead_letters, get).await;
    stored.map_err(|error| error::request(OP, error))
}

/// The subjects of a tenant's letters, or of one table's.
pub(super) fn filter(shared: &Shared, tenant: &Tenant, table: Option<&Table>) -> String {
    match table {
        Some(table) => shared.names().dead_letter_subject(&Shared::key(tenant, table)),
        None => format!("{}.dlq.{tenant}.>", shared.names().prefix),
    }
}

struct Found {
    letters: Vec<(u64, DeadLetter)>,
    more: bool,
    /// Where what follows begins.
    next: u64,
}

/// So many messages from a sequence on; `None` where there are none.
async fn batch(shared: &Shared, filter: &str, from: u64, count: usize) -> Result<Option<Found>> {
    let request = DirectBatch {
        batch: u32::try_from(count).unwrap_or(u32::MAX),
        start: BatchStart::Sequence(from),
        next_by_subj: Some(filter.to_owned()),
        max_bytes: Some(MOST_BYTES),
        ..DirectBatch::default()
    };
    let batch = shared.connection.api().direct_batch(&shared.names().dead_letters, &request).await;
    let batch = batch.map_err(|error| error::request(OP, error))?;
    let Some(last) = batch.messages.last() else { return Ok(None) };
    let (next, more) = (last.sequence + 1, batch.pending > 0);
    let read = |stored: Stored| {
        let tail = tail(shared, &stored.subject)?;
        letter::read(tail, |name: &str| stored.header_first(name), stored.body().clone())
            .map(|letter| (stored.sequence, letter))
    };
    Ok(Some(Found { letters: batch.messages.into_iter().filter_map(read).collect(), more, next }))
}

/// A dead letter's subject after the prefix.
fn tail<'a>(shared: &Shared, subject: &'a str) -> Option<&'a str> {
    subject.strip_prefix(shared.names().prefix.as_str())?.strip_prefix(".dlq.")
}

/// How many letters there are, by tenant and table.
///
/// # Errors
/// Unavailable, Denied.
pub(crate) async fn counts(shared: &Shared) -> Result<BTreeMap<(Tenant, Table), u64>> {
    let names = shared.names();
    let subjects = shared.connection.api().stream_subjects(&names.dead_letters, &names.dead_letter_subjects()).await;
    let mut counts = BTreeMap::new();
    for (subject, count) in subjects.map_err(|error| error::request(OP, error))? {
        if let Some(key) = tail(shared, &subject).and_then(TopicKey::parse) {
            *counts.entry((key.tenant().clone(), key.table().clone())).or_default() += count;
        }
    }
    Ok(counts)
}
