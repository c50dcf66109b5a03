//! The topology as a live server answers. Judging it is `wh-topology`'s.

use async_trait::async_trait;
use futures::StreamExt as _;
use std::collections::BTreeSet;
use wh_nats::{Api, Connection, ConsumerList, Error, Kind};
use wh_topology::{ObserveError, Observed, Observer, Role, Server, Spec};
use wh_types::Class;

/// Streams asked about at once.
const AT_ONCE: usize = 16;

/// Sees through a connection.
#[derive(Clone, Debug)]
pub struct Live {
    connection: Connection,
}

impl Live {
    /// Sees through this connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self { connection }
    }

    fn servers(&self) -> Vec<Server> {
        let servers = self.connection.state().servers.into_iter();
        servers.map(|(name, version)| Server { name, version: version.to_string() }).collect()
    }
}

#[async_trait]
impl Observer for Live {
    async fn observe(&self, spec: &Spec, role: Role) -> Result<Observed, ObserveError> {
        let (api, names) = (self.connection.api(), spec.names());
        let mut seen = Observed::default();
        seen.servers = self.servers();
        let ingest = listed(&api, &names.ingest_subjects()).await?;
        let letters = listed(&api, &names.dead_letter_subjects()).await?;
        seen.listed_streams.extend(ingest.iter().chain(&letters).cloned());
        let mut wanted = seen.listed_streams.clone();
        wanted.insert(names.history.clone());
        if role.ingests() {
            wanted.insert(names.bucket_stream());
        }
        streams(&api, wanted, &mut seen).await?;
        if role.ingests() {
            consumers(&api, spec, &ingest, &mut seen).await?;
        }
        match seen.missing_pages().or_else(|| seen.unlisted_consumers(spec, role)) {
            Some(problem) => Err(failed(format!("the answers together {problem}"), Class::Unavailable)),
            None => Ok(seen),
        }
    }
}

async fn listed(api: &Api, subjects: &str) -> Result<BTreeSet<String>, ObserveError> {
    let names = api.stream_names(subjects).await;
    let names = names.map_err(|error| refused(format!("cannot list the streams that take {subjects}"), error))?;
    Ok(names.into_iter().collect())
}

async fn streams(api: &Api, names: BTreeSet<String>, seen: &mut Observed) -> Result<(), ObserveError> {
    let ask = |name: String| async move { (api.stream_info(&name).await, name) };
    let mut infos = futures::stream::iter(names).map(ask).buffered(AT_ONCE);
    while let Some((info, name)) = infos.next().await {
        match heard(info) {
            Heard::Answer(info) => read(&name, seen.read(&info.to_string()))?,
            Heard::Gone => {}
            Heard::Silence => drop(seen.unread_streams.insert(name)),
            Heard::Failure(error) => return Err(refused(format!("cannot look at stream {name}"), error)),
        }
    }
    Ok(())
}

async fn consumers(
    api: &Api,
    spec: &Spec,
    streams: &BTreeSet<String>,
    seen: &mut Observed,
) -> Result<(), ObserveError> {
    let ask = |name: String| async move { (api.consumer_list(&name).await, name) };
    let present: Vec<String> = streams.iter().filter(|name| seen.streams.contains_key(*name)).cloned().collect();
    let mut lists = futures::stream::iter(present).map(ask).buffered(AT_ONCE);
    while let Some((list, stream)) = lists.next().await {
        match heard(list) {
            Heard::Answer(ConsumerList { pages, .. }) => {
                for page in pages {
                    read(&stream, seen.read_consumers(&stream, &page))?;
                }
            }
            Heard::Gone => {}
            Heard::Silence => {
                let durables = (0..spec.choices().shards).map(|shard| spec.names().durable(shard));
                seen.unread_consumers.extend(durables.map(|durable| (stream.clone(), durable)));
            }
            Heard::Failure(error) => return Err(refused(format!("cannot list the consumers of {stream}"), error)),
        }
    }
    Ok(())
}

/// What became of a question about one object.
enum Heard<T> {
    Answer(T),
    /// The server says that it does not exist.
    Gone,
    /// Nobody leads it at the moment: it was not read, and is not missing.
    Silence,
    /// Nothing can be said of anything.
    Failure(Error),
}

fn heard<T>(answer: Result<T, Error>) -> Heard<T> {
    match answer {
        Ok(answer) => Heard::Answer(answer),
        Err(error) if error.is_gone() => Heard::Gone,
        Err(error) => {
            let nobody = matches!(error.kind(), Kind::Timeout | Kind::NoResponders);
            let silent = nobody || error.api().is_some_and(|api| api.class() == Class::Unavailable);
            if silent { Heard::Silence } else { Heard::Failure(error) }
        }
    }
}

fn read(name: &str, read: Result<(), String>) -> Result<(), ObserveError> {
    read.map_err(|problem| failed(format!("the answer about {name} {problem}"), Class::Unavailable))
}

fn failed(what: String, class: Class) -> ObserveError {
    ObserveError { class, what, source: None }
}

fn refused(what: String, error: Error) -> ObserveError {
    ObserveError { class: error.class(), what: format!("{what}: {error}"), source: Some(Box::new(error)) }
}
