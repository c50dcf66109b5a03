//! Listing: pages by batched direct get, in the stream's order, and counts from the stream's subjects.

use super::letter;
use crate::{
    DeadLetter, DeadLetterCursor, DeadLetterFilter, DeadLetterId, DeadLetterPage, DeadLetterQuery, Result,
    nats::{error, shared::Shared},
};
use futures::{StreamExt as _, TryStreamExt as _};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};
use wh_nats::{BatchStart, DirectBatch, DirectGet, Stored};
use wh_types::{Table, Tenant, TopicKey};

const OP: &str = "dead letters";
/// Most letters of one page, and most bytes of them, which are also asked for at once.
const MOST: usize = 1_000;
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// Requests for one page, and for finding letters by their ids.
const PAGE_REQUESTS: usize = 10;
const FIND_REQUESTS: usize = 200;
/// Requests for single letters under way at once.
const AT_ONCE: usize = 32;
/// A letter attempted at some time was stored then or later, by clocks that differ by no more than this.
const CLOCKS: Duration = Duration::from_secs(300);

/// A page of a tenant's letters.
///
/// # Errors
/// Unavailable, Denied, Stopping.
pub(crate) async fn list(shared: &Shared, tenant: &Tenant, query: &DeadLetterQuery) -> Result<DeadLetterPage> {
    shared.running(OP)?;
    let limit = query.limit.clamp(1, MOST);
    match &query.ids {
        Some(ids) => picked(shared, tenant, ids, query, limit).await,
        None => stretch(shared, tenant, query, limit).await,
    }
}

async fn stretch(shared: &Shared, tenant: &Tenant, query: &DeadLetterQuery, limit: usize) -> Result<DeadLetterPage> {
    let subject = filter(shared, tenant, query.filter.table.as_ref());
    let by_subject = DeadLetterFilter { table: query.filter.table.clone(), ..DeadLetterFilter::default() };
    // where the subject says it all, no more is asked for than is wanted
    let exact = query.filter == by_subject;
    let mut start = match (query.cursor, query.filter.from) {
        (Some(cursor), _) => BatchStart::Sequence(cursor.place().max(1)),
        (None, Some(from)) => BatchStart::Time(from.saturating_sub(CLOCKS)),
        (None, None) => BatchStart::Sequence(1),
    };
    let (mut page, mut bytes) = (DeadLetterPage::default(), 0);
    for _ in 0..PAGE_REQUESTS {
        let wanted = limit - page.letters.len();
        let Some(batch) = batch(shared, &subject, start, if exact { wanted } else { MOST }).await? else {
            page.next = None;
            return Ok(page);
        };
        page.next = batch.more.then(|| DeadLetterCursor::new(batch.next));
        start = BatchStart::Sequence(batch.next);
        for (sequence, letter) in batch.letters {
            shared.letters.index.put(letter.id, sequence);
            if !query.filter.matches(&letter) {
                continue;
            }
            if page.letters.len() >= limit {
                page.next = Some(DeadLetterCursor::new(sequence));
                return Ok(page);
            }
            bytes += letter.body.len() as u64;
            page.letters.push(letter);
        }
        let full = page.letters.len() >= limit && exact;
        if page.next.is_none() || full || bytes >= MOST_BYTES {
            break;
        }
    }
    Ok(page)
}

/// Letters by their ids; the cursor counts ids.
async fn picked(
    shared: &Shared,
    tenant: &Tenant,
    ids: &[DeadLetterId],
    query: &DeadLetterQuery,
    limit: usize,
) -> Result<DeadLetterPage> {
    let first = usize::try_from(query.cursor.map_or(0, DeadLetterCursor::place)).unwrap_or(usize::MAX).min(ids.len());
    let end = first.saturating_add(limit).min(ids.len());
    let wanted = &ids[first..end];
    let mut found = find(shared, tenant, query.filter.table.as_ref(), wanted).await?;
    let mut page = DeadLetterPage::default();
    let (mut bytes, mut looked) = (0, first);
    for id in wanted {
        if bytes >= MOST_BYTES {
            break;
        }
        looked += 1;
        if let Some((_, letter)) = found.remove(id).filter(|(_, letter)| query.filter.matches(letter)) {
            bytes += letter.body.len() as u64;
            page.letters.push(letter);
        }
    }
    page.next = (looked < ids.len()).then(|| DeadLetterCursor::new(looked as u64));
    Ok(page)
}

