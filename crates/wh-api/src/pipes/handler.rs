//! `GET` and `POST /v1/pipes/{name}`: the values of a call, what the statement is to ClickHouse, and the answer.

use super::{caller::Caller, given, kind, pipe::Pipe, run::Call};
use crate::{
    answers::Freshness,
    app::App,
    body::{self, Bounds},
    codes,
    error::ApiError,
    params::Params,
    query::Form,
    request_id::X_REQUEST_ID,
};
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, header};
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// What stands before a pipe's name.
const PATH: &str = "/v1/pipes/";

/// Runs a pipe.
pub(crate) async fn call(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let path = request.uri().path();
    let name = percent_decode_str(path.strip_prefix(PATH).unwrap_or(path)).decode_utf8_lossy().into_owned();
    let caller = Caller::of(&app, request.headers())?;
    let pipe = caller.pipe(&name)?;
    let begun = app.publishing.clock.now();
    let answer = answer(&app, &caller, &pipe, request).await;
    let outcome = answer.as_ref().map_or_else(|error| error.code().name, |_| "ok");
    let took = app.publishing.clock.now().duration_since(begun);
    app.meters.pipe(&caller.tenant.runtime.tenant, &pipe.name, outcome, took);
    answer
}

async fn answer(app: &Arc<App>, caller: &Caller, pipe: &Arc<Pipe>, request: Request) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let form = Form::of(&Params::new(&head.uri), &head.headers)?;
    let schema = caller.tenant.schema()?;
    let bounds = Bounds { cap: app.options.query_body_bytes, time: app.options.body_timeout, share: 2 };
    let taken = body::take(&head.headers, body, bounds, &app.budget).await?;
    let given = given::read(head.uri.query().unwrap_or_default(), &taken.bytes)?;
    drop(taken);
    let bound = pipe.bind(&given, &schema.timezone)?;
    drop(given);
    let id = head.headers.get(&X_REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    let call = Call::new(Arc::clone(&caller.tenant), Arc::clone(pipe), bound, form, Arc::clone(&schema.settings), id);
    let kind = match pipe.known.under(&schema) {
        Some(kind) => kind,
        None => {
            let asked = kind::ask(call.client(), call.bound()).await;
            let kind = Arc::new(asked.map_err(|error| call.failed(&error))?);
            pipe.known.set(&schema, &kind);
            kind
        }
    };
    if !kind.writes() {
        return call.read(app, Freshness::of(&head.headers)).await;
    }
    // whoever only wants to know what a path would say must change nothing
    if head.method == Method::HEAD {
        let refused = ApiError::new(&codes::METHOD_NOT_ALLOWED, "method HEAD not allowed: the pipe writes");
        return Ok(([(header::ALLOW, "GET,POST")], refused).into_response());
    }
    let mut response = call.write(app, kind).await?.into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
