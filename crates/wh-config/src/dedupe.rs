//! The settings of storing each event once: where ids are kept, and by what events are told apart. Nothing opens here.

use crate::{Finding, QueueBackend, Roles, overrides::Override, resolve::Take, value::Parsed};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use wh_topology::{Choices, defaults as nats};

const BACKEND: &str = "dedupe.backend";
const LEASE: &str = "dedupe.lease";
const TABLE: &str = "dedupe.dynamodb.table";
const CREATE: &str = "dedupe.dynamodb.create_table";
const ENABLED: &str = "tenant_defaults.dedupe.enabled";
const RETENTION: &str = "tenant_defaults.dedupe.retention";
const TABLES: &str = "tenant_defaults.dedupe.tables";

/// How long the embedded queue remembers a block's id.
const EMBEDDED_WINDOW: Duration = Duration::from_secs(120);

/// Where ids of events are kept, and how claims on them are used.
#[derive(Clone, Debug)]
pub struct Dedupe {
    /// Which backend.
    pub backend: DedupeBackend,
    /// How long a claim holds.
    pub lease: Duration,
    /// What becomes of events while the store is away.
    pub on_outage: OnOutage,
    /// For how long every stream of the queue remembers a block's id at least.
    pub duplicate_window: Duration,
}

/// Where ids of events are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DedupeBackend {
    /// Nowhere.
    None,
    /// In the data folder.
    Log,
    /// In the data folder, in sled's files.
    Sled,
    /// In a DynamoDB table that processes share.
    DynamoDb(DynamoDb),
}

impl DedupeBackend {
    /// As it is written.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Log => "log",
            Self::Sled => "sled",
            Self::DynamoDb(_) => "dynamodb",
        }
    }
}

/// A DynamoDB table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamoDb {
    /// Its name.
    pub table: String,
    /// Its region; `None`: what the SDK finds.
    pub region: Option<String>,
    /// Where it is, where it is not AWS.
    pub endpoint: Option<String>,
    /// How long a call may take.
    pub timeout: Duration,
    /// Keys of one call that are sent at one time.
    pub concurrency: usize,
    /// Whether it is made where it is missing.
    pub create_table: bool,
}

/// What becomes of events while the store of ids is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnOutage {
    /// They are refused.
    Refuse,
    /// They are stored without being looked up.
    Accept,
}

/// How events of a tenant's tables are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DedupeRules {
    /// For every table that is not named. `None`: they are not.
    pub others: Option<DedupeRule>,
    /// For single tables.
    pub tables: BTreeMap<String, Option<DedupeRule>>,
}

/// How events of a table are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DedupeRule {
    /// The column that holds an event's id.
    pub id_field: String,
    /// Whether an event without one is refused.
    pub require_id: bool,
    /// How long an id is known; `None`: for good.
    pub retention: Option<Duration>,
}

impl DedupeRules {
    fn all(&self) -> impl Iterator<Item = &DedupeRule> {
        self.others.iter().chain(self.tables.values().flatten())
    }

    /// The shortest retention that ends.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        self.all().filter_map(|rule| rule.retention).min()
    }
}

/// The store.
pub(crate) fn store(take: &mut Take<'_>, mq: QueueBackend, topology: &wh_topology::Spec) -> Dedupe {
    let backend = backend(take, mq);
    let lease = take.span(LEASE);
    if mq == QueueBackend::Embedded && backend != DedupeBackend::None {
        within_the_embedded_window(take, lease);
    }
    Dedupe {
        backend,
        lease,
        on_outage: match take.text("dedupe.on_outage") {
            "accept" => OnOutage::Accept,
            _ => OnOutage::Refuse,
        },
        duplicate_window: match mq {
            QueueBackend::Embedded => EMBEDDED_WINDOW,
            // what the topology's check demands of every partition
            QueueBackend::Nats => topology.dedupe_window().unwrap_or_default(),
        },
    }
}

/// Which of the words it is; where none was given it is the embedded one with the embedded queue.
fn word<'a>(take: &mut Take<'a>, mq: QueueBackend) -> &'a str {
    match (take.text(BACKEND), mq) {
        ("", QueueBackend::Embedded) => "log",
        ("", QueueBackend::Nats) => "none",
        (given, _) => given,
    }
}

fn backend(take: &mut Take<'_>, mq: QueueBackend) -> DedupeBackend {
    let table = DynamoDb {
        table: take.text(TABLE).to_owned(),
        region: take.optional("dedupe.dynamodb.region").map(str::to_owned),
        endpoint: take.optional("dedupe.dynamodb.endpoint").map(str::to_owned),
        timeout: take.span("dedupe.dynamodb.timeout"),
        concurrency: take.usize("dedupe.reserve_concurrency"),
        create_table: take.flag(CREATE),
    };
    match word(take, mq) {
        "log" => DedupeBackend::Log,
        "sled" => DedupeBackend::Sled,
        "dynamodb" => {
            if table.table.is_empty() && !take.failed(TABLE) {
                take.problem(TABLE, "is needed with dedupe.backend: dynamodb");
            }
            if table.create_table && table.endpoint.is_none() {
                take.problem(CREATE, "needs dedupe.dynamodb.endpoint: on AWS the operator makes the table");
            }
            DedupeBackend::DynamoDb(table)
        }
        _ => DedupeBackend::None,
    }
}

