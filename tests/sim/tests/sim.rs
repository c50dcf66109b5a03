//! The seeds. `WH_SIM_SEED=n cargo test -p sim --test sim one_seed` runs one and tells what happened;
//! `WH_SIM_SEEDS=500..3000 cargo test -p sim --profile quick --test sim further_seeds` runs many.

use sim::{Event, Story, Trouble};
use std::{collections::BTreeSet, time::Duration};

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

/// Plays a story with three processes from 20 s on, for some seeds: they choose whom it meets. Gives how many rows doubled.
fn told(exactly: bool, events: &[Event]) -> u64 {
    let inserts = [(0, Event::Inserts(Duration::from_secs(2)))];
    let events = inserts.into_iter().chain(events.iter().map(|event| (20_000, *event))).collect();
    let story = Story { processes: 3, events, exactly };
    let outcomes = (0..10).map(|seed| story.play(seed).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")));
    outcomes.map(|outcome| outcome.stored - outcome.accepted).sum()
}

#[test]
fn a_crash_loses_nothing_and_doubles_only_what_was_being_inserted() {
    assert!(told(false, &[Event::Kill]) > 0, "an insert of 2 s was under way");
}

#[test]
fn a_pause_that_is_longer_than_a_lease_loses_nothing_and_no_insert_begins_after_it_under_the_old_term() {
    assert!(told(false, &[Event::For(Trouble::Frozen, Duration::from_secs(25))]) > 0);
}

#[test]
fn a_pause_that_is_shorter_than_a_term_changes_nothing() {
    assert_eq!(told(true, &[Event::For(Trouble::Frozen, Duration::from_secs(5))]), 0);
}

#[test]
fn a_process_cut_off_from_nats_and_not_from_clickhouse_begins_no_insert_once_its_term_is_over() {
    assert!(
        told(false, &[Event::For(Trouble::Cut, Duration::from_secs(40))]) > 0,
        "what it had inserted was not settled"
    );
}

#[test]
fn a_slow_lease_store_costs_no_row_its_place() {
    let slow = Event::SlowLeases(Duration::from_millis(900));
    told(true, &[slow, slow, Event::Join, Event::Stop]);
}

#[test]
fn lost_answers_of_the_lease_store_cost_no_row_its_place_while_some_arrive() {
    told(true, &[Event::LoseAnswers(20), Event::Join, Event::Stop]);
}

#[test]
fn a_process_that_hears_nothing_of_the_lease_store_for_longer_than_its_term_loses_no_row() {
    told(false, &[Event::For(Trouble::Deaf, Duration::from_secs(20)), Event::Join]);
}
