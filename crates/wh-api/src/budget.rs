//! Bytes of request bodies and gathered rows that may be held at once: of the process, and of each tenant within it.
//!
//! A share grows with what arrives, because a declared length costs its sender nothing. So many half-read bodies could
//! wait for each other's shares; a part of the budget, enough for one request of the largest size, is therefore kept
//! for one of them at a time: it goes on to its end whatever the others hold.

use crate::{codes, error::ApiError};
use std::{sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes a permit stands for: what is held is counted in these.
const GRAIN: usize = 256;
/// Least bytes beside a reserve: small requests never wait for the largest one alone.
const LEAST: usize = 4 << 20;

/// A budget. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
    all: usize,
    /// Kept for one request at a time; and its grains.
    reserve: Option<(Arc<Semaphore>, usize)>,
    patience: Duration,
    /// Whose it is, for the text of a refusal.
    whose: &'static str,
    above: Option<Arc<Budget>>,
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    permit: OwnedSemaphorePermit,
    reserve: Option<OwnedSemaphorePermit>,
    bytes: usize,
    budget: Budget,
    above: Option<Box<Held>>,
}

impl Budget {
    /// `patience`: most time a request waits for its share.
    pub(crate) fn new(bytes: usize, patience: Duration) -> Self {
        let all = (bytes / GRAIN).clamp(1, Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(all));
        Self { permits, all, reserve: None, patience, whose: "of this server", above: None }
    }

    /// With a part of it kept for one request of at most `largest` bytes. The budget is never less than that and a
    /// little more.
    pub(crate) fn with_reserve(bytes: usize, largest: usize, patience: Duration) -> Self {
        let beside = bytes.saturating_sub(largest).max(LEAST);
        let reserve = Some((Arc::new(Semaphore::new(1)), largest / GRAIN));
        Self { reserve, ..Self::new(beside, patience) }
    }

    /// As a part of a larger budget, which is charged as well.
    pub(crate) fn within(mut self, above: &Self) -> Self {
        self.whose = "of this tenant";
        self.above = Some(Arc::new(above.clone()));
        self
    }

    /// Takes a share, waiting for it in the order of asking.
    ///
    /// # Errors
    /// `server.busy` when it was not free in time, or is more than there ever is.
    pub(crate) async fn take(&self, bytes: usize) -> Result<Held, ApiError> {
        let (permit, reserve) = self.acquire(bytes).await?;
        let above = match &self.above {
            Some(above) => Some(Box::new(Box::pin(above.take(bytes)).await?)),
            None => None,
        };
        Ok(Held { permit, reserve, bytes, budget: self.clone(), above })
    }

    /// Takes a share of a budget without one above it, if it is free now.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Held> {
        let grains = u32::try_from(bytes.div_ceil(GRAIN).max(1)).ok().filter(|_| self.above.is_none())?;
        let permit = Arc::clone(&self.permits).try_acquire_many_owned(grains).ok()?;
        Some(Held { permit, reserve: None, bytes, budget: self.clone(), above: None })
    }

    async fn acquire(&self, bytes: usize) -> Result<(OwnedSemaphorePermit, Option<OwnedSemaphorePermit>), ApiError> {
        let grains = bytes.div_ceil(GRAIN).max(1);
        let few = u32::try_from(grains).ok().filter(|_| grains <= self.all);
        if let Some(permit) = few.and_then(|few| Arc::clone(&self.permits).try_acquire_many_owned(few).ok()) {
            return Ok((permit, None));
        }
        let pool = async {
            match few {
                Some(few) => Arc::clone(&self.permits).acquire_many_owned(few).await.ok(),
                None => std::future::pending().await,
            }
        };
        let kept = async {
            match &self.reserve {
                Some((reserve, _)) => Arc::clone(reserve).acquire_owned().await.ok(),
                None => std::future::pending().await,
            }
        };
        let none = || Arc::clone(&self.permits).try_acquire_many_owned(0).ok();
        let waited = tokio::time::timeout(self.patience, async {
            tokio::select! {
                biased;
                permit = pool => Some((permit?, None)),
                reserve = kept => Some((none()?, Some(reserve?))),
            }
        });
        if few.is_none() && self.reserve.is_none() {
            return Err(self.busy());
        }
        waited.await.ok().flatten().ok_or_else(|| self.busy())
    }

    /// Bytes held now.
    pub(crate) fn held(&self) -> usize {
        let reserve = self.reserve.as_ref().map_or(0, |(one, grains)| grains * (1 - one.available_permits().min(1)));
        (self.all - self.permits.available_permits().min(self.all) + reserve) * GRAIN
    }

    fn busy(&self) -> ApiError {
        let text = format!("too many request bodies {} are held in memory; try again later", self.whose);
        ApiError::new(&codes::SERVER_BUSY, text)
    }
}

