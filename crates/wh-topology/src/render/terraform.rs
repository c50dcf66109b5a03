//! Resources for Terraform's provider `nats-io/jetstream`, in releases that know priority groups (after 0.2.1).
//!
//! The provider counts in whole seconds and knows no JetStream domain; what it cannot say is refused.

use super::{
    File, Renderer, Unsayable, commented,
    hcl::{Value, block},
    header,
};
use crate::{
    Topology,
    config::{Bucket, ConsumerConfig, StreamConfig},
    span::show_span,
};
use std::time::Duration;

/// The backend for Terraform.
#[derive(Clone, Copy, Debug)]
pub struct Terraform;

const FORMAT: &str = "terraform";

const REQUIRED: &str = r#"terraform {
  required_providers {
    jetstream = {
      source  = "nats-io/jetstream"
      version = "> 0.2.1"
    }
  }
}
"#;

impl Renderer for Terraform {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn render(&self, topology: &Topology) -> Result<Vec<File>, Unsayable> {
        if let Some(domain) = &topology.spec.choices().js_domain {
            return Err(unsayable("every resource", "js_domain", format!("the provider knows none, not {domain:?}")));
        }
        let mut blocks = vec![REQUIRED.to_owned()];
        for partition in &topology.partitions {
            let local = format!("ingest_{}", partition.index);
            blocks.push(stream(&local, &partition.stream, true)?);
            for (shard, config) in partition.shards.iter().enumerate() {
                blocks.push(consumer(&format!("{local}_{shard}"), &local, config)?);
            }
        }
        blocks.push(stream("history", &topology.history, false)?);
        blocks.push(stream("dead_letters", &topology.dead_letters, false)?);
        blocks.push(bucket(&topology.bucket));
        let mut lines = header(topology, FORMAT);
        lines.push("Give the provider its servers and credentials in a file of your own.".to_owned());
        let text = commented(&lines) + "\n" + &blocks.join("\n");
        Ok(vec![File { name: "wavehouse.tf".to_owned(), text, executable: false }])
    }
}

fn unsayable(object: &str, field: &'static str, problem: String) -> Unsayable {
    Unsayable { format: FORMAT, object: object.to_owned(), field, problem }
}

fn seconds(object: &str, field: &'static str, span: Duration) -> Result<Value, Unsayable> {
    let whole = i64::try_from(span.as_secs()).ok().filter(|_| span.subsec_nanos() == 0);
    let problem = || unsayable(object, field, format!("{} is no whole number of seconds", show_span(span)));
    whole.map(Value::number).ok_or_else(problem)
}

fn stream(local: &str, config: &StreamConfig, keep: bool) -> Result<String, Unsayable> {
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
    let mut attributes = vec![
        ("name", Value::text(name)),
        ("subjects", Value::texts(subjects)),
        ("retention", Value::text(retention.name())),
        ("discard", Value::text(discard.name())),
        ("discard_new_per_subject", Value::flag(*discard_new_per_subject)),
        ("max_bytes", Value::number(*max_bytes)),
        ("max_msgs_per_subject", Value::number(*max_msgs_per_subject)),
        ("max_age", seconds(name, "max_age", *max_age)?),
        ("storage", Value::text(storage)),
        ("replicas", Value::number(*num_replicas)),
    ];
    if let Some(window) = duplicate_window {
        attributes.push(("duplicate_window", seconds(name, "duplicate_window", *window)?));
    }
    attributes.push(("allow_direct", Value::flag(*allow_direct)));
    attributes.push(("allow_rollup_hdrs", Value::flag(*allow_rollup_hdrs)));
    attributes.push(("deny_delete", Value::flag(*deny_delete)));
    attributes.push(("deny_purge", Value::flag(*deny_purge)));
    if let Some(republish) = republish {
        attributes.push(("republish_source", Value::text(&republish.src)));
        attributes.push(("republish_destination", Value::text(&republish.dest)));
    }
    let attributes = owned(attributes);
    let mut blocks = Vec::new();
    if !metadata.is_empty() {
        let keys = metadata.iter().map(|(key, value)| (format!("\"{key}\""), Value::text(value)));
        blocks.push(block("metadata =", &keys.collect::<Vec<_>>(), &[]));
    }
    if keep {
        blocks.push(keep_it());
    }
    Ok(block(&format!("resource \"jetstream_stream\" \"{local}\""), &attributes, &blocks))
}

fn consumer(local: &str, stream: &str, config: &ConsumerConfig) -> Result<String, Unsayable> {
    let ConsumerConfig {
        name,
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
    if *deliver_policy != "all" {
        return Err(unsayable(name, "deliver_policy", format!("only \"all\" is rendered, not {deliver_policy:?}")));
    }
    let attributes = owned(vec![
        ("stream_id", Value::expression(format!("jetstream_stream.{stream}.id"))),
        ("durable_name", Value::text(durable_name)),
        ("filter_subject", Value::text(filter_subject)),
        ("deliver_all", Value::flag(true)),
        ("ack_policy", Value::text(ack_policy)),
        ("ack_wait", seconds(name, "ack_wait", *ack_wait)?),
        ("max_delivery", Value::number(*max_deliver)),
        ("max_ack_pending", Value::number(*max_ack_pending)),
        ("max_waiting", Value::number(*max_waiting)),
        ("replay_policy", Value::text(replay_policy)),
        ("priority_policy", Value::text(priority_policy)),
        ("priority_groups", Value::texts(priority_groups)),
        ("priority_timeout", seconds(name, "priority_timeout", *priority_timeout)?),
    ]);
    Ok(block(&format!("resource \"jetstream_consumer\" \"{local}\""), &attributes, &[keep_it()]))
}

/// The provider makes every bucket on files and with direct reads.
fn bucket(config: &Bucket) -> String {
    let Bucket { name, history, replicas } = config;
    let attributes = owned(vec![
        ("name", Value::text(name)),
        ("history", Value::number(*history)),
        ("ttl", Value::number(0)),
        ("replicas", Value::number(*replicas)),
    ]);
    block("resource \"jetstream_kv_bucket\" \"coord\"", &attributes, &[])
}

fn keep_it() -> String {
    block("lifecycle", &owned(vec![("prevent_destroy", Value::flag(true))]), &[])
}

fn owned(attributes: Vec<(&str, Value)>) -> Vec<(String, Value)> {
    attributes.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
