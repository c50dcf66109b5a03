//! The settings of dedupe, through the whole way of a configuration.

use crate::{Config, DedupeBackend, OnOutage, tests::found};
use std::time::Duration;

const NATS: &str = "mq: {backend: nats, nats: {urls: [a]}}\ncoord: {backend: nats}\n";

fn config(text: &str) -> Config {
    found(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}")).0
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let errors = found(text).map(|_| ()).unwrap_err();
    assert!(errors.iter().any(|error| error.contains(expected)), "{expected:?} is not in {errors:?}");
}

#[test]
fn the_embedded_queue_has_a_store_and_nats_has_none_until_one_is_chosen() {
    let embedded = config("");
    assert_eq!(embedded.dedupe.backend, DedupeBackend::Log);
    assert_eq!((embedded.dedupe.lease, embedded.dedupe.on_outage), (Duration::from_secs(30), OnOutage::Refuse));
    assert_eq!(embedded.ingest.idempotency_window, Duration::from_secs(86_400));
    assert_eq!(embedded.tenant_defaults.dedupe, crate::DedupeRules::default(), "nothing is told apart unasked");
    assert_eq!(config("dedupe: {backend: none}").dedupe.backend, DedupeBackend::None);
    assert_eq!(config("dedupe: {backend: sled}").dedupe.backend, DedupeBackend::Sled);
    let nats = config(NATS);
    assert_eq!(nats.dedupe.backend, DedupeBackend::None);
    assert!(nats.mq.nats.topology.choices().dedupe_lease.is_zero(), "its streams need no longer window");
}

#[test]
fn a_shared_queue_needs_a_shared_store() {
    let dynamo = "dedupe: {backend: dynamodb, dynamodb: {table: ids, region: eu-west-1}}\n";
    let shared = config(&format!("{NATS}{dynamo}"));
    let DedupeBackend::DynamoDb(table) = shared.dedupe.backend else { panic!("another backend") };
    assert_eq!((table.table.as_str(), table.region.as_deref(), table.concurrency), ("ids", Some("eu-west-1"), 64));
    assert_eq!(shared.mq.nats.topology.choices().dedupe_lease, Duration::from_secs(30));
    assert_eq!(shared.dedupe.duplicate_window, Duration::from_secs(61));

    for own in ["log", "sled"] {
        let problem = format!("dedupe.backend: {own} is a store of this process");
        refused(&format!("{NATS}roles: [api]\ndedupe: {{backend: {own}}}"), &problem);
    }
    let (_, warnings) = found(&format!("{NATS}dedupe: {{backend: log}}")).unwrap();
    assert!(warnings.iter().any(|warning| warning.contains("log is a store of this process alone")), "{warnings:?}");
    let (_, warnings) = found(&format!("{NATS}roles: [ingest]\n{dynamo}")).unwrap();
    assert!(warnings.iter().any(|warning| warning.contains("dedupe.backend: has no effect")), "{warnings:?}");
    refused("dedupe: {backend: dynamodb}", "dedupe.dynamodb.table: is needed");
    refused("dedupe: {backend: dynamodb, dynamodb: {table: a, create_table: true}}", "needs dedupe.dynamodb.endpoint");
}

#[test]
fn a_lease_outlasts_the_attempts_of_a_publish_and_ends_within_the_window() {
    for lease in ["25s", "59500ms", "2m"] {
        refused(&format!("dedupe: {{lease: {lease}}}"), "dedupe.lease: must be 25.5 s to 59 s");
    }
    for lease in ["25500ms", "59s"] {
        config(&format!("dedupe: {{lease: {lease}}}"));
    }
    let dynamo = "dedupe: {backend: dynamodb, lease: 25s, dynamodb: {table: ids}}\n";
    refused(&format!("{NATS}{dynamo}"), "dedupe.lease: ");
    assert!(found("dedupe: {backend: none, lease: 1s}").unwrap().1[0].contains("dedupe.lease: has no effect"));
}

#[test]
fn tables_differ_from_the_tenant_where_they_say_so() {
    let text = "tenant_defaults:\n  dedupe:\n    enabled: true\n    retention: 168h\n    tables:\n      clicks: {enabled: false}\n      \
                orders: {id_field: order_id, require_id: true, retention: '0'}\n";
    let rules = config(text).tenant_defaults.dedupe;
    let others = rules.others.unwrap();
    assert_eq!((others.id_field.as_str(), others.require_id), ("event_id", false));
    assert_eq!(others.retention, Some(Duration::from_secs(168 * 3_600)));
    assert_eq!(rules.tables["clicks"], None);
    let orders = rules.tables["orders"].as_ref().unwrap();
    assert_eq!((orders.id_field.as_str(), orders.require_id, orders.retention), ("order_id", true, None));

    let one = "tenant_defaults: {dedupe: {tables: {orders: {enabled: true}}}}";
    assert!(config(one).tenant_defaults.dedupe.others.is_none());
    refused(&format!("dedupe: {{backend: none}}\n{one}"), "dedupe.backend: is none");
    refused(&format!("{NATS}{one}"), "dedupe.backend: is none");
    refused("tenant_defaults: {dedupe: {enabled: true, retention: 30s}}", "at least 2m");
    refused("tenant_defaults: {dedupe: {id_field: ''}}", "tenant_defaults.dedupe.id_field");
    refused("tenant_defaults: {dedupe: {tables: {a: {id: x}}}}", "is no setting of a table");
}
