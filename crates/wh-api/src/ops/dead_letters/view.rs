//! Looking: a list, one letter, and how many there are.

use super::{
    failed,
    select::{FilterText, cursor, id, invalid, limit},
};
use crate::{
    app::App,
    codes,
    error::{ApiError, shown},
    ops::{enter, fresh},
    params::Params,
};
use axum::{
    Json,
    extract::{Path, Request, State},
    response::Response,
};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use wh_mq::{DeadLetter, DeadLetterCursor, DeadLetterFilter, DeadLetterQuery};
use wh_types::{Table, Tenant};

/// Most letters of one list; the beginning of a body that it shows.
const LISTED: usize = 100;
const MOST_LISTED: usize = 1_000;
const START: usize = 256;
/// Most time for counting codes.
const COUNTING: Duration = Duration::from_secs(20);

#[derive(Serialize)]
struct View<'a> {
    id: String,
    table: &'a str,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<&'a str>,
    reason: &'a str,
    attempted: String,
    received: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_until: Option<String>,
    body_bytes: usize,
    /// The whole body, or its beginning in a list.
    body: String,
    /// How `body` is written.
    body_encoding: &'static str,
}

impl<'a> View<'a> {
    fn new(letter: &'a DeadLetter, most: usize) -> Self {
        let (body, body_encoding) = text(&letter.body, most);
        Self {
            id: letter.id.to_string(),
            table: letter.table.as_str(),
            code: &letter.code,
            column: letter.column.as_deref(),
            reason: &letter.reason,
            attempted: letter.attempted.to_string(),
            received: letter.received.to_string(),
            retry_until: letter.retry_until.map(|until| until.to_string()),
            body_bytes: letter.body.len(),
            body,
            body_encoding,
        }
    }
}

/// As text where it is one.
fn text(body: &[u8], most: usize) -> (String, &'static str) {
    match std::str::from_utf8(body) {
        Ok(text) => (text[..text.floor_char_boundary(most)].to_owned(), "text"),
        Err(_) => (base64(&body[..body.len().min(most)]), "base64"),
    }
}

/// RFC 4648, padded.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// `GET /v1/ops/dead-letters`.
pub(crate) async fn list(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let tenant = enter(&app, request.headers(), request.uri())?;
    let params = Params::new(request.uri());
    params.only(&["tenant", "table", "code", "reason", "from", "until", "held", "limit", "cursor"])?;
    let filter = FilterText::of(&params)?.read(app.publishing.clock.wall())?;
    let wanted = params.get("limit")?.map(|text| text.parse().map_err(|_| invalid("\"limit\" is a whole number")));
    let wanted = limit(wanted.transpose()?, LISTED, MOST_LISTED)?;
    let cursor = cursor(params.get("cursor")?.as_deref())?;
    let query = DeadLetterQuery { ids: None, filter, cursor, limit: wanted };
    let page = app.publishing.broker.dead_letters(&tenant.runtime.tenant, &query).await;
    let page = page.map_err(|error| failed(&error))?;
    let letters: Vec<View<'_>> = page.letters.iter().map(|letter| View::new(letter, START)).collect();
    Ok(fresh(Json(serde_json::json!({ "letters": letters, "next": page.next.map(|next| next.to_string()) }))))
}

/// `GET /v1/ops/dead-letters/{id}`.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let tenant = enter(&app, request.headers(), request.uri())?;
    Params::new(request.uri()).only(&["tenant"])?;
    let wanted = id(&name)?;
    let query = DeadLetterQuery { ids: Some(vec![wanted]), limit: 1, ..DeadLetterQuery::default() };
    let page = app.publishing.broker.dead_letters(&tenant.runtime.tenant, &query).await;
    let page = page.map_err(|error| failed(&error))?;
    let Some(letter) = page.letters.first() else {
        let text = format!("there is no dead letter {}; it may have been replayed or purged", shown(name.as_bytes()));
        return Err(ApiError::new(&codes::DEAD_LETTER_NOT_FOUND, text));
    };
    Ok(fresh(Json(View::new(letter, usize::MAX))))
}

#[derive(Serialize)]
struct Count<'a> {
    tenant: &'a str,
    table: &'a str,
    /// Of the table, as the queue counts them.
    total: u64,
    /// By code, as far as was looked.
    codes: BTreeMap<String, u64>,
    held: u64,
}

/// `GET /v1/ops/dead-letters/counts`: one tenant's where one is named, else all tenants'.
pub(crate) async fn counts(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let named = enter(&app, request.headers(), request.uri())?;
    let params = Params::new(request.uri());
    params.only(&["tenant", "table"])?;
    let only = params.get("tenant")?.map(|_| named.runtime.tenant.clone());
    let table = FilterText::of(&params)?.read(app.publishing.clock.wall())?.table;
    let status = app.publishing.broker.status().await.map_err(|error| failed(&error))?;
    let tallies = tally(&app, &status, only.as_ref(), table.as_ref()).await?;
    let Tallies { found, complete } = tallies;
    let mut rows = Vec::new();
    for (tenant, held) in status.tenants.iter().filter(|(tenant, _)| only.as_ref().is_none_or(|only| only == *tenant)) {
        for (name, total) in held.dead_letters.iter().filter(|(name, _)| table.as_ref().is_none_or(|t| t == *name)) {
            let (codes, held) = found.get(&(tenant.clone(), name.clone())).cloned().unwrap_or_default();
            rows.push(Count { tenant: tenant.as_str(), table: name.as_str(), total: *total, codes, held });
        }
    }
    let total: u64 = rows.iter().map(|row| row.total).sum();
    Ok(fresh(Json(serde_json::json!({ "total": total, "tables": rows, "complete": complete }))))
}

/// By code, and how many are held.
type Tally = (BTreeMap<String, u64>, u64);

struct Tallies {
    found: BTreeMap<(Tenant, Table), Tally>,
    /// Whether all letters were looked at.
    complete: bool,
}

async fn tally(
    app: &App,
    status: &wh_mq::BrokerStatus,
    only: Option<&Tenant>,
    table: Option<&Table>,
) -> Result<Tallies, ApiError> {
    let (clock, broker) = (&app.publishing.clock, &app.publishing.broker);
    let (start, now) = (clock.now(), clock.wall());
    let mut found = BTreeMap::new();
    let filter = DeadLetterFilter { table: table.cloned(), ..DeadLetterFilter::default() };
    let tenants = status.tenants.iter().filter(|(_, held)| !held.dead_letters.is_empty()).map(|(tenant, _)| tenant);
    for tenant in tenants.filter(|tenant| only.is_none_or(|only| only == *tenant)) {
        let mut cursor: Option<DeadLetterCursor> = None;
        loop {
            if clock.now().duration_since(start) >= COUNTING {
                return Ok(Tallies { found, complete: false });
            }
            let query = DeadLetterQuery { ids: None, filter: filter.clone(), cursor, limit: 1_000 };
            let page = broker.dead_letters(tenant, &query).await.map_err(|error| failed(&error))?;
            for letter in page.letters {
                let (codes, held): &mut Tally = found.entry((tenant.clone(), letter.table)).or_default();
                *codes.entry(letter.code).or_default() += 1;
                *held += u64::from(letter.retry_until.is_some_and(|until| until > now));
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(Tallies { found, complete: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_shown_in_base64() {
        for (bytes, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")]
        {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(text(b"\xff\xfe\xfd", 2), ("//4=".to_owned(), "base64"));
        assert_eq!(text("aé".as_bytes(), 2), ("a".to_owned(), "text"));
    }
}
