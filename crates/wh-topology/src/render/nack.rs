//! Kubernetes resources for nack, the NATS controller: `jetstream.nats.io/v1beta2`.
//!
//! nack's own defaults differ from JetStream's, so every field is written out.

use super::{
    File, Renderer, Unsayable, commented, header,
    yaml::{Yaml, document},
};
use crate::{
    Topology,
    config::{Bucket, ConsumerConfig, StreamConfig},
    span::show_span,
};

/// The backend for nack.
#[derive(Clone, Copy, Debug)]
pub struct Nack;

const FORMAT: &str = "nack";

impl Renderer for Nack {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn render(&self, topology: &Topology) -> Result<Vec<File>, Unsayable> {
        let prefix = &topology.spec.names().prefix;
        if prefix.contains('_') || prefix.starts_with('-') || prefix.ends_with('-') {
            return Err(Unsayable {
                format: FORMAT,
                object: "every resource".to_owned(),
                field: "metadata.name",
                problem: format!(
                    "it begins with the prefix, and a name in Kubernetes may neither hold _ nor begin or end with -, \
                     as {prefix:?} does"
                ),
            });
        }
        let domain = topology.spec.choices().js_domain.as_deref();
        let resource = |kind: &str, name: String, spec: Yaml| document(&resource(kind, name, domain, spec));
        let mut documents = Vec::new();
        for partition in &topology.partitions {
            let index = partition.index;
            documents.push(resource("Stream", format!("{prefix}-ingest-{index}"), stream(&partition.stream, true)));
            for (shard, config) in partition.shards.iter().enumerate() {
                let spec = consumer(&partition.stream.name, config);
                documents.push(resource("Consumer", format!("{prefix}-ingest-{index}-{shard}"), spec));
            }
        }
        documents.push(resource("Stream", format!("{prefix}-history"), stream(&topology.history, false)));
        documents.push(resource("Stream", format!("{prefix}-dlq"), stream(&topology.dead_letters, false)));
        documents.push(resource("KeyValue", format!("{prefix}-coord"), bucket(&topology.bucket)));
        let mut lines = header(topology, FORMAT);
        lines.push("The documents may be applied in any order. KeyValue needs nack's control-loop mode.".to_owned());
        let text = commented(&lines) + "---\n" + &documents.join("---\n");
        Ok(vec![File { name: "wavehouse.yaml".to_owned(), text, executable: false }])
    }
}

fn resource(kind: &str, name: String, domain: Option<&str>, spec: Yaml) -> Yaml {
    let spec = match (spec, domain) {
        (Yaml::Map(mut entries), Some(domain)) => {
            entries.push(("jsDomain".to_owned(), Yaml::text(domain)));
            Yaml::Map(entries)
        }
        (spec, _) => spec,
    };
    Yaml::map([
        ("apiVersion", Yaml::text("jetstream.nats.io/v1beta2")),
        ("kind", Yaml::text(kind)),
        ("metadata", Yaml::map([("name", Yaml::text(name))])),
        ("spec", spec),
    ])
}

/// `keep`: deleting the resource does not delete the stream, which may hold rows.
fn stream(config: &StreamConfig, keep: bool) -> Yaml {
    // every field by name: a new one does not compile before this format can say it
    let StreamConfig {
        name,
        subjects,
        retention,
        discard,
        discard_new_per_subject,
        max_bytes,
        max_msgs_per_subject,
        max_age,
        storage,
        num_replicas,
        duplicate_window,
        allow_direct,
        allow_rollup_hdrs,
        deny_delete,
        deny_purge,
        republish,
        metadata,
    } = config;
    let mut spec = vec![
        ("name", Yaml::text(name)),
        ("subjects", Yaml::texts(subjects)),
        ("retention", Yaml::text(retention.name())),
        ("discard", Yaml::text(discard.name())),
        ("discardPerSubject", Yaml::Flag(*discard_new_per_subject)),
        ("maxBytes", Yaml::Number(*max_bytes)),
        ("maxMsgsPerSubject", Yaml::Number(*max_msgs_per_subject)),
    ];
    if !max_age.is_zero() {
        spec.push(("maxAge", Yaml::text(show_span(*max_age))));
    }
    spec.push(("storage", Yaml::text(*storage)));
    spec.push(("replicas", Yaml::Number((*num_replicas).into())));
    if let Some(window) = duplicate_window {
        spec.push(("duplicateWindow", Yaml::text(show_span(*window))));
    }
    spec.push(("allowDirect", Yaml::Flag(*allow_direct)));
    spec.push(("allowRollup", Yaml::Flag(*allow_rollup_hdrs)));
    spec.push(("denyDelete", Yaml::Flag(*deny_delete)));
    spec.push(("denyPurge", Yaml::Flag(*deny_purge)));
    if let Some(republish) = republish {
        let ends = [("source", Yaml::text(&republish.src)), ("destination", Yaml::text(&republish.dest))];
        spec.push(("republish", Yaml::map(ends)));
    }
    if !metadata.is_empty() {
        spec.push(("metadata", Yaml::map(metadata.iter().map(|(key, value)| (key, Yaml::text(value))))));
    }
    if keep {
        spec.push(("preventDelete", Yaml::Flag(true)));
    }
    Yaml::map(spec)
}

fn consumer(stream: &str, config: &ConsumerConfig) -> Yaml {
    let ConsumerConfig {
        name: _, // the same as durable_name
        durable_name,
        filter_subject,
        deliver_policy,
        ack_policy,
        ack_wait,
        max_deliver,
        max_ack_pending,
        max_waiting,
        replay_policy,
        priority_policy,
        priority_groups,
        priority_timeout,
    } = config;
    Yaml::map([
        ("streamName", Yaml::text(stream)),
        ("durableName", Yaml::text(durable_name)),
        ("filterSubject", Yaml::text(filter_subject)),
        ("deliverPolicy", Yaml::text(*deliver_policy)),
        ("ackPolicy", Yaml::text(*ack_policy)),
        ("ackWait", Yaml::text(show_span(*ack_wait))),
        ("maxDeliver", Yaml::Number(*max_deliver)),
        ("maxAckPending", Yaml::Number(*max_ack_pending)),
        ("maxWaiting", Yaml::Number(*max_waiting)),
        ("replayPolicy", Yaml::text(*replay_policy)),
        ("priorityPolicy", Yaml::text(*priority_policy)),
        ("priorityGroups", Yaml::texts(priority_groups)),
        ("pinnedTtl", Yaml::text(show_span(*priority_timeout))),
        ("preventDelete", Yaml::Flag(true)),
    ])
}

/// nack makes every bucket with direct reads.
fn bucket(config: &Bucket) -> Yaml {
    let Bucket { name, history, replicas } = config;
    Yaml::map([
        ("bucket", Yaml::text(name)),
        ("history", Yaml::Number((*history).into())),
        ("storage", Yaml::text("file")),
        ("replicas", Yaml::Number((*replicas).into())),
    ])
}
