//! Every metric of this crate: its name, labels and meaning in one table, and handles for the busy ones.

use crate::ingest::Outcome;
use metrics::{Counter, Gauge, Histogram, SharedString, counter, gauge, histogram};
use std::time::Duration;
use wh_types::{Block, LabelCap, OTHER_LABEL, Table, Tenant};

/// Most values of one label (decision D28).
const MAX_LABELS: usize = 200;

/// Name, kind, labels, meaning.
pub const METRICS: &[(&str, &str, &str, &str)] = &[
    ("wavehouse_http_requests_total", "counter", "route, status", "answers sent"),
    ("wavehouse_http_request_duration_seconds", "histogram", "route", "from the request's head to the answer's head"),
    ("wavehouse_http_panics_total", "counter", "", "requests that failed by a fault of ours"),
    (
        "wavehouse_ingest_rows_total",
        "counter",
        "tenant, table, outcome",
        "records by what their sender was told: accepted, duplicate, replayed, rejected, in_flight, not_attempted",
    ),
    ("wavehouse_ingest_rejected_total", "counter", "tenant, table, code", "records refused before the queue"),
    (
        "wavehouse_ingest_undecided_values_total",
        "counter",
        "type",
        "values whose JSON kind does not decide whether ClickHouse takes them",
    ),
    ("wavehouse_ingest_blocks_total", "counter", "tenant, table, outcome", "blocks published"),
    (
        "wavehouse_ingest_block_bytes_total",
        "counter",
        "tenant, table, form",
        "bytes of stored blocks, decoded and as published",
    ),
    ("wavehouse_ingest_publish_duration_seconds", "histogram", "tenant, table", "from a block's cut to its outcome"),
    (
        "wavehouse_ingest_unknown_resolved_total",
        "counter",
        "fate",
        "unanswered blocks by what a probe found: stored, released, lost",
    ),
    (
        "wavehouse_ingest_dedupe_missing_id_total",
        "counter",
        "tenant, table",
        "records without an id in tables whose events are told apart by one",
    ),
    (
        "wavehouse_ingest_dedupe_unchecked_rows_total",
        "counter",
        "tenant, table",
        "rows stored while the dedupe store was away: they may double",
    ),
    ("wavehouse_ingest_dedupe_failures_total", "counter", "code", "reservations that failed"),
    (
        "wavehouse_ingest_dedupe_fenced_total",
        "counter",
        "",
        "claims that were another's by the time their block was stored",
    ),
    (
        "wavehouse_ingest_dedupe_unsettled_total",
        "counter",
        "act",
        "claims that could not be committed or released in time: they lapse, and are looked into when their ids come again",
    ),
    (
        "wavehouse_ingest_dedupe_lapsed_total",
        "counter",
        "fate",
        "lapsed claims that were found, by what became of their rows: stored, released, forgotten, open",
    ),
    (
        "wavehouse_ingest_dedupe_unresolved_total",
        "counter",
        "",
        "lapsed claims whose block the queue may have forgotten: their rows may double",
    ),
    (
        "wavehouse_dead_letters_replayed_total",
        "counter",
        "tenant, table, code",
        "dead letters an operator replayed whose rows are in the queue again",
    ),
    (
        "wavehouse_query_answers_total",
        "counter",
        "cache",
        "answers of reads by how they came about: hit (kept), miss (computed, and kept where it may be), bypass",
    ),
    ("wavehouse_query_joined_total", "counter", "", "misses that waited for a computation that was under way"),
    (
        "wavehouse_pipe_calls_total",
        "counter",
        "tenant, pipe, outcome",
        "calls of pipes by outcome: ok, or the code of the error",
    ),
    ("wavehouse_pipe_duration_seconds", "histogram", "tenant, pipe", "from a call of a pipe to the head of its answer"),
    ("wavehouse_ingest_held_bytes", "gauge", "", "bytes of bodies and gathered rows in memory"),
    ("wavehouse_auth_operator_key_failures_total", "counter", "", "wrong operator keys"),
    ("wavehouse_sse_active_streams", "gauge", "", "open streams"),
    ("wavehouse_sse_stream_duration_seconds", "histogram", "", "how long streams were open"),
    (
        "wavehouse_sse_streams_ended_total",
        "counter",
        "reason",
        "streams that ended, by `reason` of their `end`; `client`: the client went",
    ),
    (
        "wavehouse_sse_streams_refused_total",
        "counter",
        "scope",
        "streams refused because there were too many: of the tenant, of the process",
    ),
    ("wavehouse_sse_frames_sent_total", "counter", "kind", "events sent: event, ready, keepalive, gap"),
    ("wavehouse_sse_bytes_sent_total", "counter", "kind", "bytes of events sent"),
    (
        "wavehouse_sse_dropped_frames_total",
        "counter",
        "kind",
        "blocks that went on without a slow stream, which read them from the history, was told, or ended",
    ),
    (
        "wavehouse_sse_conflated_rows_total",
        "counter",
        "",
        "rows a slow stream (`slow=latest`) got a newer one of instead",
    ),
    (
        "wavehouse_sse_rows_withheld_total",
        "counter",
        "",
        "rows that were not shown because whether a stream's filter holds could not be told; once for each distinct view",
    ),
];

