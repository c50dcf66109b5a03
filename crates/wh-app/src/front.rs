//! What answers on the port: the API once there is one, and before it a plain reason why not yet. Knows no route of the
//! API.

use arc_swap::ArcSwap;
use axum::{Router, body::Body};
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use std::{convert::Infallible, fmt, sync::Arc};
use tower::Service;
use wh_types::Entropy;

/// What stands behind the port now.
#[derive(Debug)]
pub(crate) enum Phase {
    /// The queue is being opened.
    Starting,
    /// The queue cannot be opened: its disk is full. With the words for people.
    NoSpace(String),
    /// The API.
    Serving(Router),
    /// The process is about to end.
    Stopped,
}

/// The port's answers. Cloning shares.
#[derive(Clone)]
pub(crate) struct Front(Arc<Inner>);

struct Inner {
    phase: ArcSwap<Phase>,
    entropy: Arc<dyn Entropy>,
}

impl Front {
    pub(crate) fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self(Arc::new(Inner { phase: ArcSwap::from_pointee(Phase::Starting), entropy }))
    }

    /// From now on.
    pub(crate) fn set(&self, phase: Phase) {
        self.0.phase.store(Arc::new(phase));
    }

    /// Answers one request.
    pub(crate) async fn call(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let phase = self.0.phase.load_full();
        match &*phase {
            Phase::Serving(router) => router.clone().call(request).await,
            Phase::Starting => Ok(self.not_yet(request.uri().path(), "server.starting", "this process is starting", 1)),
            Phase::Stopped => {
                Ok(self.not_yet(request.uri().path(), "server.stopping", "this process is shutting down", 5))
            }
            Phase::NoSpace(why) => Ok(self.not_yet(request.uri().path(), "queue.no_space", why, 30)),
        }
    }

    /// The port is open, so this process lives (decision D33); everything else has to wait.
    fn not_yet(&self, path: &str, code: &str, why: &str, retry_after: u32) -> Response<Body> {
        if path == "/livez" {
            return answer(StatusCode::OK, &serde_json::json!({ "status": "ok" }), None);
        }
        let id = format!("{:016x}", self.0.entropy.next_u64());
        let body = serde_json::json!({ "error": why, "code": code, "retryable": true, "request_id": id });
        answer(StatusCode::SERVICE_UNAVAILABLE, &body, Some(retry_after))
    }
}

fn answer(status: StatusCode, body: &serde_json::Value, retry_after: Option<u32>) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Front").field(&self.0.phase.load()).finish()
    }
}
