//! Reserve, commit and release: decided in the table, written to the log, then made so in the table.
//!
//! From the decision until its record is durable, or failed, a key is `writing` and nothing else becomes of it: so the log
//! has the states of each key in the order in which they came.

use super::{
    Inner, error,
    live::Ended,
    record::{self, Keys},
    table::{Holder, Lapsed, Shard, Taken},
};
use crate::{
    Error, Kind, Origin, Result, Retention, Row, Ticket, Token, Under, Verdict, hash::KeyHash, port::checked, when,
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use wh_log::Record;
use wh_types::Timestamp;

/// How long a key is waited for whose record is being written for another call.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a reservation took, to be undone unless it is kept.
struct Taking<'a> {
    inner: &'a Inner,
    holder: Arc<Holder>,
    new: Vec<KeyHash>,
    lapsed: Vec<Lapsed>,
}

impl Taking<'_> {
    /// Its record stands in this segment: from here on others may have the keys.
    fn keep(mut self, segment: u64) {
        let mut live = self.inner.live.lock();
        live.claimed(segment, (self.new.len() + self.lapsed.len()) as u64);
        for one in &self.lapsed {
            if let Some(before) = one.before.segment() {
                live.resolved(before, 1);
            }
        }
        drop(live);
        self.holder.written(segment);
        self.lapsed.drain(..).for_each(|one| one.now.written(segment));
        self.new.clear();
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        let table = &self.inner.table;
        for hash in self.new.drain(..) {
            let mut shard = table.shard(hash);
            if shard.held(hash).is_some_and(|claim| Arc::ptr_eq(&claim.holder, &self.holder)) {
                shard.free(hash);
                self.inner.claims.fetch_sub(1, Ordering::Relaxed);
            }
        }
        for Lapsed { hash, before, now, .. } in self.lapsed.drain(..) {
            if let Some(claim) = table.shard(hash).held(hash)
                && Arc::ptr_eq(&claim.holder, &now)
            {
                claim.holder = before;
            }
        }
    }
}

/// Claims that a call writes of, to be let go unless they are resolved.
struct Writing<'a> {
    inner: &'a Inner,
    /// Each with its claim's slot.
    keys: Vec<(KeyHash, u32, Token)>,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        for (hash, slot, token) in self.keys.drain(..) {
            if let Some(claim) = self.inner.table.shard(hash).held_in(slot, hash)
                && claim.holder.token == token
            {
                claim.writing = false;
            }
        }
    }
}

/// What a ticket may do.
enum Hold {
    Ours(bytes::Bytes),
    Written,
    Lost,
}

fn hold(shard: &mut Shard, ticket: &Ticket) -> Hold {
    match shard.held_in(ticket.slot(), ticket.short()) {
        Some(claim) if claim.holder.token != ticket.token() => Hold::Lost,
        Some(claim) if claim.being_written() => Hold::Written,
        Some(claim) => {
            claim.writing = true;
            Hold::Ours(claim.payload.clone())
        }
        None => Hold::Lost,
    }
}

impl Inner {
    pub(super) async fn reserve(&self, rows: &[Row], under: &Under) -> Result<Vec<Verdict>> {
        const OP: &str = "reserve";
        checked::reserve(rows, under)?;
        self.room(rows.len())?;
        let (mono, wall) = (self.options.clock.now(), self.options.clock.wall());
        let token = Token::draw(&*self.options.entropy);
        let origin = Origin::new(under, wall);
        let holder = Arc::new(Holder::new(token, origin, mono + under.lease));
        let new = Vec::with_capacity(rows.len());
        let mut taking = Taking { inner: self, holder, new, lapsed: Vec::new() };
        let at = (mono, when::second(wall));
        let mut verdicts = Vec::with_capacity(rows.len());
        let (mut keys, mut others) = (Keys::with_capacity(rows.len()), Vec::new());
        for (row, before) in rows.iter().zip(checked::repeats(rows)) {
            if let Some(before) = before {
                verdicts.push(Verdict::Same(before));
                continue;
            }
            let hash = row.key.short();
            let taken = self.table.shard(hash).claim(hash, &row.payload, &taking.holder, at);
            let ticket = |slot| Ticket::in_slot(row.key.clone(), token, slot);
            verdicts.push(match taken {
                Taken::New(slot) => {
                    taking.new.push(hash);
                    keys.push(hash, &row.payload);
                    Verdict::New(ticket(slot))
                }
                Taken::Busy(until, payload) => {
                    let retry_after = until.saturating_duration_since(mono).max(Duration::from_millis(1));
                    Verdict::Busy { retry_after, payload }
                }
                Taken::Seen(payload) => Verdict::Seen { payload },
                Taken::Lapsed(lapsed, payload) => {
                    let (origin, slot) = (lapsed.now.origin, lapsed.slot);
                    taking.lapsed.push(lapsed);
                    let mut one = Keys::default();
                    one.push(hash, &payload);
                    others.push((origin, one));
                    Verdict::Lapsed { origin, payload, ticket: ticket(slot) }
                }
            });
        }
        self.claims.fetch_add(taking.new.len() as u64, Ordering::Relaxed);
        if !keys.is_empty() {
            others.push((origin, keys));
        }
        if others.is_empty() {
            return Ok(verdicts);
        }
        let bodies: Vec<_> = others.iter().map(|(_, keys)| keys.parts()).collect();
        let metas: Vec<_> = others.iter().map(|(origin, keys)| keys.claimed(token, origin)).collect();
        let pairs = metas.iter().zip(&bodies);
        let records: Vec<_> = pairs.map(|(meta, body)| of(record::CLAIMED, wall, meta, body)).collect();
        let places = self.log.append(&records).await.map_err(|e| error::of(OP, &e))?;
        taking.keep(places.first().segment);
        // what the log has of this is counted: from here on its segment may be judged by the counts
        drop(places);
        Ok(verdicts)
    }

