//! What stands in the document of paths whose bodies have no type of ours: rows, statements, events.
//!
//! Nothing here is called. A test holds the list against the table of routes.
#![expect(dead_code, reason = "the attributes are read, not the functions")]

use crate::{error::Envelope, query::Ast};

/// Asks one table.
///
/// Names are checked against the schema, values travel as typed parameters.
#[utoipa::path(
    post, path = "/v1/query", operation_id = "query", tag = "query",
    params(
        ("table" = String, Query, description = "The table."),
        ("format" = Option<String>, Query, description = "json, ndjson, csv or arrow; wins over `Accept`."),
        ("numbers" = Option<String>, Query, description = "Of json and ndjson: `number` writes 64-bit and larger \
            numbers and decimals bare, `string` in quotes."),
        ("X-Tenant-ID" = String, Header, description = "The tenant; absent or empty means `0`."),
        ("Cache-Control" = Option<String>, Header, description = "`no-cache`, `no-store`, `max-age`."),
    ),
    request_body(content = Ast, example = json!({"columns": ["origin"], "group_by": ["origin"],
        "aggregations": [{"fn": "count", "alias": "flights"}], "limit": 10})),
    responses(
        (status = 200, description = "The rows. One JSON array is whole; the other forms are streamed, and their \
            transfer is broken off where they fail.", content(
            (Vec<Value> = "application/json"), (String = "application/x-ndjson"), (String = "text/csv"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"),
        ), headers(
            ("X-Truncated" = String, description = "`rows=N`: the server's own bound cut the answer."),
            ("X-Next-Cursor" = String, description = "Where the next page begins."),
            ("X-Cache" = String, description = "`HIT`: the answer was kept; `MISS`: it was computed; `BYPASS`: for this \
                request alone."),
            ("Age" = i64, description = "Of a hit: for how many seconds it was kept."),
            ("X-Wh-Committed" = String, description = "Everything up to this block is in the answer."),
            ("X-Wh-Inserting" = String, description = "Nothing beyond this block is."),
        )),
        (status = "4XX", description = "The query is at fault.", body = Envelope<'static>),
        (status = "5XX", description = "ClickHouse or this server is.", body = Envelope<'static>),
    ),
)]
pub(super) fn query() {}

/// Watches tables: their rows as they are stored, and those that were.
///
/// Server-sent events; `docs/stream-events.schema.json` has a schema for the data of each.
#[utoipa::path(
    get, path = "/v1/stream", operation_id = "stream", tag = "events",
    params(
        ("table" = Vec<String>, Query, description = "The table, or up to 16 of them."),
        ("since" = Option<String>, Query, description = "The id of the last event seen, an RFC 3339 time, or an age like \
            `15m`; without it: what is stored from now on."),
        ("columns" = Option<String>, Query, description = "Names of the columns that are shown, with commas between them, \
            or a JSON array of names. `columns.<table>`: of one of several tables."),
        ("filter" = Option<String>, Query, description = "A condition as in the body of a query, or an array of them, as \
            JSON: the rows that are shown. `filter.<table>`: of one of several tables."),
        ("slow" = Option<String>, Query, description = "What a client gets that is too slow: `gap`, `end` or `latest`."),
        ("key" = Option<Vec<String>>, Query, description = "For `latest`: the columns that rows are told apart by."),
        ("events" = Option<String>, Query, description = "`committed`: also how far the rows are on their way."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event seen, as browsers send it; goes \
            before `since`."),
        ("X-Tenant-ID" = String, Header, description = "The tenant; absent or empty means `0`."),
    ),
    responses(
        (status = 200, description = "Events `row`, `ready`, `gap`, `committed` and `end`.", body = String,
            content_type = "text/event-stream"),
        (status = "4XX", description = "The request is at fault.", body = Envelope<'static>),
        (status = "5XX", description = "This server is.", body = Envelope<'static>),
    ),
)]
pub(super) fn stream() {}

/// Whether the tenant is served.
#[utoipa::path(get, path = "/v1/health", operation_id = "health", tag = "probe", responses(
    (status = 200, description = "It is."), (status = 404, description = "It is not.", body = Envelope<'static>),
))]
pub(super) fn health() {}

/// Whether the process lives.
#[utoipa::path(get, path = "/livez", operation_id = "livez", tag = "probe", responses(
    (status = 200, description = "Its port is open.", body = Value),
))]
pub(super) fn live() {}

/// Whether the process can do its work.
#[utoipa::path(get, path = "/readyz", operation_id = "readyz", tag = "probe", responses(
    (status = 200, description = "It can; `degraded` names what is missing.", body = Value),
    (status = 503, description = "It cannot; `failed` says why.", body = Value),
))]
pub(super) fn ready() {}

/// What runs.
#[utoipa::path(get, path = "/version", operation_id = "version", tag = "probe", responses(
    (status = 200, description = "Version, commit and time of the build.", body = Value),
))]
pub(super) fn version() {}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "openapi", tag = "probe", responses(
    (status = 200, description = "The document.", body = Value),
))]
pub(super) fn openapi() {}

/// Runs SQL unchanged.
#[utoipa::path(
    post, path = "/v1/ops/query", operation_id = "ops_query", tag = "operator", security(("operator_key" = [])),
    params(("tenant" = Option<String>, Query, description = "The tenant; default `0`.")),
    request_body(content = Value, example = json!({"sql": "SELECT 1"})),
    responses(
        (status = 200, description = "An array of rows, or what the statement's FORMAT says.", body = Value),
        (status = "4XX", description = "The statement or the key is at fault.", body = Envelope<'static>),
        (status = "5XX", description = "ClickHouse or this server is.", body = Envelope<'static>),
    ),
)]
pub(super) fn sql() {}

/// The tables, or one.
#[utoipa::path(
    get, path = "/v1/ops/schema", operation_id = "ops_schema", tag = "operator", security(("operator_key" = [])),
    params(
        ("tenant" = Option<String>, Query, description = "The tenant; default `0`."),
        ("table" = Option<String>, Query, description = "One table."),
    ),
    responses(
        (status = 200, description = "Columns with types, defaults and mode.", body = Value),
        (status = "4XX", description = "The request or the key is at fault.", body = Envelope<'static>),
    ),
)]
pub(super) fn schema() {}

/// Reads the schema now.
#[utoipa::path(
    post, path = "/v1/ops/schema/refresh", operation_id = "ops_schema_refresh", tag = "operator",
    security(("operator_key" = [])),
    params(("tenant" = Option<String>, Query, description = "The tenant; default `0`.")),
    responses(
        (status = 200, description = "It was read.", body = Value),
        (status = "5XX", description = "It could not be read.", body = Envelope<'static>),
    ),
)]
pub(super) fn refresh() {}

/// What the queue holds.
#[utoipa::path(
    get, path = "/v1/ops/queue", operation_id = "ops_queue", tag = "operator", security(("operator_key" = [])),
    params(("tenant" = Option<String>, Query, description = "The tenant; default `0`.")),
    responses(
        (status = 200, description = "By tenant, and whether it accepts.", body = Value),
        (status = "4XX", description = "The key is at fault.", body = Envelope<'static>),
    ),
)]
pub(super) fn queue() {}
