//! Who asks: for now only the operator, by key. The data plane takes everybody who presents nothing (decision D34).

use crate::{codes, error::ApiError, metrics::Meters};
use arc_swap::ArcSwapOption;
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use subtle::ConstantTimeEq;
use wh_types::Secret;

/// The key that opens `/v1/ops`. Cloning shares it; it can be replaced while running.
#[derive(Clone, Debug, Default)]
pub struct OperatorKey(Arc<ArcSwapOption<Secret>>);

/// What a request presents as a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presented<'a> {
    Nothing,
    Key(&'a [u8]),
    Bearer,
    /// Two, or of a kind we do not know.
    Unusable,
}

/// Who a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// Somebody who presents nothing.
    Nobody,
    /// Who has the operator key.
    Operator,
}

impl OperatorKey {
    /// No key, or an empty one, lets nobody in.
    #[must_use]
    pub fn new(key: Option<Secret>) -> Self {
        let this = Self::default();
        this.set(key);
        this
    }

    /// Replaces the key, from the next request on.
    pub fn set(&self, key: Option<Secret>) {
        self.0.store(key.filter(|key| !key.is_empty()).map(Arc::new));
    }

    /// Whether there is one.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load().is_some()
    }

    /// In time that tells nothing of the key: digests of one length are compared.
    fn matches(&self, presented: &[u8]) -> bool {
        let Some(key) = self.0.load_full() else { return false };
        let (ours, theirs) = (Sha256::digest(key.expose()), Sha256::digest(presented));
        !presented.is_empty() && bool::from(ours.as_slice().ct_eq(theirs.as_slice()))
    }

    /// Lets the operator in and nobody else.
    pub(crate) fn demand(&self, headers: &HeaderMap, meters: &Meters) -> Result<(), ApiError> {
        match presented(headers) {
            Presented::Bearer => Err(bad_token()),
            _ if !self.is_set() => {
                let text = "no operator key is configured on this server (auth.operator_key_file): /v1/ops is closed";
                Err(ApiError::new(&codes::OPS_FORBIDDEN, text))
            }
            Presented::Nothing => {
                let text = "this path needs the operator key: \"Authorization: Operator <key>\" or X-Operator-Key";
                Err(ApiError::new(&codes::AUTH_REQUIRED, text))
            }
            Presented::Key(key) if self.matches(key) => Ok(()),
            Presented::Key(_) | Presented::Unusable => Err(bad_key(meters)),
        }
    }

    /// Lets in who presents nothing, and the operator.
    pub(crate) fn allow(&self, headers: &HeaderMap, meters: &Meters) -> Result<(), ApiError> {
        self.asker(headers, meters).map(drop)
    }

    /// Who asks. A presented credential that is bad is refused (decision D24).
    pub(crate) fn asker(&self, headers: &HeaderMap, meters: &Meters) -> Result<Asker, ApiError> {
        match presented(headers) {
            Presented::Nothing => Ok(Asker::Nobody),
            Presented::Key(key) if self.matches(key) => Ok(Asker::Operator),
            Presented::Key(_) | Presented::Unusable => Err(bad_key(meters)),
            Presented::Bearer => Err(bad_token()),
        }
    }
}

fn bad_key(meters: &Meters) -> ApiError {
    meters.key_failures.increment(1);
    tracing::debug!("a wrong operator key was presented");
    ApiError::new(&codes::OPERATOR_KEY_INVALID, "the operator key is not valid")
}

fn bad_token() -> ApiError {
    ApiError::new(&codes::TOKEN_INVALID, "this server is not configured to verify bearer tokens")
}

fn presented(headers: &HeaderMap) -> Presented<'_> {
    let mut found = Presented::Nothing;
    for value in headers.get_all("x-operator-key") {
        found = if found == Presented::Nothing { Presented::Key(value.as_bytes()) } else { Presented::Unusable };
    }
    for value in headers.get_all(header::AUTHORIZATION) {
        let value = value.as_bytes();
        let (scheme, rest) = value.split_at(value.iter().position(|b| *b == b' ').unwrap_or(value.len()));
        let this = if scheme.eq_ignore_ascii_case(b"operator") {
            Presented::Key(rest.trim_ascii())
        } else if scheme.eq_ignore_ascii_case(b"bearer") {
            Presented::Bearer
        } else {
            Presented::Unusable
        };
        found = if found == Presented::Nothing { this } else { Presented::Unusable };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn ask(key: &OperatorKey, headers: &[(&str, &str)]) -> (Option<&'static str>, Option<&'static str>) {
        let meters = Meters::new();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let name = |result: Result<(), ApiError>| result.err().map(|error| error.code().name);
        (name(key.demand(&map, &meters)), name(key.allow(&map, &meters)))
    }

    #[test]
    fn only_the_key_opens_and_a_bad_credential_is_never_ignored() {
        let set = OperatorKey::new(Some("open sesame".into()));
        let (unset, empty) = (OperatorKey::new(None), OperatorKey::new(Some("".into())));
        let (wrong, required) = (Some("auth.operator_key_invalid"), Some("auth.required"));
        let (token, closed) = (Some("auth.token_invalid"), Some("ops.forbidden"));
        for (key, headers, expected) in [
            (&set, &[("authorization", "Operator open sesame")][..], (None, None)),
            (&set, &[("Authorization", "OPERATOR  open sesame ")], (None, None)),
            (&set, &[("x-operator-key", "open sesame")], (None, None)),
            (&set, &[], (required, None)),
            (&set, &[("x-operator-key", "open")], (wrong, wrong)),
            (&set, &[("x-operator-key", "")], (wrong, wrong)),
            (&set, &[("authorization", "Operator")], (wrong, wrong)),
            (&set, &[("x-operator-key", "open sesame"), ("x-operator-key", "open sesame")], (wrong, wrong)),
            (&set, &[("x-operator-key", "open sesame"), ("authorization", "Bearer x")], (wrong, wrong)),
            (&set, &[("authorization", "Bearer x")], (token, token)),
            (&set, &[("authorization", "Basic x")], (wrong, wrong)),
            (&unset, &[], (closed, None)),
            (&unset, &[("x-operator-key", "")], (closed, wrong)),
            (&empty, &[("authorization", "Operator ")], (closed, wrong)),
            (&empty, &[("x-operator-key", "x")], (closed, wrong)),
        ] {
            assert_eq!(ask(key, headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn the_key_can_be_replaced_and_is_never_shown() {
        let key = OperatorKey::new(Some("one".into()));
        key.clone().set(Some("two".into()));
        assert!(key.matches(b"two") && !key.matches(b"one"));
        assert!(!format!("{key:?}").contains("two"));
    }
}
