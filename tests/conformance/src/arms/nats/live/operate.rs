//! What only an operator may do: create a topology, empty it, delete it.

use super::clean;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::time::Duration;
use wh_nats::{Api, Connection};
use wh_topology::{Spec, Topology, defaults, renderer};

const TIMEOUT: Duration = Duration::from_secs(10);

async fn ask(api: &Api, tail: &str, body: &Value) -> anyhow::Result<Value> {
    api.request_json(tail, body, TIMEOUT).await.with_context(|| tail.to_owned())
}

fn nanos(span: Duration) -> Value {
    json!(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

/// Creates the topology from our own files for the command line; refuses one that is there.
pub(super) async fn create(connection: &Connection, spec: Spec, duplicate_window: Duration) -> anyhow::Result<()> {
    let topology = Topology::new(spec)?;
    let api = connection.api();
    for stream in topology.streams() {
        match api.stream_info(&stream.name).await {
            Ok(_) => {
                bail!("the stream {} exists: the suite creates its own topology and touches no other", stream.name)
            }
            Err(error) if error.is_gone() => {}
            Err(error) => return Err(error.into()),
        }
    }
    for file in renderer("nats-cli").context("no renderer of that name")?.render(&topology)? {
        let Some(object) = file.name.strip_suffix(".json") else { continue };
        let mut config: Value = serde_json::from_str(&file.text)?;
        if let Some((stream, durable)) = object.split_once('.') {
            config["priority_timeout"] = nanos(defaults::MIN_PINNED_TTL);
            let filter = config["filter_subject"].as_str().context("a durable has a filter")?.to_owned();
            let body = json!({"stream_name": stream, "config": config, "action": "create"});
            ask(&api, &format!("CONSUMER.CREATE.{stream}.{durable}.{filter}"), &body).await?;
        } else {
            if config["retention"] == "workqueue" {
                config["duplicate_window"] = nanos(duplicate_window);
                // between cases they are emptied
                (config["deny_purge"], config["deny_delete"]) = (json!(false), json!(false));
            }
            ask(&api, &format!("STREAM.CREATE.{object}"), &config).await?;
        }
    }
    Ok(())
}

/// Removes all messages but the history's, which reaches back to the first block so, and every pin.
pub(super) async fn empty(connection: &Connection, spec: &Spec) -> anyhow::Result<()> {
    let (api, names) = (connection.api(), spec.names());
    for stream in [&names.partition_stream(0), &names.dead_letters] {
        ask(&api, &format!("STREAM.PURGE.{stream}"), &Value::Null).await?;
    }
    clean::free(connection, spec, &names.partition_stream(0)).await
}

/// Changes how long a block may stay unsettled.
pub(super) async fn set_ack_wait(connection: &Connection, spec: &Spec, ack_wait: Duration) -> anyhow::Result<()> {
    let (api, stream) = (connection.api(), spec.names().partition_stream(0));
    for shard in 0..spec.choices().shards {
        let durable = spec.names().durable(shard);
        let mut config = api.consumer_info(&stream, &durable).await?.config;
        config["ack_wait"] = nanos(ack_wait);
        let filter = spec.names().shard_filter(0, shard);
        let body = json!({"stream_name": stream, "config": config, "action": "update"});
        ask(&api, &format!("CONSUMER.CREATE.{stream}.{durable}.{filter}"), &body).await?;
    }
    Ok(())
}

/// Deletes the topology.
pub(super) async fn delete(connection: &Connection, spec: &Spec) -> anyhow::Result<()> {
    let (api, names) = (connection.api(), spec.names());
    for stream in [&names.partition_stream(0), &names.history, &names.dead_letters, &names.bucket_stream()] {
        ask(&api, &format!("STREAM.DELETE.{stream}"), &Value::Null).await?;
    }
    Ok(())
}
