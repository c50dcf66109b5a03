//! Waiting for a condition, never for a duration.

use std::{
    fmt::{self, Debug, Display},
    future::Future,
    time::Duration,
};
use wh_types::{Clock, SystemClock};

/// What a condition looks at: whether it holds, with what it found, or what it saw instead.
///
/// `bool`, `Option` and `Result` are probes; an `Err` is "not yet" and its value is what a timeout reports.
pub trait Probe {
    /// What a condition that holds gives.
    type Value;

    /// `Ok` when the condition holds, else what was seen.
    ///
    /// # Errors
    /// The condition does not hold yet.
    fn holds(self) -> Result<Self::Value, String>;
}

impl Probe for bool {
    type Value = ();

    fn holds(self) -> Result<(), String> {
        self.then_some(()).ok_or_else(|| "false".to_owned())
    }
}

impl<T> Probe for Option<T> {
    type Value = T;

    fn holds(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<T, E: Debug> Probe for Result<T, E> {
    type Value = T;

    fn holds(self) -> Result<T, String> {
        self.map_err(|seen| format!("{seen:?}"))
    }
}

/// The condition did not come to hold in time. `Debug` reads like `Display`, so that `unwrap` prints it well.
#[derive(Clone, PartialEq, Eq)]
pub struct TimedOut {
    what: String,
    within: Duration,
    last: Option<String>,
}

impl Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not within {:?}: {}; ", self.within, self.what)?;
        match &self.last {
            Some(seen) => write!(f, "last seen: {seen}"),
            None => f.write_str("the condition never finished looking"),
        }
    }
}

impl Debug for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl std::error::Error for TimedOut {}

/// Looks again and again until the condition holds, first every 2 ms, later every 50 ms.
///
/// # Errors
/// [`TimedOut`] with the last value seen. A look that hangs is given up at the deadline.
///
/// # Cancel safety
/// Safe.
pub async fn until<P, F, Fut>(within: Duration, what: &str, mut look: F) -> Result<P::Value, TimedOut>
where
    P: Probe,
    F: FnMut() -> Fut,
    Fut: Future<Output = P>,
{
    let deadline = SystemClock.now() + within;
    let mut pause = Duration::from_millis(2);
    let mut last = None;
    while let Ok(probe) = tokio::time::timeout_at(deadline, look()).await {
        match probe.holds() {
            Ok(value) => return Ok(value),
            Err(seen) => last = Some(seen),
        }
        if SystemClock.now() >= deadline {
            break;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    Err(TimedOut { what: what.to_owned(), within, last })
}

/// [`until`] a value is the one expected.
///
/// # Errors
/// [`TimedOut`] with the last value seen.
///
/// # Cancel safety
/// Safe.
pub async fn until_equal<T, F, Fut>(within: Duration, what: &str, expected: T, mut look: F) -> Result<(), TimedOut>
where
    T: PartialEq + Debug,
    F: FnMut() -> Fut,
    Fut: Future<Output = T>,
{
    let what = format!("{what} = {expected:?}");
    until(within, &what, || {
        let seen = look();
        let expected = &expected;
        async move {
            let seen = seen.await;
            if seen == *expected { Ok(()) } else { Err(seen) }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const SHORT: Duration = Duration::from_millis(30);

    #[tokio::test]
    async fn a_condition_that_comes_to_hold_gives_its_value() {
        let looks = Cell::new(0);
        let look = || async {
            looks.set(looks.get() + 1);
            (looks.get() == 3).then_some("third")
        };
        assert_eq!(until(Duration::from_secs(60), "three looks", look).await, Ok("third"));
        assert_eq!(looks.get(), 3);
    }

    #[tokio::test]
    async fn a_timeout_says_what_was_awaited_and_what_was_seen() {
        let error = until_equal(SHORT, "rows", 5, || async { 4 }).await.unwrap_err();
        assert_eq!(format!("{error:?}"), "not within 30ms: rows = 5; last seen: 4");
    }

    #[tokio::test]
    async fn a_look_that_hangs_is_given_up() {
        let error = until(SHORT, "never", std::future::pending::<bool>).await.unwrap_err();
        assert!(error.to_string().ends_with("the condition never finished looking"), "{error}");
    }
}
