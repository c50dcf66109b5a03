//! `/ui/`: a page for operators that shows one table live. Static and self-contained: it holds nothing of any tenant, and
//! everything it shows it asks for over the paths that everybody uses, with the key that its user types.

use axum::{
    Router,
    response::{IntoResponse, Redirect},
    routing::get,
};
use http::{HeaderName, HeaderValue, header};

/// A file of the page.
struct Asset {
    path: &'static str,
    media: &'static str,
    text: &'static str,
}

const ASSETS: &[Asset] = &[
    Asset { path: "/ui/", media: "text/html; charset=utf-8", text: include_str!("index.html") },
    Asset { path: "/ui/live.css", media: "text/css; charset=utf-8", text: include_str!("live.css") },
    Asset { path: "/ui/live.js", media: "text/javascript; charset=utf-8", text: include_str!("live.js") },
    Asset { path: "/ui/follow.js", media: "text/javascript; charset=utf-8", text: include_str!("follow.js") },
    Asset { path: "/ui/sse.js", media: "text/javascript; charset=utf-8", text: include_str!("sse.js") },
];

/// Only its own files, only its own server, no frame around it, no form that sends the key anywhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

impl Asset {
    fn answer(&'static self) -> impl IntoResponse {
        let fixed = HeaderValue::from_static;
        let headers: [(HeaderName, HeaderValue); 7] = [
            (header::CONTENT_TYPE, fixed(self.media)),
            (header::CONTENT_SECURITY_POLICY, fixed(POLICY)),
            (header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
            (header::X_FRAME_OPTIONS, fixed("DENY")),
            (header::REFERRER_POLICY, fixed("no-referrer")),
            (header::CACHE_CONTROL, fixed("no-cache")),
            (HeaderName::from_static("cross-origin-opener-policy"), fixed("same-origin")),
        ];
        (headers, self.text)
    }
}

/// The paths of the page.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let router = Router::new().route("/ui", get(|| async { Redirect::permanent("/ui/") }));
    ASSETS.iter().fold(router, |router, asset| router.route(asset.path, get(move || async move { asset.answer() })))
}
