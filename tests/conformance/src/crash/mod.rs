//! Crashes of the embedded queue: a killed process, a power cut. Whatever was answered before must be there after.
//!
//! Beside the suite, because killing is no method of the port.

mod acked;
mod dedupe;
mod kill;
mod power;
mod workload;

use libtest_mimic::{Failed, Trial};

/// What the child does when it was started as a writer of one of the stores; `None`: it was not.
#[must_use]
pub fn writer() -> Option<std::process::ExitCode> {
    kill::writer().or_else(dedupe::writer)
}

/// How many rounds a run has; `WH_TEST_CRASH_ROUNDS` asks for more.
fn rounds() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test's own knob, read here only")]
    let asked = std::env::var("WH_TEST_CRASH_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// What the queue keeps of what is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Everything, for longer than a test takes: ids and history are checked too.
    Everything,
    /// Nothing: segments are freed and what is left in them is copied forward all the time.
    Nothing,
}

impl Keeps {
    fn set(self, options: &mut wh_mq::embedded::Options) {
        let span = match self {
            Self::Everything => std::time::Duration::from_secs(3_600),
            Self::Nothing => std::time::Duration::from_millis(20),
        };
        options.duplicate_window = span;
        options.default_allowance.history = span;
    }
}

/// The crash tests.
#[must_use]
pub fn trials() -> Vec<Trial> {
    type Rounds = fn(u64, Keeps) -> anyhow::Result<()>;
    let trial = |name: &str, rounds_of: Rounds, keeps: Keeps| {
        let run = move || rounds_of(rounds(), keeps).map_err(|error| Failed::from(format!("{error:#}")));
        Trial::test(format!("crash::{name}"), run)
    };
    let mut trials = dedupe::trials(rounds());
    trials.extend([
        trial("nothing_acknowledged_is_lost_when_the_process_is_killed", kill::rounds, Keeps::Everything),
        trial("nothing_acknowledged_is_lost_when_it_is_killed_while_space_is_freed", kill::rounds, Keeps::Nothing),
        trial("nothing_acknowledged_is_lost_when_the_power_is_cut", power::rounds, Keeps::Everything),
        trial("nothing_acknowledged_is_lost_when_the_power_is_cut_while_space_is_freed", power::rounds, Keeps::Nothing),
    ]);
    trials
}
