//! What is asked of a server, without one.

use super::probe;
use wh_topology::{Choices, Consumer, Finding, Observed, Severity, Spec};

fn spec() -> Spec {
    Spec::new(Choices { shards: 2, ..Choices::default() }).unwrap()
}

fn seen(durables: &[&str]) -> Observed {
    let mut seen = Observed::default();
    seen.consumers = durables.iter().map(|name| (("S".to_owned(), (*name).to_owned()), Consumer::default())).collect();
    seen
}

fn subjects(seen: &Observed, findings: &[Finding]) -> Vec<String> {
    let probes = probe::probes(&spec(), seen, findings, |tail| format!("$JS.hub.API.{tail}"));
    probes.into_iter().map(|probe| probe.subject).collect()
}

#[test]
fn four_rights_of_each_durable_of_a_shard_are_probed() {
    let expected = [
        "$JS.hub.API.CONSUMER.MSG.NEXT.S.wh-ingest-1",
        "$JS.hub.API.CONSUMER.UNPIN.S.wh-ingest-1",
        "$JS.hub.API.CONSUMER.RESET.S.wh-ingest-1",
        "$JS.ACK.S.wh-ingest-1.1.1.1.1.0",
    ];
    assert_eq!(subjects(&seen(&["other-0", "wh-ingest-1", "wh-ingest-2"]), &[]), expected);
}

#[test]
fn a_durable_that_is_wrong_is_not_probed() {
    let finding = |severity| Finding {
        severity,
        rule: "x",
        object: "consumer S/wh-ingest-0".into(),
        field: "priority_policy",
        seen: "unset".into(),
        needed: "pinned_client".into(),
        fix: String::new(),
    };
    let both = seen(&["wh-ingest-0", "wh-ingest-1"]);
    let probed = subjects(&both, &[finding(Severity::Required)]);
    assert!(probed.len() == 4 && probed.iter().all(|subject| subject.contains("wh-ingest-1")), "{probed:?}");
    assert_eq!(subjects(&both, &[finding(Severity::Recommended)]).len(), 8);
}
