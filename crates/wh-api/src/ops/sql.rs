//! `POST /v1/ops/query`: the operator's SQL, unchanged, to ClickHouse.

use super::{enter, fresh};
use crate::{
    app::App,
    body::{self, Bounds},
    clickhouse, codes,
    error::{ApiError, internal},
    json, rows,
    served::TenantState,
};
use axum::{
    extract::{Request, State},
    response::Response,
};
use http::header;
use std::{sync::Arc, time::Duration};
use wh_clickhouse::{Error, Query, QueryFailure, RoleCaps};

/// Most time a definition's answer waits for the schema to be read again; the reading goes on.
const REFRESH: Duration = Duration::from_secs(5);
/// Words that begin statements which change no table. All others are followed by a read of the schema.
const CHANGES_NO_TABLE: &[&str] = &[
    "SELECT", "FROM", "VALUES", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "EXISTS", "CHECK", "WITH", "INSERT", "DELETE",
    "UPDATE", "KILL", "OPTIMIZE", "USE", "SET", "GRANT", "REVOKE",
];
/// Of these, the ones that only read.
const READS: usize = 9;

#[derive(serde::Deserialize)]
struct Ask {
    sql: Option<String>,
}

/// `POST /v1/ops/query`.
pub(crate) async fn sql(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let tenant = Arc::clone(enter(&app, &head.headers, &head.uri)?);
    let bounds = Bounds { cap: app.options.sql_body_bytes, time: app.options.body_timeout, share: 2 };
    let taken = body::take(&head.headers, body, bounds, &app.budget).await?;
    let ask: Ask = json::object(&taken.bytes)
        .map_err(|error| ApiError::new(&codes::REQUEST_INVALID, format!("invalid json: {error}")))?;
    let missing = || ApiError::new(&codes::REQUEST_INVALID, "missing sql");
    let text = ask.sql.filter(|sql| !sql.trim().is_empty()).ok_or_else(missing)?;
    let verb = verb(&text).to_ascii_uppercase();
    let known = CHANGES_NO_TABLE.iter().position(|known| *known == verb);
    let request_id = head.headers.get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    tracing::info!(tenant = %tenant.runtime.tenant, request_id, verb, "operator SQL: {verb}");

    if known.is_some_and(|at| at < READS) {
        return run(&app, &tenant, text, true).await;
    }
    write(&app, &tenant, text, known.is_none()).await
}

/// Runs a statement that may write, to its end, whether or not its client stays: what it may have changed is told of in
/// any case, also after a failure, as one whose answer was lost may have happened.
async fn write(app: &Arc<App>, tenant: &Arc<TenantState>, text: String, defines: bool) -> Result<Response, ApiError> {
    let (own, tenant) = (Arc::clone(app), Arc::clone(tenant));
    let running = app.publishing.tasks.spawn("ops/sql", async move {
        let target = match &own.invalidation {
            Some(_) if !defines => tenant.relations.inserted_by(&text).await,
            _ => None,
        };
        let answer = run(&own, &tenant, text, false).await;
        end_answers(&own, &tenant, target.as_deref()).await;
        if defines {
            refresh(&tenant).await;
            // what was read meanwhile was looked up in the definitions from before
            end_answers(&own, &tenant, None).await;
        }
        answer
    });
    running.await.unwrap_or_else(|_| Err(internal()))
}

/// `target`: the one table that was written; without it everything on the server may have changed.
async fn end_answers(app: &App, tenant: &TenantState, target: Option<&str>) {
    let Some(invalidation) = &app.invalidation else { return };
    let client = &tenant.runtime.clickhouse;
    match target {
        Some(table) => invalidation.wrote(client, &tenant.relations, table).await,
        None => invalidation.everything(client).await,
    }
}

async fn run(app: &App, tenant: &TenantState, text: String, reads: bool) -> Result<Response, ApiError> {
    let mut query = Query::any(text).format(rows::FORMAT).timeout(tenant.runtime.limits.query_timeout);
    // a statement that writes is over, well or badly, before its answer begins
    query.wait_end = !reads;
    // a read ends in ClickHouse when its client leaves; anything ends there when we stop waiting for it
    query.read_only = reads;
    let most = tenant.runtime.limits.query_timeout.as_secs_f64().ceil();
    query = query.setting("max_execution_time", most.to_string());
    for (name, value) in rows::SETTINGS {
        query = query.setting(*name, *value);
    }
    let answer = tenant.runtime.clickhouse.query(query).await.map_err(|error| failed(&error, reads))?;
    let inline = answer.format().is_some_and(|format| format != rows::FORMAT);
    let media = if inline { answer.content_type().unwrap_or("application/octet-stream") } else { "application/json" };
    let media = media.to_owned();
    let mut whole =
        rows::Whole::read(answer, app.options.answer_bytes, &app.answers, |error| failed(error, reads)).await?;
    if !inline {
        whole.make_array();
    }
    Ok(fresh(([(header::CONTENT_TYPE, media)], whole)))
}

fn failed(error: &Error, reads: bool) -> ApiError {
    let mut answer = clickhouse::error(error, RoleCaps::default());
    if error.query_failure(RoleCaps::default()) == QueryFailure::Unknown {
        answer = answer.with_status(502);
    }
    // to repeat what may have happened is the operator's decision
    if !reads && error.in_doubt() { answer.without_retry() } else { answer }
}

async fn refresh(tenant: &TenantState) {
    match tokio::time::timeout(REFRESH, tenant.runtime.schema.refresh()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the schema could not be read after a definition"),
        Err(_) => tracing::warn!("the schema is still being read after a definition"),
    }
}

/// The first word of a statement, comments skipped. Empty where it begins with something else.
fn verb(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ';' | '(' | '\u{feff}'));
        let line = ["--", "#!", "# "].iter().any(|mark| rest.starts_with(mark));
        if line {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if rest.starts_with("/*") {
            rest = after_comment(rest);
        } else {
            break;
        }
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    &rest[..end]
}

/// What follows a comment at the start. Comments nest.
fn after_comment(text: &str) -> &str {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(found) = text[at..].find(['/', '*']).map(|found| at + found) {
        let pair = text.get(found..found + 2).unwrap_or_default();
        at = found + if matches!(pair, "/*" | "*/") { 2 } else { 1 };
        match pair {
            "/*" => depth += 1,
            "*/" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_found_behind_comments() {
        for (sql, word) in [
            ("SELECT 1", "SELECT"),
            ("  \n\t;(select 1)", "select"),
            ("/* a /* b */ SELECT */ -- x\n drop table t", "drop"),
            ("\u{feff}#! x\nCREATE TABLE t", "CREATE"),
            ("/* é ** / */ALTER TABLE t", "ALTER"),
            ("/* open", ""),
            ("-- only", ""),
            ("'x'", ""),
            ("", ""),
        ] {
            assert_eq!(verb(sql), word, "{sql}");
        }
        assert_eq!(CHANGES_NO_TABLE[READS - 1], "CHECK");
    }
}
