//! The worker's metrics, in one place. Labels are capped (decision D28).

use std::{sync::LazyLock, time::Duration};
use wh_mq::Unit;
use wh_types::{LabelCap, Table, Tenant};

/// Most tables, tenants, codes and units that metrics tell apart.
static TABLES: LazyLock<LabelCap> = LazyLock::new(|| LabelCap::new(500));
static TENANTS: LazyLock<LabelCap> = LazyLock::new(|| LabelCap::new(200));
static CODES: LazyLock<LabelCap> = LazyLock::new(|| LabelCap::new(100));
static UNITS: LazyLock<LabelCap> = LazyLock::new(|| LabelCap::new(512));

/// Names, units and meanings: the generated metrics page is made of this.
pub(crate) const DESCRIBED: [(&str, &str); 24] = [
    ("wavehouse_ingest_rows_inserted_total", "rows stored in ClickHouse, by table"),
    ("wavehouse_ingest_inserts_total", "inserts by outcome"),
    ("wavehouse_ingest_insert_seconds", "time of one insert"),
    ("wavehouse_ingest_batch_rows", "rows of one insert"),
    ("wavehouse_ingest_retries_total", "rows that wait for another try, by table and reason"),
    ("wavehouse_ingest_dead_letters_total", "rows parked, by table and code"),
    (
        "wavehouse_ingest_dead_letters_replayed_total",
        "held rows that were published again by themselves, by table and code they were parked with",
    ),
    (DEPTH, "dead letters of the tables of this worker's units, by tenant and table; counted once a minute"),
    (
        "wavehouse_ingest_rows_dropped_total",
        "refused rows that nothing keeps, dead letters being off, by table and code",
    ),
    (
        "wavehouse_ingest_insert_doubt_total",
        "rows given back while their insert's outcome was not known: they may double",
    ),
    ("wavehouse_ingest_marks_lost_total", "progress marks that the queue did not take in time"),
    ("wavehouse_ingest_rows_held", "rows delivered and not settled, in this process"),
    ("wavehouse_ingest_unit_rows_total", "rows stored, by unit"),
    ("wavehouse_ingest_shards_owned", "units this process works on"),
    ("wavehouse_ingest_shard_members", "live members, as this process sees them"),
    ("wavehouse_ingest_shards_unowned", "units with rows and no owner; told by one member: take the greatest"),
    (
        "wavehouse_ingest_shard_events_total",
        "what became of units: taken, released, reset, handover_timeout, bind_failed; and lost: terms that ended",
    ),
    ("wavehouse_ingest_backoffs", "pools and tables whose inserts fail now, by scope"),
    ("wavehouse_ingest_backoff_seconds", "from the first failure of a pool or a table to its recovery, by scope"),
    ("wavehouse_ingest_units_paused", "units that take nothing because the pool of all their tables fails"),
    (
        "wavehouse_ingest_units_near_stall",
        "units with four fifths of the blocks unsettled that the queue allows them: at all of them they stand still",
    ),
    ("wavehouse_ingest_tables_missing", "tables that do not exist and whose rows are held, counted by unit"),
    ("wavehouse_ingest_tables_active", "tables with rows in this process, or lately"),
    ("wavehouse_ingest_shard_handover_seconds", "from the decision to hand a unit over until it is released"),
];

/// Units that take nothing.
pub(crate) const PAUSED: &str = "wavehouse_ingest_units_paused";
/// Units that may stand still soon.
pub(crate) const NEAR_STALL: &str = "wavehouse_ingest_units_near_stall";
/// Tables that are not there.
pub(crate) const MISSING: &str = "wavehouse_ingest_tables_missing";
/// Tables with state.
pub(crate) const ACTIVE: &str = "wavehouse_ingest_tables_active";

/// Dead letters kept.
const DEPTH: &str = "wavehouse_dead_letters";

const GAUGES: [&str; 10] = [
    DEPTH,
    "wavehouse_ingest_rows_held",
    "wavehouse_ingest_backoffs",
    PAUSED,
    NEAR_STALL,
    MISSING,
    ACTIVE,
    "wavehouse_ingest_shards_owned",
    "wavehouse_ingest_shard_members",
    "wavehouse_ingest_shards_unowned",
];

