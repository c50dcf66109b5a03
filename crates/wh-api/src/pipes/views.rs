//! What pipes there are: for callers those they may run, for operators all of them whole.

use super::{
    caller::{Caller, missing},
    parameter::{Absent, Parameter},
    pipe::Pipe,
};
use crate::{app::App, error::ApiError, ops, params::Params};
use axum::{
    Json,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::ToSchema;

/// A pipe, as who may run it sees it.
#[derive(Serialize, ToSchema)]
#[schema(as = Pipe)]
pub(crate) struct PipeView<'a> {
    /// The last part of its path.
    name: &'a str,
    /// What it is for.
    description: &'a str,
    parameters: Vec<ParameterView<'a>>,
}

/// A parameter of a pipe.
#[derive(Serialize, ToSchema)]
#[schema(as = PipeParameter)]
pub(crate) struct ParameterView<'a> {
    name: &'a str,
    /// A type of ClickHouse's, or `string`, `number`, `boolean`, `array` or `any`.
    #[serde(rename = "type")]
    ty: &'a str,
    /// Whether it must be given.
    required: bool,
    /// What it is where it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    default: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
}

/// The pipes that a caller may run.
#[derive(Serialize, ToSchema)]
#[schema(as = Pipes)]
pub(crate) struct PipesView<'a> {
    pipes: Vec<PipeView<'a>>,
}

impl<'a> PipeView<'a> {
    fn new(pipe: &'a Pipe) -> Self {
        let parameters = pipe.parameters.iter().map(ParameterView::new).collect();
        Self { name: &pipe.name, description: &pipe.description, parameters }
    }
}

impl<'a> ParameterView<'a> {
    fn new(parameter: &'a Parameter) -> Self {
        let default = parameter.default.as_ref().filter(|_| !parameter.required).map(|default| match default {
            Absent::Json(json) => RawValue::from_string(json.clone()),
            Absent::Text(text) => serde_json::value::to_raw_value(text),
        });
        let default = default.and_then(Result::ok);
        Self {
            name: &parameter.name,
            ty: parameter.type_text(),
            required: parameter.required || parameter.used && default.is_none(),
            default,
            description: &parameter.description,
        }
    }
}

/// A pipe, as the operator sees it.
#[derive(Serialize)]
struct Definition<'a> {
    #[serde(flatten)]
    view: PipeView<'a>,
    sql: &'a str,
    allowed_roles: &'a [String],
    /// Not known before its first call.
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_execution_time_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_memory_usage: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_rows_to_read: Option<u64>,
}

#[derive(Serialize)]
struct Definitions<'a> {
    pipes: Vec<Definition<'a>>,
}

impl<'a> Definition<'a> {
    fn new(pipe: &'a Pipe) -> Self {
        let millis = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let limits = &pipe.limits;
        Self {
            view: PipeView::new(pipe),
            sql: &pipe.sql,
            allowed_roles: &pipe.allowed_roles,
            kind: pipe.known.last().map(|kind| kind.name()),
            cache_ttl_ms: pipe.ttl.map(millis),
            max_rows: limits.max_rows,
            max_execution_time_ms: limits.max_execution_time.map(millis),
            max_memory_usage: limits.max_memory_usage,
            max_rows_to_read: limits.max_rows_to_read,
        }
    }
}

/// `GET /v1/pipes`: those that the caller may run.
pub(crate) async fn list(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let caller = Caller::of(&app, request.headers())?;
    Params::new(request.uri()).only(&[])?;
    let set = caller.tenant.runtime.pipes.load();
    let pipes = set.iter().filter(|pipe| pipe.allows(&caller.role)).map(|pipe| PipeView::new(pipe)).collect();
    let mut response = Json(PipesView { pipes }).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// `GET /v1/ops/pipes`.
pub(crate) async fn definitions(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let tenant = ops::enter(&app, request.headers(), request.uri())?;
    Params::new(request.uri()).only(&["tenant"])?;
    let set = tenant.runtime.pipes.load();
    Ok(ops::fresh(Json(Definitions { pipes: set.iter().map(|pipe| Definition::new(pipe)).collect() })))
}

/// `GET /v1/ops/pipes/{name}`.
pub(crate) async fn definition(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let tenant = ops::enter(&app, request.headers(), request.uri())?;
    Params::new(request.uri()).only(&["tenant"])?;
    let set = tenant.runtime.pipes.load();
    let pipe = set.get(&name).ok_or_else(|| missing(&name))?;
    Ok(ops::fresh(Json(Definition::new(pipe))))
}
