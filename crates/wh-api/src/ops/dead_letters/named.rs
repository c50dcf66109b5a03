//! The ids that a caller names, a step at a time, and which of them are not there. Pure.

use std::collections::HashSet;
use wh_mq::{DeadLetterCursor, DeadLetterId, DeadLetterPage};

/// One step's ids.
pub(super) struct Named<'a> {
    all: &'a [DeadLetterId],
    first: usize,
    end: usize,
}

impl<'a> Named<'a> {
    /// Of all ids those from the cursor on, no more than `most`.
    pub(super) fn new(all: &'a [DeadLetterId], cursor: Option<DeadLetterCursor>, most: usize) -> Self {
        let first = cursor.map_or(0, DeadLetterCursor::ids).min(all.len());
        Self { all, first, end: first.saturating_add(most).min(all.len()) }
    }

    /// What the queue is asked for: the ids before the step's too, which its cursor passes over.
    pub(super) fn asked(&self) -> Vec<DeadLetterId> {
        self.all[..self.end].to_vec()
    }

    /// The step's ids that the page is behind and that it does not have, and where the next step begins.
    pub(super) fn passed(&self, page: &DeadLetterPage) -> (Vec<DeadLetterId>, Option<DeadLetterCursor>) {
        let behind = page.next.map_or(self.end, DeadLetterCursor::ids).clamp(self.first, self.end);
        let there: HashSet<_> = page.letters.iter().map(|letter| letter.id).collect();
        let missing = self.all[self.first..behind].iter().filter(|id| !there.contains(*id)).copied().collect();
        (missing, (behind < self.all.len()).then(|| DeadLetterCursor::after_ids(behind)))
    }
}
