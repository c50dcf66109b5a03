//! What each key is, and what a call makes of it. One thread uses it.

use super::{
    Options,
    disk::Disk,
    error,
    item::{self, Known},
};
use crate::{
    Error, Kind, Origin, Result, Retention, Row, Ticket, Token, Under, Verdict, hash::KeyHash, port::checked,
    stir::Stir, when,
};
use ::sled::Batch;
use bytes::Bytes;
use std::{
    collections::{HashMap, hash_map::Entry},
    ops::Bound,
    time::Duration,
};
use wh_types::Mono;

/// Keys that are looked at in one step of a sweep; a larger batch would make sled grow.
const STEP: usize = 1_000;

#[derive(Debug)]
struct Claim {
    token: Token,
    origin: Origin,
    /// When it lapses.
    until: Mono,
    payload: Bytes,
}

#[derive(Debug)]
pub(super) struct State {
    disk: Disk,
    options: Options,
    claims: HashMap<KeyHash, Claim, Stir>,
    /// Something was applied and is not flushed.
    dirty: bool,
    /// A write or a flush failed: what is in memory may not be what is on the disk.
    broken: bool,
    /// Where a sweep goes on.
    swept: Option<[u8; 16]>,
}

impl State {
    /// Reads the open claims; they have lapsed. Blocking.
    pub(super) fn open(options: Options) -> Result<Self> {
        const OP: &str = "open";
        let disk = Disk::open(&options)?;
        let mut claims = HashMap::with_hasher(Stir::new(&*options.entropy));
        let mut over = Batch::default();
        let mono = options.clock.now();
        for entry in disk.claims.iter() {
            let (key, value) = entry.map_err(|e| error::of(OP, e))?;
            let (Ok(hash), Some((token, origin, payload))) = (key[..].try_into(), item::read_claim(&value)) else {
                return Err(foreign());
            };
            let known = disk.known.get(hash).map_err(|e| error::of(OP, e))?;
            // a crash came between the commit and the end of the claim
            let committed = known.and_then(|v| Known::decode(&v)).is_some_and(|k| k.until > when::second(origin.at));
            if committed {
                over.remove(&hash);
            } else {
                claims.insert(KeyHash(hash), Claim { token, origin, until: mono, payload });
            }
        }
        Disk::apply(&disk.claims, over, OP)?;
        disk.flush(OP)?;
        Ok(Self { disk, options, claims, dirty: false, broken: false, swept: None })
    }

    pub(super) fn open_claims(&self) -> u64 {
        self.claims.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    #[cfg(test)]
    pub(super) fn known_keys(&self) -> usize {
        self.disk.known.len()
    }

    /// Whether calls can still be made.
    pub(super) fn sound(&self, op: &'static str) -> Result<()> {
        if self.broken { Err(Error::new(op, Kind::Unavailable)) } else { Ok(()) }
    }

    /// Makes durable what was applied since it was last asked.
    pub(super) fn flush(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.dirty) {
            return Ok(());
        }
        self.disk.flush("flush").inspect_err(|error| self.fail(error))
    }