/// Tells the recorder what the metrics mean.
pub(crate) fn describe() {
    for (name, kind, _, meaning) in METRICS {
        match *kind {
            "counter" => metrics::describe_counter!(*name, *meaning),
            "gauge" => metrics::describe_gauge!(*name, *meaning),
            _ => metrics::describe_histogram!(*name, *meaning),
        }
    }
}

/// Handles that belong to no table.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) panics: Counter,
    pub(crate) key_failures: Counter,
    pub(crate) held: Gauge,
    pub(crate) streams: Gauge,
    pub(crate) stream_seconds: Histogram,
    pub(crate) events: FrameMeters,
    pub(crate) keepalives: FrameMeters,
    pub(crate) gaps: FrameMeters,
    pub(crate) readies: FrameMeters,
    pub(crate) conflated: Counter,
    pub(crate) answer_hits: Counter,
    pub(crate) answer_misses: Counter,
    pub(crate) answer_bypasses: Counter,
    pub(crate) answers_joined: Counter,
    tables: LabelCap,
    pipes: LabelCap,
    types: LabelCap,
    codes: LabelCap,
}

/// Frames of one kind on live streams.
#[derive(Debug)]
pub(crate) struct FrameMeters {
    pub(crate) frames: Counter,
    pub(crate) bytes: Counter,
    pub(crate) dropped: Counter,
}

impl FrameMeters {
    fn new(kind: &'static str) -> Self {
        Self {
            frames: counter!("wavehouse_sse_frames_sent_total", "kind" => kind),
            bytes: counter!("wavehouse_sse_bytes_sent_total", "kind" => kind),
            dropped: counter!("wavehouse_sse_dropped_frames_total", "kind" => kind),
        }
    }
}

impl Meters {
    /// Takes its handles from the recorder that is installed now.
    pub(crate) fn new() -> Self {
        describe();
        Self {
            panics: counter!("wavehouse_http_panics_total"),
            key_failures: counter!("wavehouse_auth_operator_key_failures_total"),
            held: gauge!("wavehouse_ingest_held_bytes"),
            streams: gauge!("wavehouse_sse_active_streams"),
            stream_seconds: histogram!("wavehouse_sse_stream_duration_seconds"),
            events: FrameMeters::new("event"),
            keepalives: FrameMeters::new("keepalive"),
            gaps: FrameMeters::new("gap"),
            readies: FrameMeters::new("ready"),
            conflated: counter!("wavehouse_sse_conflated_rows_total"),
            answer_hits: counter!("wavehouse_query_answers_total", "cache" => "hit"),
            answer_misses: counter!("wavehouse_query_answers_total", "cache" => "miss"),
            answer_bypasses: counter!("wavehouse_query_answers_total", "cache" => "bypass"),
            answers_joined: counter!("wavehouse_query_joined_total"),
            tables: LabelCap::new(MAX_LABELS),
            pipes: LabelCap::new(MAX_LABELS),
            types: LabelCap::new(MAX_LABELS),
            codes: LabelCap::new(MAX_LABELS),
        }
    }