pub(crate) fn describe() {
    for (name, text) in DESCRIBED {
        match name {
            n if n.ends_with("_total") => metrics::describe_counter!(n, text),
            n if GAUGES.contains(&n) => metrics::describe_gauge!(n, text),
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

pub(crate) fn unannounced(marks: usize) {
    metrics::counter!("wavehouse_ingest_marks_lost_total").increment(marks as u64);
}

pub(crate) fn parked(table: &Table, rows: u64, code: &str) {
    metrics::counter!("wavehouse_ingest_dead_letters_total", "table" => TABLES.get(table.as_str()), "code" => CODES.get(code))
        .increment(rows);
}

pub(crate) fn replayed(table: &Table, code: &str) {
    metrics::counter!("wavehouse_ingest_dead_letters_replayed_total",
        "table" => TABLES.get(table.as_str()), "code" => CODES.get(code))
    .increment(1);
}

/// So many dead letters of a table are kept.
#[expect(clippy::cast_precision_loss, reason = "there are far fewer than 2^52 of them")]
pub(crate) fn dead_letters(tenant: &Tenant, table: &Table, depth: u64) {
    // tables beyond the cap share one gauge, which then tells of the last of them
    let (tenant, table) = (TENANTS.get(tenant.as_str()), TABLES.get(table.as_str()));
    metrics::gauge!(DEPTH, "tenant" => tenant, "table" => table).set(depth as f64);
}

pub(crate) fn dropped(table: &Table, code: &str) {
    metrics::counter!("wavehouse_ingest_rows_dropped_total", "table" => TABLES.get(table.as_str()), "code" => CODES.get(code))
        .increment(1);
}

/// One more in a gauge, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Raised(&'static str);

impl Raised {
    pub(crate) fn new(gauge: &'static str) -> Self {
        metrics::gauge!(gauge).increment(1.0);
        Self(gauge)
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        metrics::gauge!(self.0).decrement(1.0);
    }
}

/// So many more pools or tables fail.
pub(crate) fn gates_shut(scope: &'static str, more: f64) {
    metrics::gauge!("wavehouse_ingest_backoffs", "scope" => scope).increment(more);
}

pub(crate) fn recovered(scope: &'static str, away: Duration) {
    metrics::histogram!("wavehouse_ingest_backoff_seconds", "scope" => scope).record(away);
}

pub(crate) fn doubt(rows: u64) {
    metrics::counter!("wavehouse_ingest_insert_doubt_total").increment(rows);
}

/// A unit holds `now` rows and held `before`.
#[expect(clippy::cast_precision_loss, reason = "a process holds far fewer than 2^52 rows")]
pub(crate) fn held(before: usize, now: usize) {
    metrics::gauge!("wavehouse_ingest_rows_held").increment(now as f64 - before as f64);
}

pub(crate) fn progress(unit: Unit, rows: u64) {
    metrics::counter!("wavehouse_ingest_unit_rows_total", "unit" => UNITS.get(&unit.to_string())).increment(rows);
}

pub(crate) fn unit_event(event: &'static str) {
    metrics::counter!("wavehouse_ingest_shard_events_total", "event" => event).increment(1);
}

pub(crate) fn handed_over(took: Duration) {
    metrics::histogram!("wavehouse_ingest_shard_handover_seconds").record(took);
}

#[expect(clippy::cast_precision_loss, reason = "there are far fewer than 2^52 units")]
pub(crate) fn membership(owned: usize, members: usize) {
    metrics::gauge!("wavehouse_ingest_shards_owned").set(owned as f64);
    metrics::gauge!("wavehouse_ingest_shard_members").set(members as f64);
}

#[expect(clippy::cast_precision_loss, reason = "there are far fewer than 2^52 units")]
pub(crate) fn unowned(units: usize) {
    metrics::gauge!("wavehouse_ingest_shards_unowned").set(units as f64);
}
