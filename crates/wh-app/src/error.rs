//! Why the process could not start or go on. Each says what to look at.

use crate::{DataDirError, ListenError, PipesError};
use std::{fmt::Write, path::PathBuf};

/// It could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The port.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The data folder.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The queue in it.
    #[error("the queue in {} cannot be opened", path.display())]
    Queue {
        /// Its folder.
        path: PathBuf,
        /// Why.
        source: wh_mq::Error,
    },
    /// The connection to NATS: what it is given cannot work. A server that does not answer is no error of this kind.
    #[error("mq.nats cannot be used")]
    Nats(#[source] wh_nats::Error),
    /// No NATS server answered in time, or what is on it cannot be worked on.
    #[error(transparent)]
    Topology(wh_mq::nats::boot::Unsound),
    /// The queue on NATS.
    #[error("the queue on NATS cannot be opened")]
    Broker(#[source] wh_mq::Error),
    /// The leases by which processes share units.
    #[error("coord.nats cannot be used")]
    Leases(#[source] wh_coord::Error),
    /// The file of pipes.
    #[error(transparent)]
    Pipes(#[from] PipesError),
    /// The store of ids.
    #[error("dedupe cannot be used")]
    Dedupe(#[source] wh_dedupe::Error),
    /// The cache of answers: what is configured can never be used. One that does not answer is no error.
    #[error("cache cannot be used")]
    Cache(#[source] wh_cache::Error),
    /// A ClickHouse that cannot be meant. One that does not answer is no error.
    #[error("tenant_defaults.clickhouse cannot be used")]
    ClickHouse(#[source] wh_clickhouse::Error),
    /// A secret's file that was there a moment ago.
    #[error("a secret cannot be read")]
    Secret(#[from] wh_types::SecretFileError),
}

impl StartError {
    /// Whether room on the disk is all that is missing: then the process waits for it.
    #[must_use]
    pub fn no_space(&self) -> bool {
        match self {
            Self::DataDir(error) => error.no_space(),
            Self::Queue { source, .. } => matches!(source.kind(), wh_mq::Kind::NoSpace),
            Self::Listen(_)
            | Self::Nats(_)
            | Self::Topology(_)
            | Self::Broker(_)
            | Self::Leases(_)
            | Self::Pipes(_)
            | Self::Dedupe(_)
            | Self::Cache(_)
            | Self::ClickHouse(_)
            | Self::Secret(_) => false,
        }
    }
}

/// It could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The queue, after its disk had room again.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A unit's delivery ended for good.
    #[error("the ingest worker ended")]
    Worker(#[source] wh_mq::Error),
    /// A task of ours panicked; the log has the place.
    #[error("{0} panicked")]
    Panicked(&'static str),
}

/// An error with its causes, in one line. What was said already is left out: a cause whose words are there, and what a
/// cause begins with that the line begins with, like the server's address.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        for part in new_parts(&line, &cause.to_string()) {
            if write!(line, ": {part}").is_err() {
                break;
            }
        }
        next = cause.source();
    }
    line
}

/// The parts of a cause, between `: `, that a line does not end with or have whole.
fn new_parts(line: &str, cause: &str) -> Vec<String> {
    let said: Vec<&str> = line.split(": ").collect();
    // a vendor's prefix says nothing
    let parts = cause.split(": ").filter(|part| *part != "nats");
    let mut new: Vec<&str> = Vec::new();
    for part in parts {
        if !said.contains(&part) && !new.contains(&part) {
            new.push(part);
        }
    }
    if line.contains(cause) { Vec::new() } else { new.into_iter().map(str::to_owned).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Said(&'static str, #[source] Option<Box<Said>>);

    #[test]
    fn nothing_is_said_twice() {
        let text = |words: &[&'static str]| {
            let chain = words.iter().rev().fold(None, |cause, words| Some(Box::new(Said(words, cause))));
            with_causes(&*chain.unwrap())
        };
        assert_eq!(text(&["it cannot be opened", "no such file"]), "it cannot be opened: no such file");
        assert_eq!(text(&["cannot: no such file", "no such file"]), "cannot: no such file");
        let refused = "nats://h:1: the server refuses the connection to this user: authorization violation: nats: authorization violation";
        assert_eq!(
            text(&["nats://h:1: not connected", refused]),
            "nats://h:1: not connected: the server refuses the connection to this user: authorization violation"
        );
    }
}
