//! Whether the server lets us hear what we need. A refused subscription is silent for ever after: its subscriber waits, and
//! nothing says why.

use bytes::Bytes;
use std::time::Duration;
use wh_nats::{Connection, Kind};
use wh_topology::{Finding, ObserveError, Rights, Role, Severity, Spec};
use wh_types::Class;

/// How long an answer may take that shows that answers come.
const ANSWER: Duration = Duration::from_millis(500);
/// A refusal comes before the answer of a request after it, and is noted in passing: so long later at most.
const NOTED: Duration = Duration::from_millis(50);

/// Whether answers reach us at all. Without that every request waits for its whole time, as with a server that is slow.
///
/// # Errors
/// Denied: the subject of our answers is refused.
pub(super) async fn inbox(connection: &Connection) -> Result<(), ObserveError> {
    let inboxes = format!("{}.", connection.options().inbox_prefix);
    let refused = connection.refusals().since(0);
    let Some(refused) = refused.iter().rfind(|one| one.subscription && one.subject.starts_with(&inboxes)) else {
        return Ok(());
    };
    // it may have been allowed since
    let asked = connection.request(&connection.api_subject("INFO"), None, Bytes::new(), ANSWER).await;
    match asked {
        Err(error) if *error.kind() == Kind::Timeout => Err(ObserveError {
            class: Class::Denied,
            what: format!(
                "no answer can reach us, because the server refuses us to subscribe to {}: `mq.nats.subject_prefix` (or \
                 `mq.nats.inbox_prefix`) is not the one that this user's permissions were printed for",
                refused.subject
            ),
            source: Some(Box::new(error)),
        }),
        _ => Ok(()),
    }
}

/// What a process of this role hears beside answers, and is refused: subscribed to, and given up at once.
///
/// # Errors
/// The server did not answer: nothing can be said.
pub(super) async fn refused(connection: &Connection, spec: &Spec, role: Role) -> Result<Vec<Finding>, ObserveError> {
    let unread = |error: wh_nats::Error| ObserveError {
        class: error.class(),
        what: format!("cannot probe what this user may hear: {error}"),
        source: Some(Box::new(error)),
    };
    let (names, refusals) = (spec.names(), connection.refusals());
    let (history, leases, marks) = (names.history_subjects(), names.lease_subjects(), names.progress_subjects());
    let serves = role.serves();
    let wanted = [serves.then_some(history), role.ingests().then_some(leases), serves.then_some(marks)];
    let (mut findings, before, mut open) = (Vec::new(), refusals.last(), Vec::new());
    for subject in wanted.into_iter().flatten() {
        open.push(connection.subscribe(&subject).await.map_err(unread)?);
    }
    let heard = connection.round_trip().await;
    for subscription in open {
        if heard.is_ok() && refusals.wait(subscription.subject(), before, NOTED).await {
            findings.push(Finding {
                severity: Severity::Required,
                rule: "user.subscriptions",
                object: format!("user of role {role}"),
                field: "permissions",
                seen: format!("the server refuses us to subscribe to {}", subscription.subject()),
                needed: "the rights of this role".to_owned(),
                fix: Rights::new(spec, role).made_by().to_owned(),
            });
        }
        subscription.unsubscribe().await;
    }
    heard.map_err(unread)?;
    Ok(findings)
}
