//! The handler: what is asked and in which form, and the answer with its headers.

use super::{
    allowed::Allowed,
    ast::{Ast, TimeRange},
    build::{Bounds, build},
    failure::Limits,
    format::{Form, Format},
    planned::{Name, Planned},
    refused::Refused,
    run::Ask,
    seam::Seam,
    streamed, when,
};
use crate::{
    answers::{Asked, Freshness, How, Life, Looked, resolved, tee},
    app::App,
    body::{self, Bounds as BodyBounds},
    codes,
    error::ApiError,
    json,
    params::Params,
    request_id::X_REQUEST_ID,
    served::TenantState,
};
use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header};
use std::{sync::Arc, time::Duration};
use wh_clickhouse::{Reads, Schema, TableSchema};

/// `POST /v1/query?table=`.
pub(crate) async fn query(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let tenant = app.served.of_headers(&head.headers)?;
    app.key.allow(&head.headers, &app.meters)?;
    let params = Params::new(&head.uri);
    params.only(&["table", "format", "numbers"])?;
    let schema = tenant.schema()?;
    let table = tenant.table_schema(&params.table()?)?;
    let form = Form::of(&params, &head.headers)?;
    let bounds = BodyBounds { cap: app.options.query_body_bytes, time: app.options.body_timeout, share: 2 };
    let taken = body::take(&head.headers, body, bounds, &app.budget).await?;
    let name = Name::of(tenant, &table, form, &taken.bytes);
    let found = name.as_ref().and_then(|name| app.plans.find(name, tenant, &table, &schema.settings));
    let plan = match found {
        Some(plan) => plan,
        None => {
            let made = plan(&app, tenant, &schema, &table, form, &taken.bytes)?;
            let Some((made, keeps)) = made else {
                let mut nothing = Ask::nothing(form).into_response();
                How::Bypass.tell(&mut nothing);
                return Ok(with_media(nothing, form));
            };
            let made = Arc::new(made);
            if let Some(name) = name.filter(|_| keeps) {
                app.plans.keep(name, Arc::clone(&made));
            }
            made
        }
    };
    drop(taken);
    let id = head.headers.get(&X_REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    let streams = plan.streams();
    let (key, limits) = (plan.key, plan.limits);
    let ask = Ask { plan, request_id: id.to_owned() };
    let freshness = Freshness::of(&head.headers);
    let (reads, freshness) = match app.kept.keeps(freshness) {
        true => resolved(limits.time, tenant.relations.reads_of_table(&table), freshness).await,
        false => (Reads::unknown(), freshness),
    };
    let asked = Asked {
        tenant: &tenant.runtime.tenant,
        database: tenant.runtime.clickhouse.database(),
        key,
        caps: u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX),
        reads,
        life: Life::at_most(tenant.runtime.limits.cache_ttl),
        freshness,
    };
    let answer = if streams {
        streamed(&app, asked, ask).await?
    } else {
        let whole = Arc::clone(&app);
        app.kept.answer(asked, || async move { ask.produce(&whole).await }).await?.into_response()
    };
    Ok(with_media(answer, form))
}

/// What a text asks for, and whether it asks for the same at any other time; `None`: for nothing.
fn plan(
    app: &App,
    tenant: &Arc<TenantState>,
    schema: &Schema,
    table: &Arc<TableSchema>,
    form: Form,
    text: &[u8],
) -> Result<Option<(Planned, bool)>, ApiError> {
    let ast: Ast =
        json::object(text).map_err(|error| ApiError::new(&codes::QUERY_INVALID, format!("invalid query: {error}")))?;
    let bounds = Bounds {
        max_rows: tenant.runtime.limits.max_result_rows,
        now: app.publishing.clock.wall(),
        step: tenant.runtime.limits.time_step,
        zone: &schema.timezone,
        allowed: &Allowed::All,
    };
    let refused = |refused: Refused| ApiError::new(refused.code, refused.text);
    let limits = limits(&ast, tenant).map_err(refused)?;
    let Some(built) = build(&ast, table, bounds).map_err(refused)? else { return Ok(None) };
    let steady = !ast.time_range.as_ref().is_some_and(TimeRange::moves);
    let plan = Planned::new(tenant, built, form, limits, &schema.settings, table);
    if !matches!(form.format, Format::Json | Format::Ndjson) && !plan.streams() {
        return Err(refused(Refused::at("cursor", "is for the formats json and ndjson")));
    }
    Ok(Some((plan, steady)))
}

/// An answer that is passed on as it comes. It is computed for each request, and kept once it has ended well.
async fn streamed(app: &App, asked: Asked<'_>, ask: Ask) -> Result<Response, ApiError> {
    let place = match app.kept.look(&asked).await {
        Looked::Hit(answer) => return Ok(answer.into_response()),
        Looked::Miss(place) => Some(place),
        Looked::Bypass => None,
    };
    let seam = Seam::before(app, asked.tenant, &ask.plan.table).await;
    let told: Vec<_> = seam.iter().filter_map(Seam::open).collect();
    let keep = place.map(|place| app.kept.gather(place, told.clone()));
    let how = if keep.is_some() { How::Miss } else { How::Bypass };
    let pieces = streamed::begin(ask).await?;
    let body = match keep {
        Some(keep) => Body::from_stream(tee(pieces, keep)),
        None => Body::from_stream(pieces),
    };
    let mut response = body.into_response();
    response.headers_mut().extend(told);
    how.tell(&mut response);
    Ok(response)
}

fn with_media(mut response: Response, form: Form) -> Response {
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(form.format.media()));
    response
}

/// The tenant's bound on time, or the query's own where that is shorter.
fn limits(ast: &Ast, tenant: &TenantState) -> Result<Limits, Refused> {
    let most = tenant.runtime.limits.query_timeout;
    let Some(text) = &ast.timeout else { return Ok(Limits { time: most, own_time: false }) };
    let own = when::age(text).filter(|own| *own >= Duration::from_millis(1));
    let own = own.ok_or_else(|| Refused::at("timeout", "is a time of at least 1ms, like \"500ms\" or \"5s\""))?;
    Ok(Limits { time: own.min(most), own_time: own < most })
}
