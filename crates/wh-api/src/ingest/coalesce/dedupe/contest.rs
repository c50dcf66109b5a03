//! Requests that come twice at one time, under one `Idempotency-Key`.
//!
//! Each may have claimed a part of the records. Who claimed the first one that is not stored yet goes on, and asks for the
//! others until they were given back; everybody else gives back what he claimed, at once. So one of them is always stored.

use super::{
    Act, Held, Once, SOON,
    call::{Call, Claimed, Named, body_of},
    decide::{self, Claim, Keys, Standing},
    once::Ruling,
    reserve::Reserved,
};
use crate::ingest::coalesce::{Failure, gather::Open};
use futures::future::join_all;
use std::{collections::HashMap, mem, sync::Arc, time::Duration};
use wh_dedupe::{Row, Ticket};
use wh_types::Backoff;

/// How often others' records are asked for again.
const TRIES: u32 = 6;
const PAUSES: Backoff = Backoff::half_jitter(Duration::from_millis(10), Duration::from_millis(250));

/// Requests of one call with one key: the first is at work, the others are told so.
pub(super) fn within(opens: &[Open]) {
    let mut firsts: HashMap<&str, &Arc<Once>> = HashMap::new();
    for once in opens.iter().flat_map(|open| &open.parts).filter_map(|part| part.once.as_ref()) {
        let first = *firsts.entry(once.key()).or_insert(once);
        if !Arc::ptr_eq(first, once) {
            once.rule(if first.body() == once.body() { Ruling::Running(SOON) } else { Ruling::Mismatch });
        }
    }
}

/// What the records of one request say together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Race {
    /// Whether the first record that is not stored is ours, once there is one.
    first: Option<bool>,
    /// A record is another's, for so long at most.
    busy: Option<Duration>,
    /// A record came with another body.
    other_body: bool,
}

impl Race {
    fn note(&mut self, record: &Standing, body: &[u8]) {
        match record {
            Standing::Seen { payload } | Standing::Busy { payload, .. } if payload != body => self.other_body = true,
            Standing::Seen { .. } => {}
            Standing::Busy { retry_after, .. } => {
                self.first.get_or_insert(false);
                self.busy = self.busy.max(Some(*retry_after));
            }
            Standing::Ours(_) => {
                self.first.get_or_insert(true);
            }
        }
    }

    /// What it decides. `last`: nobody is waited for any more.
    fn ruling(&self, last: bool) -> Option<Ruling> {
        match self.busy {
            _ if self.other_body => Some(Ruling::Mismatch),
            Some(retry_after) if last || self.first != Some(true) => Some(Ruling::Running(retry_after)),
            _ => None,
        }
    }

    /// Whether others' records are worth waiting for.
    fn leads(&self) -> bool {
        self.busy.is_some() && self.ruling(false).is_none()
    }
}

/// Notes what records decide for their whole requests. Whether some request leads, and lacks records.
fn rule(opens: &[Open], named: &[Vec<Named>], good: &[(usize, Reserved)], last: bool) -> bool {
    let mut races: HashMap<*const Once, (&Once, Race)> = HashMap::new();
    for (at, reserved) in good {
        for (one, keys) in named[*at].iter().zip(&reserved.keys) {
            let (Some(once), Some(record)) = (&opens[*at].parts[one.part as usize].once, &keys.record) else {
                continue;
            };
            let (_, race) = races.entry(Arc::as_ptr(once)).or_insert_with(|| (&**once, Race::default()));
            race.note(record, once.body());
        }
    }
    let mut leads = false;
    for (once, race) in races.values() {
        if let Some(ruling) = race.ruling(last) {
            once.rule(ruling);
        }
        leads |= race.leads() && once.ruling().is_none();
    }
    leads
}

/// Claims of one block.
fn held(keys: Vec<Keys>, mut held: Held) -> Held {
    for keys in keys {
        for (standing, record) in [(keys.event, false), (keys.record, true)] {
            if let Some(ticket) = standing.and_then(Standing::ticket) {
                held.add(ticket, record);
            }
        }
    }
    held
}

/// Takes out the claims of requests that give way.
fn yielded(open: &Open, named: &[Named], keys: &mut [Keys]) -> Vec<Ticket> {
    let mut tickets = Vec::new();
    for (one, keys) in named.iter().zip(keys) {
        let Some(ruling) = open.parts[one.part as usize].once.as_ref().and_then(|once| once.ruling()) else { continue };
        let verdict = decide::under(decide::judge(keys, &body_of(open, one)), Some(ruling));
        if decide::claim(verdict) != Claim::Release {
            continue;
        }
        for standing in [&mut keys.event, &mut keys.record] {
            if matches!(standing, Some(Standing::Ours(_))) {
                tickets.extend(mem::take(standing).and_then(Standing::ticket));
            }
        }
    }
    tickets
}

