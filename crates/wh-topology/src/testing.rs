//! What a server would answer for a topology, for tests.

use crate::{Consumer, Fields, Observed, Server, Stream, StreamConfig, Topology};
use serde_json::{Value, json};

/// A stream as a server answers it: with its defaults and its own metadata.
pub(crate) fn stream(config: &StreamConfig) -> Stream {
    let mut value = serde_json::to_value(config).unwrap();
    let fields = value.as_object_mut().unwrap();
    fields.entry("duplicate_window").or_insert(json!(120_000_000_000_u64));
    let metadata = fields.entry("metadata").or_insert(json!({})).as_object_mut().unwrap();
    metadata.insert("_nats.ver".to_owned(), json!("2.14.6"));
    fields.retain(|_, value| *value != Value::Bool(false));
    Stream { config: Fields::new(value), created: "2026-11-29T17:36:40Z".to_owned(), ..Stream::default() }
}

/// A durable as a server answers it.
pub(crate) fn consumer(config: &crate::ConsumerConfig) -> Consumer {
    let mut value = serde_json::to_value(config).unwrap();
    value["num_replicas"] = json!(0);
    value["metadata"] = json!({ "_nats.level": "4" });
    Consumer { config: Fields::new(value), ..Consumer::default() }
}

/// A topology as a server answers it.
pub(crate) fn seen(topology: &Topology) -> Observed {
    let mut seen = Observed::default();
    seen.servers.push(Server { name: "n1".to_owned(), version: "2.14.6".to_owned() });
    for config in topology.streams() {
        seen.streams.insert(config.name.clone(), stream(&config));
    }
    for partition in &topology.partitions {
        for durable in &partition.shards {
            let key = (partition.stream.name.clone(), durable.name.clone());
            seen.consumers.insert(key, consumer(durable));
        }
    }
    seen
}
