//! The seeds. `WH_SIM_SEED=n cargo test -p sim --test sim one_seed` runs one and tells what happened;
//! `WH_SIM_SEEDS=500..3000 cargo test -p sim --profile quick --test sim further_seeds` runs many.

use std::collections::BTreeSet;

/// Seeds that failed once.
const REGRESSIONS: &str = include_str!("../regressions.txt");

/// Runs seeds; all failures are told, each with how to run it again.
fn seeds(seeds: impl IntoIterator<Item = u64>) {
    let again = |seed, story| format!("{story}\nWH_SIM_SEED={seed} cargo test -p sim --test sim one_seed");
    let failed: Vec<_> = seeds.into_iter().filter_map(|seed| Some(again(seed, sim::run(seed).err()?))).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

macro_rules! parts {
    ($($name:ident = $from:literal),* $(,)?) => { $(
        #[test]
        fn $name() {
            seeds($from..$from + 50);
        }
    )* };
}

parts! {
    seeds_0_to_49_keep_every_promise = 0,
    seeds_50_to_99_keep_every_promise = 50,
    seeds_100_to_149_keep_every_promise = 100,
    seeds_150_to_199_keep_every_promise = 150,
    seeds_200_to_249_keep_every_promise = 200,
    seeds_250_to_299_keep_every_promise = 250,
    seeds_300_to_349_keep_every_promise = 300,
    seeds_350_to_399_keep_every_promise = 350,
    seeds_400_to_449_keep_every_promise = 400,
    seeds_450_to_499_keep_every_promise = 450,
}

#[test]
fn seeds_that_failed_once_keep_every_promise() {
    let lines = REGRESSIONS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    seeds(lines.map(|line| line.parse::<u64>().expect("a line is a seed")));
}

#[test]
fn a_seed_replays() {
    for seed in 0..8 {
        let ((first, one), (second, two)) = (sim::tell(seed), sim::tell(seed));
        let differs = first.iter().zip(&second).position(|(a, b)| a != b);
        if let Some(at) = differs {
            let from = at.saturating_sub(20);
            panic!("seed {seed}:\n{}\n{}\n--- or ---\n{}", first[from..at].join("\n"), first[at], second[at]);
        }
        assert_eq!(one.unwrap(), two.unwrap(), "seed {seed}");
    }
}

#[test]
fn seeds_differ_and_some_double_rows() {
    let outcomes: Vec<_> = (0..20).map(|seed| sim::run(seed).unwrap()).collect();
    let traces: BTreeSet<_> = outcomes.iter().map(|outcome| outcome.trace).collect();
    assert_eq!(traces.len(), outcomes.len());
    assert!(outcomes.iter().all(|outcome| outcome.accepted > 500 && outcome.stored >= outcome.accepted));
    assert!(outcomes.iter().any(|outcome| outcome.stored > outcome.accepted), "nothing was ever in doubt");
}

/// What the environment names.
#[expect(clippy::disallowed_methods, reason = "a test's seeds are named by the environment")]
fn named(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

#[test]
fn further_seeds() {
    let range = named("WH_SIM_SEEDS").unwrap_or_else(|| "500..505".to_owned());
    let (from, to) = range.split_once("..").expect("seeds are given as 500..3000");
    seeds(from.parse().expect("a number")..to.parse().expect("a number"));
}

#[test]
fn one_seed() {
    // one of them, or the one that is named
    let seed = named("WH_SIM_SEED").and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (told, outcome) = sim::tell(seed);
    println!("{}", told.join("\n"));
    println!("seed {seed}: {:?}", outcome.unwrap_or_else(|story| panic!("{story}")));
}