/// The queue on NATS has the same rules, with what the operator chose, in its topology.
fn within_the_embedded_window(take: &mut Take<'_>, lease: Duration) {
    let least = nats::PUBLISH_TIMEOUT * 3 + nats::DEDUPE_SLACK;
    // a claim, as much again until it is asked for, rounded up to whole seconds, and one more
    let most = EMBEDDED_WINDOW.as_secs().saturating_sub(1) / 2;
    if !take.failed(LEASE) && (lease < least || lease > Duration::from_secs(most)) {
        let (least, most) = (least.as_secs_f64(), most);
        take.problem(
            LEASE,
            format!("must be {least} s to {most} s with the embedded queue, which remembers blocks for 2 min"),
        );
    }
}

/// What a claim's length is to a topology, where ids are kept at all.
pub(crate) fn choices(take: &mut Take<'_>, plain: Choices) -> Choices {
    let kept = take.text("mq.backend") == "nats" && word(take, QueueBackend::Nats) != "none";
    Choices {
        dedupe_lease: if kept { take.span(LEASE) } else { Duration::ZERO },
        dedupe_retention: if kept { rules(take).shortest() } else { None },
        ..plain
    }
}

/// How events are told apart.
pub(crate) fn rules(take: &mut Take<'_>) -> DedupeRules {
    let span = |span: Duration| Some(span).filter(|span| !span.is_zero());
    let enabled = take.flag(ENABLED);
    let all = DedupeRule {
        id_field: take.text("tenant_defaults.dedupe.id_field").to_owned(),
        require_id: take.flag("tenant_defaults.dedupe.require_id"),
        retention: span(take.span(RETENTION)),
    };
    let of = |given: &Override| {
        given.enabled.unwrap_or(enabled).then(|| DedupeRule {
            id_field: given.id_field.clone().unwrap_or_else(|| all.id_field.clone()),
            require_id: given.require_id.unwrap_or(all.require_id),
            retention: given.retention.map_or(all.retention, span),
        })
    };
    let tables = match take.get(TABLES) {
        Some(Parsed::Tables(tables)) => tables.iter().map(|(name, given)| (name.clone(), of(given))).collect(),
        _ => BTreeMap::new(),
    };
    DedupeRules { others: enabled.then_some(all), tables }
}

/// The combinations that cannot work, or hardly as meant, and the keys without effect.
pub(crate) fn judge(
    roles: Roles,
    mq: QueueBackend,
    dedupe: &Dedupe,
    rules: &DedupeRules,
    given: &BTreeSet<&'static str>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if rules.shortest().is_some_and(|shortest| shortest < EMBEDDED_WINDOW) {
        let problem = "must be 0 (for good) or at least 2m, for so long the queue remembers blocks";
        findings.push(Finding::error(RETENTION, problem).hint("the same holds in tenant_defaults.dedupe.tables"));
    }
    if !roles.api {
        ignored(&mut findings, given, "dedupe", "this process takes no events");
        return findings;
    }
    if mq == QueueBackend::Nats && matches!(dedupe.backend, DedupeBackend::Log | DedupeBackend::Sled) {
        let name = dedupe.backend.name();
        let alone =
            format!("{name} is a store of this process alone, and other processes take events of the same queue");
        let hint = "dedupe.backend: dynamodb is shared";
        findings.push(if roles.ingest {
            Finding::warning(BACKEND, alone).hint(hint)
        } else {
            Finding::error(BACKEND, alone).hint(hint)
        });
    }
    if dedupe.backend == DedupeBackend::None {
        if rules.all().next().is_some() {
            findings.push(
                Finding::error(BACKEND, "is none, and tenant_defaults.dedupe asks for events to be stored once")
                    .hint("with the embedded queue set log, with several processes dynamodb"),
            );
        }
        for key in [LEASE, "dedupe.on_outage", "ingest.idempotency_window"] {
            ignored(&mut findings, given, key, "dedupe.backend is none");
        }
    }
    if !matches!(dedupe.backend, DedupeBackend::DynamoDb(_)) {
        ignored(&mut findings, given, "dedupe.dynamodb", "dedupe.backend is another");
        ignored(&mut findings, given, "dedupe.reserve_concurrency", "it is dynamodb's");
    }
    findings
}

fn ignored(findings: &mut Vec<Finding>, given: &BTreeSet<&'static str>, section: &str, why: &str) {
    let below = |path: &&&str| path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    findings.extend(given.iter().filter(below).map(|path| Finding::warning(*path, format!("has no effect: {why}"))));
}

#[cfg(test)]
#[path = "dedupe_tests.rs"]
mod tests;