impl Call<'_> {
    /// Rules requests, and has those that lead get what others give back. Gives the blocks that are still good.
    pub(super) async fn contest(
        &self,
        opens: &[Open],
        named: &[Vec<Named>],
        claimed: &mut [Claimed],
        mut good: Vec<(usize, Reserved)>,
        spoilt: &mut Vec<usize>,
    ) -> Vec<(usize, Reserved)> {
        if !rule(opens, named, &good, false) {
            return good;
        }
        // first give way, for who is waited for may wait for us
        let give = async |(at, mut reserved): (usize, Reserved)| {
            let tickets = yielded(&opens[at], &named[at], &mut reserved.keys);
            let free = self.claims.free(self.publishing, tickets).await;
            (at, reserved, free)
        };
        for (at, reserved, free) in join_all(mem::take(&mut good).into_iter().map(give)).await {
            if free {
                good.push((at, reserved));
            } else {
                self.drop_claims(reserved).await;
                spoilt.push(at);
            }
        }
        for failures in 1..=TRIES {
            tokio::time::sleep(PAUSES.delay(failures, &*self.publishing.entropy)).await;
            let again = async |(at, mut reserved): (usize, Reserved)| {
                let asked = self.ask_again(&opens[at], &named[at], &mut reserved).await;
                (at, reserved, asked)
            };
            for (at, reserved, asked) in join_all(mem::take(&mut good).into_iter().map(again)).await {
                match asked {
                    Ok(()) => good.push((at, reserved)),
                    Err(failure) => {
                        self.drop_claims(reserved).await;
                        self.outage(&opens[at], &named[at], &mut claimed[at], &failure);
                    }
                }
            }
            if !rule(opens, named, &good, failures == TRIES) {
                break;
            }
        }
        good
    }

    /// Asks again, under the same block, for the keys that are others' of rows whose request leads.
    async fn ask_again(&self, open: &Open, named: &[Named], reserved: &mut Reserved) -> Result<(), Failure> {
        let busy = |standing: &Option<Standing>| matches!(standing, Some(Standing::Busy { .. }));
        let (mut rows, mut records, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (one, keys)) in named.iter().zip(&reserved.keys).enumerate() {
            let Some(once) = &open.parts[one.part as usize].once else { continue };
            if once.ruling().is_some() || !busy(&keys.record) {
                continue;
            }
            if let (Some(key), true) = (&one.event, busy(&keys.event)) {
                rows.push(Row::new(key.clone()));
                records.push(false);
                places.push(at);
            }
            if let Some(key) = &one.record {
                rows.push(Row { key: key.clone(), payload: once.body().clone() });
                records.push(true);
                places.push(at);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let standings = self.standings(&rows, &records, &reserved.under).await?;
        for ((at, record), standing) in places.into_iter().zip(records).zip(standings) {
            let keys = &mut reserved.keys[at];
            *if record { &mut keys.record } else { &mut keys.event } = Some(standing);
        }
        Ok(())
    }

    /// Releases all that a block has claimed: its id is not used.
    async fn drop_claims(&self, reserved: Reserved) {
        let Self { claims, publishing, .. } = *self;
        let held = held(reserved.keys, Held::new(self.keying.retention));
        claims.settle(publishing, Act::Release, held, reserved.since + claims.with.lease).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Duration = Duration::from_secs(7);

    fn race(records: &[Standing]) -> Race {
        let mut race = Race::default();
        records.iter().for_each(|record| race.note(record, b"h"));
        race
    }

    #[tokio::test]
    async fn who_has_the_first_record_that_is_not_stored_leads() {
        let ours = decide::tests::ours().await;
        let seen = Standing::Seen { payload: "h".into() };
        let busy = Standing::Busy { retry_after: AT, payload: "h".into() };
        let other = Standing::Busy { retry_after: AT, payload: "g".into() };
        let running = Some(Ruling::Running(AT));
        let cases = [
            (vec![], None, false),
            (vec![ours.clone(), seen.clone()], None, false),
            (vec![seen.clone(), ours.clone(), busy.clone()], None, true),
            (vec![seen.clone(), busy.clone(), ours.clone()], running, false),
            (vec![busy.clone()], running, false),
            (vec![ours, busy, other], Some(Ruling::Mismatch), false),
        ];
        for (records, ruling, leads) in cases {
            let race = race(&records);
            assert_eq!((race.ruling(false), race.leads()), (ruling, leads), "{records:?}");
            assert_eq!(race.ruling(true).is_some(), race.busy.is_some() || race.other_body, "{records:?}");
        }
    }
}
