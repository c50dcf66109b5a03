//! Every error code an answer can carry: one table. `docs/errors.md` is printed from it.

/// One row of the table. Compared by its name.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) name: &'static str,
    pub(crate) status: u16,
    /// `Retry-After` in seconds where the failure itself names none; `None`: the same request fails again.
    pub(crate) retry_after: Option<u32>,
    pub(crate) meaning: &'static str,
}

impl Code {
    pub(crate) fn retryable(&self) -> bool {
        self.retry_after.is_some()
    }

    /// The code of that name, for failures that bring their own.
    pub(crate) fn by_name(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|code| code.name == name).copied()
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for Code {}

macro_rules! codes {
    ($($id:ident = $name:literal, $status:literal, $retry:expr, $meaning:literal;)*) => {
        $(pub(crate) static $id: Code = Code { name: $name, status: $status, retry_after: $retry, meaning: $meaning };)*
        /// In the order of the document.
        pub(crate) static ALL: &[&Code] = &[$(&$id),*];
    };
}

codes! {
    ROUTE_NOT_FOUND = "route.not_found", 404, None, "No such path.";
    METHOD_NOT_ALLOWED = "route.method_not_allowed", 405, None, "The path exists, but not with this method; `Allow` lists those it has.";
    REQUEST_INVALID = "request.invalid", 400, None, "A parameter of the query string or the request body has the wrong form; the text names it.";
    REQUEST_TIMEOUT = "request.timeout", 503, Some(5), "The request took longer than the server allows. What it had begun may still happen.";
    INTERNAL = "internal", 500, None, "A fault of ours. The log has the request id.";
    SERVER_BUSY = "server.busy", 503, Some(5), "Too many request bodies, or too many rows of this table, are held in memory right now. Nothing of this request was stored.";
    SERVER_STARTING = "server.starting", 503, Some(1), "This process is starting.";
    SERVER_STOPPING = "server.stopping", 503, Some(5), "This process is shutting down.";

    TENANT_INVALID = "tenant.invalid", 400, None, "The tenant id does not follow the grammar `[A-Za-z0-9_-]{1,64}`, or was given more than once.";
    TENANT_NOT_FOUND = "tenant.not_found", 404, None, "This server does not serve that tenant.";
    TOKEN_INVALID = "auth.token_invalid", 401, None, "The bearer token is not valid. A presented credential that is bad is always refused.";
    OPERATOR_KEY_INVALID = "auth.operator_key_invalid", 401, None, "The operator key is wrong, or was given more than once.";
    AUTH_REQUIRED = "auth.required", 401, None, "This path needs the operator key: `Authorization: Operator <key>` or `X-Operator-Key`; or, for pipes, a role, and who presents nothing has none here.";
    OPS_FORBIDDEN = "ops.forbidden", 403, None, "This server has no operator key configured (`auth.operator_key_file`), so nobody may use `/v1/ops`.";

    TABLE_MISSING = "table.missing", 400, None, "The query string names no `table`.";
    TABLE_NOT_FOUND = "table.not_found", 404, None, "No such table, or none that you may see.";
    TABLE_NOT_WRITABLE = "table.not_writable", 400, None, "The table is a view or a dictionary: it takes no rows.";
    SCHEMA_NOT_LOADED = "schema.not_loaded", 503, Some(5), "The tables are not known yet: since this process started ClickHouse has not answered, or with an error, whose number the text has.";

    ACCEPT = "accept.unsupported", 406, None, "No form of answers fits `Accept`; the text has those there are.";
    CONTENT_TYPE = "content_type.unsupported", 415, None, "`Content-Type` is missing, is none of the accepted types, or names several.";
    CONTENT_ENCODING = "content_encoding.unsupported", 415, None, "`Content-Encoding` is none of gzip, zstd, lz4 and identity.";
    BODY_TOO_LARGE = "body.too_large", 413, None, "The decoded body is larger than this path takes.";
    TOO_MANY_RECORDS = "body.too_many_records", 413, None, "The body has more than 1,000,000 records. Nothing was stored.";
    BODY_EMPTY = "body.empty", 400, None, "The body is empty. An empty batch is `[]`.";
    BODY_BROKEN = "body.broken", 400, None, "The body ended before its declared end, or its transfer coding is wrong. Nothing was stored.";
    BODY_ENCODING = "body.encoding", 400, None, "The body is not what its `Content-Encoding` says.";
    BODY_TIMEOUT = "body.timeout", 408, Some(1), "The body did not arrive in time. Nothing was stored.";

    JSON_MALFORMED = "json.malformed", 400, None, "Not JSON; the text names the byte, counted from 0 in the decoded body.";
    JSON_TRUNCATED = "json.truncated", 400, None, "The text ends inside a record or before the closing bracket. A document cut so is refused whole.";
    JSON_TRAILING = "json.trailing", 400, None, "Something follows where the record, or the body, should end. Never dropped silently.";
    JSON_UTF8 = "json.utf8", 400, None, "Not UTF-8; the text names the byte.";
    JSON_DEPTH = "json.depth", 400, None, "Nested deeper than 128 levels.";
    JSON_NOT_OBJECT = "json.not_object", 400, None, "The record is JSON but no object.";
    JSON_DUPLICATE_KEY = "json.duplicate_key", 400, None, "A key occurs twice at the top level of the record, compared after unescaping.";
    CSV_MALFORMED = "csv.malformed", 400, None, "Not CSV: behind a quote that is wrong nobody knows where a record ends, so the body is refused whole; the text names the byte.";
    CSV_HEADER = "csv.header", 400, None, "The first line of a CSV or TSV body names a column twice, or may be a header or not. Nothing was stored.";
    CSV_CELLS = "csv.cells", 400, None, "The line has another number of cells than the header, or the table, has columns.";
    ROW_TOO_LARGE = "row.too_large", 400, None, "The record is larger than `ingest.max_row_bytes`.";
    COLUMN_NOT_FOUND = "column.not_found", 400, None, "No such column, or none that you may see.";
    COLUMN_NOT_WRITABLE = "column.not_writable", 400, None, "The column is computed (MATERIALIZED or ALIAS): a record cannot give it a value.";
    COLUMN_REQUIRED = "column.required", 400, None, "Strict mode: the column has neither a default nor NULL, and the record gives it no value.";
    COLUMN_TYPE = "column.type", 400, None, "The column's type does not take a JSON value of this kind.";
    COLUMN_VALUE = "column.value", 400, None, "ClickHouse cannot read the value as the column's type, and would refuse it.";
    COLUMN_RANGE = "column.range", 400, None, "Strict mode: ClickHouse would not store the value as it was given: it would wrap, clamp, zero or drop something. `docs/guide/types.md` has what each type takes.";
    ALL_REJECTED = "ingest.all_rejected", 400, None, "Every record was refused, for more than one reason; `results` has each.";

    DEDUPE_ID_MISSING = "dedupe.id_missing", 400, None, "Events of this table must have an id (`require_id`), and the record has none: the column is left out, null or empty.";
    DEDUPE_ID_INVALID = "dedupe.id_invalid", 400, None, "The id of the record is an array or an object, or text with half of a surrogate pair: ids are text, numbers or booleans.";
    DEDUPE_BUSY = "dedupe.busy", 503, Some(1), "A record with the same id is being stored right now, or nobody knows yet whether it was.";
    DEDUPE_UNAVAILABLE = "dedupe.unavailable", 503, Some(5), "The store of ids cannot be reached or takes no more, so nobody can tell whether the records were stored before; they were not stored.";
    DEDUPE_FAILED = "dedupe.failed", 503, Some(30), "The store of ids fails in a way that an operator must look at; the records were not stored.";
    IDEMPOTENCY_KEY = "idempotency.key_invalid", 400, None, "`Idempotency-Key` is empty, longer than 255 bytes, given twice, or not visible ASCII.";
    IDEMPOTENCY_UNSUPPORTED = "idempotency.unsupported", 501, None, "This server keeps no keys (`dedupe.backend: none`): an `Idempotency-Key` would promise what it cannot keep.";
    IDEMPOTENCY_MISMATCH = "idempotency.mismatch", 409, None, "The `Idempotency-Key` came before with another body. Nothing of this request was stored.";
    IDEMPOTENCY_RUNNING = "idempotency.running", 503, Some(1), "A request with the same `Idempotency-Key` is still at work.";

    QUEUE_BAD_BLOCK = "queue.bad_block", 400, None, "The queue cannot carry a record this large.";
    QUEUE_FULL = "queue.full", 503, Some(30), "The tenant's or the table's share of the queue is full.";
    QUEUE_NO_SPACE = "queue.no_space", 503, Some(30), "The queue's store is out of space.";
    QUEUE_UNAVAILABLE = "queue.unavailable", 503, Some(5), "The queue cannot be reached; the records were not stored.";
    QUEUE_UNKNOWN = "queue.outcome_unknown", 503, Some(5), "Whether the records were stored is not known. Sending them again may store them twice, unless they carry a dedupe id.";
    QUEUE_STOPPING = "queue.stopping", 503, Some(5), "The queue is closing.";
    QUEUE_DENIED = "queue.denied", 503, Some(30), "The queue refuses this server: an operator must act.";
    QUEUE_FAILED = "queue.failed", 503, Some(30), "The queue failed in a way that an operator must look at.";
    QUEUE_UNSUPPORTED = "queue.unsupported", 501, None, "This queue has no such operation.";

    DEAD_LETTER_NOT_FOUND = "dead_letter.not_found", 404, None, "There is no such dead letter: it was replayed, purged, or dropped for want of room.";
    DEAD_LETTERS_BUSY = "dead_letter.busy", 503, Some(5), "This process checks, replays or purges other dead letters right now; one request at a time does.";

    QUERY_INVALID = "query.invalid", 400, None, "The query has the wrong form; the text names the member.";
    PIPE_NOT_FOUND = "pipe.not_found", 404, None, "No such pipe, or none that you may run.";
    PIPE_BODY = "pipe.body_invalid", 400, None, "The body is not one JSON object of parameters, or has one of them twice.";
    PIPE_PARAMETER_UNKNOWN = "pipe.parameter_unknown", 400, None, "The pipe has no parameter of that name; the text lists those it has.";
    PIPE_PARAMETER_MISSING = "pipe.parameter_missing", 400, None, "A parameter that has no default is not given; the text names it.";
    PIPE_PARAMETER_INVALID = "pipe.parameter_invalid", 400, None, "A value does not fit its parameter's type; the text names the parameter and the reason.";
    PIPE_UNUSABLE = "pipe.unusable", 502, None, "The pipe cannot be run as the server's settings have it: an operator must act.";
    CLICKHOUSE_LIMIT = "clickhouse.limit_exceeded", 400, None, "The query needs more than it may use.";
    CLICKHOUSE_REJECTED = "clickhouse.rejected", 400, None, "ClickHouse refuses the query; the text is its own.";
    CLICKHOUSE_DENIED = "clickhouse.access_denied", 403, None, "ClickHouse's user lacks a grant for this statement.";
    CLICKHOUSE_MISCONFIGURED = "clickhouse.misconfigured", 502, None, "The server's ClickHouse credentials, grants or address are wrong: an operator must act.";
    CLICKHOUSE_UNAVAILABLE = "clickhouse.unavailable", 503, Some(5), "ClickHouse cannot be reached or cannot answer now.";
    CLICKHOUSE_TOO_LARGE = "clickhouse.response_too_large", 502, None, "ClickHouse's answer is larger than this server holds.";
    CLICKHOUSE_UNKNOWN = "clickhouse.unknown", 500, Some(5), "ClickHouse failed in a way that is not recognised. 502 on `/v1/ops/query`.";

    STREAM_TENANT_TOO_MANY = "stream.tenant_too_many", 429, Some(5), "The tenant has as many open streams in this process as it may (`stream.max_connections`).";
    STREAM_TOO_MANY = "stream.too_many", 503, Some(5), "This process has as many open streams as it allows (`server.max_streams`).";
    STREAM_UNAVAILABLE = "stream.unavailable", 503, Some(5), "The live stream of the table cannot be opened now.";
    CURSOR_INVALID = "stream.cursor_invalid", 400, None, "`Last-Event-ID` or `since` cannot be read.";
    STREAM_FILTER_UNSUPPORTED = "stream.filter_unsupported", 400, None, "The filter asks for what a stream cannot decide exactly as ClickHouse would: a pair of type and operator that is not in the table of `docs/guide/streams.md`, a form of value, or a computed column. The text names it and the reason.";
}

/// The text of `docs/errors.md`.
#[must_use]
pub fn errors_markdown() -> String {
    let mut out = String::from(
        "# Error codes\n\n\
         Generated from the table in `crates/wh-api/src/codes.rs`; do not edit by hand\n\
         (`cargo run -p wh-api --example errors_doc -- docs/errors.md`).\n\n\
         Every answer with a status of 400 or above is a JSON object:\n\n\
         ```json\n\
         {\"error\": \"what went wrong, for people\", \"code\": \"json.malformed\", \"retryable\": false, \"request_id\": \"...\"}\n\
         ```\n\n\
         `code` is stable: decide by it, never by the text. `retryable` says whether the same request may succeed\n\
         later; then `Retry-After` says when, in seconds. On `POST /v1/ingest` the object also holds the summary of\n\
         the request (`docs/guide/http.md`), and the same codes occur per record in `results`.\n\n\
         | Code | Status | Retry-After | Meaning |\n|---|---|---|---|\n",
    );
    for Code { name, status, retry_after, meaning } in ALL {
        let retry = retry_after.map_or_else(|| "no retry".to_owned(), |seconds| format!("{seconds} s"));
        out.push_str(&format!("| `{name}` | {status} | {retry} | {meaning} |\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_a_retry_is_promised_by_503_429_408_or_unknown_only() {
        let names: BTreeSet<_> = ALL.iter().map(|code| code.name).collect();
        assert_eq!(names.len(), ALL.len());
        for code in ALL {
            let may_retry = matches!(code.status, 503 | 429 | 408) || code.name == "clickhouse.unknown";
            assert_eq!(code.retryable(), may_retry, "{}", code.name);
            assert!(Code::by_name(code.name).is_some());
        }
    }

    #[test]
    fn the_document_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
        let there = std::fs::read_to_string(path).unwrap_or_default();
        let how = "docs/errors.md is stale: cargo run -p wh-api --example errors_doc -- docs/errors.md";
        assert!(there == errors_markdown(), "{how}");
    }
}
