//! The combinations of roles and backends that cannot work, or hardly as meant. Pure: all findings at once.
//!
//! Rules on one key alone, and on the keys of one backend, stand with that backend. What a server must be is the
//! topology's verifier's.

use crate::{CoordBackend, Finding, QueueBackend, Roles};
use std::collections::BTreeSet;

/// What the rules look at.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub roles: Roles,
    pub mq: QueueBackend,
    pub coord: CoordBackend,
    /// The keys that somebody gave.
    pub given: BTreeSet<&'static str>,
}

/// Everything that is wrong with a combination.
pub(crate) fn judge(shape: &Shape) -> Vec<Finding> {
    let mut findings = refused(shape);
    findings.extend(ignored(shape));
    findings
}

fn refused(shape: &Shape) -> Vec<Finding> {
    let Shape { roles: Roles { api, ingest, sweeper }, mq, coord, .. } = *shape;
    let mut findings = Vec::new();
    if mq == QueueBackend::Embedded && !(api && ingest) {
        findings.push(
            Finding::error("roles", "must be api and ingest together: the embedded queue serves one process")
                .hint("mq.backend: nats lets several processes share a queue"),
        );
    }
    if mq == QueueBackend::Nats && sweeper && !api && !ingest {
        findings.push(Finding::error("roles", "sweeper alone has nothing to do: streams on NATS are cleared by NATS"));
    }
    if coord == CoordBackend::Nats && mq != QueueBackend::Nats {
        findings.push(
            Finding::error("coord.backend", "nats needs mq.backend: nats: leases stand on the queue's servers")
                .hint("the embedded queue serves one process: local is enough"),
        );
    }
    if mq == QueueBackend::Nats && ingest && coord == CoordBackend::Local {
        findings.push(
            Finding::error(
                "coord.backend",
                "local cannot share units of delivery out among processes with role ingest",
            )
            .hint("with mq.backend: nats set coord.backend: nats"),
        );
    }
    findings
}

/// Keys that were given and have no effect.
fn ignored(shape: &Shape) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut ignores = |section: &str, why: &str| {
        let below =
            |path: &&&str| path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        for path in shape.given.iter().filter(below) {
            findings.push(Finding::warning(*path, format!("has no effect: {why}")));
        }
    };
    match shape.mq {
        QueueBackend::Embedded => ignores("mq.nats", "mq.backend is embedded"),
        QueueBackend::Nats => {
            ignores("mq.embedded", "mq.backend is nats");
            ignores("tenant_defaults.mq.max_bytes_gb", "on NATS the streams' own limits hold for all tenants together");
        }
    }
    if shape.coord == CoordBackend::Local {
        ignores("coord.nats", "coord.backend is local");
        ignores("coord.lease", "coord.backend is local");
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    const ALL: Roles = Roles { api: true, ingest: true, sweeper: true };
    const NONE: Roles = Roles { api: false, ingest: false, sweeper: false };

    fn shape(roles: Roles, mq: QueueBackend, coord: CoordBackend) -> Shape {
        Shape { roles, mq, coord, given: BTreeSet::new() }
    }

    fn found(shape: &Shape) -> Vec<String> {
        judge(shape).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_can_work_has_no_finding() {
        use {CoordBackend as Coord, QueueBackend as Queue};
        for good in [
            shape(ALL, Queue::Embedded, Coord::Local),
            shape(Roles { sweeper: false, ..ALL }, Queue::Embedded, Coord::Local),
            shape(ALL, Queue::Nats, Coord::Nats),
            shape(Roles { api: true, ..NONE }, Queue::Nats, Coord::Local),
            shape(Roles { api: true, ..NONE }, Queue::Nats, Coord::Nats),
            shape(Roles { ingest: true, ..NONE }, Queue::Nats, Coord::Nats),
            shape(Roles { ingest: false, ..ALL }, Queue::Nats, Coord::Local),
        ] {
            assert_eq!(found(&good), Vec::<String>::new(), "{good:?}");
        }
    }

    #[test]
    fn roles_are_not_split_over_the_embedded_queue() {
        for roles in [
            Roles { api: true, ..NONE },
            Roles { ingest: true, ..NONE },
            Roles { sweeper: true, ..NONE },
            Roles { ingest: false, ..ALL },
        ] {
            let found = found(&shape(roles, QueueBackend::Embedded, CoordBackend::Local));
            assert!(found.len() == 1 && found[0].starts_with("roles: must be api and ingest together"), "{found:?}");
        }
    }

    #[test]
    fn a_sweeper_alone_has_nothing_to_do_on_nats() {
        let found = found(&shape(Roles { sweeper: true, ..NONE }, QueueBackend::Nats, CoordBackend::Nats));
        assert!(found.len() == 1 && found[0].starts_with("roles: sweeper alone"), "{found:?}");
    }

    #[test]
    fn leases_on_nats_need_the_queue_there_and_workers_there_need_leases() {
        let without = found(&shape(ALL, QueueBackend::Embedded, CoordBackend::Nats));
        assert!(without.len() == 1 && without[0].starts_with("coord.backend: nats needs mq.backend"), "{without:?}");
        for roles in [ALL, Roles { ingest: true, ..NONE }] {
            let local = found(&shape(roles, QueueBackend::Nats, CoordBackend::Local));
            assert!(local.len() == 1 && local[0].starts_with("coord.backend: local cannot share"), "{local:?}");
        }
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let found = found(&shape(Roles { api: true, ..NONE }, QueueBackend::Embedded, CoordBackend::Nats));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn keys_without_effect_are_warnings() {
        let keys = ["mq.embedded.shards", "mq.nats.urls", "coord.nats.bucket", "coord.lease", "server.port"];
        let more = ["tenant_defaults.mq.max_bytes_gb", "mq.nats.tls.ca_file"];
        let given: BTreeSet<_> = keys.into_iter().chain(more).collect();
        let subjects = |mq, coord| {
            let findings = judge(&Shape { given: given.clone(), ..shape(ALL, mq, coord) });
            assert!(findings.iter().all(|finding| finding.level == Level::Warning), "{findings:?}");
            findings.into_iter().map(|finding| finding.subject).collect::<Vec<_>>()
        };
        let embedded = subjects(QueueBackend::Embedded, CoordBackend::Local);
        assert_eq!(embedded, ["mq.nats.tls.ca_file", "mq.nats.urls", "coord.nats.bucket", "coord.lease"]);
        let nats = subjects(QueueBackend::Nats, CoordBackend::Nats);
        assert_eq!(nats, ["mq.embedded.shards", "tenant_defaults.mq.max_bytes_gb"]);
    }
}
