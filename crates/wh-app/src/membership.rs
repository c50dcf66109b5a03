//! How this process stands among those that share the queue, for readiness: told by the leases that pass through here.

use async_trait::async_trait;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::watch;
use wh_api::Health;
use wh_coord::{Claim, Key, Lease, Leases, Result, Seen, Session, Term};
use wh_types::Clock;

/// Leases, and a note of how the last claim went.
#[derive(Debug)]
pub(crate) struct Watched {
    leases: Arc<dyn Leases>,
    last: Mutex<Last>,
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
    pub(crate) fn new(leases: Arc<dyn Leases>, clock: Arc<dyn Clock>) -> Self {
        Self { leases, last: Mutex::new(Last::None), clock }
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
        let claimed = self.leases.claim(key, note).await;
        *self.last.lock() = match &claimed {
            Ok(Claim::Won { lease, .. }) => Last::Won(lease.term()),
            Ok(Claim::Held(_)) => Last::Held,
            Err(error) => Last::Failed(error.to_string()),
        };
        claimed
    }

    async fn renew(&self, lease: &Lease, note: &str) -> Result<()> {
        self.leases.renew(lease, note).await
    }

    async fn resign(&self, lease: Lease) -> Result<()> {
        self.leases.resign(lease).await
    }

    async fn clear(&self, key: &Key) -> Result<bool> {
        self.leases.clear(key).await
    }

    async fn observe(&self, prefix: &Key) -> Result<BTreeMap<Key, Seen>> {
        self.leases.observe(prefix).await
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
        let other = Watched::new(Arc::new(leases.peer(options())), clock.clone());
        let one = Watched::new(Arc::new(leases), clock.clone());
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
}
