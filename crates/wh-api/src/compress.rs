//! Answers that are compressed where the asker takes a coding that we have, and sent as they are otherwise.

use axum::{extract::Request, middleware, routing::MethodRouter};
use http::{HeaderMap, header};
use tower_http::compression::CompressionLayer;

/// The codings there are.
const CODINGS: [&str; 4] = ["gzip", "x-gzip", "zstd", "*"];

/// Compresses the answers of a route.
pub(crate) fn compressed<S: Clone + Send + Sync + 'static>(route: MethodRouter<S>) -> MethodRouter<S> {
    route.layer(CompressionLayer::new()).layer(middleware::map_request(async |mut request: Request| {
        if !takes_ours(request.headers()) {
            request.headers_mut().remove(header::ACCEPT_ENCODING);
        }
        request
    }))
}

/// Whether some coding of ours will do. Who forbids even the plain answer (`*;q=0`) gets that, not a 406 with it.
fn takes_ours(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut all = values.flat_map(|value| value.split(','));
    all.any(|one| {
        let (name, weight) = one.split_once(';').map_or((one, ""), |(name, weight)| (name, weight));
        let weight: String = weight.chars().filter(|c| !c.is_whitespace()).collect();
        let none = weight.to_ascii_lowercase().strip_prefix("q=").is_some_and(|q| q.parse::<f32>() == Ok(0.0));
        CODINGS.iter().any(|coding| name.trim().eq_ignore_ascii_case(coding)) && !none
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_for_no_coding_of_ours_asks_for_none() {
        let takes =
            |value: &str| takes_ours(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, value.parse().unwrap())]));
        for value in ["gzip", "br, gzip;q=0.5", "*", "GZIP", "identity;q=0, zstd", "gzip;q=0, *"] {
            assert!(takes(value), "{value}");
        }
        for value in ["", "br", "identity", "gzip;q=0, *;q=0", "identity;q=0", "*; q=0.000", ","] {
            assert!(!takes(value), "{value}");
        }
        assert!(!takes_ours(&HeaderMap::new()));
    }
}
