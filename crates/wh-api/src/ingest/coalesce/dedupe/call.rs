//! Claims the rows of one publish call, block by block, and takes out those that are not to go.
//!
//! A block's id stands for exactly the claims taken under it: where one that leaves cannot be given back, the others are,
//! and the block gets another id and claims anew.

use super::{
    Act, Claims, Held, Keying, away, busy, contest,
    decide::{self, Claim, Keys, Standing, Verdict},
    reserve::Reserved,
};
use crate::{
    dedupe::OnOutage,
    ingest::coalesce::{Failure, Outcome, Publishing, gather::Open},
    json::unescape,
};
use bytes::Bytes;
use futures::future::join_all;
use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    sync::Arc,
};
use wh_dedupe::{Error, Key, Kind, Ticket};
use wh_types::{BlockId, Class, Mono, Table, Tenant};

/// How often a block's rows are claimed under a new id before it is given up.
const ROUNDS: usize = 3;

/// What is said of a row that is not in its block.
#[derive(Clone, Debug)]
pub(crate) enum Aside {
    Said(Outcome),
    /// The same as of the row that has its id: which block of the call, and which row of it as it was gathered.
    As(usize, u32),
}

/// What was claimed for a block.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) id: BlockId,
    /// Rows that are not in the block, by their numbers as gathered, in order.
    pub(crate) aside: Vec<(u32, Aside)>,
    /// Claims that go with the block.
    pub(crate) held: Held,
    /// When they were asked for; `None`: nothing is claimed.
    pub(crate) since: Option<Mono>,
    /// Rows that go although the store could not be asked for them, by their numbers as gathered.
    pub(crate) unchecked: BTreeSet<u32>,
}

/// A row and its names.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) row: u32,
    pub(super) part: u32,
    pub(super) event: Option<Key>,
    pub(super) record: Option<Key>,
    /// Where its id stands before in the call; then only its record is claimed, and only to see what it is.
    pub(super) first: Option<(usize, u32)>,
}

/// One publish call on its way.
pub(crate) struct Call<'a> {
    pub(crate) claims: &'a Arc<Claims>,
    pub(crate) keying: &'a Keying,
    pub(crate) publishing: &'a Arc<Publishing>,
    pub(crate) tenant: &'a Tenant,
    pub(crate) table: &'a Table,
}

/// What is left of a block once its claims are judged.
#[derive(Debug)]
struct Judged {
    aside: Vec<(u32, Aside)>,
    held: Held,
    /// Rows that leave and are stored already.
    stored: Held,
    /// Rows that leave and are not.
    leaving: Vec<Ticket>,
}

