//! Each rule's own test.

use super::{World, finds, key};
use crate::{
    Peer, Refused, Role,
    Severity::{self, Recommended, Required},
};
use serde_json::json;
use std::time::Duration;

macro_rules! rules {
    ($($name:ident: $severity:ident $rule:literal on $object:literal => $change:expr;)+) => {
        /// The rules that have a test below.
        pub(super) const TESTED: &[&str] = &[$($rule),+];

        $(#[test]
        fn $name() {
            let severity: Severity = $severity;
            finds($rule, $object, severity, $change);
        })+
    };
}

const HOUR: u64 = 3_600_000_000_000;
const SECOND: u64 = 1_000_000_000;

rules! {
    // servers and other processes
    a_server_below_the_floor_is_refused: Required "server.version" on "server n1" => |w| w.seen.servers[0].version = "2.13.4".into();
    every_server_of_the_cluster_counts_for_the_floor: Required "server.version" on "server n2" => |w| {
        w.seen.servers.push(crate::Server { name: "n2".into(), version: "2.12.0".into() });
    };
    a_version_that_cannot_be_read_is_refused: Required "server.version" on "server n1" => |w| w.seen.servers[0].version = "2.x".into();
    an_untested_line_is_told: Recommended "server.line" on "server n1" => |w| w.seen.servers[0].version = "3.0.0".into();
    an_answer_without_any_server_is_told: Recommended "server.unseen" on "server" => |w| w.seen.servers.clear();
    processes_that_differ_on_a_count_refuse_to_run_together: Required "peer.counts" on "process a" => |w| {
        w.seen.peers.push(Peer { name: "a".into(), partitions: 2, shards: 4 });
        w.seen.peers.push(Peer { name: "b".into(), partitions: 2, shards: 2 });
    };

    // which streams there are
    a_partition_without_a_stream_is_refused: Required "partition.none" on "ingest partition 1" => |w| {
        w.seen.streams.remove("WH_INGEST_1");
        w.seen.consumers.retain(|(stream, _), _| stream != "WH_INGEST_1");
    };
    a_partition_with_two_streams_is_refused: Required "partition.several" on "ingest partition 1" => |w| {
        w.partition().set("subjects", json!(["wh.ingest.0.>", "wh.ingest.1.>"]));
        // a worker would also call the durables of a stream that serves no partition leftovers
        w.role = Role::Api;
    };
    a_stream_that_serves_two_partitions_is_refused: Required "stream.shared" on "stream WH_INGEST_0" => |w| {
        w.partition().set("subjects", json!(["wh.ingest.0.>", "wh.ingest.1.>"]));
        w.seen.streams.remove("WH_INGEST_1");
        w.seen.consumers.retain(|(stream, _), _| stream != "WH_INGEST_1");
    };
    a_stream_that_was_listed_and_is_gone_is_refused: Required "stream.gone" on "stream WH_X" => |w| {
        w.seen.listed_streams.insert("WH_X".into());
    };
    a_stream_that_gave_no_answer_is_told: Recommended "stream.unread" on "stream WH_X" => |w| {
        w.seen.unread_streams.insert("WH_X".into());
    };
    a_durable_that_gave_no_answer_is_told: Recommended "consumer.unread" on "consumer WH_INGEST_0/wh-ingest-1" => |w| {
        w.seen.consumers.remove(&key("WH_INGEST_0", "wh-ingest-1"));
        w.seen.unread_consumers.insert(key("WH_INGEST_0", "wh-ingest-1"));
    };

    // a partition's stream
    a_partition_must_include_its_own_subjects: Required "partition.subjects" on "stream WH_INGEST_0" => |w| w.partition().set("subjects", json!(["wh.ingest.0.*"]));
    a_partition_must_be_a_work_queue: Required "partition.retention" on "stream WH_INGEST_0" => |w| w.partition().set("retention", "interest");
    a_partition_must_republish: Required "partition.republish" on "stream WH_INGEST_0" => |w| w.partition().unset("republish");
    a_partition_must_not_evict: Required "partition.discard" on "stream WH_INGEST_0" => |w| w.partition().set("discard", "old");
    a_partition_must_have_a_size: Required "partition.max_bytes" on "stream WH_INGEST_0" => |w| w.partition().set("max_bytes", -1);
    a_partition_must_not_age: Required "partition.max_age" on "stream WH_INGEST_0" => |w| w.partition().set("max_age", HOUR);
    a_partition_must_be_on_files: Required "partition.storage" on "stream WH_INGEST_0" => |w| w.partition().set("storage", "memory");
    a_partition_must_remember_ids_for_all_attempts: Required "partition.duplicate_window" on "stream WH_INGEST_0" => |w| {
        w.choices.dedupe_lease = Duration::ZERO;
        w.partition().set("duplicate_window", 15 * SECOND);
        w.stream("WH_HISTORY").set("duplicate_window", 15 * SECOND);
    };
    a_partition_must_remember_ids_as_long_as_claims: Required "partition.duplicate_window_dedupe" on "stream WH_INGEST_0" => |w| {
        w.partition().set("duplicate_window", 60 * SECOND);
        w.stream("WH_HISTORY").set("duplicate_window", 60 * SECOND);
    };
    a_partition_must_ack: Required "partition.no_ack" on "stream WH_INGEST_0" => |w| w.partition().set("no_ack", true);
    a_partition_must_not_be_sealed: Required "partition.sealed" on "stream WH_INGEST_0" => |w| w.partition().set("sealed", true);
    a_partition_must_not_be_a_mirror: Required "partition.mirror" on "stream WH_INGEST_0" => |w| w.partition().set("mirror", json!({"name": "X"}));
    a_partition_must_not_have_sources: Required "partition.sources" on "stream WH_INGEST_0" => |w| w.partition().set("sources", json!([{"name": "X"}]));
    a_partition_must_not_transform_subjects: Required "partition.subject_transform" on "stream WH_INGEST_0" => |w| {
        w.partition().set("subject_transform", json!({"src": "a.>", "dest": "b.>"}));
    };
    a_table_at_its_cap_must_be_refused_not_evicted: Required "partition.discard_new_per_subject" on "stream WH_INGEST_0" => |w| w.partition().unset("discard_new_per_subject");
    a_partition_without_a_cap_for_a_table_is_told: Recommended "partition.max_msgs_per_subject" on "stream WH_INGEST_0" => |w| w.partition().set("max_msgs_per_subject", -1);
    a_partition_that_may_be_purged_is_told: Recommended "partition.deny" on "stream WH_INGEST_0" => |w| w.partition().unset("deny_purge");
    a_partition_that_acks_before_it_writes_is_refused: Required "partition.persist_mode" on "stream WH_INGEST_0" => |w| w.partition().set("persist_mode", "async");
    a_partition_with_two_copies_is_told: Recommended "partition.num_replicas" on "stream WH_INGEST_0" => |w| w.partition().set("num_replicas", 2);
    a_partition_that_does_not_say_its_counts_is_told: Recommended "partition.metadata" on "stream WH_INGEST_0" => |w| {
        w.partition().set("metadata", json!({"wavehouse.dev/partition": "0", "wavehouse.dev/shards": "2"}));
    };
    a_partition_with_another_count_is_refused: Required "partition.metadata_counts" on "stream WH_INGEST_0" => |w| {
        w.partition().set("metadata", json!({"wavehouse.dev/partition": "0", "wavehouse.dev/partitions": "4", "wavehouse.dev/shards": "2"}));
    };
    a_partition_that_does_not_say_its_shards_is_told: Recommended "partition.metadata_shards_missing" on "stream WH_INGEST_0" => |w| {
        w.partition().set("metadata", json!({"wavehouse.dev/partition": "0", "wavehouse.dev/partitions": "2"}));
    };
    a_partition_with_another_count_of_shards_is_refused: Required "partition.metadata_shards" on "stream WH_INGEST_0" => |w| {
        w.partition().set("metadata", json!({"wavehouse.dev/partition": "0", "wavehouse.dev/partitions": "2", "wavehouse.dev/shards": "32"}));
    };

    // a shard's durable
    a_shard_without_its_durable_is_refused: Required "consumer.none" on "consumer WH_INGEST_0/wh-ingest-1" => |w| {
        w.seen.consumers.remove(&key("WH_INGEST_0", "wh-ingest-1"));
    };
    a_durable_must_be_pulled: Required "consumer.deliver_subject" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("deliver_subject", "x");
    a_durable_must_ack_each_message: Required "consumer.ack_policy" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("ack_policy", "all");
    a_durable_must_wait_long_enough: Required "consumer.ack_wait" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("ack_wait", 59 * SECOND);
    a_durable_must_never_give_up: Required "consumer.max_deliver" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("max_deliver", 5);
    a_durable_must_allow_enough_unsettled: Required "consumer.max_ack_pending" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("max_ack_pending", 9_999);
    a_durable_without_a_bound_on_unsettled_is_refused: Required "consumer.max_ack_pending" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("max_ack_pending", -1);
    a_durable_must_deliver_all: Required "consumer.deliver_policy" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("deliver_policy", "new");
    a_durable_must_have_its_own_filter: Required "consumer.filter_subject" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("filter_subject", "wh.ingest.0.0.>");
    a_durable_must_have_no_second_filter: Required "consumer.filter_subject" on "consumer WH_INGEST_0/wh-ingest-1" => |w| {
        w.durable().unset("filter_subject");
        w.durable().set("filter_subjects", json!(["wh.ingest.0.1.>", "wh.ingest.0.7.>"]));
    };
    a_durable_must_deliver_bodies: Required "consumer.headers_only" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("headers_only", true);
    a_durable_must_not_replay_at_the_old_pace: Required "consumer.replay_policy" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("replay_policy", "original");
    a_durable_must_not_vanish: Required "consumer.inactive_threshold" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("inactive_threshold", HOUR);
    a_durable_must_let_pulls_wait: Required "consumer.max_expires" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("max_expires", 4 * SECOND);
    a_durable_must_let_pulls_be_large: Required "consumer.max_batch" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("max_batch", 127);
    a_durable_must_have_room_for_pulls: Required "consumer.max_waiting" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("max_waiting", 7);
    a_durable_must_not_have_a_backoff: Required "consumer.backoff" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("backoff", json!([SECOND, 2 * SECOND]));
    a_durable_must_not_be_paused: Required "consumer.pause_until" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("pause_until", "2030-01-01T00:00:00Z");
    a_durable_must_pin: Required "consumer.priority_policy" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("priority_policy", "overflow");
    a_durable_must_have_the_one_group: Required "consumer.priority_groups" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("priority_groups", json!(["wavehouse", "b"]));
    a_pin_must_outlive_a_renewal: Required "consumer.priority_timeout" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("priority_timeout", 4 * SECOND);
    a_pin_that_outlives_a_lease_is_told: Recommended "consumer.priority_timeout_lease" on "consumer WH_INGEST_0/wh-ingest-1" => |w| w.durable().set("priority_timeout", 16 * SECOND);
    a_refused_right_is_one_finding_a_durable: Required "consumer.permissions" on "consumer WH_INGEST_0/wh-ingest-1" => |w| {
        for what in ["MSG.NEXT", "UNPIN"] {
            let subject = format!("$JS.API.CONSUMER.{what}.WH_INGEST_0.wh-ingest-1");
            w.seen.refused.push(Refused { stream: "WH_INGEST_0".into(), durable: "wh-ingest-1".into(), subject });
        }
    };

    // what lower counts left
    a_leftover_stream_that_nothing_drains_is_told: Recommended "extra.stream" on "stream WH_INGEST_7" => |w| {
        let mut stream = w.seen.streams["WH_INGEST_1"].clone();
        stream.config.set("subjects", json!(["wh.ingest.7.>"]));
        w.seen.streams.insert("WH_INGEST_7".into(), stream);
    };
    a_leftover_durable_is_told: Recommended "extra.consumer" on "consumer WH_INGEST_1/wh-ingest-2" => |w| {
        let durable = w.seen.consumers[&key("WH_INGEST_1", "wh-ingest-1")].clone();
        w.seen.consumers.insert(key("WH_INGEST_1", "wh-ingest-2"), durable);
    };

    // the history
    a_history_must_be_there: Required "history.none" on "stream WH_HISTORY" => |w| drop(w.seen.streams.remove("WH_HISTORY"));
    a_history_must_take_exactly_its_subjects: Required "history.subjects" on "stream WH_HISTORY" => |w| w.stream("WH_HISTORY").set("subjects", json!(["wh.hist.>", "x"]));
    a_history_must_have_no_source: Required "history.sources" on "stream WH_HISTORY" => |w| w.stream("WH_HISTORY").set("mirror", json!({"name": "X"}));
    a_history_must_keep_by_limits: Required "history.retention" on "stream WH_HISTORY" => |w| w.stream("WH_HISTORY").set("retention", "interest");
    a_history_must_age: Required "history.max_age" on "stream WH_HISTORY" => |w| w.stream("WH_HISTORY").set("max_age", 0);
    a_history_must_be_read_directly: Required "history.allow_direct" on "stream WH_HISTORY" => |w| w.stream("WH_HISTORY").unset("allow_direct");
    a_history_must_not_transform_subjects: Required "history.subject_transform" on "stream WH_HISTORY" => |w| {
        w.stream("WH_HISTORY").set("subject_transform", json!({"src": "a.>", "dest": "b.>"}));
    };
    a_history_must_not_be_sealed: Required "history.sealed" on "stream WH_HISTORY" => |w| w.stream("WH_HISTORY").set("sealed", true);
    a_history_that_refuses_the_new_is_told: Recommended "history.discard" on "stream WH_HISTORY" => |w| w.stream("WH_HISTORY").set("discard", "new");
    a_history_without_a_size_is_told: Recommended "history.max_bytes" on "stream WH_HISTORY" => |w| w.stream("WH_HISTORY").set("max_bytes", -1);
    a_history_with_one_copy_is_told: Recommended "history.num_replicas" on "stream WH_HISTORY" => |w| w.stream("WH_HISTORY").set("num_replicas", 1);
    a_history_that_remembers_ids_longer_than_partitions_is_told: Recommended "history.duplicate_window" on "stream WH_HISTORY" => |w| w.stream("WH_HISTORY").set("duplicate_window", HOUR);

    // the dead letters
    dead_letters_must_have_a_stream: Required "dead_letters.none" on "dead letters" => |w| drop(w.seen.streams.remove("WH_DLQ"));
    dead_letters_must_have_one_stream: Required "dead_letters.several" on "dead letters" => |w| {
        let other = w.seen.streams["WH_DLQ"].clone();
        w.seen.streams.insert("OTHER".into(), other);
    };
    dead_letters_must_have_the_name_that_rights_name: Required "dead_letters.name" on "stream OTHER" => |w| {
        let other = w.seen.streams.remove("WH_DLQ").unwrap();
        w.seen.streams.insert("OTHER".into(), other);
    };
    dead_letters_must_include_their_subjects: Required "dead_letters.subjects" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("subjects", json!(["wh.dlq.*"]));
    dead_letters_must_keep_by_limits: Required "dead_letters.retention" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("retention", "workqueue");
    dead_letters_must_never_wait: Required "dead_letters.discard" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("discard", "new");
    dead_letters_must_be_on_files: Required "dead_letters.storage" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("storage", "memory");
    dead_letters_must_have_a_size: Required "dead_letters.max_bytes" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("max_bytes", -1);
    dead_letters_must_be_read_directly: Required "dead_letters.allow_direct" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").unset("allow_direct");
    dead_letters_must_keep_their_subjects: Required "dead_letters.subject_transform" on "stream WH_DLQ" => |w| {
        w.stream("WH_DLQ").set("subject_transform", json!({"src": "a.>", "dest": "b.>"}));
    };
    dead_letters_must_not_be_sealed: Required "dead_letters.sealed" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("sealed", true);
    dead_letters_must_be_acked: Required "dead_letters.no_ack" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("no_ack", true);
    dead_letters_without_a_cap_for_a_table_are_told: Recommended "dead_letters.max_msgs_per_subject" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("max_msgs_per_subject", -1);
    dead_letters_acked_before_they_are_written_are_told: Recommended "dead_letters.persist_mode" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("persist_mode", "async");
    dead_letters_with_one_copy_are_told: Recommended "dead_letters.num_replicas" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("num_replicas", 1);
    dead_letters_that_may_double_are_told: Recommended "dead_letters.duplicate_window" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("duplicate_window", 120 * SECOND);
    dead_letters_that_cannot_be_deleted_are_told: Recommended "dead_letters.deny_delete" on "stream WH_DLQ" => |w| w.stream("WH_DLQ").set("deny_delete", true);

    // the bucket, the dedupe store
    the_bucket_must_be_there: Required "bucket.none" on "stream KV_wh_coord" => |w| drop(w.seen.streams.remove("KV_wh_coord"));
    the_bucket_must_keep_a_value: Required "bucket.history" on "stream KV_wh_coord" => |w| w.stream("KV_wh_coord").set("max_msgs_per_subject", 0);
    the_bucket_must_be_read_directly: Required "bucket.allow_direct" on "stream KV_wh_coord" => |w| w.stream("KV_wh_coord").unset("allow_direct");
    the_bucket_must_have_no_time_to_live: Required "bucket.ttl" on "stream KV_wh_coord" => |w| w.stream("KV_wh_coord").set("max_age", HOUR);
    a_bucket_in_memory_is_told: Recommended "bucket.storage" on "stream KV_wh_coord" => |w| w.stream("KV_wh_coord").set("storage", "memory");
    a_bucket_with_one_copy_is_told: Recommended "bucket.num_replicas" on "stream KV_wh_coord" => |w| w.stream("KV_wh_coord").set("num_replicas", 1);
    a_retention_below_the_longest_window_is_told: Recommended "dedupe.retention" on "dedupe" => |w| {
        w.choices.dedupe_retention = Some(Duration::from_mins(5));
        w.stream("WH_INGEST_1").set("duplicate_window", 600 * SECOND);
    };
}

