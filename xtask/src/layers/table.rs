//! The layers of ARCHITECTURE.md and the home of each vendor's client, as data.

/// Where a crate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// L0 to L5: a crate may use those below it, and none beside it.
    Level(u8),
    /// Binaries and examples: they use anything, and nobody uses them.
    Top,
    /// The test kit: crates use it in tests only, the tools and the tests freely.
    TestKit,
    /// Tests and xtask: they use anything, and nobody uses them.
    Tools,
}

/// Every crate of the workspace, also those that are still to come.
pub(super) const LAYERS: [(&str, Layer); 23] = [
    ("wh-types", Layer::Level(0)),
    ("wh-topology", Layer::Level(1)),
    ("wh-nats", Layer::Level(1)),
    ("wh-clickhouse", Layer::Level(1)),
    ("wh-log", Layer::Level(1)),
    ("wh-mq", PORTS),
    ("wh-coord", PORTS),
    ("wh-cache", PORTS),
    ("wh-dedupe", PORTS),
    ("wh-ingest", Layer::Level(3)),
    ("wh-api", Layer::Level(3)),
    ("wh-config", Layer::Level(4)),
    ("wh-app", Layer::Level(5)),
    ("wavehouse", Layer::Top),
    ("wavehouse-api", Layer::Top),
    ("wavehouse-ingest", Layer::Top),
    ("embed-ingest", Layer::Top),
    ("wh-testkit", Layer::TestKit),
    ("conformance", Layer::Tools),
    ("procs", Layer::Tools),
    ("sim", Layer::Tools),
    ("load", Layer::Tools),
    ("xtask", Layer::Tools),
];

/// The layer of the ports, whose crates have a feature for each backend.
pub(super) const PORTS: Layer = Layer::Level(2);

/// Crates that take the ports without any backend.
pub(super) const NAMES_NO_BACKEND: [&str; 3] = ["wh-ingest", "wh-api", "wh-config"];

/// Crates that must build alone.
pub(super) const ALONE: [&str; 2] = ["wh-ingest", "wh-api"];

/// A vendor's crate (a name that ends in `*` is a prefix) and who may depend on it.
pub(super) const HOMES: [(&str, &[&str]); 8] = [
    ("async-nats", &["wh-nats"]),
    ("fred", &["wh-cache"]),
    ("aws-*", &["wh-dedupe"]),
    ("sled", &["wh-dedupe"]),
    ("axum", &["wh-api", "wh-app"]),
    ("figment", &["wh-config"]),
    // typed reads, and the yardstick in tests
    ("clickhouse", &["wh-clickhouse", "procs", "conformance", "xtask"]),
    // the engine of ClickHouse's tests is loaded with it
    ("libloading", &["wh-testkit"]),
];

/// Where hyper's client may be used: its home; the test kit's small client and fault proxy; the requests that
/// `wavehouse health` and `wavehouse dlq` send to their own server.
pub(super) const HYPER_CLIENT: [&str; 4] =
    ["crates/wh-clickhouse/", "crates/wh-testkit/", "crates/wh-app/src/health", "crates/wh-app/src/dlq_cli/client"];

/// The layer of a crate.
pub(super) fn layer(name: &str) -> Option<Layer> {
    LAYERS.iter().find(|(own, _)| *own == name).map(|(_, layer)| *layer)
}

/// Whether a crate's features choose a backend: a port's, and the sinks of wh-ingest.
pub(super) fn has_backends(name: &str) -> bool {
    layer(name) == Some(PORTS) || name == "wh-ingest"
}
