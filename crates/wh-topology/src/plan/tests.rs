//! What changes, and the order of steps when counts rise and fall.

use super::*;
use crate::{Choices, Role, Severity, Spec, testing, verify};
use proptest::prelude::*;
use serde_json::json;

fn topology(partitions: u32, shards: u32) -> Topology {
    let choices = Choices { partitions, shards, partition_max_bytes: Some(1 << 30), ..Choices::default() };
    Topology::new(Spec::new(choices).unwrap()).unwrap()
}

fn between(before: (u32, u32), after: (u32, u32)) -> Plan {
    Plan::new(&topology(after.0, after.1), &testing::seen(&topology(before.0, before.1)))
}

fn objects(plan: &Plan, action: Action) -> Vec<&str> {
    plan.of(action).map(|change| change.object.as_str()).collect()
}

fn phases(plan: &Plan) -> Vec<Phase> {
    plan.steps.iter().map(|step| step.phase).collect()
}

fn commands(plan: &Plan, phase: Phase) -> Vec<&str> {
    plan.steps.iter().filter(|step| step.phase == phase).flat_map(|step| &step.commands).map(String::as_str).collect()
}

/// What a server holds after every change was carried out and everything drained.
fn carried_out(plan: &Plan, wanted: &Topology, mut seen: Observed) -> Observed {
    let after = testing::seen(wanted);
    for change in &plan.changes {
        let key = change.durable.clone().map(|durable| (change.stream.clone(), durable));
        match (change.action, key) {
            (Action::Leave, _) => {}
            (Action::Drain, None) => drop(seen.streams.remove(&change.stream)),
            (Action::Drain, Some(key)) => drop(seen.consumers.remove(&key)),
            (_, None) => drop(seen.streams.insert(change.stream.clone(), after.streams[&change.stream].clone())),
            (_, Some(key)) => drop(seen.consumers.insert(key.clone(), after.consumers[&key].clone())),
        }
    }
    seen
}

#[test]
fn nothing_is_to_do_on_what_is_as_it_should_be() {
    let plan = between((2, 2), (2, 2));
    assert!(plan.is_empty() && plan.steps.is_empty());
    assert_eq!(plan.from, Some(Counts { partitions: 2, shards: 2 }));
    assert_eq!(plan.to_string(), "2 partitions x 2 shards\n  leave    9 that are as they should be\n");
}

#[test]
fn everything_is_created_where_there_is_nothing() {
    let plan = Plan::new(&topology(1, 2), &Observed::default());
    assert_eq!((plan.from, plan.changes.len()), (None, 6));
    assert_eq!(plan.of(Action::Create).count(), 6);
    assert_eq!(phases(&plan), [Phase::Prepare, Phase::Prepare, Phase::Start]);
    assert_eq!(
        plan.steps[1].commands[..2],
        [
            "nats stream add WH_INGEST_0 --config WH_INGEST_0.json",
            "nats consumer add WH_INGEST_0 wh-ingest-0 --config WH_INGEST_0.wh-ingest-0.json"
        ]
    );
}

#[test]
fn raising_n_creates_first_and_switches_while_nothing_runs() {
    let plan = between((2, 2), (4, 2));
    let created = ["WH_INGEST_2", "WH_INGEST_2/wh-ingest-0", "WH_INGEST_2/wh-ingest-1"];
    assert_eq!(objects(&plan, Action::Create)[..3], created);
    assert_eq!(objects(&plan, Action::Update), ["WH_INGEST_0", "WH_INGEST_1"]);
    let differences: Vec<_> = plan.of(Action::Update).flat_map(|c| &c.differences).map(|d| d.field.as_str()).collect();
    assert_eq!(differences, ["metadata.wavehouse.dev/partitions"; 2]);
    use Phase::{Empty, Prepare, Start, StopApi, StopIngest, Switch};
    assert_eq!(phases(&plan), [Prepare, StopApi, Empty, StopIngest, Switch, Start]);
    assert!(
        plan.steps[2].text.ends_with("about 2 of every 4 tables move to another partition"),
        "{}",
        plan.steps[2].text
    );
    assert_eq!(commands(&plan, Switch)[0], "nats stream edit WH_INGEST_0 --force --config WH_INGEST_0.json");
    assert_eq!(plan.steps[5].text, "start every process with mq.nats.partitions=4 and mq.nats.shards=2");
}

