//! A moment on the wall clock, in nanoseconds.

use std::{fmt, ops::Add, str::FromStr, time::Duration};

/// Nanoseconds since 1970-01-01T00:00:00Z. Written and read as RFC 3339 in UTC with nine digits of fraction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From nanoseconds since the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// From milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This moment less a duration; stops at the earliest moment there is.
    #[must_use]
    pub fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(at) => write!(f, "{at:.9}"),
            Err(_) => Err(fmt::Error),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;
    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        let nanos = text.parse::<jiff::Timestamp>()?.as_nanosecond();
        i64::try_from(nanos).map(Self).map_err(|_| jiff::Error::from_args(format_args!("outside 1677 to 2262")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_with_nanoseconds_and_read_back() {
        let at = Timestamp::from_nanos(1_750_478_400_000_000_001);
        assert_eq!(at.to_string(), "2025-06-21T04:00:00.000000001Z");
        assert_eq!(at.to_string().parse::<Timestamp>().unwrap(), at);
        assert_eq!("2025-06-21T06:00:00.000000001+02:00".parse::<Timestamp>().unwrap(), at);
        assert!("yesterday".parse::<Timestamp>().is_err());
        assert!("9000-01-01T00:00:00Z".parse::<Timestamp>().is_err());
    }

    #[test]
    fn arithmetic_saturates() {
        let at = Timestamp::from_millis(5);
        assert_eq!((at + Duration::from_millis(2)).since(at), Duration::from_millis(2));
        assert_eq!(at.since(at + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!(Timestamp::from_nanos(i64::MAX) + Duration::from_secs(1), Timestamp::from_nanos(i64::MAX));
    }
}
