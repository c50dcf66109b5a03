//! The store itself: a map.

use crate::{Error, Key, Kind, Origin, Result, Retention, Row, Ticket, Token, Under, Verdict};
use bytes::Bytes;
use std::collections::{BTreeMap, btree_map::Entry};
use wh_types::{Mono, Timestamp};

#[derive(Debug, Default)]
pub(super) struct State(BTreeMap<Key, Held>);

#[derive(Debug)]
struct Held {
    payload: Bytes,
    /// Stays after the commit: a commit that is repeated is known by it.
    token: Token,
    state: Is,
}

#[derive(Debug)]
enum Is {
    Claimed {
        origin: Origin,
        until: Mono,
    },
    /// `None`: for good.
    Committed {
        until: Option<Mono>,
    },
}

impl State {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn committed(&self) -> usize {
        self.0.values().filter(|held| matches!(held.state, Is::Committed { .. })).count()
    }

    pub(super) fn claim(&mut self, row: &Row, under: &Under, token: Token, now: Mono, wall: Timestamp) -> Verdict {
        let fresh = || Held {
            payload: row.payload.clone(),
            token,
            state: Is::Claimed { origin: Origin::new(under, wall), until: now + under.lease },
        };
        let ticket = || Ticket::new(row.key.clone(), token);
        let mut entry = match self.0.entry(row.key.clone()) {
            Entry::Vacant(free) => {
                free.insert(fresh());
                return Verdict::New(ticket());
            }
            Entry::Occupied(entry) => entry,
        };
        let held = entry.get_mut();
        let payload = held.payload.clone();
        match &mut held.state {
            Is::Committed { until: Some(until) } if *until <= now => {
                *held = fresh();
                Verdict::New(ticket())
            }
            Is::Committed { .. } => Verdict::Seen { payload },
            Is::Claimed { origin, until } if *until <= now => {
                held.token = token;
                *until = now + under.lease;
                Verdict::Lapsed { origin: *origin, payload, ticket: ticket() }
            }
            Is::Claimed { until, .. } => Verdict::Busy { retry_after: until.saturating_duration_since(now), payload },
        }
    }

    /// Frees what was new, and lets what was taken over lapse again.
    pub(super) fn take_back(&mut self, verdicts: &[Verdict]) {
        for verdict in verdicts {
            match verdict {
                Verdict::New(ticket) => {
                    self.0.remove(ticket.key());
                }
                Verdict::Lapsed { ticket, .. } => {
                    if let Some(Held { state: Is::Claimed { until, .. }, .. }) = self.0.get_mut(ticket.key()) {
                        // its time was over before, and time stands still within a call
                        *until = (*until).checked_sub(crate::LEASE_AT_MOST).unwrap_or(*until);
                    }
                }
                Verdict::Busy { .. } | Verdict::Seen { .. } | Verdict::Same(_) => {}
            }
        }
    }

    pub(super) fn commit(&mut self, ticket: &Ticket, retention: Retention, now: Mono) -> Result<()> {
        let lost = || Error::new("commit", Kind::Lost);
        let held = self.0.get_mut(ticket.key()).filter(|held| held.token == ticket.token()).ok_or_else(lost)?;
        if matches!(held.state, Is::Claimed { .. }) {
            let until = match retention {
                Retention::Forever => None,
                Retention::For(span) => now.checked_add(span),
            };
            held.state = Is::Committed { until };
        }
        Ok(())
    }

    pub(super) fn release(&mut self, ticket: &Ticket) -> Result<()> {
        let ours = |held: &&Held| held.token == ticket.token() && matches!(held.state, Is::Claimed { .. });
        if self.0.get(ticket.key()).filter(ours).is_none() {
            return Err(Error::new("release", Kind::Lost));
        }
        self.0.remove(ticket.key());
        Ok(())
    }
}
