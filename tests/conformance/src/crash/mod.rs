//! Crashes of the embedded queue: a killed process, a power cut. Whatever was answered before must be there after.
//!
//! Beside the suite, because killing is no method of the port.

mod acked;
mod kill;
mod power;
mod workload;

pub use kill::writer;

use libtest_mimic::{Failed, Trial};

/// How many rounds a run has; `WH_TEST_CRASH_ROUNDS` asks for more.
fn rounds() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test's own knob, read here only")]
    let asked = std::env::var("WH_TEST_CRASH_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// The crash tests.
#[must_use]
pub fn trials() -> Vec<Trial> {
    let run = |outcome: anyhow::Result<()>| outcome.map_err(|error| Failed::from(format!("{error:#}")));
    vec![
        Trial::test("crash::nothing_acknowledged_is_lost_when_the_process_is_killed", move || {
            run(kill::rounds(rounds()))
        }),
        Trial::test("crash::nothing_acknowledged_is_lost_when_the_power_is_cut", move || run(power::rounds(rounds()))),
    ]
}
