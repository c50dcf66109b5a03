//! One test a rule: a correct topology in which one thing is changed gives exactly that finding.

mod rules;

use super::{bucket, consumer, dead_letters, history, partition};
use crate::{Choices, Fields, Finding, Observed, Role, Severity, Spec, Topology, testing, verify};
use serde_json::json;
use std::collections::BTreeSet;

/// A correct topology of 2 × 2, to be changed.
struct World {
    /// What the verifier is told.
    choices: Choices,
    role: Role,
    seen: Observed,
}

impl World {
    fn new() -> Self {
        let choices = Choices { partitions: 2, shards: 2, ..Choices::default() };
        let topology = Topology::new(Spec::new(choices.clone()).unwrap()).unwrap();
        Self { choices, role: Role::Both, seen: testing::seen(&topology) }
    }

    fn stream(&mut self, name: &str) -> &mut Fields {
        &mut self.seen.streams.get_mut(name).unwrap().config
    }

    /// The first partition.
    fn partition(&mut self) -> &mut Fields {
        self.stream("WH_INGEST_0")
    }

    /// The second durable of the first partition.
    fn durable(&mut self) -> &mut Fields {
        &mut self.seen.consumers.get_mut(&key("WH_INGEST_0", "wh-ingest-1")).unwrap().config
    }

    fn findings(&self) -> Vec<Finding> {
        verify(&Spec::new(self.choices.clone()).unwrap(), self.role, &self.seen)
    }
}

fn key(stream: &str, durable: &str) -> (String, String) {
    (stream.to_owned(), durable.to_owned())
}

/// Changes a correct topology and expects this finding and no other.
fn finds(rule: &str, object: &str, severity: Severity, change: impl FnOnce(&mut World)) -> Finding {
    let mut world = World::new();
    change(&mut world);
    let findings = world.findings();
    let said: Vec<_> = findings.iter().map(|f| (f.rule, f.object.as_str(), f.severity)).collect();
    assert_eq!(said, [(rule, object, severity)], "{findings:#?}");
    let finding = findings.into_iter().next().unwrap();
    assert!(!finding.seen.is_empty() && !finding.needed.is_empty() && !finding.fix.is_empty(), "{finding:?}");
    finding
}

#[test]
fn a_correct_topology_has_no_finding_for_any_role() {
    for role in Role::ALL {
        let world = World { role, ..World::new() };
        assert_eq!(world.findings(), [], "{role}");
    }
}

#[test]
fn every_rule_has_a_test_and_a_name_of_its_own() {
    let tables = [partition::RULES, consumer::RULES, history::RULES, dead_letters::RULES, bucket::RULES];
    let ids: Vec<_> = tables.into_iter().flatten().map(|rule| rule.id).collect();
    let unique: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len());
    let untested: Vec<_> = unique.iter().filter(|id| !rules::TESTED.contains(id)).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn all_findings_come_at_once_required_ones_first_and_numbers_by_value() {
    let mut world = World { choices: Choices { partitions: 2, shards: 11, ..Choices::default() }, ..World::new() };
    for name in ["WH_INGEST_0", "WH_INGEST_1"] {
        world.stream(name).set("num_replicas", 1);
        world.stream(name).set("discard", "old");
    }
    world.seen.servers[0].version = "2.13.9".to_owned();
    let findings = world.findings();
    let severities: Vec<_> = findings.iter().map(|f| f.severity).collect();
    assert!(severities.is_sorted(), "{severities:?}");
    let objects: Vec<_> = findings.iter().map(|f| (f.object.as_str(), f.field)).collect();
    assert_eq!(objects[0], ("consumer WH_INGEST_0/wh-ingest-2", "durable_name"));
    assert_eq!(objects[8], ("consumer WH_INGEST_0/wh-ingest-10", "durable_name"));
    assert_eq!(objects[9], ("consumer WH_INGEST_1/wh-ingest-2", "durable_name"));
    assert_eq!(objects[18], ("server n1", "version"));
    assert_eq!(objects[19..23].iter().map(|o| o.1).collect::<Vec<_>>(), ["discard", "metadata", "discard", "metadata"]);
    assert_eq!(findings.len(), 25);
}

