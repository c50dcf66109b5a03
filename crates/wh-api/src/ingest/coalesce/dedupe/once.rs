//! A request that carries an `Idempotency-Key`: each of its records is stored once, however often it is sent.

use crate::{
    codes,
    error::ApiError,
    ingest::{
        coalesce::{Failure, Outcome},
        records::Form,
    },
};
use bytes::Bytes;
use http::HeaderMap;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use wh_dedupe::{Key, MAX_IDEMPOTENCY_KEY, Scope};
use wh_types::Class;

const HEADER: &str = "idempotency-key";
/// Bytes of a body's hash that are kept with each record.
const KEPT: usize = 16;
/// Bytes hashed before others get their turn.
const STEP: usize = 256 << 10;

/// One such request.
#[derive(Debug)]
pub(crate) struct Once {
    key: String,
    /// What is kept with each record: the start of the SHA-256 of how the body is read, and of the decoded body.
    body: Bytes,
    /// What is said of all its records, once one of them decides it.
    ruling: Mutex<Option<Ruling>>,
}

/// What one record decides for its whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// The first request with the key is still at it.
    Running(Duration),
    /// The first request with the key had another body.
    Mismatch,
}

impl Once {
    /// What the headers ask for.
    ///
    /// # Errors
    /// The key is given twice, is empty or too long, or is no text.
    pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
        let mut values = headers.get_all(HEADER).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let invalid = |why: &str| Err(ApiError::new(&codes::IDEMPOTENCY_KEY, format!("Idempotency-Key {why}")));
        if values.next().is_some() {
            return invalid("is given more than once");
        }
        match value.to_str() {
            Ok("") => invalid("is empty"),
            Ok(key) if key.len() > MAX_IDEMPOTENCY_KEY => {
                invalid(&format!("has {} bytes, more than {MAX_IDEMPOTENCY_KEY}", key.len()))
            }
            Ok(key) if !key.contains('\t') => Ok(Some(key.to_owned())),
            Ok(_) | Err(_) => invalid("has other characters than visible ASCII"),
        }
    }

    /// Takes the hash of the body. A large one does not hold its thread.
    ///
    /// `form` is part of it: read in another way, the same bytes are other records, or the same ones by other numbers.
    pub(crate) async fn new(key: String, form: Form, body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(form.tag());
        for piece in body.chunks(STEP) {
            hash.update(piece);
            if body.len() > STEP {
                tokio::task::yield_now().await;
            }
        }
        Self { key, body: Bytes::copy_from_slice(&hash.finalize()[..KEPT]), ruling: Mutex::new(None) }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The name of a record in the store.
    pub(super) fn record(&self, scope: &Scope, index: u32) -> wh_dedupe::Result<Key> {
        scope.idempotency(&self.key, index.into())
    }

    /// What is kept with each record.
    pub(super) fn body(&self) -> &Bytes {
        &self.body
    }

    pub(super) fn ruling(&self) -> Option<Ruling> {
        *self.ruling.lock()
    }

    /// Another body weighs more than being at it.
    pub(super) fn rule(&self, ruling: Ruling) {
        let mut last = self.ruling.lock();
        if *last != Some(Ruling::Mismatch) {
            *last = Some(ruling);
        }
    }
}

impl Ruling {
    /// What it means for a record.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Mismatch => Outcome::Refused(Failure {
                class: Class::Conflict,
                code: &codes::IDEMPOTENCY_MISMATCH,
                reason: "this Idempotency-Key came with another body before".into(),
            }),
            Self::Running(retry_after) => Outcome::Unknown(Failure {
                class: Class::Exhausted { retry_after },
                code: &codes::IDEMPOTENCY_RUNNING,
                reason: "a request with this Idempotency-Key is still at work".into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_key_is_one_short_visible_text() {
        let of = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, HeaderValue::from_bytes(value).unwrap());
            }
            Once::key_of(&headers).map_err(|error| error.code().name)
        };
        let long = [b'k'; 256];
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[b"a b/c"]), Ok(Some("a b/c".to_owned())));
        assert!(of(&[&long[..255]]).is_ok());
        for bad in [&[&long[..]][..], &[b""], &[b"a\tb"], &[b"a", b"a"], &["é".as_bytes()]] {
            assert_eq!(of(bad), Err("idempotency.key_invalid"), "{bad:?}");
        }
    }

    #[tokio::test]
    async fn another_body_has_another_hash_and_outweighs_being_at_work() {
        let of = async |key: &str, form, body: &[u8]| Once::new(key.into(), form, body).await;
        let one = of("k", Form::Lines, b"a").await;
        assert_ne!(one.body(), of("k", Form::Lines, b"b").await.body());
        assert_ne!(one.body(), of("k", Form::Document, b"a").await.body());
        assert_eq!(one.body(), of("other", Form::Lines, b"a").await.body());
        one.rule(Ruling::Mismatch);
        one.rule(Ruling::Running(Duration::ZERO));
        assert_eq!(one.ruling(), Some(Ruling::Mismatch));
    }
}
