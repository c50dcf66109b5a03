//! What stands in the document of pipes.
//!
//! Nothing here is called. A test holds the list against the table of routes.
#![expect(dead_code, reason = "the attributes are read, not the functions")]

use crate::{error::Envelope, pipes::PipesView};

/// Runs a pipe, its values in the query string.
///
/// Parameters have names and types of the pipe's own: `/v1/pipes` lists them. A pipe that writes runs on every call.
#[utoipa::path(
    get, path = "/v1/pipes/{name}", operation_id = "pipe", tag = "query",
    params(
        ("name" = String, Path, description = "The pipe."),
        ("format" = Option<String>, Query, description = "json, ndjson, csv or arrow; wins over `Accept`."),
        ("numbers" = Option<String>, Query, description = "Of json and ndjson: `number` writes 64-bit and larger \
            numbers and decimals bare, `string` in quotes."),
        ("X-Tenant-ID" = String, Header, description = "The tenant; absent or empty means `0`."),
    ),
    responses(
        (status = 200, description = "The rows, as of a query; `[]` of a pipe that writes.", content(
            (Vec<Value> = "application/json"), (String = "application/x-ndjson"), (String = "text/csv"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"),
        ), headers(
            ("X-Truncated" = String, description = "`rows=N`: a bound of the server's or the pipe's cut the answer."),
            ("X-Cache" = String, description = "`HIT`: the answer was kept, `Age` says for how long; `MISS`: it was \
                computed; `BYPASS`: it was computed for this request alone."),
        )),
        (status = "4XX", description = "The call is at fault.", body = Envelope<'static>),
        (status = "5XX", description = "ClickHouse or this server is. A pipe that writes is never to be tried again \
            without a look.", body = Envelope<'static>),
    ),
)]
pub(super) fn run() {}

/// Runs a pipe, its values in the body.
///
/// Those of the query string count where the body has none.
#[utoipa::path(
    post, path = "/v1/pipes/{name}", operation_id = "pipe_with_body", tag = "query",
    params(
        ("name" = String, Path, description = "The pipe."),
        ("format" = Option<String>, Query, description = "json, ndjson, csv or arrow; wins over `Accept`."),
        ("numbers" = Option<String>, Query, description = "As for `GET`."),
        ("X-Tenant-ID" = String, Header, description = "The tenant; absent or empty means `0`."),
    ),
    request_body(content = Value, example = json!({"origin": "DTW", "ids": [1, 2]})),
    responses(
        (status = 200, description = "As of `GET`.", content(
            (Vec<Value> = "application/json"), (String = "application/x-ndjson"), (String = "text/csv"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"),
        )),
        (status = "4XX", description = "The call is at fault.", body = Envelope<'static>),
        (status = "5XX", description = "ClickHouse or this server is.", body = Envelope<'static>),
    ),
)]
pub(super) fn run_with() {}

/// The pipes that the caller may run.
#[utoipa::path(
    get, path = "/v1/pipes", operation_id = "pipes", tag = "query",
    params(("X-Tenant-ID" = String, Header, description = "The tenant; absent or empty means `0`.")),
    responses(
        (status = 200, description = "Names and parameters.", body = PipesView<'static>),
        (status = "4XX", description = "The request is at fault.", body = Envelope<'static>),
    ),
)]
pub(super) fn list() {}

/// All pipes, whole.
#[utoipa::path(
    get, path = "/v1/ops/pipes", operation_id = "ops_pipes", tag = "operator", security(("operator_key" = [])),
    params(("tenant" = Option<String>, Query, description = "The tenant; default `0`.")),
    responses(
        (status = 200, description = "With statements, roles and bounds.", body = Value),
        (status = "4XX", description = "The request or the key is at fault.", body = Envelope<'static>),
    ),
)]
pub(super) fn definitions() {}

/// One pipe, whole.
#[utoipa::path(
    get, path = "/v1/ops/pipes/{name}", operation_id = "ops_pipe", tag = "operator", security(("operator_key" = [])),
    params(
        ("name" = String, Path, description = "The pipe."),
        ("tenant" = Option<String>, Query, description = "The tenant; default `0`."),
    ),
    responses(
        (status = 200, description = "With its statement, roles and bounds.", body = Value),
        (status = "4XX", description = "The request or the key is at fault.", body = Envelope<'static>),
    ),
)]
pub(super) fn definition() {}
