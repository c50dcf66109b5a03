//! Notices what was missed and fills it from the history. Asks each partition for its end every two seconds, and at once
//! after a reconnect or when something heard does not fit.

use super::{
    anchors::Anchors,
    archive::{Archive, Begin, Ends},
    core::Core,
    meters,
    ring::{Ring, Seen},
    tracker::Hole,
};
use crate::Result;
use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};
use wh_types::{Mono, Timestamp};

/// How often partitions are asked for their ends.
const EVERY: Duration = Duration::from_secs(2);
/// How soon partitions are asked again where one did not answer.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// How soon what was not found is looked for again.
const AGAIN: Duration = Duration::from_millis(100);
/// What was not heard may still be on its way for this long.
const ON_ITS_WAY: Duration = Duration::from_millis(250);
/// What is in the history by then, or never will be.
const PATIENCE: Duration = Duration::from_secs(3);

/// For how long readers wait for a history that does not answer.
const SILENCE: Duration = Duration::from_secs(30);
/// How often in a row the history may have nothing of what it says to have.
const EMPTY: u32 = 10;

/// Where a partition's stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// When it was made.
    pub(super) created: Timestamp,
    /// Its last sequence.
    pub(super) last: u64,
    /// When that was stored.
    pub(super) stored: Option<Timestamp>,
}

/// The partitions' streams.
pub(super) trait Partitions: Send + Sync + 'static {
    /// Where one ends, as its leader says.
    fn end(&self, index: usize) -> impl Future<Output = Result<End>> + Send;
}

/// A hole that is being looked into.
#[derive(Clone, Copy, Debug)]
struct Search {
    first: u64,
    /// What the partition had stored when the search began: it had its time, too.
    stored: u64,
    since: Mono,
    /// The history was looked through up to here.
    through: u64,
}

/// The mender. One a process.
#[derive(Debug)]
pub(super) struct Mender<A, P> {
    core: Arc<Core<A>>,
    /// The same history, asked with less patience.
    archive: A,
    partitions: P,
    anchors: Vec<Anchors>,
    /// By partition.
    searches: BTreeMap<usize, Search>,
}

impl<A: Archive, P: Partitions> Mender<A, P> {
    pub(super) fn new(core: &Arc<Core<A>>, archive: A, partitions: P) -> Self {
        let count = core.ring.lock().partitions().len();
        let anchors = (0..count).map(|_| Anchors::default()).collect();
        Self { core: Arc::clone(core), archive, partitions, anchors, searches: BTreeMap::new() }
    }

    /// Runs until the stop.
    pub(super) async fn run(mut self) {
        let core = Arc::clone(&self.core);
        let mut next = core.now() + EVERY;
        loop {
            let whole = self.searches.is_empty();
            let again = if whole { next } else { next.min(core.now() + AGAIN) };
            tokio::select! {
                biased;
                () = core.stop.wait() => return,
                () = core.poke.notified() => {}
                () = tokio::time::sleep_until(again) => {}
            }
            if core.take_suspicion() || core.now() >= next {
                let asked = tokio::select! {
                    () = core.stop.wait() => return,
                    asked = self.ask() => asked,
                };
                if let Err(error) = &asked {
                    tracing::debug!(%error, "not every partition says where it ends, asking again");
                }
                next = core.now() + if asked.is_ok() { EVERY } else { ASK_AGAIN };
            }
            let filled = tokio::select! {
                () = core.stop.wait() => return,
                filled = self.fill() => filled,
            };
            if let Err(error) = filled {
                tracing::debug!(%error, "what was missed cannot be read from the history now, trying again");
                self.despair();
            }
            self.measure();
        }
    }

    /// Asks for every end.
    ///
    /// # Errors
    /// One could not be had; the others count.
    pub(super) async fn ask(&mut self) -> Result<()> {
        // before the partitions: see the anchors
        let history = self.archive.ends().await;
        let asked = (0..self.anchors.len()).map(|index| {
            let position = self.core.ring.lock().partition(index).position();
            let end = self.partitions.end(index);
            async move { (position, end.await) }
        });
        let ends = futures::future::join_all(asked).await;
        let (now, mut outcome) = (self.core.now(), Ok(()));
        for (index, (position, end)) in ends.into_iter().enumerate() {
            match end {
                Ok(End { created, last, .. }) => {
                    let mut ring = self.core.ring.lock();
                    if ring.saw(index, Seen { created, last, position }, now) {
                        self.anchors[index].anew();
                        self.searches.remove(&index);
                    } else if let Ok(ends) = &history {
                        let position = ring.partition(index).position();
                        self.anchors[index].add(ends.created, ends.last, last, position);
                    }
                }
                Err(error) => outcome = Err(error),
            }
        }
        outcome.and(history.map(drop))
    }