#[test]
fn lowering_n_drains_what_is_left_before_it_goes() {
    let mut seen = testing::seen(&topology(4, 2));
    seen.streams.get_mut("WH_INGEST_3").unwrap().state.messages = 7;
    let durable = seen.consumers.get_mut(&("WH_INGEST_3".to_owned(), "wh-ingest-1".to_owned())).unwrap();
    (durable.num_pending, durable.num_ack_pending) = (5, 2);
    let plan = Plan::new(&topology(2, 2), &seen);
    let drained = ["WH_INGEST_2", "WH_INGEST_2/wh-ingest-0", "WH_INGEST_2/wh-ingest-1", "WH_INGEST_3"];
    assert_eq!(objects(&plan, Action::Drain)[..4], drained);
    assert_eq!(plan.of(Action::Drain).count(), 6);
    use Phase::{CleanUp, Drain, Empty, Start, StopApi, StopIngest, Switch};
    assert_eq!(phases(&plan), [StopApi, Empty, StopIngest, Switch, Start, Drain, CleanUp]);
    let rm = ["nats stream rm WH_INGEST_2 --force", "nats stream rm WH_INGEST_3 --force"];
    assert_eq!(commands(&plan, CleanUp), rm, "a stream takes its durables along");
    assert!(plan.steps[5].text.ends_with("(7 messages now)"), "{}", plan.steps[5].text);
    assert!(plan.to_string().contains("  drain    WH_INGEST_3 (7 messages)\n"), "{plan}");
}

#[test]
fn raising_v_grants_the_new_shards_before_anyone_pulls_from_them() {
    let plan = between((1, 2), (1, 4));
    use Phase::{Empty, Prepare, Start, StopApi, StopIngest, Switch};
    assert_eq!(phases(&plan), [Prepare, Prepare, StopApi, Empty, StopIngest, Switch, Start]);
    let grants = "wavehouse mq permissions --role=ingest --shards=4 --prefix=wh";
    assert!(plan.steps[0].commands.contains(&grants.to_owned()), "{plan}");
    assert_eq!(objects(&plan, Action::Create), ["WH_INGEST_0/wh-ingest-2", "WH_INGEST_0/wh-ingest-3"]);
}

#[test]
fn lowering_v_takes_the_rights_last() {
    let plan = between((1, 4), (1, 2));
    use Phase::{CleanUp, Drain, Empty, Start, StopApi, StopIngest, Switch};
    assert_eq!(phases(&plan), [StopApi, Empty, StopIngest, Switch, Start, Drain, CleanUp, CleanUp]);
    let rm = ["nats consumer rm WH_INGEST_0 wh-ingest-2 --force", "nats consumer rm WH_INGEST_0 wh-ingest-3 --force"];
    assert_eq!(plan.steps[6].commands, rm);
    assert!(plan.steps[7].commands[1].contains("--role=ingest --shards=2"), "{plan}");
}

#[test]
fn a_field_is_changed_in_place_and_without_a_stop() {
    let mut seen = testing::seen(&topology(1, 1));
    let durable = &mut seen.consumers.get_mut(&("WH_INGEST_0".to_owned(), "wh-ingest-0".to_owned())).unwrap().config;
    durable.set("ack_wait", 30_000_000_000_u64);
    durable.set("pause_until", "2030-01-01T00:00:00Z");
    let plan = Plan::new(&topology(1, 1), &seen);
    assert_eq!(objects(&plan, Action::Update), ["WH_INGEST_0/wh-ingest-0"]);
    assert_eq!(phases(&plan), [Phase::Prepare]);
    assert_eq!(
        commands(&plan, Phase::Prepare),
        [
            "nats consumer edit WH_INGEST_0 wh-ingest-0 --force --config WH_INGEST_0.wh-ingest-0.json",
            "nats consumer resume WH_INGEST_0 wh-ingest-0 --force"
        ]
    );
    assert!(plan.to_string().contains("             ack_wait: 30000000000 -> 60000000000\n"), "{plan}");
}

#[test]
fn what_cannot_be_changed_is_replaced_while_nothing_runs() {
    let mut seen = testing::seen(&topology(1, 1));
    seen.streams.get_mut("WH_INGEST_0").unwrap().config.set("storage", "memory");
    seen.streams.get_mut("WH_INGEST_0").unwrap().state.messages = 3;
    let plan = Plan::new(&topology(1, 1), &seen);
    assert_eq!(objects(&plan, Action::Replace), ["WH_INGEST_0"]);
    use Phase::{Empty, Start, StopApi, StopIngest, Switch};
    assert_eq!(phases(&plan), [StopApi, Empty, StopIngest, Switch, Start]);
    assert!(plan.steps[1].text.contains("(3 now); needed before a stream is replaced"), "{plan}");
    let anew = ["nats stream rm WH_INGEST_0 --force", "nats stream add WH_INGEST_0 --config WH_INGEST_0.json"];
    assert_eq!(commands(&plan, Switch), anew);

    let mut seen = testing::seen(&topology(1, 1));
    seen.streams.get_mut("WH_DLQ").unwrap().config.set("deny_delete", true);
    assert_eq!(objects(&Plan::new(&topology(1, 1), &seen), Action::Replace), ["WH_DLQ"], "a denial is for good");
}

