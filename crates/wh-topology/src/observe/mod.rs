//! The port through which a topology is seen, and what is seen. Nothing here asks a server.

mod captured;
mod fields;
mod kinds;
mod read;

pub use captured::{Captured, CapturedError};
pub use fields::Fields;
pub(crate) use fields::{is_zero, show};

use crate::{Role, Spec, subject::overlap};
use async_trait::async_trait;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};
use wh_types::Class;

/// Sees what is there.
///
/// # Contract
/// What could not be read is said as not read ([`Observed::unread_streams`], [`Observed::unread_consumers`]) and never
/// left out: a verifier takes what is neither there nor unread as missing. Nothing is changed.
#[async_trait]
pub trait Observer: Debug + Send + Sync {
    /// Everything that a process of this role checks.
    ///
    /// # Errors
    /// [`ObserveError`]: nothing can be said.
    ///
    /// # Cancel safety
    /// Safe: nothing happened.
    async fn observe(&self, spec: &Spec, role: Role) -> Result<Observed, ObserveError>;
}

/// Nothing can be said of the topology.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct ObserveError {
    /// What kind of failure it is.
    pub class: Class,
    /// What could not be done.
    pub what: String,
    /// Why.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Every server that was met.
    pub servers: Vec<Server>,
    /// Streams, by name.
    pub streams: BTreeMap<String, Stream>,
    /// Streams that a list named. One that is in no other field was gone when it was asked for.
    pub listed_streams: BTreeSet<String>,
    /// Streams that gave no answer.
    pub unread_streams: BTreeSet<String>,
    /// Consumers, by stream and name.
    pub consumers: BTreeMap<(String, String), Consumer>,
    /// Consumers that gave no answer, by stream and name.
    pub unread_consumers: BTreeSet<(String, String)>,
    /// Requests that the server refused us.
    pub refused: Vec<Refused>,
    /// Other processes that say which counts they run with.
    pub peers: Vec<Peer>,
    /// How many streams the lists said there are.
    pub(crate) stream_total: u64,
    /// How many consumers the lists said a stream has.
    pub(crate) consumer_totals: BTreeMap<String, u64>,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// What it calls itself.
    pub name: String,
    /// Its release.
    pub version: String,
}

/// A stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// Its configuration.
    pub config: Fields,
    /// When it was made, as the server writes it.
    pub created: String,
    /// What it holds.
    pub state: State,
}

/// What a stream holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Messages.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
    /// The newest message's sequence.
    pub last_seq: u64,
    /// How many consumers there are on it.
    pub consumers: u64,
}

/// A consumer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Consumer {
    /// Its configuration.
    pub config: Fields,
    /// Messages it has not delivered.
    pub num_pending: u64,
    /// Messages it has delivered and that are not settled.
    pub num_ack_pending: u64,
}

/// A request that a server refused for want of a right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    /// The stream it was about.
    pub stream: String,
    /// The durable it was about.
    pub durable: String,
    /// The subject of the request.
    pub subject: String,
}

/// Another process, as its lease describes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// What it is called.
    pub name: String,
    /// Its N.
    pub partitions: u32,
    /// Its V.
    pub shards: u32,
}

impl Observed {
    /// Whether everything that was asked for was read. What was not is neither right nor wrong: a process boots only on
    /// a complete reading, and leaves its judgement as it was on an incomplete one.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unread_streams.is_empty() && self.unread_consumers.is_empty()
    }

    /// Why the lists that were read are not whole: a page is missing. `None` where they are.
    #[must_use]
    pub fn missing_pages(&self) -> Option<String> {
        let streams = self.streams.keys().chain(&self.listed_streams).chain(&self.unread_streams);
        let found = streams.collect::<BTreeSet<_>>().len() as u64;
        if found < self.stream_total {
            return Some(format!("hold {found} of {} streams: a page of their list is missing", self.stream_total));
        }
        self.consumer_totals.iter().find_map(|(stream, total)| {
            let of = |(s, name): &&(String, String)| (s == stream).then(|| name.clone());
            let names = self.consumers.keys().chain(&self.unread_consumers);
            let found = names.filter_map(|key| of(&key)).collect::<BTreeSet<_>>().len() as u64;
            let text = format!("hold {found} of {total} consumers of {stream}: a page of their list is missing");
            (found < *total).then_some(text)
        })
    }

    /// Why nothing can be said of the durables that a process of this role checks: a stream has more consumers than were
    /// read or named as unread. `None` where that is not so.
    #[must_use]
    pub fn unlisted_consumers(&self, spec: &Spec, role: Role) -> Option<String> {
        let pattern = spec.names().ingest_subjects();
        let partition = |stream: &Stream| stream.config.texts("subjects").iter().any(|own| overlap(own, &pattern));
        let checked = self.streams.iter().filter(|(_, stream)| role.ingests() && partition(stream));
        checked.into_iter().find_map(|(name, stream)| {
            let keys = self.consumers.keys().chain(&self.unread_consumers);
            let found = keys.filter(|(of, _)| of == name).collect::<BTreeSet<_>>().len() as u64;
            let (total, found_words) =
                (stream.state.consumers, if found == 0 { "none".into() } else { found.to_string() });
            let list = if found == 0 { "their list is missing" } else { "a page of their list is missing" };
            (found < total).then(|| format!("hold {found_words} of the {total} consumers of {name}: {list}"))
        })
    }

    /// Whether every stream that was named was read.
    pub(crate) fn is_complete_for_streams(&self) -> bool {
        self.unread_streams.is_empty() && self.listed_streams.iter().all(|name| self.streams.contains_key(name))
    }

    /// The shortest and the longest duplicate window of these streams; `None` where there is none of them.
    #[must_use]
    pub fn duplicate_windows<'a>(
        &self,
        streams: impl IntoIterator<Item = &'a str>,
    ) -> Option<(std::time::Duration, std::time::Duration)> {
        let seen = streams.into_iter().filter_map(|name| self.streams.get(name));
        let windows: Vec<_> = seen.map(|stream| stream.config.span("duplicate_window")).collect();
        Some((*windows.iter().min()?, *windows.iter().max()?))
    }
}
