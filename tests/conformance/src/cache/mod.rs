//! The suite of the port `Cache`: its own arms, cases and counts (`cache.matrix.toml`, `cache.expected.toml`).
//!
//! An arm may have the name of an arm of another suite: `sim::` filters for all of them.

mod arm;
mod arms;
mod cases;
mod stage;

pub use arm::{Arm, Member, Stand, Way};

use crate::{Counts, Ledger, ledger::Line};
use anyhow::Context as _;
use futures::future::LocalBoxFuture;
use std::sync::Arc;

/// What runs a case.
pub type Run = for<'a> fn(&'a dyn Arm) -> LocalBoxFuture<'a, anyhow::Result<()>>;

/// One case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// `caNN_` and what is true when it passes.
    pub name: &'static str,
    /// What it does.
    pub run: Run,
    /// What runs instead where the store is the process itself and cannot be lost.
    pub twin: Option<Run>,
}

/// A case on an arm, ready to run.
#[derive(Clone, Debug)]
pub struct Planned {
    /// `arm::case`.
    pub name: String,
    /// What runs; an error: it is listed as skipped, for this reason.
    pub run: Result<(Run, Arc<dyn Arm>), String>,
    /// Whether it is a twin.
    pub twin: bool,
}

/// Whether an arm's counts are what they should be, under the name of the trial that says so.
pub type Check = (String, anyhow::Result<()>);

/// Every case on every arm, and a check of each arm's counts.
///
/// # Errors
/// The matrix or the counts cannot be read.
pub fn plan() -> anyhow::Result<(Vec<Planned>, Vec<Check>)> {
    let ledger = Ledger::read(include_str!("../../cache.matrix.toml"), include_str!("../../cache.expected.toml"))
        .context("the suite of the cache")?;
    let arms: Vec<Arc<dyn Arm>> = arms::all().into_iter().map(Arc::from).collect();
    let (mut planned, mut checks) = (Vec::new(), Vec::new());
    for line in ledger.lines() {
        let arm = arms.iter().find(|arm| arm.name() == line.name);
        let mut counts = Counts::default();
        for case in cases::all() {
            planned.push(place(line, &case, arm, &mut counts));
        }
        checks.push((format!("{}::the_ledger_has_every_cache_case", line.name), ledger.check(line, counts)));
    }
    Ok((planned, checks))
}

fn place(line: &Line, case: &Case, arm: Option<&Arc<dyn Arm>>, counts: &mut Counts) -> Planned {
    let name = format!("{}::{}", line.name, case.name);
    let skip = line.divergences.get(case.name).map(|why| format!("known divergence: {why}"));
    let Some((arm, None)) = arm.map(|arm| (arm, skip.clone())) else {
        counts.skipped += 1;
        let unset = || format!("{} unset", line.env.as_deref().unwrap_or("its surroundings are"));
        return Planned { name, run: Err(skip.unwrap_or_else(unset)), twin: false };
    };
    match case.twin.filter(|_| !arm.is_shared()) {
        Some(twin) => {
            counts.twins += 1;
            Planned { name, run: Ok((twin, Arc::clone(arm))), twin: true }
        }
        None => {
            counts.cases += 1;
            Planned { name, run: Ok((case.run, Arc::clone(arm))), twin: false }
        }
    }
}