#[test]
fn a_stream_of_the_generated_name_without_its_subjects_is_changed_not_made_twice() {
    let mut seen = testing::seen(&topology(2, 1));
    seen.streams.get_mut("WH_INGEST_1").unwrap().config.set("subjects", json!(["elsewhere.>"]));
    let plan = Plan::new(&topology(2, 1), &seen);
    assert_eq!((objects(&plan, Action::Update), objects(&plan, Action::Create)), (vec!["WH_INGEST_1"], vec![]));
}

#[test]
fn counts_are_taken_from_what_is_there_when_nothing_says_them() {
    let mut seen = testing::seen(&topology(2, 3));
    for name in ["WH_INGEST_0", "WH_INGEST_1"] {
        seen.streams.get_mut(name).unwrap().config.unset("metadata");
    }
    assert_eq!(Plan::new(&topology(2, 3), &seen).from, Some(Counts { partitions: 2, shards: 3 }));
}

/// What another tool left out or renamed is found, field by field.
#[test]
fn each_field_that_did_not_arrive_is_in_the_plan() {
    let wanted = topology(1, 1);
    let good = testing::seen(&wanted);
    let mut checked = 0;
    let zero = |field: &str| !["name", "durable_name", "_nats.ver", "num_replicas"].contains(&field);
    for name in good.streams.keys() {
        let asked = serde_json::to_value(wanted.streams().into_iter().find(|s| s.name == *name).unwrap()).unwrap();
        for (field, value) in asked.as_object().unwrap().iter().filter(|(field, _)| zero(field)) {
            if crate::observe::is_zero(value) || value.as_i64() == Some(-1) {
                continue;
            }
            let mut seen = good.clone();
            seen.streams.get_mut(name).unwrap().config.unset(field);
            let plan = Plan::new(&wanted, &seen);
            let changed: Vec<_> = plan.changes.iter().filter(|change| change.action != Action::Leave).collect();
            let Ok([change]) = <[&Change; 1]>::try_from(changed) else { panic!("{name} {field}\n{plan}") };
            assert!(change.object == *name && change.differences.iter().all(|d| d.field.starts_with(field)), "{plan}");
            checked += 1;
        }
    }
    let asked = serde_json::to_value(&wanted.partitions[0].shards[0]).unwrap();
    for (field, _) in asked.as_object().unwrap().iter().filter(|(field, _)| zero(field)) {
        let mut seen = good.clone();
        seen.consumers.values_mut().for_each(|consumer| consumer.config.unset(field));
        let differing: Vec<_> = Plan::new(&wanted, &seen).changes.into_iter().flat_map(|c| c.differences).collect();
        // -1 deliveries and no figure are the same
        let expected = usize::from(field != "max_deliver");
        assert_eq!(differing.len(), expected, "{field}: {differing:?}");
        checked += 1;
    }
    assert!(checked > 40, "{checked}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn changing_the_counts_twice_leaves_no_orphan(counts in prop::array::uniform3((1_u32..6, 1_u32..9))) {
        let mut seen = testing::seen(&topology(counts[0].0, counts[0].1));
        for (partitions, shards) in [counts[1], counts[2], counts[0]] {
            let wanted = topology(partitions, shards);
            let plan = Plan::new(&wanted, &seen);
            prop_assert!(phases(&plan).is_sorted(), "{}", plan);
            seen = carried_out(&plan, &wanted, seen);
            prop_assert!(Plan::new(&wanted, &seen).is_empty());
            let findings = verify(&wanted.spec, Role::Both, &seen);
            prop_assert!(findings.is_empty(), "{:?}", findings);
        }
        prop_assert_eq!(seen, testing::seen(&topology(counts[0].0, counts[0].1)));
    }

    #[test]
    fn between_two_counts_no_process_runs_on_the_wrong_ones(before in (1_u32..6, 1_u32..9), after in (1_u32..6, 1_u32..9)) {
        // a process with the new counts refuses what the old ones made, until the plan was carried out
        let (old, new) = (topology(before.0, before.1), topology(after.0, after.1));
        let required = verify(&new.spec, Role::Both, &testing::seen(&old)).iter().any(|f| f.severity == Severity::Required);
        prop_assert_eq!(required, before != after);
    }
}
