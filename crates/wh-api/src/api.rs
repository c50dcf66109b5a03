//! The API as a [`tower::Service`]: what wraps every request, and the table of paths.

use crate::{
    ApiOptions, Parts, Surface,
    app::App,
    codes,
    compress::compressed,
    error::{ApiError, internal},
    ingest, openapi, ops, pipes, probes, query, request_id, stream, ui,
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::FutureExt;
use http::{HeaderValue, Method, Uri, header};
use metrics::{Counter, Histogram, counter, histogram};
use parking_lot::RwLock;
use std::{
    collections::HashMap,
    convert::Infallible,
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tower::{BoxError, Service};

/// The HTTP surface. Cloning is cheap and shares everything; mount it in any server.
#[derive(Clone)]
pub struct Api {
    router: Router,
    app: Arc<App>,
    meters: Arc<EdgeMeters>,
}

impl Api {
    /// Puts the API together. Opens and starts nothing: tasks start with the first rows and streams.
    #[must_use]
    pub fn new(parts: Parts, options: ApiOptions) -> Self {
        let app = Arc::new(App::new(parts, options));
        Self { router: routes(&app), app, meters: Arc::default() }
    }

    /// Returns once every row that was handed over has its outcome and every stream's end is sent. Give the stop and
    /// end the server first: then no more come. The queue may be closed after it.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn finish(&self) {
        self.app.publishing.tasks.wait().await;
    }

    /// The edge of every request: its id, its time, faults of ours, and the one form of every error.
    async fn answer(self, mut request: Request) -> Response {
        let Self { mut router, app, meters } = self;
        let clock = Arc::clone(&app.publishing.clock);
        let start = clock.now();
        let id = request_id::of(request.headers(), &*app.publishing.entropy);
        let route = Route::of(request.uri());
        if matches!(route, Route::Sql | Route::Query | Route::Pipe) {
            // what is logged of a statement, and told at the end of a broken answer, is under the id of its answer
            request.headers_mut().insert(&request_id::X_REQUEST_ID, id.clone());
        }
        let handled = AssertUnwindSafe(router.call(request)).catch_unwind();
        let handled = if route.bounds_itself() {
            Ok(handled.await)
        } else {
            tokio::time::timeout(app.options.request_timeout + route.grace(), handled).await
        };
        let mut response = match handled {
            Ok(Ok(Ok(response))) => response,
            Ok(Err(panic)) => {
                app.meters.panics.increment(1);
                let what = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
                tracing::error!(request_id = ?id, route = route.name(), what, "request {id:?} failed by a fault of ours");
                internal().into_response()
            }
            Err(_) => {
                let text = "the request took too long; what it had begun may still happen";
                ApiError::new(&codes::REQUEST_TIMEOUT, text).into_response()
            }
        };
        if let Some(mut error) = response.extensions_mut().remove::<ApiError>() {
            if route == Route::Ingest {
                error = error.with_some_summary();
            }
            let shown = id.to_str().unwrap_or_default();
            tracing::debug!(request_id = shown, code = error.code().name, "{}", error.message());
            *response.body_mut() = Body::from(error.body(shown));
            let headers = response.headers_mut();
            // the router wrote it for the empty body there was
            headers.remove(header::CONTENT_LENGTH);
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
        if let Some(vary) = route.varies_by() {
            response.headers_mut().insert(header::VARY, HeaderValue::from_static(vary));
        }
        response.headers_mut().insert(&request_id::X_REQUEST_ID, id);
        meters.answered(route, response.status().as_u16(), clock.now().duration_since(start).as_secs_f64());
        response
    }
}

fn routes(app: &Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/livez", get(probes::live))
        .route("/healthz", get(probes::live))
        .route("/health", get(probes::live))
        .route("/readyz", get(probes::ready))
        .route("/ready", get(probes::ready))
        .route("/version", get(probes::version))
        .route("/v1/ops/query", post(ops::sql))
        .route("/v1/ops/schema", get(ops::schema))
        .route("/v1/ops/schema/refresh", post(ops::refresh))
        .route("/v1/ops/dlq/stats", get(ops::dlq_stats))
        .route("/v1/ops/dead-letters", get(ops::dead_letters::list))
        .route("/v1/ops/dead-letters/counts", get(ops::dead_letters::counts))
        .route("/v1/ops/dead-letters/check", post(ops::dead_letters::check))
        .route("/v1/ops/dead-letters/replay", post(ops::dead_letters::replay))
        .route("/v1/ops/dead-letters/purge", post(ops::dead_letters::purge))
        .route("/v1/ops/dead-letters/{id}", get(ops::dead_letters::show))
        .route("/v1/ops/pipes", get(pipes::definitions))
        .route("/v1/ops/pipes/{name}", get(pipes::definition))
        .route("/v1/ops/queue", get(ops::queue));
    if app.options.surface == Surface::Full {
        router = router
            .route("/v1/health", get(probes::health))
            .route("/v1/openapi.json", get(openapi::document))
            .route("/v1/ingest", post(ingest::ingest))
            .route("/v1/query", compressed(post(query::query)))
            .route("/v1/pipes", get(pipes::list))
            .route("/v1/pipes/{name}", compressed(get(pipes::call)))
            .route("/v1/pipes/{name}", compressed(post(pipes::call)))
            .route("/v1/stream", get(stream::stream))
            .merge(ui::routes());
    }
    if let Some((path, _)) = &app.metrics {
        router = router.route(path, get(probes::metrics));
    }
    router
        .fallback(|| async { ApiError::new(&codes::ROUTE_NOT_FOUND, "not found") })
        .method_not_allowed_fallback(|method: Method| async move {
            ApiError::new(&codes::METHOD_NOT_ALLOWED, format!("method {method} not allowed"))
        })
        .with_state(Arc::clone(app))
}

impl<B> Service<http::Request<B>> for Api
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let answer = self.clone().answer(request.map(Body::new));
        Box::pin(answer.map(Ok))
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Api({:?})", self.app.served)
    }
}

