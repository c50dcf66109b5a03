//! What the last check came to, for readiness. It is not the connection's state.

use super::{check::Report, metrics};
use std::{collections::BTreeSet, sync::Arc};
use tokio::sync::watch;
use wh_topology::{Finding, Severity};

/// What is believed of the topology.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether this process may work on it.
    pub sound: bool,
    /// Why not, in one line.
    pub reason: Option<String>,
    /// What the last check found, recommended findings too.
    pub findings: Arc<[Finding]>,
}

/// The verdict, to be read and watched.
#[derive(Clone, Debug)]
pub struct Health(watch::Receiver<Verdict>);

impl Health {
    pub(super) fn new(verdict: watch::Receiver<Verdict>) -> Self {
        Self(verdict)
    }

    /// The verdict now.
    #[must_use]
    pub fn now(&self) -> Verdict {
        self.0.borrow().clone()
    }

    /// Follows it.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Verdict> {
        self.0.clone()
    }
}

impl Verdict {
    pub(super) fn of(report: &Report) -> Self {
        let required: Vec<_> = report.of(Severity::Required).collect();
        let reason = required.first().map(|first| {
            let more = required.len() - 1;
            let rest = if more == 0 { String::new() } else { format!(", and {more} more") };
            format!("{}: {}: {}{rest}", first.object, first.field, first.seen)
        });
        Self { sound: required.is_empty(), reason, findings: report.findings.clone().into() }
    }

    /// The same in doubt: something was seen that only a wrong topology explains.
    pub(super) fn doubted(&self, why: String) -> Self {
        Self { sound: false, reason: Some(why), findings: self.findings.clone() }
    }
}

/// Puts a verdict in the gauge and before readiness, and says what changed.
pub(super) fn tell(to: &watch::Sender<Verdict>, new: Verdict, told: &mut BTreeSet<String>) {
    metrics::sound(new.sound);
    warn_recommended(&new.findings, told);
    let before = to.send_replace(new.clone());
    let changed = required(&before) != required(&new);
    if new.sound && !before.sound {
        tracing::info!("the topology on the NATS servers is sound again");
    } else if !new.sound && (before.sound || changed) {
        let list: String = required(&new).iter().map(|finding| format!("\n{finding}")).collect();
        tracing::error!("the topology on the NATS servers is wrong: {}{list}", new.reason.as_deref().unwrap_or(""));
    }
}

fn required(verdict: &Verdict) -> Vec<&Finding> {
    verdict.findings.iter().filter(|finding| finding.severity == Severity::Required).collect()
}

/// Logs recommended findings, each once for as long as it stands.
pub(super) fn warn_recommended(findings: &[Finding], told: &mut BTreeSet<String>) {
    let before = std::mem::take(told);
    note_recommended(findings, told);
    for new in told.difference(&before) {
        tracing::warn!("topology: {new}");
    }
}

/// Takes recommended findings as logged.
pub(super) fn note_recommended(findings: &[Finding], told: &mut BTreeSet<String>) {
    let recommended = findings.iter().filter(|finding| finding.severity == Severity::Recommended);
    *told = recommended.map(ToString::to_string).collect();
}
