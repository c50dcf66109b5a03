//! `/v1/ops`: the operator's view and hands. Every path demands the operator key before anything is looked up.

pub(crate) mod dead_letters;
mod sql;
mod views;

pub(crate) use sql::sql;
pub(crate) use views::{dlq_stats, queue, refresh, schema};

use crate::{app::App, error::ApiError, params::Params, served::TenantState};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Uri, header};
use std::sync::Arc;

/// Lets the operator in; the tenant is the parameter's, never the header's.
pub(crate) fn enter<'a>(app: &'a App, headers: &HeaderMap, uri: &Uri) -> Result<&'a Arc<TenantState>, ApiError> {
    app.key.demand(headers, &app.meters)?;
    app.served.named(Params::new(uri).get("tenant")?.unwrap_or_default().as_bytes())
}

/// Nothing an operator sees is for a cache.
pub(crate) fn fresh(answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