/// A tenant's letters of these ids, with their sequences: where they are remembered to stand, else by reading through
/// the stream, once for all of them.
pub(super) async fn find(
    shared: &Shared,
    tenant: &Tenant,
    table: Option<&Table>,
    ids: &[DeadLetterId],
) -> Result<HashMap<DeadLetterId, (u64, DeadLetter)>> {
    let remembered = ids.iter().filter_map(|id| shared.letters.index.get(*id).map(|sequence| (*id, sequence)));
    let remembered: Vec<_> = remembered.collect();
    let looks = remembered.iter().map(|(id, sequence)| look(shared, tenant, *id, *sequence));
    let looks: Vec<_> = looks.collect();
    let looked: Vec<_> = futures::stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
    let mut found = HashMap::new();
    let mut missing: HashSet<DeadLetterId> = ids.iter().copied().collect();
    for ((id, sequence), look) in remembered.into_iter().zip(looked) {
        match look {
            Look::There(letter) => {
                missing.remove(&id);
                found.insert(id, (sequence, *letter));
            }
            Look::Foreign => {
                missing.remove(&id);
            }
            // purged, and perhaps parked again by another process
            Look::Gone => {}
            // the stream was made anew
            Look::Another => shared.letters.index.clear(),
        }
    }
    let subject = filter(shared, tenant, table);
    let mut start = BatchStart::Sequence(1);
    for _ in 0..FIND_REQUESTS {
        if missing.is_empty() {
            break;
        }
        let Some(batch) = batch(shared, &subject, start, MOST).await? else { break };
        start = BatchStart::Sequence(batch.next);
        for (sequence, letter) in batch.letters {
            if missing.remove(&letter.id) {
                shared.letters.index.put(letter.id, sequence);
                found.insert(letter.id, (sequence, letter));
            }
        }
        if !batch.more {
            break;
        }
    }
    Ok(found)
}

enum Look {
    There(Box<DeadLetter>),
    Gone,
    /// It is another tenant's.
    Foreign,
    /// Another letter stands there.
    Another,
}

async fn look(shared: &Shared, tenant: &Tenant, id: DeadLetterId, sequence: u64) -> Result<Look> {
    let Some(stored) = at(shared, sequence).await? else { return Ok(Look::Gone) };
    Ok(match read(shared, &stored) {
        Some(letter) if letter.id != id => Look::Another,
        Some(letter) if letter.tenant == *tenant => Look::There(Box::new(letter)),
        Some(_) => Look::Foreign,
        None => Look::Another,
    })
}

/// What stands at a sequence.
async fn at(shared: &Shared, sequence: u64) -> Result<Option<Stored>> {
    let get = DirectGet::Sequence(sequence);
    let stored = shared.connection.api().direct_get(&shared.names().dead_letters, get).await;
    stored.map_err(|error| error::request(OP, error))
}

/// The subjects of a tenant's letters, or of one table's.
fn filter(shared: &Shared, tenant: &Tenant, table: Option<&Table>) -> String {
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
async fn batch(shared: &Shared, filter: &str, start: BatchStart, count: usize) -> Result<Option<Found>> {
    let request = DirectBatch {
        batch: u32::try_from(count).unwrap_or(u32::MAX),
        start,
        next_by_subj: Some(filter.to_owned()),
        max_bytes: Some(MOST_BYTES),
        ..DirectBatch::default()
    };
    let batch = shared.connection.api().direct_batch(&shared.names().dead_letters, &request).await;
    let batch = batch.map_err(|error| error::request(OP, error))?;
    let Some(last) = batch.messages.last() else { return Ok(None) };
    let (next, more) = (last.sequence + 1, batch.pending > 0);
    let letters = batch.messages.iter().filter_map(|stored| Some((stored.sequence, read(shared, stored)?)));
    Ok(Some(Found { letters: letters.collect(), more, next }))
}

fn read(shared: &Shared, stored: &Stored) -> Option<DeadLetter> {
    let tail = tail(shared, &stored.subject)?;
    letter::read(tail, |name: &str| stored.header_first(name), stored.body().clone())
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
