//! How this process stands among those that share the queue, for readiness: told by the leases that pass through here.
//! What is said with them gets our counts, and the others' counts are read from theirs.

use crate::peers::{Counts, Peers};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};
use tokio::sync::watch;
use tracing::{debug, error};
use wh_api::Health;
use wh_coord::{Claim, Key, Lease, Leases, Result, Seen, Session, Term};
use wh_topology::Peer;
use wh_types::{Clock, Mono};

/// How often a process that starts looks at the members.
const LOOK: Duration = Duration::from_millis(250);

/// Leases, and a note of how the last claim went.
#[derive(Debug)]
pub(crate) struct Watched {
    leases: Arc<dyn Leases>,
    last: Mutex<Last>,
    counts: Counts,
    peers: Mutex<Peers>,
    clock: Arc<dyn Clock>,
}

/// How the last claim of this process went.
#[derive(Debug)]
enum Last {
    /// There was none yet.
    None,
    /// It won.
    Won(Term),
    /// Another has that slot.
    Held,
    /// The store did not answer.
    Failed(String),
}

impl Watched {
    pub(crate) fn new(leases: Arc<dyn Leases>, counts: Counts, clock: Arc<dyn Clock>) -> Self {
        Self { leases, last: Mutex::new(Last::None), counts, peers: Mutex::new(Peers::new(counts)), clock }
    }

    /// Members that live and run with other counts than this process, as they were last read.
    pub(crate) fn differing(&self) -> Vec<Peer> {
        self.peers.lock().differing(self.clock.now()).map(|(_, peer)| peer).collect()
    }

