//! Leases in a key-value bucket of NATS JetStream: `lease.<key>`, the fence is the revision.
//!
//! The bucket is the operator's; nothing is created here. It has no time to live of its own: what lapses is judged by
//! observers. Reads are direct gets, which a copy that lags behind may answer; writes demand the revision they follow.

use crate::{
    Error, Key, Kind, Options, Result,
    kv::{Entry, Kv, Store},
};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use tokio::sync::Mutex;
use wh_nats::{Bucket, Connection, Watch};
use wh_types::Class;

/// What the keys of leases begin with: the rights name it.
const PREFIX: &str = "lease";

/// A coordinator over a bucket.
#[derive(Debug)]
pub struct Leases {
    kv: Kv<Far>,
}

impl Leases {
    /// Opens a bucket that exists. Only the subscription for changes is made.
    ///
    /// # Errors
    /// Invalid (the name), Stopping (the connection is closed).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn open(connection: &Connection, bucket: &str, options: Options) -> Result<Self> {
        let bucket = Bucket::open(connection, bucket).await.map_err(|e| translate("open", e))?;
        let bucket = bucket.with_timeout(options.request());
        let watch = bucket.watch(&format!("{PREFIX}.>")).await.map_err(|e| translate("open", e))?;
        Ok(Self { kv: Kv::new(Far { bucket, watch: Mutex::new(watch) }, options) })
    }
}

crate::kv::over_kv!(Leases);

#[derive(Debug)]
struct Far {
    bucket: Bucket,
    watch: Mutex<Watch>,
}

fn stored(key: &Key) -> String {
    format!("{PREFIX}.{key}")
}

fn named(key: &str) -> Option<Key> {
    Key::new(key.strip_prefix(PREFIX)?.strip_prefix('.')?).ok()
}

#[async_trait]
impl Store for Far {
    async fn read(&self, key: &Key) -> Result<Option<Entry>> {
        let entry = self.bucket.read(&stored(key)).await.map_err(|e| read_failed("read", e))?;
        Ok(entry.map(|entry| Entry { value: entry.value, revision: entry.revision }))
    }

    async fn write(&self, key: &Key, value: Bytes, expected: Option<u64>) -> Result<u64> {
        let key = stored(key);
        let written = match expected {
            Some(revision) => self.bucket.update(&key, value, revision).await,
            None => self.bucket.create(&key, value).await,
        };
        written.map_err(|e| translate("write", e))
    }

    async fn delete(&self, key: &Key, expected: u64) -> Result<()> {
        self.bucket.delete(&stored(key), expected).await.map(drop).map_err(|e| translate("delete", e))
    }

    async fn list(&self, prefix: &Key) -> Result<BTreeMap<Key, Entry>> {
        let pattern = format!("{PREFIX}.{prefix}.*");
        let entries = self.bucket.read_many(&pattern).await.map_err(|e| read_failed("observe", e))?;
        let entry =
            |entry: wh_nats::Entry| Some((named(&entry.key)?, Entry { value: entry.value, revision: entry.revision }));
        Ok(entries.into_iter().filter_map(entry).collect())
    }

    async fn heard(&self) -> Option<(Key, Option<Bytes>)> {
        let mut watch = self.watch.lock().await;
        loop {
            let change = watch.next().await?;
            if let Some(key) = named(&change.key) {
                return Some((key, (!change.deleted).then_some(change.value)));
            }
        }
    }
}

/// A read that was not answered changed nothing.
fn read_failed(op: &'static str, error: wh_nats::Error) -> Error {
    if error.class() == Class::Unknown {
        return Error::new(op, Kind::Unavailable).with_source(error);
    }
    translate(op, error)
}

/// The one place where errors of NATS become ours.
fn translate(op: &'static str, error: wh_nats::Error) -> Error {
    let kind = match error.class() {
        Class::Conflict => Kind::Conflict,
        Class::Unknown => Kind::Unknown,
        Class::Denied => Kind::Denied(error.to_string().into()),
        Class::NotFound => Kind::NotFound("the bucket".into()),
        Class::Stopping => Kind::Stopping,
        Class::Invalid => Kind::Invalid(error.to_string().into()),
        Class::Unavailable
        | Class::Exhausted { .. }
        | Class::Unauthenticated
        | Class::Forbidden
        | Class::Unsupported
        | Class::Fenced
        | Class::Corrupt
        | Class::Bug => Kind::Unavailable,
    };
    Error::new(op, kind).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_below_their_prefix() {
        let key = Key::new("ingest.m3").unwrap();
        assert_eq!((stored(&key).as_str(), named("lease.ingest.m3")), ("lease.ingest.m3", Some(key)));
        for other in ["ingest.m3", "lease", "lease.", "leases.ingest.m3", "lease.A"] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn errors_of_nats_are_classed_by_what_they_mean_for_a_write() {
        use wh_nats::{ApiError, Kind as Nats, err_code};
        let api = |code, err_code| Nats::Api(ApiError { code, err_code, description: String::new() });
        let cases = [
            (Nats::Disconnected, Class::Unavailable),
            (Nats::Unsent, Class::Unavailable),
            (Nats::NoResponders, Class::Unavailable),
            (Nats::Interrupted, Class::Unknown),
            (Nats::Timeout, Class::Unknown),
            (Nats::Refused { subject: "x".into() }, Class::Denied),
            (Nats::Closed, Class::Stopping),
            (api(400, err_code::WRONG_LAST_SEQUENCE), Class::Conflict),
            (api(400, err_code::WRONG_LAST_SEQUENCE_UNSAID), Class::Conflict),
            (api(404, err_code::STREAM_NOT_FOUND), Class::NotFound),
            (api(503, err_code::STREAM_FULL), Class::Unavailable),
            (api(503, err_code::NO_LEADER), Class::Unavailable),
        ];
        for (kind, class) in cases {
            let error = wh_nats::Error::from(kind.clone());
            assert_eq!(translate("write", error).class(), class, "{kind:?}");
        }
        assert_eq!(read_failed("read", wh_nats::Error::from(Nats::Timeout)).class(), Class::Unavailable);
    }
}
