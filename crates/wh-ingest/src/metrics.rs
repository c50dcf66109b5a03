//! The worker's metrics, in one place. Labels are capped (decision D28).

use std::{sync::LazyLock, time::Duration};
use wh_types::{LabelCap, Table};

/// Most tables, and most codes, that metrics tell apart.
static TABLES: LazyLock<LabelCap> = LazyLock::new(|| LabelCap::new(500));
static CODES: LazyLock<LabelCap> = LazyLock::new(|| LabelCap::new(100));

/// Names, units and meanings: the generated metrics page is made of this.
pub(crate) const DESCRIBED: [(&str, &str); 7] = [
    ("wavehouse_ingest_rows_inserted_total", "rows stored in ClickHouse, by table"),
    ("wavehouse_ingest_inserts_total", "inserts by outcome"),
    ("wavehouse_ingest_insert_seconds", "time of one insert"),
    ("wavehouse_ingest_batch_rows", "rows of one insert"),
    ("wavehouse_ingest_retries_total", "rows that wait for another try, by table and reason"),
    ("wavehouse_ingest_dead_letters_total", "rows parked, by table and code"),
    (
        "wavehouse_ingest_insert_doubt_total",
        "rows given back while their insert's outcome was not known: they may double",
    ),
];

pub(crate) fn describe() {
    for (name, text) in DESCRIBED {
        match name {
            n if n.ends_with("_total") => metrics::describe_counter!(n, text),
            n => metrics::describe_histogram!(n, text),
        }
    }
}

pub(crate) fn inserted(table: &Table, rows: u64, took: Duration) {
    metrics::counter!("wavehouse_ingest_rows_inserted_total", "table" => TABLES.get(table.as_str())).increment(rows);
    #[expect(clippy::cast_precision_loss, reason = "a batch has far fewer than 2^52 rows")]
    metrics::histogram!("wavehouse_ingest_batch_rows").record(rows as f64);
    insert("stored", took);
}

pub(crate) fn insert(outcome: &'static str, took: Duration) {
    metrics::counter!("wavehouse_ingest_inserts_total", "outcome" => outcome).increment(1);
    metrics::histogram!("wavehouse_ingest_insert_seconds").record(took);
}

pub(crate) fn retried(table: &Table, rows: u64, reason: &'static str) {
    metrics::counter!("wavehouse_ingest_retries_total", "table" => TABLES.get(table.as_str()), "reason" => reason)
        .increment(rows);
}

pub(crate) fn parked(table: &Table, rows: u64, code: &str) {
    metrics::counter!("wavehouse_ingest_dead_letters_total", "table" => TABLES.get(table.as_str()), "code" => CODES.get(code))
        .increment(rows);
}

pub(crate) fn doubt(rows: u64) {
    metrics::counter!("wavehouse_ingest_insert_doubt_total").increment(rows);
}