#[test]
fn republishing_must_be_right_at_both_ends_and_whole() {
    let good = json!({"src": "wh.ingest.0.*.>", "dest": "wh.hist.>"});
    for (key, value) in [("src", json!("wh.ingest.0.>")), ("dest", json!("x.>")), ("headers_only", json!(true))] {
        let mut bad = good.clone();
        bad[key] = value;
        let finding = finds("partition.republish", "stream WH_INGEST_0", Required, |w: &mut World| {
            w.partition().set("republish", bad)
        });
        let fix = "--republish-source='wh.ingest.0.*.>' --republish-destination='wh.hist.>'";
        assert!(finding.fix.ends_with(fix), "{}", finding.fix);
    }
}

#[test]
fn limits_just_inside_the_bounds_are_taken() {
    let mut world = World::new();
    let durable = world.durable();
    for (field, value) in [("ack_wait", 60 * SECOND), ("priority_timeout", 5 * SECOND), ("max_expires", 2_500_000_000)]
    {
        durable.set(field, value);
    }
    for (field, value) in [("max_ack_pending", 10_000), ("max_batch", 128), ("max_waiting", 8)] {
        durable.set(field, value);
    }
    world.partition().set("duplicate_window", 61 * SECOND);
    world.stream("WH_HISTORY").set("duplicate_window", 61 * SECOND);
    for version in ["2.14.0", "v2.15.1", "2.15.0-RC.1", "2.14.6+build"] {
        world.seen.servers[0].version = version.into();
        assert_eq!(world.findings(), [], "{version}");
    }
}

