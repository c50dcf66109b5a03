//! How long is waited to know what a read reads.

use super::Freshness;
use std::{future::Future, time::Duration};
use wh_clickhouse::Reads;

/// What a read reads, if that is found out within the read's own time: a ClickHouse that does not say that will hardly answer
/// the read, and nobody is to wait for both. Else the read is for its asker alone: who chooses a short time must not choose
/// that an answer is kept whose end nobody knows.
pub(crate) async fn resolved(
    most: Duration,
    reads: impl Future<Output = Reads>,
    freshness: Freshness,
) -> (Reads, Freshness) {
    match tokio::time::timeout(most, reads).await {
        Ok(reads) => (reads, freshness),
        Err(_) => (Reads::unknown(), Freshness::Apart),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_read_of_which_nothing_is_found_out_in_time_is_for_its_asker_alone() {
        let within = Duration::from_secs(5);
        let known = || Reads { steady: true, ..Reads::unknown() };
        let slow = async {
            tokio::time::sleep(within * 2).await;
            known()
        };
        let (reads, freshness) = resolved(within, slow, Freshness::Any).await;
        assert_eq!((reads.steady, freshness), (false, Freshness::Apart));
        let (reads, freshness) = resolved(within, async { known() }, Freshness::Fresh).await;
        assert_eq!((reads.steady, freshness), (true, Freshness::Fresh));
    }
}
