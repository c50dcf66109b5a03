//! Whether the server lets us do what a unit needs, asked with requests that it refuses to carry out: no block is taken,
//! no pin moves, nothing is settled (decision D16).

use super::check::Probed;
use bytes::Bytes;
use futures::StreamExt as _;
use std::{collections::BTreeSet, time::Duration};
use wh_nats::{Connection, Kind};
use wh_topology::{Finding, Names, Observed, Refused, Severity, Spec};

/// Requests on their way at once: the client keeps 128 refusals that were not looked at yet.
const AT_ONCE: usize = 64;
/// How long one may take, whatever the connection's own timeout is: some of them are never answered.
const ANSWER: Duration = Duration::from_secs(2);

/// A pull that is refused under every priority policy, because its heartbeat is too long for it. Without the heartbeat
/// it would take a block from a durable that has no policy.
const PULL: &str = r#"{"expires":1000000000,"idle_heartbeat":1000000000}"#;
/// Names no group.
const UNPIN: &str = "{}";
/// Is no JSON. Any JSON would reset.
const RESET: &str = "{";
/// Is no kind of ack.
const ACK: &str = "?wh-probe";

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    stream: String,
    durable: String,
    pub(super) subject: String,
    body: &'static str,
}

/// Four requests for each shard's durable that is there and whose configuration is right. `api` makes a subject of the
/// JetStream API.
pub(super) fn probes(spec: &Spec, seen: &Observed, findings: &[Finding], api: impl Fn(&str) -> String) -> Vec<Probe> {
    let wrong: BTreeSet<&str> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Required)
        .map(|finding| finding.object.as_str())
        .collect();
    let ours = |durable: &str| spec.names().shard_of(durable).is_some_and(|shard| shard < spec.choices().shards);
    let mut probes = Vec::new();
    for (stream, durable) in seen.consumers.keys().filter(|(_, durable)| ours(durable)) {
        if wrong.contains(format!("consumer {}", Names::unit(stream, durable)).as_str()) {
            continue;
        }
        let of = |verb: &str| api(&format!("CONSUMER.{verb}.{stream}.{durable}"));
        let ack = format!("$JS.ACK.{stream}.{durable}.1.1.1.1.0");
        let asked = [(of("MSG.NEXT"), PULL), (of("UNPIN"), UNPIN), (of("RESET"), RESET), (ack, ACK)];
        probes.extend(asked.map(|(subject, body)| Probe {
            stream: stream.clone(),
            durable: durable.clone(),
            subject,
            body,
        }));
    }
    probes
}

/// Asks all of them. Any answer means that we may; only a refusal means that we may not.
pub(super) async fn ask(connection: &Connection, probes: Vec<Probe>) -> Result<Probed, wh_nats::Error> {
    let one = |probe: Probe| async move {
        let answer = connection.request(&probe.subject, None, Bytes::from_static(probe.body.as_bytes()), ANSWER).await;
        (answer, probe)
    };
    let mut answers = futures::stream::iter(probes).map(one).buffered(AT_ONCE);
    let mut probed = Probed::default();
    while let Some((answer, Probe { stream, durable, subject, .. })) = answers.next().await {
        let Err(error) = answer else { continue };
        let probe = Refused { stream, durable, subject };
        if matches!(error.kind(), Kind::Refused { .. }) {
            probed.refused.push(probe);
        } else if *error.kind() == Kind::Timeout {
            probed.unanswered.push(probe);
        } else if *error.kind() != Kind::NoResponders {
            // none of these says anything; no responders is one that is allowed, and has no leader at the moment
            return Err(error);
        }
    }
    Ok(probed)
}