    pub(super) fn fail(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.broken, true) {
            tracing::error!(%error, "the dedupe store cannot write and refuses everything until it is opened again");
        }
    }

    /// What is known of a key that is not forgotten.
    fn known(&self, hash: KeyHash, op: &'static str) -> Result<Option<Known>> {
        let found = self.disk.known.get(hash.0).map_err(|e| error::of(op, e))?;
        let known = found.map(|value| Known::decode(&value).ok_or_else(foreign)).transpose()?;
        Ok(known.filter(|known| known.until > when::second(self.options.clock.wall())))
    }

    pub(super) fn reserve(&mut self, rows: &[Row], under: &Under) -> Result<Vec<Verdict>> {
        const OP: &str = "reserve";
        self.sound(OP)?;
        let most = self.options.max_claims;
        if self.claims.len() + rows.len() > most {
            let why = format!("it holds {most} open claims, as many as it may").into();
            return Err(Error::new(OP, Kind::Exhausted { why, retry_after: Duration::from_secs(30) }));
        }
        // read before anything is changed: a failed read leaves nothing behind
        let seen = rows.iter().map(|row| self.known(row.key.short(), OP)).collect::<Result<Vec<_>>>()?;
        let token = Token::draw(&*self.options.entropy);
        let origin = Origin::new(under, self.options.clock.wall());
        let mono = self.options.clock.now();
        let until = mono + under.lease;
        let mut batch = Batch::default();
        let mut verdicts = Vec::with_capacity(rows.len());
        for ((row, before), seen) in rows.iter().zip(checked::repeats(rows)).zip(seen) {
            let hash = row.key.short();
            let ticket = || Ticket::new(row.key.clone(), token);
            let verdict = match (before, seen, self.claims.entry(hash)) {
                (Some(before), _, _) => Verdict::Same(before),
                (None, Some(known), _) => Verdict::Seen { payload: known.payload },
                (None, None, Entry::Vacant(free)) => {
                    batch.insert(&hash.0, item::claim(token, &origin, &row.payload));
                    free.insert(Claim { token, origin, until, payload: row.payload.clone() });
                    Verdict::New(ticket())
                }
                (None, None, Entry::Occupied(mut held)) => {
                    let claim = held.get_mut();
                    let payload = claim.payload.clone();
                    if claim.until > mono {
                        let retry_after = claim.until.saturating_duration_since(mono);
                        Verdict::Busy { retry_after, payload }
                    } else {
                        (claim.token, claim.until) = (token, until);
                        batch.insert(&hash.0, item::claim(token, &claim.origin, &payload));
                        Verdict::Lapsed { origin: claim.origin, payload, ticket: ticket() }
                    }
                }
            };
            verdicts.push(verdict);
        }
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::New(_) | Verdict::Lapsed { .. })) {
            self.apply(|disk| Disk::apply(&disk.claims, batch, OP), OP)?;
        }
        Ok(verdicts)
    }

    pub(super) fn commit(&mut self, held: &[Ticket], retention: Retention) -> Vec<Result<()>> {
        const OP: &str = "commit";
        let until = when::until(self.options.clock.wall(), retention);
        let (mut known, mut over) = (Batch::default(), Batch::default());
        let mut ours = Vec::new();
        let mut outcomes = Vec::with_capacity(held.len());
        for (index, ticket) in held.iter().enumerate() {
            let (hash, token) = (ticket.short(), ticket.token());
            outcomes.push(match self.claims.get(&hash) {
                _ if self.broken => Err(Error::new(OP, Kind::Unavailable)),
                Some(claim) if claim.token == token => {
                    known.insert(&hash.0, Known { until, token, payload: claim.payload.clone() }.encode());
                    over.remove(&hash.0);
                    self.claims.remove(&hash);
                    ours.push(index);
                    Ok(())
                }
                Some(_) => Err(Error::new(OP, Kind::Lost)),
                None => self.committed(ticket, OP),
            });
        }
        if !ours.is_empty() {
            // in this order: a crash between the two leaves a claim of a known key, which is dropped at the next start
            let applied = self.apply(
                |disk| {
                    Disk::apply(&disk.known, known, OP)?;
                    Disk::apply(&disk.claims, over, OP)
                },
                OP,
            );
            if applied.is_err() {
                ours.into_iter().for_each(|index| outcomes[index] = Err(Error::new(OP, Kind::Unknown)));
            }
        }
        outcomes
    }

    /// A commit that is repeated finds its own token.
    fn committed(&self, ticket: &Ticket, op: &'static str) -> Result<()> {
        let known = self.known(ticket.short(), op)?;
        let ours = known.is_some_and(|known| known.token == ticket.token());
        if ours { Ok(()) } else { Err(Error::new(op, Kind::Lost)) }
    }

    pub(super) fn release(&mut self, held: &[Ticket]) -> Vec<Result<()>> {
        const OP: &str = "release";
        let mut over = Batch::default();
        let mut ours = Vec::new();
        let mut outcomes = Vec::with_capacity(held.len());
        for (index, ticket) in held.iter().enumerate() {
            let hash = ticket.short();
            outcomes.push(match self.claims.entry(hash) {
                _ if self.broken => Err(Error::new(OP, Kind::Unavailable)),
                Entry::Occupied(claim) if claim.get().token == ticket.token() => {
                    claim.remove();
                    over.remove(&hash.0);
                    ours.push(index);
                    Ok(())
                }
                Entry::Occupied(_) | Entry::Vacant(_) => Err(Error::new(OP, Kind::Lost)),
            });
        }
        if !ours.is_empty() && self.apply(|disk| Disk::apply(&disk.claims, over, OP), OP).is_err() {
            ours.into_iter().for_each(|index| outcomes[index] = Err(Error::new(OP, Kind::Unknown)));
        }
        outcomes
    }

    /// Writes what memory says already; where that fails it is not known what the disk has.
    fn apply(&mut self, write: impl FnOnce(&Disk) -> Result<()>, op: &'static str) -> Result<()> {
        self.dirty = true;
        write(&self.disk).map_err(|error| {
            self.fail(&error);
            Error::new(op, Kind::Unknown).with_source(error)
        })
    }

    /// Forgets what is over among some keys, and at the beginning of a sweep claims that lapsed long ago. `false`: that
    /// was the last of them.
    pub(super) fn sweep(&mut self) -> Result<bool> {
        const OP: &str = "sweep";
        self.sound(OP)?;
        if self.swept.is_none() {
            self.drop_lapsed(OP)?;
        }
        let now = when::second(self.options.clock.wall());
        let from = self.swept.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut over, mut any, mut last, mut looked) = (Batch::default(), false, None, 0);
        for entry in self.disk.known.range::<[u8; 16], _>((from, Bound::Unbounded)).take(STEP) {
            let (key, value) = entry.map_err(|e| error::of(OP, e))?;
            looked += 1;
            last = key[..].try_into().ok();
            if Known::decode(&value).is_some_and(|known| known.until <= now) {
                over.remove(key);
                any = true;
            }
        }
        if any {
            self.apply(|disk| Disk::apply(&disk.known, over, OP), OP)?;
        }
        self.swept = last.filter(|_| looked == STEP);
        Ok(self.swept.is_some())
    }

    fn drop_lapsed(&mut self, op: &'static str) -> Result<()> {
        let (mono, kept) = (self.options.clock.now(), self.options.forget_after);
        let old: Vec<_> = self.claims.iter().filter(|(_, c)| c.until + kept <= mono).map(|(hash, _)| *hash).collect();
        for some in old.chunks(STEP) {
            let mut over = Batch::default();
            for hash in some {
                self.claims.remove(hash);
                over.remove(&hash.0);
            }
            self.apply(|disk| Disk::apply(&disk.claims, over, op), op)?;
        }
        Ok(())
    }
}

fn foreign() -> Error {
    Error::new("read", Kind::Corrupt("the folder holds what is none of ours".into()))
}
