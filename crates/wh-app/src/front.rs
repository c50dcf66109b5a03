//! What answers on the port: the API once there is one, and before it a plain reason why not yet. Knows no route of the
//! API.

use crate::serve::Incoming;
use arc_swap::ArcSwap;
use axum::body::Body;
use http::{HeaderValue, Request, Response, StatusCode, header};
use std::{convert::Infallible, fmt, sync::Arc};
use tower::Service;
use wh_types::Entropy;

/// What stands behind the port now.
#[derive(Debug)]
pub(crate) enum Phase<S> {
    /// The queue is being opened.
    Starting,
    /// The queue cannot be opened: its disk is full. With the words for people.
    NoSpace(String),
    /// The API.
    Serving(S),
    /// The process is about to end.
    Stopped,
}

/// The port's answers. Cloning shares.
pub(crate) struct Front<S>(Arc<Inner<S>>);

struct Inner<S> {
    phase: ArcSwap<Phase<S>>,
    entropy: Arc<dyn Entropy>,
}

impl<S> Clone for Front<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Front<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone,
{
    pub(crate) fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self(Arc::new(Inner { phase: ArcSwap::from_pointee(Phase::Starting), entropy }))
    }

    /// From now on.
    pub(crate) fn set(&self, phase: Phase<S>) {
        self.0.phase.store(Arc::new(phase));
    }

    /// Answers one request.
    pub(crate) async fn call(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let phase = self.0.phase.load_full();
        match &*phase {
            // always ready: its bounds answer requests, they do not queue them
            Phase::Serving(api) => api.clone().call(request).await,
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

impl<S: fmt::Debug> fmt::Debug for Front<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Front").field(&self.0.phase.load()).finish()
    }
}
