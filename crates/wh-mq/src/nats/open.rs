//! Finding the streams and durables. Not judging them.

use super::{
    cursor::epoch,
    error,
    options::Options,
    shared::{Durable, PartitionStream},
};
use crate::{Error, Kind, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use std::{collections::BTreeMap, time::Duration};
use wh_nats::{Connection, ConsumerInfo};

const OP: &str = "open queue";
/// Partitions asked about at once.
const AT_ONCE: usize = 16;

fn missing(what: String) -> Error {
    Error::new(OP, Kind::NotFound(what.into()))
}

/// Every partition, by index.
///
/// # Errors
/// `NotFound`, `Denied`, Unavailable.
pub(super) async fn partitions(connection: &Connection, options: &Options) -> Result<Vec<PartitionStream>> {
    let partitions = 0..options.spec.choices().partitions;
    futures::stream::iter(partitions)
        .map(|index| partition(connection, options, index))
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

async fn partition(connection: &Connection, options: &Options, index: u32) -> Result<PartitionStream> {
    let api = connection.api();
    let subject = options.spec.names().partition_probe(index);
    let mut found = api.stream_names(&subject).await.map_err(|error| error::request(OP, error))?;
    let stream = match (found.pop(), found.is_empty()) {
        (Some(stream), true) => stream,
        (None, _) => return Err(missing(format!("a stream that takes {subject}"))),
        (Some(_), false) => return Err(missing(format!("one stream that takes {subject}: several do, and it"))),
    };
    let state = api.stream_state(&stream).await.map_err(|error| error::request(OP, error))?;
    let created = state.created.parse().map_err(|error| {
        let what = format!("{stream} was made at {:?}, which is no time", state.created);
        Error::new(OP, Kind::Corrupt(what.into())).with_source(error)
    })?;
    let durables = if options.role.ingests() { durables(connection, options, &stream).await? } else { BTreeMap::new() };
    Ok(PartitionStream::new(index, stream.clone(), epoch(&stream, created), durables))
}

/// Partitions beyond the configured count that have durables of ours: what is left in them must be delivered.
///
/// # Errors
/// `Denied`, Unavailable.
pub(super) async fn leftovers(connection: &Connection, options: &Options) -> Result<Vec<PartitionStream>> {
    if !options.role.ingests() {
        return Ok(Vec::new());
    }
    let (api, names) = (connection.api(), options.spec.names());
    let mut found = Vec::new();
    for stream in api.stream_names(&names.ingest_subjects()).await.map_err(|error| error::request(OP, error))? {
        let state = match api.stream_state(&stream).await {
            Ok(state) => state,
            Err(error) if error.is_gone() => continue,
            Err(error) => return Err(error::request(OP, error)),
        };
        let subjects = state.config["subjects"].as_array().into_iter().flatten();
        let index = subjects.filter_map(|subject| names.partition_of(subject.as_str()?)).next();
        let Some(index) = index.filter(|index| *index >= options.spec.choices().partitions) else { continue };
        let list = api.consumer_list(&stream).await.map_err(|error| error::request(OP, error))?;
        let ours = list.infos.iter().filter_map(|info| Some((names.shard_of(&info.name)?, info)));
        let durables: BTreeMap<_, _> = ours.map(|(shard, info)| (shard, durable(info.name.clone(), info))).collect();
        if let Ok(created) = state.created.parse()
            && !durables.is_empty()
        {
            let epoch = epoch(&stream, created);
            found.push(PartitionStream::new(index, stream, epoch, durables));
        }
    }
    Ok(found)
}

async fn durables(connection: &Connection, options: &Options, stream: &str) -> Result<BTreeMap<u32, Durable>> {
    let list = connection.api().consumer_list(stream).await.map_err(|error| error::request(OP, error))?;
    let names = options.spec.names();
    let left = list.infos.iter().filter_map(|info| Some((names.shard_of(&info.name)?, info)));
    let mut durables: BTreeMap<_, _> = left.map(|(shard, info)| (shard, durable(info.name.clone(), info))).collect();
    for shard in 0..options.spec.choices().shards {
        if durables.contains_key(&shard) {
            continue;
        }
        // a list may leave out what did not answer in time
        let name = names.durable(shard);
        match connection.api().consumer_info(stream, &name).await {
            Ok(info) => drop(durables.insert(shard, durable(name, &info))),
            Err(error) if error.is_gone() => return Err(missing(format!("the durable {name} of {stream}"))),
            Err(error) => return Err(error::request(OP, error)),
        }
    }
    Ok(durables)
}

fn durable(name: String, info: &ConsumerInfo) -> Durable {
    let nanos = |field: &str| Duration::from_nanos(info.config[field].as_u64().unwrap_or(0));
    Durable {
        name,
        ack_wait: nanos("ack_wait"),
        pinned_ttl: nanos("priority_timeout"),
        max_ack_pending: info.config["max_ack_pending"].as_u64().unwrap_or(u64::MAX),
    }
}

/// History and dead letters, by name.
///
/// # Errors
/// `NotFound`, `Denied`, Unavailable.
pub(super) async fn streams(connection: &Connection, options: &Options) -> Result<()> {
    let names = options.spec.names();
    for stream in [&names.history, &names.dead_letters] {
        match connection.api().stream_state(stream).await {
            Ok(_) => {}
            Err(error) if error.is_gone() => return Err(missing(format!("the stream {stream}"))),
            Err(error) => return Err(error::request(OP, error)),
        }
    }
    Ok(())
}
