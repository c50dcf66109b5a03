//! The stores of ids that are compared, and what a configuration says for each.

use anyhow::Result;
use wh_testkit::dynamodb;

/// Where ids are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// Nowhere: rows are not told apart.
    Off,
    /// In the embedded store.
    Log,
    /// In a folder of sled's.
    Sled,
    /// In an emulator's table.
    DynamoDb,
}

/// All of them; ratios are to the first.
pub(super) const ALL: &[Store] = &[Store::Off, Store::Log, Store::Sled, Store::DynamoDb];

impl Store {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Off => "dedupe off",
            Self::Log => "dedupe: log",
            Self::Sled => "dedupe: sled",
            Self::DynamoDb => "dedupe: dynamodb, emulated",
        }
    }

    /// What the process is told, and the emulator where it needs one.
    pub(super) async fn prepare(self) -> Result<(String, Option<dynamodb::Server>)> {
        const IDS: &str = "  dedupe: {enabled: true, id_field: id}\n";
        Ok(match self {
            Self::Off => (String::new(), None),
            Self::Log => (format!("{IDS}dedupe: {{backend: log}}\n"), None),
            Self::Sled => (format!("{IDS}dedupe: {{backend: sled}}\n"), None),
            Self::DynamoDb => {
                let emulator = dynamodb::Server::start().await?;
                let table = format!(
                    "{{table: bench, region: eu-central-1, endpoint: {:?}, create_table: true, timeout: 5s}}",
                    emulator.url()
                );
                (format!("{IDS}dedupe: {{backend: dynamodb, dynamodb: {table}}}\n"), Some(emulator))
            }
        })
    }
}