impl Call<'_> {
    /// Claims what is to be claimed, and takes out of the blocks what is not to go.
    pub(crate) async fn claim(&self, opens: &mut [Open]) -> Vec<Claimed> {
        let (named, mut claimed) = self.name(opens);
        let mut left: Vec<usize> = (0..opens.len()).filter(|at| !named[*at].is_empty()).collect();
        for _ in 0..ROUNDS {
            left = self.round(opens, &named, &mut claimed, left).await;
            if left.is_empty() {
                break;
            }
        }
        let failure = away(&Error::new("release", Kind::Unavailable));
        for at in left {
            self.outage(&opens[at], &named[at], &mut claimed[at], &failure);
        }
        for (open, block) in opens.iter_mut().zip(&mut claimed) {
            block.aside.sort_by_key(|(row, _)| *row);
            open.remove(block.aside.iter().map(|(row, _)| *row));
        }
        claimed
    }

    /// Claims the blocks at these places. Gives those whose id is spoilt.
    async fn round(
        &self,
        opens: &[Open],
        named: &[Vec<Named>],
        claimed: &mut [Claimed],
        places: Vec<usize>,
    ) -> Vec<usize> {
        let reserved = join_all(places.iter().map(|at| self.reserve(&named[*at], &opens[*at]))).await;
        let mut good = Vec::with_capacity(places.len());
        for (at, reserved) in places.into_iter().zip(reserved) {
            match reserved {
                Ok(reserved) => good.push((at, reserved)),
                Err(failure) => self.outage(&opens[at], &named[at], &mut claimed[at], &failure),
            }
        }
        // first what decides for whole requests, then each row
        let mut spoilt = Vec::new();
        let good = self.contest(opens, named, claimed, good, &mut spoilt).await;
        let act = async |(at, reserved): (usize, Reserved)| {
            let Reserved { under, since, keys } = reserved;
            let Judged { aside, held, stored, leaving } = self.judge(&opens[at], &named[at], keys);
            let (_, free) = tokio::join!(
                self.claims.attempt(self.publishing, Act::Commit, stored),
                self.claims.free(self.publishing, leaving),
            );
            if !free {
                self.claims.settle(self.publishing, Act::Release, held, since + self.claims.with.lease).await;
                return Err(at);
            }
            Ok((at, aside, held, since, under.block))
        };
        for one in join_all(good.into_iter().map(act)).await {
            match one {
                Ok((at, aside, held, since, id)) => {
                    let block = &mut claimed[at];
                    block.aside.extend(aside);
                    (block.id, block.held, block.since) = (id, held, Some(since));
                }
                Err(at) => spoilt.push(at),
            }
        }
        spoilt
    }

    /// Names the keyed rows. One whose id stands before in this call, and one of a request that is decided, is set aside.
    fn name(&self, opens: &[Open]) -> (Vec<Vec<Named>>, Vec<Claimed>) {
        let mut places = HashMap::<[u8; 16], (usize, u32)>::with_capacity(opens.iter().map(|o| o.keyed.len()).sum());
        let (mut all, mut claimed) = (Vec::with_capacity(opens.len()), Vec::with_capacity(opens.len()));
        contest::within(opens);
        for (block, open) in opens.iter().enumerate() {
            let (mut named, mut aside) = (Vec::with_capacity(open.keyed.len()), Vec::new());
            for keyed in &open.keyed {
                let once = open.parts[keyed.part as usize].once.as_deref();
                if let Some(ruling) = once.and_then(super::Once::ruling) {
                    aside.push((keyed.row, Aside::Said(ruling.outcome())));
                    continue;
                }
                let record = once.and_then(|once| once.record(&self.keying.scope, keyed.index).ok());
                let (mut event, mut first) = (self.event(open.id_of(keyed)), None);
                if let Some(key) = &event {
                    match places.entry(key.hash()) {
                        Entry::Occupied(before) => (event, first) = (None, Some(*before.get())),
                        Entry::Vacant(free) => drop(free.insert((block, keyed.row))),
                    }
                }
                match (first, record) {
                    (Some((block, row)), None) => aside.push((keyed.row, Aside::As(block, row))),
                    (None, None) if event.is_none() => {}
                    (first, record) => named.push(Named { row: keyed.row, part: keyed.part, event, record, first }),
                }
            }
            all.push(named);
            claimed.push(Claimed {
                id: BlockId::draw(&*self.publishing.entropy),
                aside,
                held: Held::default(),
                since: None,
                unchecked: BTreeSet::new(),
            });
        }
        (all, claimed)
    }

    /// The key of an event with this id, as it stands in its record.
    fn event(&self, id: &[u8]) -> Option<Key> {
        self.keying.retention?;
        let text = match id {
            [b'"', text @ .., b'"'] => unescape(text, text.contains(&b'\\')),
            bare => bare.into(),
        };
        self.keying.scope.event(&String::from_utf8_lossy(&text)).ok()
    }

    /// Judges the rows of a block, and says what is done with its claims.
    fn judge(&self, open: &Open, named: &[Named], keys: Vec<Keys>) -> Judged {
        let held = || Held::new(self.keying.retention);
        let mut judged = Judged { aside: Vec::new(), held: held(), stored: held(), leaving: Vec::new() };
        for (one, keys) in named.iter().zip(keys) {
            let once = open.parts[one.part as usize].once.as_deref();
            let verdict = decide::judge(&keys, &body_of(open, one));
            let verdict = decide::under(verdict, once.and_then(super::Once::ruling));
            let said = match verdict {
                Verdict::Keep => {
                    if let Some((block, row)) = one.first {
                        judged.aside.push((one.row, Aside::As(block, row)));
                        judged.leaving.extend(keys.record.and_then(Standing::ticket));
                        continue;
                    }
                    None
                }
                Verdict::Duplicate => Some(Outcome::Duplicate),
                Verdict::Replayed => Some(Outcome::Replayed),
                Verdict::Busy(retry_after) => Some(busy(retry_after)),
                Verdict::Request(ruling) => Some(ruling.outcome()),
            };
            judged.aside.extend(said.map(|outcome| (one.row, Aside::Said(outcome))));
            for (standing, record) in [(keys.event, false), (keys.record, true)] {
                let Some(ticket) = standing.and_then(Standing::ticket) else { continue };
                match decide::claim(verdict) {
                    Claim::Hold => judged.held.add(ticket, record),
                    Claim::Commit => judged.stored.add(ticket, record),
                    Claim::Release => judged.leaving.push(ticket),
                }
            }
        }
        judged
    }

    /// What becomes of a block for whose rows the store could not be asked.
    pub(super) fn outage(&self, open: &Open, named: &[Named], block: &mut Claimed, failure: &Failure) {
        let parts: BTreeSet<u32> = named.iter().map(|one| one.part).collect();
        if self.claims.with.on_outage == OnOutage::Accept && failure.class != Class::Stopping {
            for one in named {
                match one.first {
                    Some((first, row)) => block.aside.push((one.row, Aside::As(first, row))),
                    None => drop(block.unchecked.insert(one.row)),
                }
            }
            return;
        }
        // a request's rows are refused together: it is sent again as a whole
        let mut first = 0;
        let spans = (0_u32..).zip(&open.parts).filter_map(|(at, part)| {
            let span = first..first + part.rows;
            first = span.end;
            parts.contains(&at).then_some(span)
        });
        let said: BTreeSet<u32> = block.aside.iter().map(|(row, _)| *row).collect();
        let rows = spans.flatten().filter(|row| !said.contains(row));
        let refused: Vec<_> = rows.map(|row| (row, Aside::Said(Outcome::Refused(failure.clone())))).collect();
        block.aside.extend(refused);
    }
}

/// What is kept with a row's record.
pub(super) fn body_of(open: &Open, row: &Named) -> Bytes {
    open.parts[row.part as usize].once.as_ref().map(|once| once.body().clone()).unwrap_or_default()
}