impl Held {
    /// Makes the share at least so large.
    ///
    /// # Errors
    /// As [`Budget::take`]; what is held stays.
    pub(crate) async fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        if bytes <= self.bytes {
            return Ok(());
        }
        // who has the reserve is bounded by what a request may be
        if self.reserve.is_none() {
            let (more, reserve) = self.budget.acquire(bytes - self.bytes).await?;
            self.permit.merge(more);
            self.reserve = reserve;
        }
        self.bytes = bytes;
        match &mut self.above {
            Some(above) => Box::pin(above.grow_to(bytes)).await,
            None => Ok(()),
        }
    }

    /// How large the share is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;

    const MIB: usize = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn a_share_waits_grows_and_is_given_back() {
        let budget = Budget::new(MIB, Duration::from_secs(5));
        let mut half = budget.take(512 << 10).await.unwrap();
        half.grow_to(768 << 10).await.unwrap();
        assert_eq!(budget.held(), 768 << 10);
        let refused = budget.take(512 << 10).await.unwrap_err();
        assert_eq!(refused.code(), &codes::SERVER_BUSY);
        assert_eq!(budget.take(2 * MIB).await.unwrap_err().code(), &codes::SERVER_BUSY, "more than there ever is");
        let (waited, ()) = tokio::join!(budget.take(512 << 10), async { drop(half) });
        waited.unwrap();
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_that_wait_for_each_other_one_goes_on() {
        let budget = Budget::with_reserve(24 * MIB, 16 * MIB, Duration::from_secs(5));
        let upload = async || {
            let mut held = budget.take(256 << 10).await?;
            for size in 1..=64 {
                held.grow_to(size * (256 << 10)).await?;
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert!(budget.held() <= 24 * MIB, "{}", budget.held());
            }
            Ok::<_, ApiError>(())
        };
        let ends = join_all((0..100).map(|_| upload())).await;
        let whole = ends.iter().filter(|end| end.is_ok()).count();
        assert!(whole >= 1, "{whole}");
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_takes_no_more_than_its_part_and_what_it_takes_counts_for_all() {
        let process = Budget::new(8 * MIB, Duration::from_secs(1));
        let tenant = || Budget::new(6 * MIB, Duration::from_secs(1)).within(&process);
        let (one, other) = (tenant(), tenant());
        let mut held = one.take(5 * MIB).await.unwrap();
        let refused = one.take(2 * MIB).await.unwrap_err();
        assert!(refused.message().contains("of this tenant"), "{}", refused.message());
        let theirs = other.take(3 * MIB).await.unwrap();
        assert_eq!((one.held(), other.held(), process.held()), (5 * MIB, 3 * MIB, 8 * MIB));
        let refused = held.grow_to(6 * MIB).await.unwrap_err();
        assert!(refused.message().contains("of this server"), "{}", refused.message());
        drop((held, theirs));
        assert_eq!((one.held(), other.held(), process.held()), (0, 0, 0));
    }
}
