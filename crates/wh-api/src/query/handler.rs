//! The handler: the query, ClickHouse's answer, and what was cut off it.

use super::{
    ast::Ast,
    build::{Bounds, Built, build},
    value::in_askers_words,
};
use crate::{
    app::App,
    body::{self, Bounds as BodyBounds},
    clickhouse, codes,
    error::ApiError,
    json,
    params::Params,
    rows::{self, Whole},
    served::TenantState,
};
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, header};
use std::sync::Arc;
use wh_clickhouse::{Error, Query, QueryFailure, READ_ONLY_USER, RoleCaps};

static X_CACHE: HeaderName = HeaderName::from_static("x-cache");
static X_TRUNCATED: HeaderName = HeaderName::from_static("x-truncated");

/// `POST /v1/query?table=`.
pub(crate) async fn query(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let tenant = app.served.of_headers(&head.headers)?;
    app.key.allow(&head.headers, &app.meters)?;
    let schema = tenant.schema()?;
    let table = tenant.table_schema(&Params::new(&head.uri).table()?)?;
    let bounds = BodyBounds { cap: app.options.query_body_bytes, time: app.options.body_timeout, share: 2 };
    let taken = body::take(&head.headers, body, bounds, &app.budget).await?;
    let ast: Ast = json::object(&taken.bytes)
        .map_err(|error| ApiError::new(&codes::QUERY_INVALID, format!("invalid query: {error}")))?;
    let limits = &tenant.runtime.limits;
    let bounds = Bounds { max_rows: limits.max_result_rows, now: app.publishing.clock.wall(), zone: &schema.timezone };
    let built = build(&ast, &table, bounds).map_err(|refused| ApiError::new(refused.code, refused.text))?;
    drop(taken);
    let (mut whole, mut truncated) = (Whole::default(), None);
    if let Some(built) = built {
        let (most, probes) = (built.most, built.probes);
        whole = run(&app, tenant, built).await?;
        if probes && whole.keep_lines(most) {
            truncated = HeaderValue::from_str(&format!("rows={most}")).ok();
        }
    }
    whole.make_array();
    let mut response = ([(header::CONTENT_TYPE, "application/json")], whole).into_response();
    response.headers_mut().insert(X_CACHE.clone(), HeaderValue::from_static("BYPASS"));
    if let Some(truncated) = truncated {
        response.headers_mut().insert(X_TRUNCATED.clone(), truncated);
    }
    Ok(response)
}

async fn run(app: &App, tenant: &TenantState, built: Built) -> Result<Whole, ApiError> {
    let timeout = tenant.runtime.limits.query_timeout;
    let mut query = Query::read(built.sql)
        .format(rows::FORMAT)
        .timeout(timeout)
        .setting("max_execution_time", timeout.as_secs().max(1).to_string());
    for (name, value) in rows::SETTINGS {
        query = query.setting(*name, *value);
    }
    for (name, value) in built.params {
        query = query.param(name, value);
    }
    let asked = tenant.runtime.clickhouse.query(query).await;
    let answer = asked.map_err(|error| failed(&error).reworded(|text| in_askers_words(text, &built.columns)))?;
    Whole::read(answer, app.options.answer_bytes, &app.answers).await
}

/// A missing grant is the operator's to give, not the asker's fault (decision D25). So is a user that may only read
/// and change no setting: nothing in a structured query asks for more.
fn failed(error: &Error) -> ApiError {
    if error.read_only_user() {
        tracing::warn!(%error, "the ClickHouse user cannot be used for queries: {READ_ONLY_USER}: {error}");
        return ApiError::new(&codes::CLICKHOUSE_MISCONFIGURED, format!("{READ_ONLY_USER}: {}", error.message()));
    }
    if error.query_failure(RoleCaps::default()) == QueryFailure::AccessDenied {
        tracing::warn!(%error, "a grant is missing for queries: {error}");
        return ApiError::new(&codes::CLICKHOUSE_MISCONFIGURED, error.message());
    }
    clickhouse::error(error, RoleCaps::default())
}
