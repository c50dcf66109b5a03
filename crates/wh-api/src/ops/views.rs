//! What the operator can look at: tables, dead letters, the queue.

use super::{enter, fresh};
use crate::{
    app::App,
    clickhouse,
    codes::{self, Code},
    error::ApiError,
    params::Params,
    served::TenantState,
    tenant::Mode,
};
use axum::{
    Json,
    extract::{Request, State},
    response::Response,
};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};
use wh_clickhouse::{Column, ColumnKind, QueryFailure, RoleCaps, Schema, TableSchema};
use wh_mq::BrokerStatus;

#[derive(Serialize)]
struct TableView<'a> {
    name: &'a str,
    engine: &'a str,
    mode: Mode,
    columns: Vec<ColumnView<'a>>,
}

#[derive(Serialize)]
struct ColumnView<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    ty: &'a str,
    is_nullable: bool,
    has_default: bool,
    position: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_kind: Option<&'static str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    default_expression: &'a str,
}

impl<'a> ColumnView<'a> {
    fn new(column: &'a Column) -> Self {
        let default_kind = match column.kind {
            ColumnKind::Ordinary => None,
            ColumnKind::Default => Some("DEFAULT"),
            ColumnKind::Materialized => Some("MATERIALIZED"),
            ColumnKind::Alias => Some("ALIAS"),
            ColumnKind::Ephemeral => Some("EPHEMERAL"),
        };
        Self {
            name: &column.name,
            ty: &column.type_text,
            is_nullable: column.nullable(),
            has_default: default_kind.is_some(),
            position: column.position,
            default_kind,
            default_expression: &column.default_expression,
        }
    }
}

fn table_view<'a>(tenant: &TenantState, table: &'a TableSchema) -> TableView<'a> {
    TableView {
        name: &table.name,
        engine: &table.engine,
        mode: tenant.runtime.limits.mode_of(&table.name),
        columns: table.columns().iter().map(ColumnView::new).collect(),
    }
}

fn tables_view(tenant: &TenantState, schema: &Schema) -> Response {
    let tables: Vec<_> = schema.tables.values().map(|table| table_view(tenant, table)).collect();
    fresh(Json(tables))
}

/// `GET /v1/ops/schema`.
pub(crate) async fn schema(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let tenant = enter(&app, request.headers(), request.uri())?;
    let params = Params::new(request.uri());
    params.only(&["table", "tenant"])?;
    match params.get("table")? {
        Some(name) => Ok(fresh(Json(table_view(tenant, &*tenant.table_schema(&name)?)))),
        None => Ok(tables_view(tenant, &*tenant.schema()?)),
    }
}

/// `POST /v1/ops/schema/refresh`.
pub(crate) async fn refresh(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let tenant = enter(&app, request.headers(), request.uri())?;
    let schema = tenant.runtime.schema.refresh().await.map_err(|error| {
        tracing::warn!(tenant = %tenant.runtime.tenant, %error, "schema refresh failed");
        if error.query_failure(RoleCaps::default()) == QueryFailure::Unavailable {
            return clickhouse::error(&error, RoleCaps::default());
        }
        ApiError::new(&codes::INTERNAL, format!("refresh failed: {}", error.message()))
    })?;
    Ok(tables_view(tenant, &schema))
}

/// `GET /v1/ops/dlq/stats`. Counts what the queue keeps, also of tables that are gone.
pub(crate) async fn dlq_stats(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let tenant = enter(&app, request.headers(), request.uri())?;
    let params = Params::new(request.uri());
    params.only(&["table", "tenant"])?;
    let only = params.get("table")?;
    let status = status(&app).await?;
    let kept = status.tenants.get(&tenant.runtime.tenant).map(|held| &held.dead_letters);
    let tables: BTreeMap<&str, u64> = kept
        .into_iter()
        .flatten()
        .map(|(table, count)| (table.as_str(), *count))
        .filter(|(table, _)| only.as_deref().is_none_or(|only| only == *table))
        .collect();
    let total: u64 = tables.values().sum();
    Ok(fresh(Json(serde_json::json!({ "tables": tables, "total": total }))))
}

/// `GET /v1/ops/queue`.
pub(crate) async fn queue(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    enter(&app, request.headers(), request.uri())?;
    let status = status(&app).await?;
    let tenants: BTreeMap<&str, _> = status
        .tenants
        .iter()
        .map(|(tenant, held)| {
            let dead_letters: u64 = held.dead_letters.values().sum();
            let view = serde_json::json!({
                "bytes": held.bytes,
                "budget_bytes": held.budget_bytes,
                "unsettled_rows": held.unsettled_rows,
                "unsettled_blocks": held.unsettled_blocks,
                "dead_letters": dead_letters,
                "dead_letters_dropped": held.dead_letters_dropped,
            });
            (tenant.as_str(), view)
        })
        .collect();
    Ok(fresh(Json(serde_json::json!({
        "accepting": status.accepting,
        "reason": status.reason,
        "epoch": status.epoch.map(|epoch| epoch.to_string()),
        "disk_bytes": status.disk_bytes,
        "tenants": tenants,
    }))))
}

async fn status(app: &App) -> Result<BrokerStatus, ApiError> {
    app.publishing.broker.status().await.map_err(|error| {
        let code = Code::by_name(error.code()).unwrap_or(&codes::QUEUE_FAILED);
        ApiError::new(code, error.to_string())
    })
}
