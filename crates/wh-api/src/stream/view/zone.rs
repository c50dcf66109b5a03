//! Time zones: what a clock showed, and when that was. Pure.

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone, TimeZoneDatabase},
};
use std::{
    hash::{Hash, Hasher},
    sync::LazyLock,
};

const DAY: i64 = 86_400;

/// The zones that come with the program, so that no machine has others.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A zone. Two of one name are one.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    name: Box<str>,
    zone: TimeZone,
}

impl Zone {
    /// `None`: no zone of that name is known.
    pub(super) fn named(name: &str) -> Option<Self> {
        let zone = ZONES.get(name).ok()?;
        Some(Self { name: name.into(), zone })
    }

    /// When a clock of the zone showed this (seconds since 1970 as it would have counted them). `None` where it did so
    /// twice or never.
    pub(super) fn instant(&self, shown: i64) -> Option<i64> {
        let shown = Offset::UTC.to_datetime(Timestamp::from_second(shown).ok()?);
        self.zone.to_ambiguous_timestamp(shown).unambiguous().ok().map(Timestamp::as_second)
    }

    /// The day on which an instant was, counted from 1970-01-01.
    pub(super) fn day(&self, instant: i64) -> Option<i64> {
        let offset = self.zone.to_offset(Timestamp::from_second(instant).ok()?);
        Some((instant + i64::from(offset.seconds())).div_euclid(DAY))
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_changed_shows_some_times_twice_and_others_never() {
        let chicago = Zone::named("America/Chicago").unwrap();
        let march = |hour: i64| 19_792 * DAY + hour * 3_600;
        assert_eq!(chicago.instant(march(1)), Some(march(7)));
        assert_eq!(chicago.instant(march(2)), None, "2024-03-10 02:00 was skipped");
        assert_eq!(chicago.instant(march(3)), Some(march(8)));
        let november = 20_030 * DAY;
        assert_eq!(chicago.instant(november + 3_600), None, "2024-11-03 01:00 came twice");
        assert_eq!(chicago.day(november + 4 * 3_600), Some(20_029));
        assert_eq!(chicago.day(november + 5 * 3_600), Some(20_030));
        assert_eq!(Zone::named("Mars/Olympus"), None);
        assert_eq!(Zone::named("UTC").unwrap().instant(-5), Some(-5));
    }
}