#[test]
fn a_leftover_stream_with_durables_is_told_by_its_durables() {
    let mut world = World::new();
    let mut stream = world.seen.streams["WH_INGEST_1"].clone();
    stream.config.set("subjects", json!(["wh.ingest.2.>"]));
    world.seen.streams.insert("WH_INGEST_2".into(), stream);
    for durable in ["wh-ingest-0", "wh-ingest-1"] {
        let consumer = world.seen.consumers[&key("WH_INGEST_1", durable)].clone();
        world.seen.consumers.insert(key("WH_INGEST_2", durable), consumer);
    }
    let findings = world.findings();
    let said: Vec<_> = findings.iter().map(|f| (f.rule, f.object.as_str())).collect();
    let expected = ["consumer WH_INGEST_2/wh-ingest-0", "consumer WH_INGEST_2/wh-ingest-1"];
    assert_eq!(said, expected.map(|object| ("extra.consumer", object)));
}

#[test]
fn every_wrong_field_of_one_durable_is_named() {
    let mut world = World::new();
    let durable = world.durable();
    durable.set("pause_until", "2030-01-01T00:00:00Z");
    durable.set("ack_policy", "none");
    durable.set("ack_wait", 30 * SECOND);
    durable.set("backoff", json!([SECOND]));
    durable.set("priority_timeout", 4 * SECOND);
    let fields: Vec<_> = world.findings().iter().map(|f| f.field).collect();
    assert_eq!(fields, ["ack_policy", "ack_wait", "backoff", "pause_until", "priority_timeout"]);
}
