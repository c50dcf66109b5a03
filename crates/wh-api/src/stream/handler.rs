//! The handler: who may open a stream, of what, and from where. Whatever can be refused is refused here.

use super::{
    ask,
    committed::Committed,
    connection::{self, Connection},
    lifetime::{Open, Place, Tables},
    reader::Reader,
    view::{Kept, View},
    wish::{Slow, Wish},
};
use crate::{
    app::App,
    codes,
    error::{ApiError, shown},
    params::Params,
};
use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use futures::future::try_join_all;
use http::header;
use std::sync::Arc;
use wh_clickhouse::TableSchema;

/// A client is told to come back after so many milliseconds, and up to twice as many: not all at once.
const RETRY: u64 = 1_000;

/// `GET /v1/stream?table=`.
pub(crate) async fn stream(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let tenant = app.served.of_headers(request.headers())?;
    app.key.allow(request.headers(), &app.meters)?;
    let params = Params::new(request.uri());
    let tables = ask::tables(&params)?;
    ask::known(&params, &tables)?;
    let schema = tenant.schema()?;
    let schemas = tables.iter().map(|table| tenant.table_schema(table.as_str())).collect::<Result<Vec<_>, _>>()?;
    let now = app.publishing.clock.wall();
    let origins = ask::origins(request.headers(), &params, tables.len(), now)?;
    let slow = ask::slow(&params)?;
    schemas.iter().try_for_each(|schema| has_key(&slow, schema))?;
    let wishes = tables.iter().zip(&schemas).map(|(table, columns)| {
        let [asked, filter] = ask::view(&params, table)?;
        let view = View::of(columns, &schema.timezone, asked.as_deref(), filter.as_deref())?;
        Ok(Wish { view: Kept::new(view, table.as_str(), &tenant.runtime.schema), slow: slow.clone() })
    });
    let wishes = wishes.collect::<Result<Vec<_>, ApiError>>()?;
    let (name, broker) = (&tenant.runtime.tenant, &app.publishing.broker);
    let place = Place::take(&app, tenant)?;
    let committed = ask::committed(&params)?.then(|| Committed::open(broker, name, &tables)).transpose()?;
    let read = tables.iter().zip(origins).zip(wishes);
    let read = read.map(|((table, origin), wish)| app.hub.read(name, table, origin, wish));
    let readers: Vec<Reader> = try_join_all(read).await?;
    let connection = Connection::new(connection::Parts {
        readers,
        committed,
        tables: Tables::new(tenant, tables.iter().map(|table| table.as_str())),
        keepalive: app.options.keepalive,
        retry: RETRY + app.publishing.entropy.next_u64() % RETRY,
        stop: app.publishing.stop.clone(),
        clock: Arc::clone(&app.publishing.clock),
        open: Open::new(&app, place),
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(connection.body())).into_response())
}

/// Every table has the columns of the key.
fn has_key(slow: &Slow, table: &TableSchema) -> Result<(), ApiError> {
    let Slow::Latest(key) = slow else { return Ok(()) };
    match key.0.iter().find(|column| table.column(column).is_none()) {
        None => Ok(()),
        Some(column) => {
            let (column, table) = (shown(column.as_bytes()), shown(table.name.as_bytes()));
            let text = format!("the key has the column {column}, and table {table} has none of that name");
            Err(ApiError::new(&codes::COLUMN_NOT_FOUND, text))
        }
    }
}
