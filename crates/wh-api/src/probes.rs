//! `/livez`, `/readyz`, `/version`, `/metrics`, `/v1/health` (decision D33). Open to everybody; nothing secret in them.

use crate::{Surface, app::App, error::ApiError};
use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde::Serialize;
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// Most time the queue has to say whether it accepts.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most characters of a reason that are shown.
const REASON_LIMIT: usize = 300;

/// What `/version` says.
#[derive(Clone, Debug, Serialize)]
pub struct Version {
    /// Of the release, or `dev`.
    pub version: String,
    /// The commit it was built from, or `unknown`.
    pub git_commit: String,
    /// When it was built, or `unknown`.
    pub build_time: String,
}

/// How one thing that readiness is about stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// As it should be.
    Good,
    /// Something is missing that requests can do without for a while.
    Degraded(String),
    /// The process should get no traffic.
    Failed(String),
}

/// Something else that decides whether the process is ready.
#[derive(Clone)]
pub struct Check {
    /// Its name in the body of `/readyz`.
    pub name: &'static str,
    /// Looks; never waits.
    pub look: Arc<dyn Fn() -> Health + Send + Sync>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Check({})", self.name)
    }
}

#[derive(Serialize)]
struct Ready {
    status: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    failed: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    degraded: BTreeMap<String, String>,
}

/// 200 once the port is open: it says nothing of anything outside the process.
pub(crate) async fn live() -> Response {
    Json(serde_json::json!({ "status": "ok" })).into_response()
}

pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    let mut seen = vec![schema(&app)];
    if app.options.ask_queue {
        seen.push(("queue".to_owned(), queue(&app).await));
    }
    for tenant in app.served.iter() {
        let fault = || tenant.runtime.schema.get().and_then(|schema| schema.user_fault().map(str::to_owned));
        let stats = tenant.runtime.schema.stats();
        // what ClickHouse says names its users and versions
        let coded = stats.last_code.map(|_| format!("{}; the server's log has the reason", tenant.unread()));
        if let Some(reason) = coded.or(stats.last_error).or_else(fault) {
            seen.push((format!("clickhouse of tenant {}", tenant.runtime.tenant), Health::Degraded(reason)));
        }
    }
    if let Some(claims) = &app.publishing.claims {
        seen.push(("dedupe".to_owned(), claims.health()));
    }
    seen.extend(app.checks.iter().map(|check| (check.name.to_owned(), (check.look)())));
    if app.publishing.stop.given() {
        seen.push(("process".to_owned(), Health::Failed("shutting down".to_owned())));
    }
    let mut ready = Ready { status: "ready", failed: BTreeMap::new(), degraded: BTreeMap::new() };
    for (name, health) in seen {
        let shorten = |reason: String| reason.chars().take(REASON_LIMIT).collect();
        match health {
            Health::Good => {}
            Health::Degraded(reason) => drop(ready.degraded.insert(name, shorten(reason))),
            Health::Failed(reason) => drop(ready.failed.insert(name, shorten(reason))),
        }
    }
    let mut status = StatusCode::OK;
    if !ready.failed.is_empty() {
        (status, ready.status) = (StatusCode::SERVICE_UNAVAILABLE, "not ready");
    } else if !ready.degraded.is_empty() {
        ready.status = "degraded";
    }
    (status, Json(ready)).into_response()
}

async fn queue(app: &App) -> Health {
    match tokio::time::timeout(PATIENCE, app.publishing.broker.status()).await {
        Ok(Ok(status)) if status.accepting => Health::Good,
        Ok(Ok(status)) => Health::Failed(status.reason.unwrap_or_else(|| "accepts nothing".to_owned())),
        Ok(Err(error)) => Health::Failed(error.to_string()),
        Err(_) => Health::Failed(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

fn schema(app: &App) -> (String, Health) {
    let known = app.served.iter().any(|tenant| tenant.runtime.schema.get().is_some());
    let unknown = || {
        let why = app.served.iter().next().map_or_else(String::new, |tenant| format!(": {}", tenant.unread()));
        format!("no tenant's tables are known yet{why}")
    };
    let health = match app.options.surface {
        _ if known => Health::Good,
        Surface::Full => Health::Failed(unknown()),
        // rows wait in the queue meanwhile
        Surface::Operator => Health::Degraded(unknown()),
    };
    ("schema".to_owned(), health)
}

/// The same as `/livez` for a tenant's clients: empty.
pub(crate) async fn health(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    app.served.of_headers(request.headers())?;
    Ok(StatusCode::OK.into_response())
}

pub(crate) async fn version(State(app): State<Arc<App>>) -> Response {
    Json(&app.version).into_response()
}

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    app.meters.held.set(to_f64(app.budget.held()));
    let text = app.metrics.as_ref().map(|(_, render)| render()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is read by people")]
fn to_f64(bytes: usize) -> f64 {
    bytes as f64
}
