//! One check: the topology is read, verified, and for a process that ingests its rights are probed.

use super::{live::Live, probe, subscriptions};
use std::{fmt, sync::Arc};
use wh_nats::Connection;
use wh_topology::{Finding, Names, ObserveError, Observer as _, Peer, Refused, Role, Severity, Spec, verify};
use wh_types::Class;

/// How this process checks.
#[derive(Clone)]
pub struct Check {
    connection: Connection,
    spec: Spec,
    role: Role,
    peers: Arc<dyn Fn() -> Vec<Peer> + Send + Sync>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("connection", &self.connection).field("role", &self.role).finish_non_exhaustive()
    }
}

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is wrong, required findings first.
    pub findings: Vec<Finding>,
    /// Whether everything was read and every probe answered. What was not read is neither right nor wrong.
    pub complete: bool,
}

/// What the probes came to.
#[derive(Debug, Default)]
pub(super) struct Probed {
    pub(super) refused: Vec<Refused>,
    pub(super) unanswered: Vec<Refused>,
}

impl Report {
    /// Whether a process may run: everything was read and nothing required is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.complete && self.of(Severity::Required).next().is_none()
    }

    /// The findings of a severity.
    pub fn of(&self, severity: Severity) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.severity == severity)
    }
}

impl Check {
    /// Checks for a process of this role, over this connection.
    #[must_use]
    pub fn new(connection: &Connection, spec: &Spec, role: Role) -> Self {
        Self { connection: connection.clone(), spec: spec.clone(), role, peers: Arc::new(Vec::new) }
    }

    /// Other processes and the counts they run with, as the coordinator last saw them: one that differs is a required
    /// finding.
    #[must_use]
    pub fn with_peers(mut self, peers: impl Fn() -> Vec<Peer> + Send + Sync + 'static) -> Self {
        self.peers = Arc::new(peers);
        self
    }

    /// The connection it asks over.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Reads, verifies and probes. An api process reads and probes no durable.
    ///
    /// # Errors
    /// [`ObserveError`]: nothing can be said, as while no server is connected, or where a request that reading needs is
    /// refused.
    ///
    /// # Cancel safety
    /// Safe: nothing happened.
    pub async fn run(&self) -> Result<Report, ObserveError> {
        // without its inbox every request below would wait for its whole time, and look like a slow server
        subscriptions::inbox(&self.connection).await?;
        let observed = Live::new(self.connection.clone()).observe(&self.spec, self.role).await;
        if observed.is_err() {
            // its refusal may come after the connection is there
            subscriptions::inbox(&self.connection).await?;
        }
        let mut seen = observed?;
        seen.peers = (self.peers)();
        let mut report = Report { findings: verify(&self.spec, self.role, &seen), complete: seen.is_complete() };
        if self.role.ingests() {
            let api = |tail: &str| self.connection.api_subject(tail);
            let probes = probe::probes(&self.spec, &seen, &report.findings, api);
            let probed = probe::ask(&self.connection, probes).await.map_err(|error| ObserveError {
                class: error.class(),
                what: format!("cannot probe what this user may do: {error}"),
                source: Some(Box::new(error)),
            })?;
            if !probed.refused.is_empty() {
                seen.refused = probed.refused;
                report.findings = verify(&self.spec, self.role, &seen);
            }
            report.complete &= probed.unanswered.is_empty();
            report.findings.extend(probed.unanswered.iter().map(unanswered));
        }
        let refused = subscriptions::refused(&self.connection, &self.spec, self.role).await?;
        report.findings.splice(0..0, refused);
        Ok(report)
    }

    /// Why no server is connected; `None` while one is.
    pub(super) fn disconnected(&self) -> Option<Disconnected> {
        let state = self.connection.state();
        (!state.connected).then(|| {
            let urls: Vec<_> = self.connection.options().urls.iter().map(|url| wh_nats::masked(url)).collect();
            Disconnected { urls: urls.join(", "), last_error: state.last_error }
        })
    }
}

/// No server is connected.
pub(super) struct Disconnected {
    pub(super) urls: String,
    pub(super) last_error: Option<String>,
}

/// A probe that got no answer says nothing of the right.
fn unanswered(probe: &Refused) -> Finding {
    Finding {
        severity: Severity::Recommended,
        rule: "consumer.unanswered",
        object: format!("consumer {}", Names::unit(&probe.stream, &probe.durable)),
        field: "permissions",
        seen: format!("no answer to {}", probe.subject),
        needed: "an answer: look again when its leader is elected".to_owned(),
        fix: "nats server report jetstream".to_owned(),
    }
}

/// That nothing was answered in time.
pub(super) fn too_slow() -> ObserveError {
    ObserveError { class: Class::Unavailable, what: "the servers are too slow to be checked".to_owned(), source: None }
}
