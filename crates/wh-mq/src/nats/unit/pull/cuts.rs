//! Connections that break with each delivery: something that the unit is sent is what breaks them, as a stored message
//! whose headers the client cannot parse does. Everything else of the process shares the connection, so the unit asks
//! less and less often for what breaks it. Pure.

use std::time::Duration;

/// So many in a row may be chance: cables, restarts.
const CHANCE: u32 = 2;
/// The first pause, which doubles.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// Breaks in a row that took deliveries of this unit with them, with nothing taken between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cuts {
    count: u32,
    /// The connection broke while a pull was out.
    during_pull: bool,
}

impl Cuts {
    /// The connection is lost.
    pub(super) fn broke(&mut self, asked: bool) {
        self.during_pull |= asked;
    }

    /// The durable was read after a break. Gives how many there were in a row, where that is no chance.
    pub(super) fn found(&mut self, lost_any: bool) -> Option<u32> {
        if !std::mem::take(&mut self.during_pull) {
            return None;
        }
        self.count = if lost_any { self.count.saturating_add(1) } else { 0 };
        (self.count > CHANCE).then_some(self.count)
    }

    /// A block came.
    pub(super) fn taken(&mut self) {
        self.count = 0;
    }

    /// How long to ask for nothing.
    pub(super) fn pause(self) -> Duration {
        match self.count.checked_sub(CHANCE + 1) {
            None => Duration::ZERO,
            Some(more) => (FIRST * 2_u32.saturating_pow(more.min(16))).min(LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(cuts: Cuts) -> u64 {
        cuts.pause().as_secs()
    }

    #[test]
    fn the_pause_grows_with_each_break_that_takes_deliveries_and_ends_with_a_block() {
        let mut cuts = Cuts::default();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            cuts.broke(true);
            cuts.broke(false);
            cuts.found(true);
            pauses.push(seconds(cuts));
        }
        assert_eq!(pauses, [0, 0, 1, 2, 4, 8, 16, 30, 30]);
        cuts.taken();
        assert_eq!(seconds(cuts), 0);
    }

    #[test]
    fn breaks_that_take_nothing_do_not_count_however_many_there_are() {
        let mut cuts = Cuts::default();
        for _ in 0..100 {
            cuts.broke(true);
            assert_eq!(cuts.found(false), None);
            cuts.broke(false);
            assert_eq!(cuts.found(true), None, "no pull was out");
        }
        assert_eq!(seconds(cuts), 0);
    }
}
