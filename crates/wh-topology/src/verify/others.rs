//! What is wrong beside streams and durables: servers, other processes, rights, leftovers, the dedupe store.

use super::{
    finding::{Finding, Severity},
    objects::Found,
};
use crate::{Names, Observed, Role, Spec, defaults, span::show_span};
use std::{collections::BTreeSet, time::Duration};

pub(super) fn servers(seen: &Observed) -> Vec<Finding> {
    let (major, minor, patch) = defaults::MIN_SERVER;
    let least = format!("{major}.{minor}.{patch} or newer");
    let fix = format!("upgrade nats-server to {}", defaults::SERVER);
    let finding = |severity, rule, object: String, seen: String, needed: String| Finding {
        severity,
        rule,
        object,
        field: "version",
        seen,
        needed,
        fix: fix.clone(),
    };
    if seen.servers.is_empty() {
        let (object, seen) = ("server".to_owned(), "no server was seen".to_owned());
        let fix = "look at each server too: nats server list --json".to_owned();
        return vec![Finding { fix, ..finding(Severity::Recommended, "server.unseen", object, seen, least) }];
    }
    let of = |server: &crate::Server| {
        let (object, seen) = (format!("server {}", server.name), server.version.clone());
        match release(&server.version) {
            None => Some(finding(Severity::Required, "server.version", object, seen, least.clone())),
            Some(own) if own < defaults::MIN_SERVER => {
                Some(finding(Severity::Required, "server.version", object, seen, least.clone()))
            }
            Some((major, minor, _)) if !defaults::TESTED_SERVERS.contains(&(major, minor)) => {
                let tested = defaults::TESTED_SERVERS.map(|(major, minor)| format!("{major}.{minor}")).join(" or ");
                let needed = format!("{tested}, which are tested");
                Some(finding(Severity::Recommended, "server.line", object, seen, needed))
            }
            Some(_) => None,
        }
    };
    seen.servers.iter().filter_map(of).collect()
}

/// `2.14.6`, also with a tag behind it (`2.15.0-RC.1`).
fn release(version: &str) -> Option<(u32, u32, u32)> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let (numbers, _) = version.split_once(['-', '+']).unwrap_or((version, ""));
    let mut parts = numbers.split('.').map(|part| part.parse::<u32>().ok());
    let release = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(release)
}

/// Two processes that differ on a count would send a table's rows to two places.
pub(super) fn peers(spec: &Spec, seen: &Observed) -> Vec<Finding> {
    let (partitions, shards) = (spec.choices().partitions, spec.choices().shards);
    let differing = seen.peers.iter().filter(|peer| (peer.partitions, peer.shards) != (partitions, shards));
    let finding = |peer: &crate::Peer| Finding {
        severity: Severity::Required,
        rule: "peer.counts",
        object: format!("process {}", peer.name),
        field: "partitions",
        seen: format!("{} partitions, {} shards", peer.partitions, peer.shards),
        needed: format!("{partitions} partitions, {shards} shards: all processes run with one N and one V"),
        fix: "stop the processes that run with the other counts; `wavehouse mq plan` gives the order".to_owned(),
    };
    differing.map(finding).collect()
}

/// What an earlier, higher count left behind.
pub(super) fn extra(spec: &Spec, seen: &Observed, found: &Found) -> Vec<Finding> {
    let (names, shards) = (spec.names(), spec.choices().shards);
    let configured: BTreeSet<&str> = found.partitions.iter().flatten().map(String::as_str).collect();
    let mut findings = Vec::new();
    let finding = |rule, object, field, seen, needed: &str, fix| Finding {
        severity: Severity::Recommended,
        rule,
        object,
        field,
        seen,
        needed: needed.to_owned(),
        fix,
    };
    for name in &found.extra {
        let drained =
            seen.consumers.keys().any(|(stream, durable)| stream == name && names.shard_of(durable).is_some());
        if !drained {
            findings.push(finding(
                "extra.stream",
                format!("stream {name}"),
                "subjects",
                "takes ingest subjects outside the configured partitions, and has no shard durable".to_owned(),
                "nothing drains its rows",
                format!("when it is empty: nats stream rm {name} --force"),
            ));
        }
    }
    for (stream, durable) in seen.consumers.keys() {
        let Some(shard) = names.shard_of(durable) else { continue };
        let on_configured = configured.contains(stream.as_str());
        if (on_configured && shard >= shards) || found.extra.contains(stream) {
            findings.push(finding(
                "extra.consumer",
                format!("consumer {}", Names::unit(stream, durable)),
                "durable_name",
                "stands outside the configured counts".to_owned(),
                "its rows are drained; delete it when it is empty",
                format!("when it is empty: nats consumer rm {stream} {durable} --force"),
            ));
        }
    }
    findings
}

/// The first refusal of each durable.
pub(super) fn refused(spec: &Spec, role: Role, seen: &Observed) -> Vec<Finding> {
    let mut durables = BTreeSet::new();
    let first = seen.refused.iter().filter(|refused| durables.insert((&refused.stream, &refused.durable)));
    let finding = |refused: &crate::Refused| Finding {
        severity: Severity::Required,
        rule: "consumer.permissions",
        object: format!("consumer {}", Names::unit(&refused.stream, &refused.durable)),
        field: "permissions",
        seen: format!("the server refuses {}", refused.subject),
        needed: "the rights of this role".to_owned(),
        fix: crate::rights::command_line(spec, role),
    };
    first.map(finding).collect()
}

/// A key that is forgotten while its block's id is remembered: the block is dropped, and its client told "accepted".
pub(super) fn retention(spec: &Spec, longest: Option<Duration>) -> Option<Finding> {
    let (seen, longest) = (spec.choices().dedupe_retention?, longest?);
    (seen < longest).then(|| Finding {
        severity: Severity::Recommended,
        rule: "dedupe.retention",
        object: "dedupe".to_owned(),
        field: "retention",
        seen: show_span(seen),
        needed: format!("at least {}, the longest duplicate window of the partitions", show_span(longest)),
        fix: format!("set the retention of dedupe keys to {} or more", show_span(longest)),
    })
}
