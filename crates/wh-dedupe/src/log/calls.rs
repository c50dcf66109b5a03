//! Reserve, commit and release: decided in the table, written to the log, then made so in the table.
//!
//! From the decision until its record is durable, or failed, a key is `writing` and nothing else becomes of it: so the log
//! has the states of each key in the order in which they came.

use super::{
    Inner, error,
    record::{self, Keys},
    table::{Claim, Shard},
    when,
};
use crate::{Error, Kind, Origin, Result, Retention, Row, Ticket, Token, Under, Verdict, hash::KeyHash, port::checked};
use std::{
    collections::{BTreeMap, hash_map::Entry},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use wh_log::Record;
use wh_types::{Mono, Timestamp};

/// How long a key is waited for whose record is being written for another call.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a reservation took, to be undone unless it is kept.
struct Taking<'a> {
    inner: &'a Inner,
    token: Token,
    new: Vec<KeyHash>,
    /// As they were before.
    lapsed: Vec<(KeyHash, Claim)>,
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        for hash in self.new.drain(..) {
            if let Entry::Occupied(claim) = self.inner.table.shard(hash).claims.entry(hash)
                && claim.get().token == self.token
            {
                claim.remove();
                self.inner.claims.fetch_sub(1, Ordering::Relaxed);
            }
        }
        for (hash, before) in self.lapsed.drain(..) {
            if let Some(claim) = self.inner.table.shard(hash).claims.get_mut(&hash)
                && claim.token == self.token
            {
                *claim = before;
            }
        }
    }
}

/// Claims that a call writes of, to be let go unless they are resolved.
struct Writing<'a> {
    inner: &'a Inner,
    keys: Vec<(KeyHash, Token)>,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        for (hash, token) in self.keys.drain(..) {
            if let Some(claim) = self.inner.table.shard(hash).claims.get_mut(&hash)
                && claim.token == token
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
    match shard.claims.get_mut(&ticket.short()) {
        Some(claim) if claim.token != ticket.token() => Hold::Lost,
        Some(claim) if claim.writing => Hold::Written,
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
        let origin = Arc::new(Origin::new(under, wall));
        let mut taking = Taking { inner: self, token, new: Vec::with_capacity(rows.len()), lapsed: Vec::new() };
        let mut verdicts = Vec::with_capacity(rows.len());
        let (mut keys, mut others) = (Keys::default(), Vec::new());
        for (row, before) in rows.iter().zip(checked::repeats(rows)) {
            if let Some(before) = before {
                verdicts.push(Verdict::Same(before));
                continue;
            }
            let verdict = self.claim(row, &origin, (mono, wall), &mut taking);
            match &verdict {
                Verdict::New(_) => keys.push(row.key.short(), &row.payload),
                Verdict::Lapsed { origin, payload, .. } => {
                    let mut one = Keys::default();
                    one.push(row.key.short(), payload);
                    others.push((*origin, one));
                }
                Verdict::Busy { .. } | Verdict::Seen { .. } | Verdict::Same(_) => {}
            }
            verdicts.push(verdict);
        }
        if !keys.is_empty() {
            others.push((*origin, keys));
        }
        if others.is_empty() {
            return Ok(verdicts);
        }
        let bodies: Vec<_> = others.iter().map(|(_, keys)| keys.parts()).collect();
        let metas: Vec<_> = others.iter().map(|(origin, keys)| keys.claimed(token, origin)).collect();
        let pairs = metas.iter().zip(&bodies);
        let records: Vec<_> = pairs.map(|(meta, body)| of(record::CLAIMED, wall, meta, body)).collect();
        let places = self.log.append(&records).await.map_err(|e| error::of(OP, &e))?;
        let segment = places.first().segment;
        let mut live = BTreeMap::new();
        let written = taking.new.drain(..).chain(taking.lapsed.drain(..).map(|(hash, _)| hash));
        for hash in written {
            if let Some(claim) = self.table.shard(hash).claims.get_mut(&hash) {
                claim.writing = false;
                let before = claim.segment.replace(segment);
                *live.entry(before).or_insert(0) += 1;
            }
        }
        let mut counts = self.live.lock();
        for (before, keys) in live {
            counts.claimed(segment, keys);
            if let Some(before) = before {
                counts.resolved(before, keys);
            }
        }
        // what the log has of this is counted: from here on its segment may be judged by the counts
        drop((counts, places));
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

    fn claim(
        &self,
        row: &Row,
        origin: &Arc<Origin>,
        (mono, wall): (Mono, Timestamp),
        taking: &mut Taking<'_>,
    ) -> Verdict {
        let hash = row.key.short();
        let mut shard = self.table.shard(hash);
        if let Some(payload) = shard.known(hash, when::second(wall)) {
            return Verdict::Seen { payload };
        }
        let token = taking.token;
        let until = mono + origin.lease;
        match shard.claims.entry(hash) {
            Entry::Vacant(free) => {
                let payload = row.payload.clone();
                let origin = Arc::clone(origin);
                free.insert(Claim { token, origin, until, payload, segment: None, writing: true });
                self.claims.fetch_add(1, Ordering::Relaxed);
                taking.new.push(hash);
                Verdict::New(Ticket::new(row.key.clone(), token))
            }
            Entry::Occupied(mut entry) => {
                let claim = entry.get_mut();
                if claim.writing || claim.until > mono {
                    let left = claim.until.saturating_duration_since(mono).max(Duration::from_millis(1));
                    return Verdict::Busy { retry_after: left, payload: claim.payload.clone() };
                }
                taking.lapsed.push((hash, claim.clone()));
                (claim.token, claim.until, claim.writing) = (token, until, true);
                let ticket = Ticket::new(row.key.clone(), token);
                Verdict::Lapsed { origin: *claim.origin, payload: claim.payload.clone(), ticket }
            }
        }
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
        let mut keys = Keys::default();
        let mut ours = Vec::with_capacity(held.len());
        for (index, ticket) in held.iter().enumerate() {
            outcomes.push(match self.hold(ticket).await {
                Hold::Ours(payload) => {
                    keys.push(ticket.short(), if commit.is_some() { &payload } else { &[] });
                    writing.keys.push((ticket.short(), ticket.token()));
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
    fn resolved(&self, keys: Vec<(KeyHash, Token)>, segment: u64, commit: Option<(Timestamp, u32)>) {
        let mut claims = BTreeMap::new();
        let mut count = 0;
        for (hash, _) in keys {
            let mut shard = self.table.shard(hash);
            let Some(claim) = shard.claims.remove(&hash) else { continue };
            if let Some((_, until)) = commit {
                shard.know(hash, until, claim.payload);
            }
            count += 1;
            *claims.entry(claim.segment).or_insert(0) += 1;
        }
        self.claims.fetch_sub(count, Ordering::Relaxed);
        let mut live = self.live.lock();
        for (before, keys) in claims {
            if let Some(before) = before {
                live.resolved(before, keys);
            }
        }
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
