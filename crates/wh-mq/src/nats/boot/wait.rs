//! The wait of a start for a topology that it may run on.

use super::{
    check::{Check, Report, too_slow},
    health::warn_recommended,
    unsound::Unsound,
};
use std::{collections::BTreeSet, time::Duration};
use wh_topology::{ObserveError, Severity};
use wh_types::Clock;

/// The first pause between two checks, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// How much longer the last check may take.
const GRACE: Duration = Duration::from_secs(1);

/// Checks again and again until the topology is sound; recommended findings are logged then, once each.
///
/// # Errors
/// [`Unsound`] when `within` is over: what the last check came to.
///
/// # Cancel safety
/// Safe: nothing happened.
pub async fn wait(check: &Check, within: Duration, clock: &dyn Clock) -> Result<Report, Unsound> {
    let deadline = clock.now() + within;
    let refusals = check.connection().refusals().last();
    let (mut pause, mut said) = (PAUSES.0, String::new());
    loop {
        let last = tokio::time::timeout_at(deadline + GRACE, check.run()).await.unwrap_or_else(|_| Err(too_slow()));
        let last = match last {
            Ok(report) if report.is_sound() => {
                warn_recommended(&report.findings, &mut BTreeSet::new());
                return Ok(report);
            }
            unsound => unsound,
        };
        let left = deadline.saturating_duration_since(clock.now());
        if left.is_zero() {
            return Err(Unsound::new(check, last, refusals));
        }
        say(&mut said, &last);
        let rest = pause.min(left);
        if check.connection().is_connected() {
            tokio::time::sleep(rest).await;
        } else {
            // a server that comes is looked at at once
            check.connection().connected(rest).await;
        }
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// What is waited for, each time that it is another thing.
fn say(said: &mut String, last: &Result<Report, ObserveError>) {
    let text = match last {
        Ok(report) => match report.of(Severity::Required).count() {
            0 => "a part of it gives no answer".to_owned(),
            count => format!("{count} required findings, the first: {}", report.findings[0]),
        },
        Err(error) => error.to_string(),
    };
    if *said != text {
        tracing::info!("waiting for the topology on the NATS servers: {text}");
        *said = text;
    }
}
