//! The `OpenAPI` document: made from the types and handlers, served at `/v1/openapi.json`, kept in `docs/openapi.json`.

mod paths;
mod pipes;
#[cfg(test)]
mod tests;

use crate::{
    codes,
    error::Envelope,
    ingest::{self, Summary},
    pipes::PipesView,
};
use axum::response::IntoResponse;
use http::header;
use std::sync::LazyLock;
use utoipa::{
    Modify, OpenApi, ToSchema,
    openapi::{self, RefOr, Schema},
};

/// An error of `/v1/ingest`: the summary and the envelope in one object.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is of use: an answer is written by the envelope")]
pub(crate) struct IngestProblem {
    #[serde(flatten)]
    summary: Summary,
    #[serde(flatten)]
    envelope: Envelope<'static>,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "WaveHouse",
        version = "1",
        description = "Events in over HTTP, durable in a queue, batched into ClickHouse, queried and streamed live.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    paths(
        ingest::ingest,
        paths::query,
        pipes::run,
        pipes::run_with,
        pipes::list,
        pipes::definitions,
        pipes::definition,
        paths::stream,
        paths::health,
        paths::live,
        paths::ready,
        paths::version,
        paths::openapi,
        paths::sql,
        paths::schema,
        paths::refresh,
        paths::queue,
    ),
    components(schemas(Envelope<'static>, IngestProblem, PipesView<'static>)),
    modifiers(&Codes, &OperatorKey),
    tags(
        (name = "events", description = "Storing and watching events"),
        (name = "query", description = "Reading tables"),
        (name = "operator", description = "What the operator key opens"),
        (name = "probe", description = "The state of a process"),
    ),
)]
struct Document;

/// The codes an error can carry, from their one table.
struct Codes;

impl Modify for Codes {
    fn modify(&self, api: &mut openapi::OpenApi) {
        let names: Vec<&str> = codes::ALL.iter().map(|code| code.name).collect();
        let schemas = api.components.as_mut().map(|components| &mut components.schemas);
        if let Some(RefOr::T(Schema::Object(problem))) = schemas.and_then(|schemas| schemas.get_mut("Problem"))
            && let Some(RefOr::T(Schema::Object(code))) = problem.properties.get_mut("code")
        {
            code.enum_values = Some(names.into_iter().map(Into::into).collect());
        }
    }
}

/// How the operator says who they are.
struct OperatorKey;

impl Modify for OperatorKey {
    fn modify(&self, api: &mut openapi::OpenApi) {
        use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
        if let Some(components) = api.components.as_mut() {
            let key = ApiKey::Header(ApiKeyValue::new("X-Operator-Key"));
            components.add_security_scheme("operator_key", SecurityScheme::ApiKey(key));
        }
    }
}

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = Document::openapi().to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
});

/// The text of `docs/openapi.json`.
#[must_use]
pub fn openapi_json() -> &'static str {
    &TEXT
}

/// `GET /v1/openapi.json`.
pub(crate) async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], openapi_json())
}