    /// Whether it may grow by so many.
    fn room(&self, rows: usize) -> Result<()> {
        let full = |what: &str, most: u64| {
            let why = format!("it holds {most} {what}, as many as it may").into();
            Err(Error::new("reserve", Kind::Exhausted { why, retry_after: Duration::from_secs(30) }))
        };
        let (known, claims) = (self.known.load(Ordering::Relaxed), self.claims.load(Ordering::Relaxed));
        if known + claims + rows as u64 > self.options.max_known {
            return full("keys", self.options.max_known);
        }
        if claims + rows as u64 > self.options.max_claims {
            return full("open claims", self.options.max_claims);
        }
        Ok(())
    }

    pub(super) async fn commit(&self, held: &[Ticket], retention: Retention) -> Vec<Result<()>> {
        let wall = self.options.clock.wall();
        let until = when::until(wall, retention);
        self.resolve("commit", held, Some((wall, until))).await
    }

    pub(super) async fn release(&self, held: &[Ticket]) -> Vec<Result<()>> {
        self.resolve("release", held, None).await
    }

    /// Commits, where it is said until when; else releases.
    async fn resolve(&self, op: &'static str, held: &[Ticket], commit: Option<(Timestamp, u32)>) -> Vec<Result<()>> {
        if let Some(refused) = checked::tickets(op, held) {
            return refused;
        }
        let mut outcomes: Vec<Result<()>> = Vec::with_capacity(held.len());
        let mut writing = Writing { inner: self, keys: Vec::with_capacity(held.len()) };
        let mut keys = Keys::with_capacity(held.len());
        let mut ours = Vec::with_capacity(held.len());
        for (index, ticket) in held.iter().enumerate() {
            outcomes.push(match self.hold(ticket).await {
                Hold::Ours(payload) => {
                    keys.push(ticket.short(), if commit.is_some() { &payload } else { &[] });
                    writing.keys.push((ticket.short(), ticket.slot(), ticket.token()));
                    ours.push(index);
                    Ok(())
                }
                Hold::Written => Err(Error::new(op, Kind::Unavailable)),
                Hold::Lost => Err(Error::new(op, Kind::Lost)),
            });
        }
        if keys.is_empty() {
            return outcomes;
        }
        let (kind, wall, meta) = match commit {
            Some((wall, until)) => (record::COMMITTED, wall, keys.committed(until)),
            None => (record::RELEASED, self.options.clock.wall(), keys.released()),
        };
        match self.log.append(&[of(kind, wall, &meta, &keys.parts())]).await {
            Ok(places) => {
                self.resolved(std::mem::take(&mut writing.keys), places.first().segment, commit);
                drop(places);
            }
            Err(failed) => ours.into_iter().for_each(|index| outcomes[index] = Err(error::of(op, &failed))),
        }
        outcomes
    }

    /// Takes hold of a claim; waits while a record of it is being written.
    async fn hold(&self, ticket: &Ticket) -> Hold {
        let mut patience = None;
        loop {
            let found = hold(&mut self.table.shard(ticket.short()), ticket);
            if !matches!(found, Hold::Written) {
                return found;
            }
            let now = self.options.clock.now();
            if now >= *patience.get_or_insert(now + PATIENCE) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Makes what is durable so.
    fn resolved(&self, keys: Vec<(KeyHash, u32, Token)>, segment: u64, commit: Option<(Timestamp, u32)>) {
        let mut ended = Ended::default();
        for (hash, slot, _) in keys {
            let mut shard = self.table.shard(hash);
            let holder = match commit {
                Some((_, until)) => shard.know(hash, slot, until),
                None => shard.free(hash),
            };
            drop(shard);
            if let Some(holder) = holder {
                ended.note(&holder);
            }
        }
        let count = ended.count;
        self.claims.fetch_sub(count, Ordering::Relaxed);
        let mut live = self.live.lock();
        ended.tell(&mut live);
        if let Some((wall, until)) = commit {
            live.committed(segment, when::bucket(when::second(wall), until), count);
            self.known.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// A record of this store.
pub(super) fn of<'a>(kind: u8, time: Timestamp, meta: &'a [u8], body: &'a [&'a [u8]]) -> Record<'a> {
    Record { kind, stream: 0, sequence: 0, time, meta, body }
}
