//! Each format, read by a reader that is not ours.

use crate::golden::deployed;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, process::Command};
use wh_topology::{Choices, Spec, Topology, renderer};

/// The schemas of `spec` in the controller's definitions, by kind. A field that a schema does not name is an error:
/// Kubernetes would drop it without a word.
fn schemas() -> BTreeMap<String, Value> {
    let documents = serde_yaml::Deserializer::from_str(include_str!("../data/nack-crds.yaml"));
    let definitions = documents.map(|document| Value::deserialize(document).unwrap()).filter(Value::is_object);
    let mut schemas = BTreeMap::new();
    for definition in definitions {
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let Some(version) = versions.iter().find(|version| version["name"] == "v1beta2") else { continue };
        let mut spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"].clone();
        close(&mut spec);
        schemas.insert(definition["spec"]["names"]["kind"].as_str().unwrap().to_owned(), spec);
    }
    schemas
}

fn close(schema: &mut Value) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(close);
        schema["additionalProperties"] = json!(false);
    }
    if let Some(items) = schema.get_mut("items") {
        close(items);
    }
}

fn manifests(topology: &Topology) -> Vec<Value> {
    let text = renderer("nack").unwrap().render(topology).unwrap().remove(0).text;
    serde_yaml::Deserializer::from_str(&text).map(|document| Value::deserialize(document).unwrap()).collect()
}

#[test]
fn every_manifest_is_valid_against_the_controllers_schema() {
    let schemas = schemas();
    let domain = Choices { js_domain: Some("hub".into()), shards: 2, ..Choices::default() };
    for topology in [deployed(), Topology::new(Spec::new(domain).unwrap()).unwrap()] {
        let manifests = manifests(&topology);
        let durables: usize = topology.partitions.iter().map(|partition| partition.shards.len()).sum();
        assert_eq!(manifests.len(), topology.partitions.len() + durables + 3);
        let mut names = std::collections::BTreeSet::new();
        for manifest in &manifests {
            assert_eq!(manifest["apiVersion"], "jetstream.nats.io/v1beta2");
            let (kind, name) = (manifest["kind"].as_str().unwrap(), manifest["metadata"]["name"].as_str().unwrap());
            assert!(names.insert((kind, name)), "{kind} {name} stands twice");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{name}");
            let validator = jsonschema::validator_for(&schemas[kind]).unwrap();
            let errors: Vec<_> = validator.iter_errors(&manifest["spec"]).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{name}: {errors:?}");
        }
    }
}

#[test]
fn the_schema_judges_what_the_controller_would_drop_or_refuse() {
    let schema = &schemas()["Stream"];
    let validator = jsonschema::validator_for(schema).unwrap();
    let good = manifests(&deployed()).remove(0)["spec"].clone();
    assert!(validator.is_valid(&good));
    for (field, value) in
        [("denyPurges", json!(true)), ("retention", json!("work")), ("replicas", json!("3")), ("replicas", json!(0))]
    {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!validator.is_valid(&bad), "{field}");
    }
}

/// The arguments that the provider's documentation names.
const STREAM: [&str; 19] = [
    "name",
    "subjects",
    "retention",
    "discard",
    "discard_new_per_subject",
    "max_bytes",
    "max_msgs_per_subject",
    "max_age",
    "storage",
    "replicas",
    "duplicate_window",
    "allow_direct",
    "allow_rollup_hdrs",
    "deny_delete",
    "deny_purge",
    "republish_source",
    "republish_destination",
    "metadata",
    "lifecycle",
];
const CONSUMER: [&str; 14] = [
    "stream_id",
    "durable_name",
    "filter_subject",
    "deliver_all",
    "ack_policy",
    "ack_wait",
    "max_delivery",
    "max_ack_pending",
    "max_waiting",
    "replay_policy",
    "priority_policy",
    "priority_groups",
    "priority_timeout",
    "lifecycle",
];
const BUCKET: [&str; 4] = ["name", "history", "ttl", "replicas"];