#[test]
fn an_api_process_checks_no_durable_and_no_lease() {
    let mut world = World { role: Role::Api, ..World::new() };
    world.seen.consumers.clear();
    world.seen.streams.remove("KV_wh_coord");
    assert_eq!(world.findings(), []);
    world.stream("WH_HISTORY").set("allow_direct", false);
    assert_eq!(world.findings().len(), 1);
    world.role = Role::Ingest;
    assert_eq!(world.findings().len(), 6, "four durables and the bucket");
}

#[test]
fn what_was_not_read_is_not_missing() {
    let mut world = World::new();
    let lost = world.seen.consumers.remove_entry(&key("WH_INGEST_1", "wh-ingest-0")).unwrap().0;
    world.seen.unread_consumers.insert(lost);
    world.seen.streams.remove("WH_HISTORY");
    world.seen.unread_streams.insert("WH_HISTORY".to_owned());
    let findings = world.findings();
    assert!(findings.iter().all(|f| f.severity == Severity::Recommended), "{findings:?}");
    assert_eq!(findings.iter().map(|f| f.rule).collect::<Vec<_>>(), ["consumer.unread", "stream.unread"]);
    assert!(!world.seen.is_complete());
}

#[test]
fn a_partition_is_found_by_its_subjects_whatever_it_is_called() {
    let mut world = World::new();
    let mut stream = world.seen.streams.remove("WH_INGEST_1").unwrap();
    stream.config.set("name", "EVENTS");
    world.seen.streams.insert("EVENTS".to_owned(), stream);
    let own: Vec<_> = world.seen.consumers.keys().filter(|(stream, _)| stream == "WH_INGEST_1").cloned().collect();
    for (stream, durable) in own {
        let consumer = world.seen.consumers.remove(&(stream, durable.clone())).unwrap();
        world.seen.consumers.insert(key("EVENTS", &durable), consumer);
    }
    assert_eq!(world.findings(), []);
}

#[test]
fn a_finding_reads_as_one_line_and_its_fix() {
    let finding = finds("partition.max_age", "stream WH_INGEST_0", Severity::Required, |world| {
        world.partition().set("max_age", 3_600_000_000_000_u64);
    });
    let text = "required: stream WH_INGEST_0: max_age: 1h; needed: unset: age drops rows that were not written\n    \
                fix: nats stream edit WH_INGEST_0 --force --max-age=0s";
    assert_eq!(finding.to_string(), text);
}

#[test]
fn what_a_stream_or_durable_cannot_change_is_said_to_need_making_anew() {
    let stream = finds("partition.storage", "stream WH_INGEST_0", Severity::Required, |world| {
        world.partition().set("storage", "memory");
    });
    assert!(stream.fix.starts_with("when it is empty: nats stream rm WH_INGEST_0"), "{}", stream.fix);
    let durable = finds("consumer.ack_policy", "consumer WH_INGEST_0/wh-ingest-1", Severity::Required, |world| {
        world.durable().set("ack_policy", "none");
    });
    assert!(durable.fix.contains("nats consumer add WH_INGEST_0 wh-ingest-1 --config WH_INGEST_0.wh-ingest-1.json"));
}

#[test]
fn a_count_that_differs_is_not_mended_by_writing_over_it() {
    let mut world = World::new();
    world.partition().set(
        "metadata",
        json!({"wavehouse.dev/partition": "0", "wavehouse.dev/partitions": "4", "wavehouse.dev/shards": "32"}),
    );
    let findings = world.findings();
    let fix = |id: &str| findings.iter().find(|finding| finding.rule == id).unwrap().fix.clone();
    assert!(fix("partition.metadata_counts").starts_with("mq.nats.partitions: 4 here"), "{findings:?}");
    assert!(fix("partition.metadata_shards").starts_with("mq.nats.shards: 32 here"), "{findings:?}");
    assert!(findings.iter().all(|finding| !finding.fix.contains("--metadata")), "{findings:?}");
}
