//! Bytes of request bodies and gathered rows that the whole process may hold at once.

use crate::{codes, error::ApiError};
use std::{sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes a permit stands for: what is held is counted in these.
const GRAIN: usize = 256;

/// The process's budget. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
    all: usize,
    patience: Duration,
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    permit: OwnedSemaphorePermit,
    budget: Budget,
}

impl Budget {
    /// `patience`: most time a request waits for its share.
    pub(crate) fn new(bytes: usize, patience: Duration) -> Self {
        let all = (bytes / GRAIN).clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(all)), all, patience }
    }

    /// Takes a share, waiting for it in the order of asking.
    ///
    /// # Errors
    /// `server.busy` when it was not free in time, or is more than there ever is.
    pub(crate) async fn take(&self, bytes: usize) -> Result<Held, ApiError> {
        let grains = bytes.div_ceil(GRAIN).max(1);
        let few = u32::try_from(grains).ok().filter(|_| grains <= self.all).ok_or_else(busy)?;
        let permits = Arc::clone(&self.permits);
        let permit = match Arc::clone(&permits).try_acquire_many_owned(few) {
            Ok(permit) => permit,
            Err(_) => tokio::time::timeout(self.patience, permits.acquire_many_owned(few))
                .await
                .map_err(|_| busy())?
                .map_err(|_| busy())?,
        };
        Ok(Held { permit, budget: self.clone() })
    }

    /// Bytes held now.
    pub(crate) fn held(&self) -> usize {
        (self.all - self.permits.available_permits().min(self.all)) * GRAIN
    }
}

impl Held {
    /// Makes the share at least so large.
    ///
    /// # Errors
    /// As [`Budget::take`]; what is held stays.
    pub(crate) async fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let have = self.permit.num_permits() * GRAIN;
        if bytes > have {
            self.permit.merge(self.budget.take(bytes - have).await?.permit);
        }
        Ok(())
    }
}

fn busy() -> ApiError {
    ApiError::new(&codes::SERVER_BUSY, "too many request bodies are held in memory; try again later")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_share_waits_grows_and_is_given_back() {
        let budget = Budget::new(1 << 20, Duration::from_secs(5));
        let mut half = budget.take(512 << 10).await.unwrap();
        half.grow_to(768 << 10).await.unwrap();
        assert_eq!(budget.held(), 768 << 10);
        let refused = budget.take(512 << 10).await.unwrap_err();
        assert_eq!(refused.code(), &codes::SERVER_BUSY);
        assert_eq!(budget.take(2 << 20).await.unwrap_err().code(), &codes::SERVER_BUSY, "more than there ever is");
        let (waited, ()) = tokio::join!(budget.take(512 << 10), async { drop(half) });
        waited.unwrap();
        assert_eq!(budget.held(), 0);
    }
}