    /// Looks at the members again and again.
    pub(crate) async fn look_on(&self) -> Infallible {
        loop {
            if let Err(error) = self.look().await {
                debug!(%error, "reading the members failed");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until every member with other counts was seen alive, or lapsed: what a dead one left keeps nobody out. That
    /// takes a lease at most. Fails when the members cannot be read until the deadline.
    pub(crate) async fn told_apart(&self, deadline: Mono) -> Result<()> {
        loop {
            match self.look().await {
                Ok(()) if !self.peers.lock().in_doubt(self.clock.now()) => return Ok(()),
                Err(error) if self.clock.now() >= deadline => return Err(error),
                Ok(()) | Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }

    async fn look(&self) -> Result<()> {
        self.observe(&Key::new(wh_ingest::MEMBERS)?).await.map(drop)
    }

    /// Whether this process takes part in sharing the units.
    pub(crate) fn health(&self) -> Health {
        match &*self.last.lock() {
            Last::None => Health::Failed("no membership yet".to_owned()),
            Last::Won(term) if term.is_live(self.clock.now()) => Health::Good,
            Last::Won(_) => Health::Failed("the membership is lost".to_owned()),
            // it is there should another leave
            Last::Held => Health::Degraded("idle: every membership slot is taken".to_owned()),
            Last::Failed(error) => Health::Failed(format!("no membership: {error}")),
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Leases for Watched {
    async fn claim(&self, key: &Key, note: &str) -> Result<Claim> {
        let claimed = self.leases.claim(key, &self.counts.said_with(note)).await;
        *self.last.lock() = match &claimed {
            Ok(Claim::Won { lease, .. }) => Last::Won(lease.term()),
            Ok(Claim::Held(_)) => Last::Held,
            Err(error) => Last::Failed(error.to_string()),
        };
        claimed
    }

    async fn renew(&self, lease: &Lease, note: &str) -> Result<()> {
        self.leases.renew(lease, &self.counts.said_with(note)).await
    }

    async fn resign(&self, lease: Lease) -> Result<()> {
        self.leases.resign(lease).await
    }

    async fn clear(&self, key: &Key) -> Result<bool> {
        self.leases.clear(key).await
    }

    async fn observe(&self, prefix: &Key) -> Result<BTreeMap<Key, Seen>> {
        let seen = self.leases.observe(prefix).await?;
        let new = self.peers.lock().read(seen.values(), &self.leases.session(), self.clock.now());
        for Peer { name, partitions, shards } in new {
            error!(
                process = name,
                partitions,
                shards,
                "process {name} runs with {partitions} partitions of {shards} shards, this one with {} of {}: one of them \
                 must stop",
                self.counts.partitions,
                self.counts.shards
            );
        }
        Ok(seen)
    }

    fn session(&self) -> Session {
        self.leases.session()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.leases.changes()
    }

    async fn close(&self) {
        self.leases.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_coord::local;
    use wh_types::{OsEntropy, SystemClock, Tasks};

    #[tokio::test]
    async fn a_member_is_healthy_an_idle_process_degraded_and_one_without_a_term_is_not() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let options = || wh_coord::Options {
            holder: "test".to_owned(),
            duration: std::time::Duration::from_secs(15),
            clock: clock.clone(),
            entropy: Arc::new(OsEntropy),
            tasks: Tasks::new(),
        };
        let leases = local::Leases::new(options());
        let counts = Counts { partitions: 4, shards: 8 };
        let other = Watched::new(Arc::new(leases.peer(options())), counts, clock.clone());
        let one = Watched::new(Arc::new(leases), counts, clock.clone());
        let slot = Key::new("ingest.m0").unwrap();
        assert_eq!(one.health(), Health::Failed("no membership yet".to_owned()));
        let Claim::Won { lease, .. } = one.claim(&slot, "").await.unwrap() else { panic!("it is free") };
        assert_eq!(one.health(), Health::Good);
        assert!(matches!(other.claim(&slot, "").await, Ok(Claim::Held(_))));
        assert!(matches!(other.health(), Health::Degraded(_)));
        one.resign(lease).await.unwrap();
        assert_eq!(one.health(), Health::Failed("the membership is lost".to_owned()));
        other.close().await;
        assert!(other.claim(&slot, "").await.is_err());
        assert!(matches!(other.health(), Health::Failed(_)));
    }

    #[tokio::test]
    async fn members_with_other_counts_are_seen_by_each_other_and_one_that_says_none_by_nobody() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let options = |name: &str| wh_coord::Options {
            holder: name.to_owned(),
            duration: std::time::Duration::from_secs(15),
            clock: clock.clone(),
            entropy: Arc::new(OsEntropy),
            tasks: Tasks::new(),
        };
        let leases = local::Leases::new(options("a"));
        let (of_b, old) = (leases.peer(options("b")), leases.peer(options("old")));
        let a = Watched::new(Arc::new(leases), Counts { partitions: 4, shards: 8 }, clock.clone());
        let b = Watched::new(Arc::new(of_b), Counts { partitions: 4, shards: 4 }, clock.clone());
        let key = |slot: u32| Key::new(&format!("{}.m{slot}", wh_ingest::MEMBERS)).unwrap();
        let mut held = Vec::new();
        for (leases, slot) in [(&a as &dyn Leases, 0), (&b, 1), (&old, 2)] {
            let Claim::Won { lease, .. } = leases.claim(&key(slot), "own 0:1").await.unwrap() else {
                panic!("slot {slot} is free")
            };
            leases.renew(&lease, "own 0:2").await.unwrap();
            held.push(lease);
        }
        a.told_apart(clock.now()).await.unwrap();
        b.told_apart(clock.now()).await.unwrap();
        assert_eq!(a.differing(), [Peer { name: "b".to_owned(), partitions: 4, shards: 4 }]);
        assert_eq!(b.differing(), [Peer { name: "a".to_owned(), partitions: 4, shards: 8 }]);
        b.close().await;
        a.told_apart(clock.now()).await.unwrap();
        assert_eq!(a.differing(), []);
        assert!(b.told_apart(clock.now()).await.is_err(), "its leases are closed");
    }
}