    /// The partitions that miss something which is not only on its way: since when, by partition.
    fn due(&mut self, now: Mono) -> BTreeMap<usize, Search> {
        let ring = self.core.ring.lock();
        let mut due = BTreeMap::new();
        for (index, partition) in ring.partitions().iter().enumerate() {
            let Some(hole) = partition.hole() else {
                self.searches.remove(&index);
                continue;
            };
            let new = Search { first: hole.first, stored: partition.stored(), since: now, through: 0 };
            let search = self.searches.entry(index).or_insert(new);
            if search.first != hole.first {
                *search = new;
            }
            if hole.followed || now >= search.since + ON_ITS_WAY {
                due.insert(index, *search);
            }
        }
        due
    }

    /// Reads what was missed from the history, and gives up what is not there.
    async fn fill(&mut self) -> Result<()> {
        let due = self.due(self.core.now());
        if due.is_empty() {
            return Ok(());
        }
        let asked = self.core.now();
        let ends = self.archive.ends().await?;
        let begin = |(index, search): (&usize, &Search)| {
            self.anchors[*index].from(ends.created, search.first).max(search.through + 1)
        };
        let from = due.iter().map(begin).min().unwrap_or(1).max(ends.first);
        let Some(passed) = self.scan(from, &ends, &due).await? else { return Ok(()) };
        let now = self.core.now();
        let mut ring = self.core.ring.lock();
        for (index, search) in due {
            if let Some(kept) = self.searches.get_mut(&index).filter(|kept| kept.first == search.first) {
                kept.through = ends.last;
            }
            // the history has something after it, or had all the time it needs
            let late = asked >= search.since + PATIENCE;
            let before = passed.get(&index).map_or(0, |passed| passed - 1_u64);
            let through = if late { before.max(search.stored) } else { before };
            while lose(&mut ring, index, through, now) {}
        }
        Ok(())
    }

    /// The history does not answer: readers must not wait for ever.
    fn despair(&self) {
        let (mut ring, now) = (self.core.ring.lock(), self.core.now());
        for (index, _) in self.searches.iter().filter(|(_, search)| now >= search.since + SILENCE) {
            lose(&mut ring, *index, u64::MAX, now);
        }
    }

    /// Looks through the history. Gives the highest sequence seen of each partition; `None` when there was too much.
    async fn scan(
        &self,
        mut at: u64,
        ends: &Ends,
        due: &BTreeMap<usize, Search>,
    ) -> Result<Option<BTreeMap<usize, u64>>> {
        let (mut passed, mut bytes, mut empty) = (BTreeMap::new(), 0, 0);
        let (subjects, most) = (self.core.subjects(), self.core.ring.lock().most() / 2);
        while at <= ends.last {
            let entries = self.archive.read(&subjects, Begin::Sequence(at)).await?;
            let Some(last) = entries.last() else {
                // a copy that lags, or what was there is gone
                if self.archive.ends().await?.first > ends.last {
                    break;
                }
                empty += 1;
                if empty < EMPTY {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                // its last entries were removed one by one
                let hopeless = due.values().any(|search| self.core.now() >= search.since + 4 * PATIENCE);
                if hopeless { break } else { return Ok(None) }
            };
            at = last.at + 1;
            let (now, mut filled) = (self.core.now(), 0);
            let mut ring = self.core.ring.lock();
            for message in entries.into_iter().filter_map(|stored| stored.message) {
                bytes += message.cost();
                let Some(index) = ring.index(&message.stream) else { continue };
                if ring.eras().place(&message).epoch != ring.partition(index).epoch() {
                    continue;
                }
                let highest = passed.entry(index).or_insert(0);
                *highest = message.sequence.max(*highest);
                if ring.partition(index).misses(message.sequence) {
                    filled += 1;
                    let ours = self.core.is_ours(index, &message);
                    ring.hear(index, message, ours, now);
                }
            }
            meters::filled(filled);
            if bytes > most {
                for index in due.keys() {
                    if let Some(hole) = ring.leave_to_history(*index, u64::MAX, now) {
                        meters::left(hole.last - hole.first + 1);
                    }
                }
                return Ok(None);
            }
            if due.keys().all(|index| ring.partition(*index).hole().is_none()) {
                break;
            }
        }
        Ok(Some(passed))
    }

    fn measure(&self) {
        let ring = self.core.ring.lock();
        meters::ring(ring.bytes());
        for (index, partition) in ring.partitions().iter().enumerate() {
            meters::lag(index, partition.lag());
        }
    }
}

/// Gives up the first hole of a partition, up to a sequence. False where it begins after that.
fn lose(ring: &mut Ring, index: usize, through: u64, now: Mono) -> bool {
    let Some(Hole { first, last, .. }) = ring.lose(index, through, now) else { return false };
    meters::lost(last - first + 1);
    let stream = Arc::clone(ring.partition(index).stream());
    tracing::warn!(%stream, first, last, "blocks {first} to {last} of {stream} were not heard and are not in the history");
    true
}

#[cfg(test)]
mod tests;
