//! What would change between what was seen and what is wanted, and the order in which it is safe. Changes nothing.

mod changes;
mod difference;
mod order;

pub use difference::Difference;

use crate::{Observed, Topology, render::NatsCli};
use serde::Serialize;
use std::fmt;

/// How many partitions, and shards in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// N.
    pub partitions: u32,
    /// V.
    pub shards: u32,
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It is not there.
    Create,
    /// It is there and differs, in fields that can be changed.
    Update,
    /// It differs in a field that cannot be changed: it goes, and comes anew.
    Replace,
    /// It stands outside the wanted counts: it is emptied, then it goes.
    Drain,
    /// It is as it should be.
    Leave,
}

/// What happens to one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What happens.
    pub action: Action,
    /// The stream, or `<stream>/<durable>`.
    pub object: String,
    /// Where it differs.
    pub differences: Vec<Difference>,
    /// Messages that it holds or has not settled.
    pub messages: u64,
    /// The stream of this change.
    #[serde(skip)]
    pub stream: String,
    /// The durable of this change, where it is about one.
    #[serde(skip)]
    pub durable: Option<String>,
    /// The partition that the stream serves or served.
    #[serde(skip)]
    partition: bool,
}

/// When a step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// While everything runs.
    Prepare,
    /// Nothing is published any more.
    StopApi,
    /// What is queued is written.
    Empty,
    /// Nothing is written any more.
    StopIngest,
    /// The counts change.
    Switch,
    /// Everything runs with the new counts.
    Start,
    /// What the old counts left is written.
    Drain,
    /// What is empty goes.
    CleanUp,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// When it is taken.
    pub phase: Phase,
    /// What to do, and why then.
    pub text: String,
    /// What to run.
    pub commands: Vec<String>,
}

/// What would change, and in which order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The counts that were seen; nothing where there is no partition.
    pub from: Option<Counts>,
    /// The counts that are wanted.
    pub to: Counts,
    /// Every object, those that are left included.
    pub changes: Vec<Change>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The command that prints the files that the steps' commands name.
    pub files: String,
}

impl Plan {
    /// Compares.
    #[must_use]
    pub fn new(wanted: &Topology, seen: &Observed) -> Self {
        let choices = wanted.spec.choices();
        let to = Counts { partitions: choices.partitions, shards: choices.shards };
        let found = changes::find_all(wanted, seen);
        let from = changes::counts(wanted, seen, &found);
        let changes = changes::changes(wanted, seen, &found);
        let steps = order::steps(wanted, from, to, &changes);
        let files = NatsCli::command_line(&wanted.spec);
        Self { from, to, changes, steps, files }
    }

    /// Whether everything is as it should be.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.iter().all(|change| change.action == Action::Leave)
    }

    /// The changes of one kind.
    pub fn of(&self, action: Action) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.action == action)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u32| if count == 1 { "" } else { "s" };
        let Self { partitions, shards } = *self;
        write!(f, "{partitions} partition{} x {shards} shard{}", plural(partitions), plural(shards))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Replace => "replace",
            Self::Drain => "drain",
            Self::Leave => "leave",
        })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prepare => "prepare",
            Self::StopApi => "stop api",
            Self::Empty => "empty",
            Self::StopIngest => "stop ingest",
            Self::Switch => "switch",
            Self::Start => "start",
            Self::Drain => "drain",
            Self::CleanUp => "clean up",
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(from) if from != self.to => writeln!(f, "{} (now {from})", self.to)?,
            Some(_) => writeln!(f, "{}", self.to)?,
            None => writeln!(f, "{} (now nothing)", self.to)?,
        }
        for change in self.changes.iter().filter(|change| change.action != Action::Leave) {
            write!(f, "  {:8} {}", change.action, change.object)?;
            if change.messages > 0 {
                write!(f, " ({} messages)", change.messages)?;
            }
            writeln!(f)?;
            for Difference { field, seen, wanted } in &change.differences {
                writeln!(f, "             {field}: {seen} -> {wanted}")?;
            }
        }
        writeln!(f, "  {:8} {} that are as they should be", Action::Leave, self.of(Action::Leave).count())?;
        if self.steps.iter().flat_map(|step| &step.commands).any(|command| command.contains(" --config ")) {
            writeln!(f, "\nThe files below are printed by:\n     {}", self.files)?;
        }
        for (number, step) in (1..).zip(&self.steps) {
            writeln!(f, "\n{number}. {}: {}", step.phase, step.text)?;
            for command in &step.commands {
                writeln!(f, "     {command}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
