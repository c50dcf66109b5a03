//! The handler: what is asked and in which form, and the answer with its headers.

use super::{
    allowed::Allowed,
    ast::Ast,
    build::{Bounds, End, build},
    failure::Limits,
    format::{Form, Format},
    refused::Refused,
    run::{Answered, Ask},
    streamed, when,
};
use crate::{
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
use http::{HeaderName, HeaderValue, header};
use std::{sync::Arc, time::Duration};

static X_CACHE: HeaderName = HeaderName::from_static("x-cache");
static X_TRUNCATED: HeaderName = HeaderName::from_static("x-truncated");
static X_NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

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
    let ast: Ast = json::object(&taken.bytes)
        .map_err(|error| ApiError::new(&codes::QUERY_INVALID, format!("invalid query: {error}")))?;
    let bounds = Bounds {
        max_rows: tenant.runtime.limits.max_result_rows,
        now: app.publishing.clock.wall(),
        zone: &schema.timezone,
        allowed: &Allowed::All,
    };
    let refused = |refused: Refused| ApiError::new(refused.code, refused.text);
    let limits = limits(&ast, tenant).map_err(refused)?;
    let built = build(&ast, &table, bounds).map_err(refused)?;
    drop(taken);
    let Some(built) = built else {
        return Ok(with_headers(Ask::nothing(form).into_response(), form));
    };
    let id = head.headers.get(&X_REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    let streams = form.format != Format::Json && !matches!(built.end, End::Page(_));
    if !matches!(form.format, Format::Json | Format::Ndjson) && !streams {
        return Err(refused(Refused::at("cursor", "is for the formats json and ndjson")));
    }
    let ask = Ask {
        tenant: Arc::clone(tenant),
        built,
        form,
        limits,
        known: Arc::clone(&schema.settings),
        request_id: id.to_owned(),
    };
    if streams {
        let body = Body::from_stream(streamed::begin(ask).await?);
        return Ok(with_headers(body.into_response(), form));
    }
    let Answered { whole, cut, next } = ask.whole(&app).await?;
    let mut response = with_headers(whole.into_response(), form);
    let cut = cut.and_then(|rows| HeaderValue::from_str(&format!("rows={rows}")).ok());
    let next = next.and_then(|next| HeaderValue::from_str(&next).ok());
    for (name, value) in [(&X_TRUNCATED, cut), (&X_NEXT_CURSOR, next)] {
        if let Some(value) = value {
            response.headers_mut().insert(name.clone(), value);
        }
    }
    Ok(response)
}

fn with_headers(mut response: Response, form: Form) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(form.format.media()));
    headers.insert(X_CACHE.clone(), HeaderValue::from_static("BYPASS"));
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
