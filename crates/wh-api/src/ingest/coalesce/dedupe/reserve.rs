//! One reservation: the keys of a block's rows, asked for under the block's id, until no claim on them is in doubt.

use super::{
    Act, Held, SOON, away,
    call::{Call, Named, body_of},
    decide::{Keys, Standing},
    lapsed::{Fate, Lapsed},
};
use crate::ingest::coalesce::{Failure, Publishing, gather::Open};
use bytes::Bytes;
use tokio::time::timeout;
use wh_dedupe::{Error, Kind, Row, Under};
use wh_types::{BlockId, Epoch, Mono};

/// What a block's reservation came to.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) under: Under,
    pub(super) since: Mono,
    /// Of each named row.
    pub(super) keys: Vec<Keys>,
}

impl Call<'_> {
    /// Reserves all keys of a block under a new id.
    pub(super) async fn reserve(&self, named: &[Named], open: &Open) -> Result<Reserved, Failure> {
        let Publishing { broker, clock, entropy, .. } = &**self.publishing;
        let (id, since) = (BlockId::draw(&**entropy), clock.now());
        let under = Under {
            stream: broker.unit_of(self.tenant, self.table).partition,
            epoch: broker.epoch_of(self.tenant, self.table).unwrap_or(Epoch(0)),
            block: id,
            lease: self.claims.with.lease,
        };
        let mut rows = Vec::with_capacity(named.len());
        for one in named {
            rows.extend(one.event.clone().map(Row::new));
            if let Some(key) = &one.record {
                rows.push(Row { key: key.clone(), payload: body_of(open, one) });
            }
        }
        let flags = |one: &Named| [one.event.as_ref().map(|_| false), one.record.as_ref().map(|_| true)];
        let records: Vec<bool> = named.iter().flat_map(flags).flatten().collect();
        let standings = self.standings(&rows, &records, &under).await?;
        let mut standings = standings.into_iter();
        let keys = named.iter().map(|one| Keys {
            event: one.event.as_ref().and_then(|_| standings.next()),
            record: one.record.as_ref().and_then(|_| standings.next()),
        });
        Ok(Reserved { under, since, keys: keys.collect() })
    }

    async fn ask(&self, rows: &[Row], under: &Under) -> Result<Vec<wh_dedupe::Verdict>, Failure> {
        let answer =
            timeout(self.publishing.options.publish_timeout, self.claims.with.store.reserve(rows, under)).await;
        let answer = answer.unwrap_or_else(|_| Err(Error::new("reserve", Kind::Unknown)));
        self.claims.fared(answer.as_ref().err());
        let wrong = || Error::new("reserve", Kind::Bug("another number of verdicts than of rows".into()));
        let answer = answer.and_then(|verdicts| if verdicts.len() == rows.len() { Ok(verdicts) } else { Err(wrong()) });
        answer.map_err(|error| {
            self.publishing.meters.claims_failed(error.code());
            away(&error)
        })
    }

    /// Reserves these keys, and says what each is once its lapsed claims were looked into. `records`: which are a record's.
    pub(super) async fn standings(
        &self,
        rows: &[Row],
        records: &[bool],
        under: &Under,
    ) -> Result<Vec<Standing>, Failure> {
        let verdicts = self.ask(rows, under).await?;
        let (mut standings, mut lapsed, mut places) = (Vec::with_capacity(rows.len()), Vec::new(), Vec::new());
        for (at, verdict) in verdicts.into_iter().enumerate() {
            use wh_dedupe::Verdict::{Busy, Lapsed as Over, New, Same, Seen};
            standings.push(match verdict {
                New(ticket) => Standing::Ours(ticket),
                Busy { retry_after, payload } => Standing::Busy { retry_after, payload },
                Seen { payload } => Standing::Seen { payload },
                // two requests with one Idempotency-Key in one block: the first is at it
                Same(first) => Standing::Busy { retry_after: SOON, payload: rows[first].payload.clone() },
                Over { origin, payload, ticket } => {
                    lapsed.push(Lapsed { origin, ticket, record: records[at] });
                    places.push(at);
                    Standing::Busy { retry_after: self.claims.with.lease, payload }
                }
            });
        }
        if lapsed.is_empty() {
            return Ok(standings);
        }
        let held = || Held::new(self.keying.retention);
        let table = (self.tenant, self.table);
        let fates = self.claims.look_into(self.publishing, table, under, lapsed, held).await;
        let mut again = Vec::new();
        for (at, fate) in places.into_iter().zip(fates) {
            match (fate, &mut standings[at]) {
                (Fate::Stored, Standing::Busy { payload, .. }) => {
                    standings[at] = Standing::Seen { payload: std::mem::take(payload) };
                }
                (Fate::Gone | Fate::Forgotten, _) => again.push(at),
                (Fate::Stored | Fate::Open, _) => {}
            }
        }
        if again.is_empty() {
            return Ok(standings);
        }
        let rows: Vec<Row> = again.iter().map(|at| rows[*at].clone()).collect();
        match self.ask(&rows, under).await {
            Ok(verdicts) => {
                for (at, verdict) in again.into_iter().zip(verdicts) {
                    standings[at] = match verdict {
                        wh_dedupe::Verdict::New(ticket) => Standing::Ours(ticket),
                        wh_dedupe::Verdict::Seen { payload } => Standing::Seen { payload },
                        wh_dedupe::Verdict::Busy { retry_after, payload } => Standing::Busy { retry_after, payload },
                        // it lapsed again within this call, or is another's: whoever sends it again finds out
                        wh_dedupe::Verdict::Lapsed { payload, .. } => Standing::Busy { retry_after: SOON, payload },
                        wh_dedupe::Verdict::Same(_) => Standing::Busy { retry_after: SOON, payload: Bytes::new() },
                    };
                }
                Ok(standings)
            }
            Err(failure) => {
                let ours = standings
                    .into_iter()
                    .zip(records)
                    .filter_map(|(standing, record)| Some((standing.ticket()?, *record)));
                let mut held = held();
                ours.for_each(|(ticket, record)| held.add(ticket, record));
                let until = self.publishing.clock.now() + self.claims.with.lease;
                self.claims.settle(self.publishing, Act::Release, held, until).await;
                Err(failure)
            }
        }
    }
}
