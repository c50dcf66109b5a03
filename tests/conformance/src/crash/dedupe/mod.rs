//! Crashes of the dedupe stores that keep their data in a folder. What was committed is known, what was released is not,
//! and a claim that nobody resolved names its block.

mod acked;
mod kill;
mod power;

pub(super) use acked::{Acked, Answer, run};
pub(super) use kill::writer;

use libtest_mimic::{Failed, Trial};

/// The crash tests.
pub(super) fn trials(rounds: u64) -> Vec<Trial> {
    type Rounds = fn(u64) -> anyhow::Result<()>;
    let trial = |name: &str, rounds_of: Rounds| {
        let run = move || rounds_of(rounds).map_err(|error| Failed::from(format!("{error:#}")));
        Trial::test(format!("crash::dedupe::{name}"), run)
    };
    vec![
        trial("log_loses_nothing_when_the_process_is_killed", kill::log),
        trial("log_loses_nothing_when_the_power_is_cut", power::log),
        trial("sled_loses_nothing_when_the_process_is_killed", kill::sled),
    ]
}