    /// A stream that was not opened: too many are, of the tenant or of the process.
    pub(crate) fn stream_refused(&self, scope: &'static str) {
        counter!("wavehouse_sse_streams_refused_total", "scope" => scope).increment(1);
    }

    /// A stream that is no more.
    pub(crate) fn stream_ended(&self, reason: &'static str) {
        counter!("wavehouse_sse_streams_ended_total", "reason" => reason).increment(1);
    }

    pub(crate) fn unknown_resolved(&self, fate: &'static str) {
        counter!("wavehouse_ingest_unknown_resolved_total", "fate" => fate).increment(1);
    }

    /// A call of the store of keys that failed.
    pub(crate) fn claims_failed(&self, code: &'static str) {
        counter!("wavehouse_ingest_dedupe_failures_total", "code" => code).increment(1);
    }

    /// A claim that was somebody else's when it was to be committed.
    pub(crate) fn claims_lost(&self) {
        counter!("wavehouse_ingest_dedupe_fenced_total").increment(1);
    }

    /// Claims that could not be committed or released in time.
    pub(crate) fn claims_unsettled(&self, act: &'static str, count: usize) {
        counter!("wavehouse_ingest_dedupe_unsettled_total", "act" => act).increment(count as u64);
    }

    /// Claims that had lapsed, by what became of their rows.
    pub(crate) fn lapsed(&self, fate: &'static str, count: u64) {
        counter!("wavehouse_ingest_dedupe_lapsed_total", "fate" => fate).increment(count);
        if fate == "forgotten" {
            counter!("wavehouse_ingest_dedupe_unresolved_total").increment(count);
        }
    }

    /// A call of a pipe that there is.
    pub(crate) fn pipe(&self, tenant: &Tenant, pipe: &str, outcome: &'static str, took: Duration) {
        // the cap is on pairs: two tenants may have pipes of one name
        let capped = &*self.pipes.get(&format!("{tenant}.{pipe}")) == OTHER_LABEL;
        let pipe = if capped { OTHER_LABEL.into() } else { SharedString::from(pipe.to_owned()) };
        let tenant = SharedString::from(tenant.as_str().to_owned());
        counter!("wavehouse_pipe_calls_total",
            "tenant" => tenant.clone(), "pipe" => pipe.clone(), "outcome" => outcome)
        .increment(1);
        histogram!("wavehouse_pipe_duration_seconds", "tenant" => tenant, "pipe" => pipe).record(took.as_secs_f64());
    }

    pub(crate) fn undecided(&self, type_text: &str) -> Counter {
        counter!("wavehouse_ingest_undecided_values_total", "type" => SharedString::from(self.types.get(type_text)))
    }

    pub(crate) fn table(&self, tenant: &Tenant, table: &Table) -> TableMeters {
        TableMeters::new(&tenant.as_str().to_owned().into(), &self.table_label(tenant, table))
    }

    fn table_label(&self, tenant: &Tenant, table: &Table) -> SharedString {
        // the cap is on pairs: two tenants may have tables of one name
        let capped = &*self.tables.get(&format!("{tenant}.{table}")) == OTHER_LABEL;
        if capped { OTHER_LABEL.into() } else { SharedString::from(table.as_str().to_owned()) }
    }

    /// A dead letter, parked under `code`, whose row is in the queue again.
    pub(crate) fn replayed(&self, tenant: &Tenant, table: &Table, code: &str) {
        let (table, code) = (self.table_label(tenant, table), SharedString::from(self.codes.get(code)));
        counter!("wavehouse_dead_letters_replayed_total",
            "tenant" => tenant.as_str().to_owned(), "table" => table, "code" => code)
        .increment(1);
    }
}

