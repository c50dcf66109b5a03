//! Answers of reads: looked up, computed once for all who ask at the same time, and kept. Structured queries and pipes
//! that read come through here; what writes never does.
//!
//! A caller says what distinguishes its answer ([`Asked::key`]), what it reads, and how to compute it. Whoever leaves
//! leaves the others alone; when all have left, the computation is dropped, and with it the query in ClickHouse.

mod control;
mod flight;
mod kept;
mod life;
mod marked;
mod resolved;
mod store;
mod tee;
mod view;

pub use store::{AnswerCache, Invalidation};

pub(crate) use control::Freshness;
pub(crate) use kept::{Answer, How, Produced};
pub(crate) use life::Life;
pub(crate) use resolved::resolved;
pub(crate) use tee::tee;

use crate::{budget::Budget, error::ApiError, metrics::Meters};
use flight::Flights;
use futures::FutureExt;
use std::{future::Future, sync::Arc};
use wh_cache::{Cache, Key, Outcome, Snapshot, View};
use wh_clickhouse::Reads;
use wh_mq::Broker;
use wh_types::{Clock, Tenant};

/// A read, as far as its answer can be shared.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// Whose.
    pub(crate) tenant: &'a Tenant,
    /// The database that the tenant's tables are in.
    pub(crate) database: &'a str,
    /// Everything that changes the answer but the data.
    pub(crate) key: Key,
    /// What bounds the computation and not the answer: requests that differ in it wait for different computations.
    pub(crate) caps: u64,
    /// What it reads.
    pub(crate) reads: Reads,
    /// How long its answer may live.
    pub(crate) life: Life,
    /// What the asker wants of kept answers.
    pub(crate) freshness: Freshness,
}

/// What came of looking for an answer.
#[derive(Debug)]
pub(crate) enum Looked {
    /// It was kept.
    Hit(Answer),
    /// It was not, and may be kept under this.
    Miss(Place),
    /// Nothing is kept of it.
    Bypass,
}

/// Where an answer is to be kept.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    cache: Arc<dyn Cache>,
    at: Snapshot,
    key: Key,
    life: Life,
}

/// All answers of one API.
#[derive(Debug)]
pub(crate) struct Answers {
    cache: Option<AnswerCache>,
    /// Whose marks tell of inserts.
    broker: Arc<dyn Broker>,
    flights: Arc<Flights>,
    clock: Arc<dyn Clock>,
    meters: Arc<Meters>,
    /// Of answers that are gathered to be kept while they are sent.
    gathering: Budget,
}

impl Answers {
    pub(crate) fn new(
        cache: Option<AnswerCache>,
        broker: Arc<dyn Broker>,
        clock: Arc<dyn Clock>,
        meters: Arc<Meters>,
        gathering: Budget,
    ) -> Self {
        Self { cache, broker, flights: Arc::default(), clock, meters, gathering }
    }

    /// Whether it is of use to know what a read reads.
    pub(crate) fn keeps(&self, freshness: Freshness) -> bool {
        self.cache.is_some() && freshness != Freshness::Apart
    }

    /// Looks an answer up. What is computed after a miss is seen as it was after this moment.
    pub(crate) async fn look(&self, asked: &Asked<'_>) -> Looked {
        let looked = self.find(asked).await;
        match &looked {
            Looked::Hit(_) => self.meters.answer_hits.increment(1),
            Looked::Miss(_) => self.meters.answer_misses.increment(1),
            Looked::Bypass => self.meters.answer_bypasses.increment(1),
        }
        looked
    }

    async fn find(&self, asked: &Asked<'_>) -> Looked {
        let Some(AnswerCache { store: cache, longest, by_marks, .. }) = &self.cache else { return Looked::Bypass };
        let Some((view, tracked)) = view::of(asked.tenant, asked.database, &asked.reads) else {
            return Looked::Bypass;
        };
        let life = asked.life.within(*longest, tracked && asked.reads.tracked, asked.reads.steady);
        if asked.freshness == Freshness::Apart || life.is_over() {
            return Looked::Bypass;
        }
        let key = if *by_marks { marked::key(&*self.broker.marks(), asked) } else { asked.key };
        let (at, hit) = match asked.freshness {
            Freshness::Fresh => (cache.snapshot(&view).await, None),
            wanted @ (Freshness::Any | Freshness::Within(_) | Freshness::Apart) => {
                lookup(&**cache, &view, &key, wanted).await
            }
        };
        match hit {
            Some(answer) => Looked::Hit(answer),
            None if at.is_blind() => Looked::Bypass,
            None => Looked::Miss(Place { cache: Arc::clone(cache), at, key, life }),
        }
    }

    /// The answer, kept or computed. Who asks for the same while it is computed waits for the same computation, unless
    /// something that it reads was written since.
    ///
    /// # Errors
    /// Those of the computation, for all who wait for it.
    pub(crate) async fn answer<P, F>(&self, asked: Asked<'_>, produce: P) -> Result<Answer, ApiError>
    where
        P: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<Produced, ApiError>> + Send + 'static,
    {
        let place = match self.look(&asked).await {
            Looked::Hit(answer) => return Ok(answer),
            Looked::Bypass => return Ok(produce().await?.answer(How::Bypass)),
            Looked::Miss(place) => place,
        };
        if asked.freshness == Freshness::Fresh {
            let produced = self.compute(place, produce).await?;
            return Ok(Produced::clone(&produced).answer(How::Miss));
        }
        let (at, key) = (place.at.clone(), (place.key, asked.caps));
        let (running, joined) = self.flights.join(key, &at, || self.compute(place, produce).boxed());
        if joined {
            self.meters.answers_joined.increment(1);
        }
        let produced = running.await?;
        Ok(Produced::clone(&produced).answer(How::Miss))
    }

    /// Computes an answer and keeps it.
    fn compute<P, F>(
        &self,
        place: Place,
        produce: P,
    ) -> impl Future<Output = Result<Arc<Produced>, ApiError>> + Send + 'static + use<P, F>
    where
        P: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<Produced, ApiError>> + Send + 'static,
    {
        let (clock, most) = (Arc::clone(&self.clock), self.most());
        async move {
            let began = clock.now();
            let produced = produce().await?;
            if produced.keep {
                place.keep(&produced, clock.now().saturating_duration_since(began), most).await;
            }
            Ok(Arc::new(produced))
        }
    }

    /// The largest answer that is kept, in bytes.
    fn most(&self) -> usize {
        self.cache.as_ref().map_or(0, |cache| cache.max_value_bytes)
    }
}

async fn lookup(cache: &dyn Cache, view: &View, key: &Key, wanted: Freshness) -> (Snapshot, Option<Answer>) {
    let found = cache.lookup(view, key).await;
    if let Outcome::Fault(error) = &found.outcome {
        tracing::debug!(%error, "an answer could not be looked up");
    }
    let hit = found.outcome.hit().filter(|hit| wanted.takes(hit.age));
    (found.at, hit.and_then(|hit| Answer::kept(&hit)))
}

impl Place {
    async fn keep(&self, produced: &Produced, took: std::time::Duration, most: usize) {
        let Some(value) = produced.packed(most) else { return };
        let kept = self.cache.put(&self.at, &self.key, value, self.life.of(took)).await;
        if let Err(error) = kept {
            tracing::debug!(%error, "an answer is not kept");
        }
    }
}

#[cfg(test)]
mod tests;