/// A path's name in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Route {
    Ingest,
    Query,
    Pipe,
    Stream,
    Sql,
    Ops,
    Probe,
    Other,
}

impl Route {
    fn of(uri: &Uri) -> Self {
        match uri.path() {
            "/v1/ingest" => Self::Ingest,
            "/v1/query" => Self::Query,
            "/v1/pipes" => Self::Pipe,
            path if path.starts_with("/v1/pipes/") => Self::Pipe,
            "/v1/stream" => Self::Stream,
            "/v1/ops/query" => Self::Sql,
            path if path.starts_with("/v1/ops/") => Self::Ops,
            "/livez" | "/healthz" | "/health" | "/readyz" | "/ready" | "/version" | "/metrics" | "/v1/health" => {
                Self::Probe
            }
            _ => Self::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Query => "query",
            Self::Pipe => "pipe",
            Self::Stream => "stream",
            Self::Sql => "ops_query",
            Self::Ops => "ops",
            Self::Probe => "probe",
            Self::Other => "other",
        }
    }

    /// A stream has no end, and a query has the tenant's own bound on its time.
    fn bounds_itself(self) -> bool {
        matches!(self, Self::Stream | Self::Query | Self::Pipe | Self::Sql)
    }

    /// How much longer than allowed a request may take: an ingest request ends itself in time, and tells what became of
    /// each record by then.
    fn grace(self) -> Duration {
        if self == Self::Ingest { Duration::from_secs(2) } else { Duration::ZERO }
    }

    /// The headers that decide its answers.
    fn varies_by(self) -> Option<&'static str> {
        match self {
            Self::Ingest | Self::Stream => Some("X-Tenant-ID"),
            Self::Query => Some("X-Tenant-ID, Accept, Accept-Encoding"),
            // what a pipe answers depends on who asks
            Self::Pipe => Some("X-Tenant-ID, Accept, Accept-Encoding, Authorization, X-Operator-Key"),
            Self::Sql | Self::Ops | Self::Probe | Self::Other => None,
        }
    }
}

/// Handles by what was answered; few, and each made once.
#[derive(Default)]
struct EdgeMeters {
    answers: RwLock<HashMap<(Route, u16), (Counter, Histogram)>>,
}

impl EdgeMeters {
    fn answered(&self, route: Route, status: u16, seconds: f64) {
        let known = self.answers.read().get(&(route, status)).cloned();
        let (answers, time) = known.unwrap_or_else(|| {
            let make = || {
                let answers = counter!("wavehouse_http_requests_total",
                    "route" => route.name(), "status" => status.to_string());
                (answers, histogram!("wavehouse_http_request_duration_seconds", "route" => route.name()))
            };
            self.answers.write().entry((route, status)).or_insert_with(make).clone()
        });
        answers.increment(1);
        time.record(seconds);
    }
}