/// Handles of one table.
#[derive(Debug)]
pub(crate) struct TableMeters {
    tenant: SharedString,
    table: SharedString,
    accepted: Counter,
    stored: Counter,
    plain_bytes: Counter,
    packed_bytes: Counter,
    publish: Histogram,
}

impl TableMeters {
    fn new(tenant: &SharedString, table: &SharedString) -> Self {
        let bytes = |form: &'static str| {
            counter!("wavehouse_ingest_block_bytes_total",
                "tenant" => tenant.clone(), "table" => table.clone(), "form" => form)
        };
        Self {
            accepted: rows(tenant, table, "accepted"),
            stored: counter!("wavehouse_ingest_blocks_total",
                "tenant" => tenant.clone(), "table" => table.clone(), "outcome" => "stored"),
            plain_bytes: bytes("decoded"),
            packed_bytes: bytes("published"),
            publish: histogram!("wavehouse_ingest_publish_duration_seconds",
                "tenant" => tenant.clone(), "table" => table.clone()),
            tenant: tenant.clone(),
            table: table.clone(),
        }
    }

    pub(crate) fn published(&self, time: Duration) {
        self.publish.record(time.as_secs_f64());
    }

    pub(crate) fn block(&self, block: &Block, outcome: &Outcome) {
        let rows_of = |name| rows(&self.tenant, &self.table, name).increment(block.rows.into());
        let failed = match outcome {
            Outcome::Stored(_) | Outcome::Unchecked(_) | Outcome::Duplicate | Outcome::Replayed => {
                self.accepted.increment(block.rows.into());
                self.stored.increment(1);
                self.plain_bytes.increment(block.decoded_bytes.into());
                self.packed_bytes.increment(block.body.len() as u64);
                return;
            }
            Outcome::Unknown(_) => {
                rows_of("in_flight");
                "unknown"
            }
            Outcome::Refused(failure) => {
                rows_of(if failure.rejects() { "rejected" } else { "not_attempted" });
                failure.class.name()
            }
        };
        counter!("wavehouse_ingest_blocks_total",
            "tenant" => self.tenant.clone(), "table" => self.table.clone(), "outcome" => failed)
        .increment(1);
    }

    /// Rows that left their block before it was published, by what their sender was told.
    pub(crate) fn aside(&self, outcome: &'static str, count: u64) {
        rows(&self.tenant, &self.table, outcome).increment(count);
    }

    /// Stored rows that the store of keys was not asked for.
    pub(crate) fn unchecked(&self, count: u64) {
        counter!("wavehouse_ingest_dedupe_unchecked_rows_total",
            "tenant" => self.tenant.clone(), "table" => self.table.clone())
        .increment(count);
    }

    /// Records that have no id although their table's are told apart by one.
    pub(crate) fn without_id(&self, count: u64) {
        counter!("wavehouse_ingest_dedupe_missing_id_total",
            "tenant" => self.tenant.clone(), "table" => self.table.clone())
        .increment(count);
    }

    /// Rows that were never in a block.
    pub(crate) fn not_attempted(&self, count: u64) {
        rows(&self.tenant, &self.table, "not_attempted").increment(count);
    }

    pub(crate) fn rejected(&self, code: &'static str, records: u64) {
        rows(&self.tenant, &self.table, "rejected").increment(records);
        counter!("wavehouse_ingest_rejected_total",
            "tenant" => self.tenant.clone(), "table" => self.table.clone(), "code" => code)
        .increment(records);
    }
}

fn rows(tenant: &SharedString, table: &SharedString, outcome: &'static str) -> Counter {
    counter!("wavehouse_ingest_rows_total",
        "tenant" => tenant.clone(), "table" => table.clone(), "outcome" => outcome)
}
