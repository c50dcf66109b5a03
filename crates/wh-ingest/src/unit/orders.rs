//! What a unit's loop is told from outside: whether to go on, and how much it may hold.

use wh_mq::Budget;

/// What is wanted of a unit. Later ones overrule earlier ones, and never the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wish {
    /// Take blocks and insert them.
    Work,
    /// Another is to have it: take no more, insert what is held, give back the rest, release.
    HandOver,
    /// The process stops: the same within the stop's budget.
    Stop,
    /// It is not ours any more: begin nothing, await what is in flight, give back, release.
    GiveUp,
}

/// The orders as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Orders {
    pub(crate) wish: Wish,
    pub(crate) budget: Budget,
}

impl Orders {
    /// To work.
    pub(crate) fn work(budget: Budget) -> Self {
        Self { wish: Wish::Work, budget }
    }

    /// Wants more than before, or the same.
    pub(crate) fn wish(&mut self, wish: Wish) {
        self.wish = self.wish.max(wish);
    }
}
