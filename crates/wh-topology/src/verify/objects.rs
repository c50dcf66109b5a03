//! Which stream serves what, and what is not there.

use super::finding::{Finding, Severity};
use crate::{
    Names, Observed, Role, Spec,
    render::{consumer_file, stream_file},
    subject::overlap,
};
use std::collections::BTreeSet;

/// Which streams serve what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The stream of each partition.
    pub(crate) partitions: Vec<Option<String>>,
    /// The stream of the dead letters.
    pub(crate) dead_letters: Option<String>,
    /// Streams that take ingest subjects and are no configured partition's.
    pub(crate) extra: Vec<String>,
    /// What is wrong about it.
    pub(crate) findings: Vec<Finding>,
}

/// Finds streams by the subjects they take, as publishing does.
pub(crate) fn find(spec: &Spec, seen: &Observed) -> Found {
    let (names, mut found) = (spec.names(), Found::default());
    let mut taken: Vec<(&str, u32)> = Vec::new();
    // a stream that was not read may be any partition's, whatever it is called
    let unread = !seen.is_complete_for_streams();
    for index in 0..spec.choices().partitions {
        let own = names.partition_stream(index);
        let holders = holders(seen, &names.partition_probe(index));
        let object = format!("ingest partition {index}");
        let stream = match holders[..] {
            [one] => match taken.iter().find(|(name, _)| *name == one) {
                Some((_, other)) => {
                    found.findings.push(Finding {
                        object: format!("stream {one}"),
                        fix: add(&own),
                        ..required(
                            "stream.shared",
                            "subjects",
                            format!("serves partitions {other} and {index}"),
                            "a stream of its own for each partition".to_owned(),
                        )
                    });
                    None
                }
                None => Some(one),
            },
            [] if unread => None,
            [] => {
                let needed = format!("a stream that takes {}", names.partition_subjects(index));
                let finding = required("partition.none", "subjects", "no stream takes them".to_owned(), needed);
                found.findings.push(Finding { object, fix: add(&own), ..finding });
                None
            }
            [..] => {
                found.findings.push(Finding {
                    object,
                    fix: "take the partition's subjects from all streams but one (nats stream edit … --subjects)"
                        .to_owned(),
                    ..required("partition.several", "subjects", holders.join(", "), "exactly one stream".to_owned())
                });
                None
            }
        };
        taken.extend(stream.map(|stream| (stream, index)));
        found.partitions.push(stream.map(str::to_owned));
    }
    let all: BTreeSet<&str> = holders(seen, &names.ingest_subjects()).into_iter().collect();
    let extra = all.into_iter().filter(|name| !taken.iter().any(|(taken, _)| taken == name));
    found.extra = extra.map(str::to_owned).collect();
    find_dead_letters(spec, seen, &mut found);
    found
}

fn find_dead_letters(spec: &Spec, seen: &Observed, found: &mut Found) {
    let names = spec.names();
    let own = &names.dead_letters;
    match holders(seen, &names.dead_letter_probe())[..] {
        [one] => found.dead_letters = Some(one.to_owned()),
        [] if !seen.is_complete_for_streams() => {}
        [] => {
            let needed = format!("a stream that takes {}", names.dead_letter_subjects());
            let finding = required("dead_letters.none", "subjects", "no stream takes them".to_owned(), needed);
            found.findings.push(Finding { object: "dead letters".to_owned(), fix: add(own), ..finding });
        }
        ref several @ [..] => found.findings.push(Finding {
            object: "dead letters".to_owned(),
            fix: "take the subjects from all streams but one (nats stream edit … --subjects)".to_owned(),
            ..required("dead_letters.several", "subjects", several.join(", "), "exactly one stream".to_owned())
        }),
    }
}

/// The streams that take a subject of this pattern.
fn holders<'a>(seen: &'a Observed, pattern: &str) -> Vec<&'a str> {
    let holds = |subjects: Vec<&str>| subjects.into_iter().any(|subject| overlap(subject, pattern));
    let streams = seen.streams.iter().filter(|(_, stream)| holds(stream.config.texts("subjects")));
    streams.map(|(name, _)| name.as_str()).collect()
}

/// What is not there, or could not be read.
pub(super) fn missing(spec: &Spec, role: Role, seen: &Observed, found: &Found) -> Vec<Finding> {
    let names = spec.names();
    let mut findings = found.findings.clone();
    let gone = seen.listed_streams.iter().filter(|name| !seen.streams.contains_key(*name));
    findings.extend(gone.filter(|name| !seen.unread_streams.contains(*name)).map(|name| Finding {
        object: format!("stream {name}"),
        fix: add(name),
        ..required("stream.gone", "name", "was listed, and is gone".to_owned(), "a stream that stays".to_owned())
    }));
    findings.extend(seen.unread_streams.iter().map(|name| unread("stream.unread", format!("stream {name}"))));
    let known = |name: &String| seen.streams.contains_key(name) || seen.unread_streams.contains(name);
    if !known(&names.history) && !seen.listed_streams.contains(&names.history) {
        let finding = required("history.none", "name", "does not exist".to_owned(), "the stream".to_owned());
        findings.push(Finding { object: format!("stream {}", names.history), fix: add(&names.history), ..finding });
    }
    if role.ingests() {
        let stream = names.bucket_stream();
        if !known(&stream) && !seen.listed_streams.contains(&stream) {
            let fix = format!(
                "nats kv add {} --history=1 --storage=file --replicas={}",
                names.bucket,
                spec.choices().replicas
            );
            let finding =
                required("bucket.none", "bucket", "does not exist".to_owned(), "the bucket of leases".to_owned());
            findings.push(Finding { object: format!("stream {stream}"), fix, ..finding });
        }
        for stream in found.partitions.iter().flatten() {
            findings.extend(missing_durables(spec, seen, stream));
        }
    }
    findings
}

fn missing_durables(spec: &Spec, seen: &Observed, stream: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for durable in (0..spec.choices().shards).map(|shard| spec.names().durable(shard)) {
        let (unit, key) = (Names::unit(stream, &durable), (stream.to_owned(), durable));
        let object = format!("consumer {unit}");
        if seen.consumers.contains_key(&key) {
            continue;
        }
        findings.push(if seen.unread_consumers.contains(&key) {
            unread("consumer.unread", object)
        } else {
            let file = consumer_file(stream, &key.1);
            let needed = "the durable: without it nothing drains the shard's rows".to_owned();
            let finding = required("consumer.none", "durable_name", "does not exist".to_owned(), needed);
            Finding { object, fix: format!("nats consumer add {stream} {} --config {file}", key.1), ..finding }
        });
    }
    findings
}

fn add(stream: &str) -> String {
    format!("nats stream add {stream} --config {}", stream_file(stream))
}

fn required(rule: &'static str, field: &'static str, seen: String, needed: String) -> Finding {
    let (object, fix) = (String::new(), String::new());
    Finding { severity: Severity::Required, rule, object, field, seen, needed, fix }
}

/// Not there and not read are two things: a server without its leader answers neither.
fn unread(rule: &'static str, object: String) -> Finding {
    Finding {
        severity: Severity::Recommended,
        rule,
        object,
        field: "config",
        seen: "gave no answer".to_owned(),
        needed: "an answer: look again when its leader is elected".to_owned(),
        fix: "nats server report jetstream".to_owned(),
    }
}
