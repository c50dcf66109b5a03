//! The order in which changes are safe.
//!
//! Every process must agree on both counts: two that differ would publish a table's rows to two places, or pull one
//! unit from two views. So a count changes while nothing runs. What is new stands before, what is old goes after it
//! was drained. Without a change of counts and without a replacement nothing needs to stop.

use super::{Action, Change, Counts, Phase, Step};
use crate::{
    Topology,
    render::{consumer_file, stream_file},
    rights,
};

pub(super) fn steps(wanted: &Topology, from: Option<Counts>, to: Counts, changes: &[Change]) -> Vec<Step> {
    let moved = from.is_some_and(|from| from != to);
    let of = |action: Action| changes.iter().filter(move |change| change.action == action);
    let replaced = of(Action::Replace).next().is_some();
    let mut steps = prepare(wanted, from, to, changes, moved);
    if moved || replaced {
        steps.extend(stop(from, to, changes));
        let switched: Vec<_> = of(Action::Update).filter(|change| moved && change.is_partition()).collect();
        if !switched.is_empty() {
            let text = format!(
                "write the new counts ({to}) into the partitions' metadata; a process with other counts refuses to run"
            );
            steps.push(step(Phase::Switch, text, switched.into_iter().flat_map(update)));
        }
        if replaced {
            let text = "replace what cannot be changed in place; a stream that goes takes its messages along, so look that it is empty";
            steps.push(step(Phase::Switch, text, of(Action::Replace).flat_map(replace)));
        }
        let text =
            format!("start every process with mq.nats.partitions={} and mq.nats.shards={}", to.partitions, to.shards);
        steps.push(step(Phase::Start, text, []));
    } else if from.is_none() {
        steps.push(step(Phase::Start, "start the processes", []));
    }
    steps.extend(leave_behind(wanted, from, to, changes));
    steps
}

fn step(phase: Phase, text: impl Into<String>, commands: impl IntoIterator<Item = String>) -> Step {
    Step { phase, text: text.into(), commands: commands.into_iter().collect() }
}

/// What disturbs nobody.
fn prepare(wanted: &Topology, from: Option<Counts>, to: Counts, changes: &[Change], moved: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    if from.is_none_or(|from| from.shards < to.shards) {
        let text =
            "give the users the rights of every shard and reload the servers, before there is a new one to pull from";
        steps.push(step(Phase::Prepare, text, rights_commands(wanted)));
    }
    let created: Vec<_> = changes.iter().filter(|change| change.action == Action::Create).map(create).collect();
    if !created.is_empty() {
        let text = "create what is missing, streams before their durables";
        steps.push(step(Phase::Prepare, text, created));
    }
    let updated = changes.iter().filter(|change| change.action == Action::Update && !(moved && change.is_partition()));
    let updated: Vec<_> = updated.flat_map(update).collect();
    if !updated.is_empty() {
        steps.push(step(Phase::Prepare, "change what differs", updated));
    }
    steps
}

fn stop(from: Option<Counts>, to: Counts, changes: &[Change]) -> Vec<Step> {
    let streams = changes.iter().filter(|change| change.durable.is_none() && change.is_partition());
    let replaced = streams.clone().any(|change| change.action == Action::Replace);
    let there: Vec<_> = streams.filter(|change| change.action != Action::Create).collect();
    let rows: u64 = there.iter().map(|change| change.messages).sum();
    let moves = match from {
        Some(from) if from.partitions != to.partitions => share(from.partitions, to.partitions, "partition"),
        Some(from) if from.shards != to.shards => share(from.shards, to.shards, "shard"),
        _ => String::new(),
    };
    let need = if replaced { "needed before a stream is replaced" } else { "keeps the order of tables that move" };
    let empty = format!("wait until the partitions hold no message ({rows} now); {need}{moves}");
    let commands = there.iter().map(|change| format!("nats stream info {}", change.stream));
    vec![
        step(Phase::StopApi, "stop every process that takes events; those that ingest run on", []),
        step(Phase::Empty, empty, commands),
        step(Phase::StopIngest, "stop every process that ingests", []),
    ]
}

/// How many tables move.
fn share(from: u32, to: u32, what: &str) -> String {
    let (less, more) = (from.min(to), from.max(to));
    format!("; about {} of every {more} tables move to another {what}", more - less)
}

fn leave_behind(wanted: &Topology, from: Option<Counts>, to: Counts, changes: &[Change]) -> Vec<Step> {
    let drained: Vec<_> = changes.iter().filter(|change| change.action == Action::Drain).collect();
    let mut steps = Vec::new();
    if !drained.is_empty() {
        let rows: u64 = drained.iter().filter(|change| change.durable.is_some()).map(|change| change.messages).sum();
        let text = format!("workers drain what the old counts left; wait until it is empty ({rows} messages now)");
        let look = drained.iter().map(|change| match &change.durable {
            Some(durable) => format!("nats consumer info {} {durable}", change.stream),
            None => format!("nats stream info {}", change.stream),
        });
        steps.push(step(Phase::Drain, text, look));
        // a stream takes its durables along
        let gone = |stream: &str| drained.iter().any(|change| change.durable.is_none() && change.stream == stream);
        let commands = drained.iter().filter_map(|change| match &change.durable {
            Some(_) if gone(&change.stream) => None,
            Some(durable) => Some(format!("nats consumer rm {} {durable} --force", change.stream)),
            None => Some(format!("nats stream rm {} --force", change.stream)),
        });
        steps.push(step(
            Phase::CleanUp,
            "delete what is empty; nack and Terraform keep it when its resource goes",
            commands,
        ));
    }
    if from.is_some_and(|from| from.shards > to.shards) {
        let text = "take the rights of the shards that are gone";
        steps.push(step(Phase::CleanUp, text, rights_commands(wanted)));
    }
    steps
}

fn rights_commands(wanted: &Topology) -> Vec<String> {
    let roles = [crate::Role::Api, crate::Role::Ingest];
    roles.map(|role| rights::command_line(&wanted.spec, role)).to_vec()
}

fn create(change: &Change) -> String {
    let stream = &change.stream;
    match &change.durable {
        Some(durable) => {
            format!("nats consumer add {stream} {durable} --config {}", consumer_file(stream, durable))
        }
        None => format!("nats stream add {stream} --config {}", stream_file(stream)),
    }
}

fn update(change: &Change) -> Vec<String> {
    let stream = &change.stream;
    let Some(durable) = &change.durable else {
        return vec![format!("nats stream edit {stream} --force --config {}", stream_file(stream))];
    };
    let paused = change.differences.iter().any(|difference| difference.field == "pause_until");
    let others = change.differences.len() > usize::from(paused);
    let edit = format!("nats consumer edit {stream} {durable} --force --config {}", consumer_file(stream, durable));
    let resume = format!("nats consumer resume {stream} {durable} --force");
    [(others, edit), (paused, resume)].into_iter().filter_map(|(needed, command)| needed.then_some(command)).collect()
}

fn replace(change: &Change) -> Vec<String> {
    let stream = &change.stream;
    let remove = match &change.durable {
        Some(durable) => format!("nats consumer rm {stream} {durable} --force"),
        None => format!("nats stream rm {stream} --force"),
    };
    vec![remove, create(change)]
}