#[test]
fn terraform_resources_parse_and_say_what_the_topology_holds() {
    let topology = deployed();
    let text = renderer("terraform").unwrap().render(&topology).unwrap().remove(0).text;
    let body: Value = hcl::from_str(&text).unwrap();
    let resources = &body["resource"];
    let of = |kind: &str| resources[kind].as_object().unwrap();
    let (streams, consumers, buckets) = (of("jetstream_stream"), of("jetstream_consumer"), of("jetstream_kv_bucket"));
    assert_eq!((streams.len(), consumers.len(), buckets.len()), (6, 32, 1));
    let known = |all: &Map<String, Value>, arguments: &[&str]| {
        for (name, resource) in all {
            let unknown: Vec<_> =
                resource.as_object().unwrap().keys().filter(|key| !arguments.contains(&key.as_str())).collect();
            assert!(unknown.is_empty(), "{name}: {unknown:?}");
        }
    };
    known(streams, &STREAM);
    known(consumers, &CONSUMER);
    known(buckets, &BUCKET);

    let stream = &streams["ingest_3"];
    assert_eq!((&stream["name"], &stream["subjects"]), (&json!("WH_INGEST_3"), &json!(["wh.ingest.3.>"])));
    assert_eq!(
        (&stream["duplicate_window"], &stream["max_age"], &stream["max_bytes"]),
        (&json!(120), &json!(0), &json!(16_106_127_360_u64))
    );
    assert_eq!(
        (&stream["republish_source"], &stream["republish_destination"]),
        (&json!("wh.ingest.3.*.>"), &json!("wh.hist.>"))
    );
    let metadata =
        json!({"wavehouse.dev/partition": "3", "wavehouse.dev/partitions": "4", "wavehouse.dev/shards": "8"});
    assert_eq!(stream["metadata"], metadata);
    let consumer = &consumers["ingest_3_7"];
    assert_eq!(consumer["stream_id"], "${jetstream_stream.ingest_3.id}");
    assert_eq!(
        (&consumer["durable_name"], &consumer["filter_subject"]),
        (&json!("wh-ingest-7"), &json!("wh.ingest.3.7.>"))
    );
    assert_eq!((&consumer["ack_wait"], &consumer["priority_timeout"]), (&json!(60), &json!(10)));
    assert_eq!(buckets["coord"], json!({"name": "wh_coord", "history": 1, "ttl": 0, "replicas": 3}));
}

#[test]
fn the_script_creates_what_is_missing_and_changes_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let choices = Choices { partitions: 1, shards: 2, ..Choices::default() };
    let topology = Topology::new(Spec::new(choices).unwrap()).unwrap();
    for file in renderer("nats-cli").unwrap().render(&topology).unwrap() {
        std::fs::write(folder.path().join(&file.name), &file.text).unwrap();
        assert_eq!(file.executable, file.name == "apply.sh");
    }
    // a stand-in for nats: it knows one stream, writes down what it is asked, and wants every file to be there
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let nats = "#!/bin/sh\nfor last; do case \"$last\" in *.json) [ -f \"$last\" ] || exit 9;; esac; done\n\
                case \"$1 $2 $3\" in 'stream info WH_INGEST_0') exit 0;; *' info '*) exit 1;; esac\n\
                echo \"$*\" >>asked\n";
    std::fs::write(bin.join("nats"), nats).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("nats"), mode).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let ran =
        Command::new("sh").arg(folder.path().join("apply.sh")).current_dir("/").env("PATH", path).status().unwrap();
    assert!(ran.success());
    let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap();
    let expected = [
        "stream edit WH_INGEST_0 --config WH_INGEST_0.json --force",
        "stream add WH_HISTORY --config WH_HISTORY.json",
        "stream add WH_DLQ --config WH_DLQ.json",
        "stream add KV_wh_coord --config KV_wh_coord.json",
        "consumer add WH_INGEST_0 wh-ingest-0 --config WH_INGEST_0.wh-ingest-0.json",
        "consumer add WH_INGEST_0 wh-ingest-1 --config WH_INGEST_0.wh-ingest-1.json",
    ];
    assert_eq!(asked.lines().collect::<Vec<_>>(), expected);
}
