//! A suite of cases over the arms of one port, and its plan. What a port's arms and cases are is the port's own.

use crate::{Counts, Ledger, ledger::Line};
use anyhow::Context as _;
use futures::future::LocalBoxFuture;
use std::{fmt, sync::Arc};

/// What runs a case on an arm.
pub(crate) type Run<A> = for<'a> fn(&'a A) -> LocalBoxFuture<'a, anyhow::Result<()>>;

/// One case.
pub struct Case<A: ?Sized + 'static> {
    /// The clause of the port, and what is true when it passes.
    pub name: &'static str,
    /// What it does.
    pub run: Run<A>,
    /// Whether an arm can do what it needs.
    pub can: fn(&A) -> bool,
    /// What runs instead where it cannot.
    pub twin: Option<Run<A>>,
}

impl<A: ?Sized> Clone for Case<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: ?Sized> Copy for Case<A> {}

impl<A: ?Sized> fmt::Debug for Case<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A case on an arm.
pub struct Planned {
    /// `arm::case`.
    pub name: String,
    /// What runs; an error: it is listed as skipped, for this reason.
    pub run: Result<Start, String>,
    /// Whether it is a twin.
    pub twin: bool,
}

/// Begins a case.
pub type Start = Box<dyn FnOnce() -> LocalBoxFuture<'static, anyhow::Result<()>> + Send>;

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planned").field("name", &self.name).field("twin", &self.twin).finish_non_exhaustive()
    }
}

/// Whether an arm's counts are what they should be, under the name of the trial that says so.
pub type Check = (String, anyhow::Result<()>);

/// Every case on every arm, and a check of each arm's counts.
pub type Plan = (Vec<Planned>, Vec<Check>);

/// A port's arms and cases.
pub(crate) struct Suite<A: ?Sized + 'static> {
    /// What a case of it is called: `lease`.
    pub(crate) of: &'static str,
    /// The text of its matrix, and of its counts.
    pub(crate) ledger: [&'static str; 2],
    /// Each with its name in the matrix.
    pub(crate) arms: Vec<(&'static str, Arc<A>)>,
    pub(crate) cases: Vec<Case<A>>,
}

impl<A: ?Sized + Send + Sync + 'static> Suite<A> {
    /// Every case on every arm.
    ///
    /// # Errors
    /// The matrix or the counts cannot be read.
    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        let [matrix, expected] = self.ledger;
        let ledger = Ledger::read(matrix, expected).with_context(|| format!("the {} suite", self.of))?;
        let (mut planned, mut checks) = (Vec::new(), Vec::new());
        for line in ledger.lines() {
            let arm = self.arms.iter().find(|(name, _)| *name == line.name).map(|(_, arm)| arm);
            let mut counts = Counts::default();
            planned.extend(self.cases.iter().map(|case| place(line, case, arm, &mut counts)));
            let name = format!("{}::the_ledger_has_every_{}_case", line.name, self.of);
            checks.push((name, ledger.check(line, counts)));
        }
        Ok((planned, checks))
    }
}

fn place<A>(line: &Line, case: &Case<A>, arm: Option<&Arc<A>>, counts: &mut Counts) -> Planned
where
    A: ?Sized + Send + Sync + 'static,
{
    let name = format!("{}::{}", line.name, case.name);
    let run = chosen(line, case, arm);
    let twin = matches!(run, Ok((_, _, true)));
    *match &run {
        Ok((_, _, false)) => &mut counts.cases,
        Ok((_, _, true)) => &mut counts.twins,
        Err(_) => &mut counts.skipped,
    } += 1;
    Planned { name, run: run.map(|(run, arm, _)| start(run, arm)), twin }
}

/// What runs and on what, and whether it is the twin.
fn chosen<A: ?Sized>(line: &Line, case: &Case<A>, arm: Option<&Arc<A>>) -> Result<(Run<A>, Arc<A>, bool), String> {
    if let Some(why) = line.divergences.get(case.name) {
        return Err(format!("known divergence: {why}"));
    }
    let arm = arm.ok_or_else(|| format!("{} unset", line.env.as_deref().unwrap_or("its surroundings are")))?;
    match (case.can)(arm) {
        true => Ok((case.run, Arc::clone(arm), false)),
        false => match case.twin {
            Some(twin) => Ok((twin, Arc::clone(arm), true)),
            None => Err("the backend cannot do this, and the case has no twin".to_owned()),
        },
    }
}

fn start<A: ?Sized + Send + Sync + 'static>(run: Run<A>, arm: Arc<A>) -> Start {
    Box::new(move || Box::pin(async move { run(&arm).await }))
}

/// Makes a list of cases out of async functions of the same name. The module above has the alias `Case`, and a function
/// `can`, which says whether an arm can do what a case with a twin needs.
macro_rules! cases {
    ($($name:ident $(needs $need:ident)? $(twin $twin:ident)?),* $(,)?) => {
        /// The cases of this file.
        pub(super) const CASES: &[super::Case] = &[$(
            super::Case {
                name: stringify!($name),
                run: |arm| Box::pin($name(arm)),
                can: $crate::suite::cases!(@can [$($need)?] [$($twin)?]),
                twin: $crate::suite::cases!(@twin $($twin)?),
            },
        )*];
    };
    (@can [] []) => { |_| true };
    (@can [] [$twin:ident]) => { super::can };
    (@can [$need:ident] [$($twin:ident)?]) => { |arm| super::can(arm, super::Failure::$need) };
    (@twin) => { None };
    (@twin $twin:ident) => { Some(|arm| Box::pin($twin(arm))) };
}
pub(crate) use cases;
