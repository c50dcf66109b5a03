//! One reader of one table's marks. It never holds anybody up: what it did not ask for in time is in what it gets next.

use super::Progress;
use std::sync::Arc;
use tokio::sync::watch;

/// Follows the marks of one table.
#[derive(Clone, Debug)]
pub struct Reader {
    known: watch::Receiver<Option<Arc<Progress>>>,
    begun: bool,
}

impl Reader {
    #[cfg(any(feature = "embedded", feature = "sim", feature = "nats"))]
    pub(crate) fn new(known: watch::Receiver<Option<Arc<Progress>>>) -> Self {
        Self { known, begun: false }
    }

    /// What is known now; `None` before the first mark.
    #[must_use]
    pub fn latest(&self) -> Option<Arc<Progress>> {
        self.known.borrow().clone()
    }

    /// What is known, once it is something this reader has not got: at first at once, if there is a mark. `None` when the
    /// queue closed.
    ///
    /// # Contract
    /// mq70, mq73, mq76.
    /// # Cancel safety
    /// Safe.
    pub async fn next(&mut self) -> Option<Arc<Progress>> {
        if !std::mem::replace(&mut self.begun, true) {
            self.known.mark_changed();
        }
        loop {
            self.known.changed().await.ok()?;
            let known = self.known.borrow_and_update().clone();
            if known.is_some() {
                return known;
            }
        }
    }
}
