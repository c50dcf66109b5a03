//! What happens in a run, as its seed or its story has it.

use crate::chance::Chance;
use std::time::Duration;

/// What a run may meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Temper {
    /// Joins, stops, slow inserts, a slow lease store: order and single rows are promised.
    Gentle,
    /// Also crashes, pauses, partitions, lost answers, failing inserts: no row is lost.
    Harsh,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Another process.
    Join,
    /// One is stopped.
    Stop,
    /// Inserts take up to so long from now on.
    Inserts(Duration),
    /// Requests of one process to the lease store take up to so long each way.
    SlowLeases(Duration),
    /// One is killed.
    Kill,
    /// One is in trouble for so long.
    For(Trouble, Duration),
    /// Answers of the lease store to one are lost, so many in a hundred.
    LoseAnswers(u64),
}

/// What passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is frozen.
    Frozen,
    /// It is cut off from the queue and the lease store, not from the sink.
    Cut,
    /// It hears nothing of what it asks of the lease store, which does it.
    Deaf,
}

impl Temper {
    pub(crate) fn of(chance: &Chance) -> Self {
        if chance.percent(35) { Self::Gentle } else { Self::Harsh }
    }

    /// The next event.
    pub(crate) fn event(self, chance: &Chance) -> Event {
        let inserts = [50, 400, 2_000, 6_000];
        match chance.below(if self == Self::Gentle { 8 } else { 18 }) {
            0..=2 => Event::Join,
            3 | 4 => Event::Stop,
            5 | 6 => Event::Inserts(Duration::from_millis(chance.pick(&inserts).unwrap_or(50))),
            7 => Event::SlowLeases(chance.millis(0, 250)),
            8 | 9 => Event::Kill,
            10 | 11 => Event::For(Trouble::Frozen, chance.millis(500, 40_000)),
            12 | 13 => Event::For(Trouble::Cut, chance.millis(500, 40_000)),
            14 => Event::For(Trouble::Deaf, chance.millis(500, 20_000)),
            15 => Event::SlowLeases(chance.millis(200, 1_500)),
            16 => Event::LoseAnswers(chance.below(60)),
            _ => Event::Join,
        }
    }

    /// Inserts that fail, and that lose their answer, in a hundred.
    pub(crate) fn sink_fails(self, chance: &Chance) -> (u64, u64) {
        match self {
            Self::Gentle => (0, 0),
            Self::Harsh => (chance.below(10), chance.below(6)),
        }
    }
}
