//! A key-value bucket: reads by direct get, writes that demand the revision they were based on.

use crate::{
    Connection, DirectBatch, Error, Headers, Kind, Message, Publisher, Result, Stored, Subscription,
    error::err_code::{WRONG_LAST_SEQUENCE, WRONG_LAST_SEQUENCE_UNSAID},
};
use bytes::Bytes;
use std::time::Duration;
use wh_types::Timestamp;

/// A bucket that exists already.
#[derive(Clone, Debug)]
pub struct Bucket {
    connection: Connection,
    publisher: Publisher,
    name: String,
    timeout: Duration,
}

/// A key and what it holds.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value; empty where it was deleted.
    pub value: Bytes,
    /// The revision: every write of the bucket has a higher one.
    pub revision: u64,
    /// When it was written, by the server's clock.
    pub written: Timestamp,
    /// Whether it is the mark of a deleted key.
    pub deleted: bool,
}

/// A change that a watch saw.
#[derive(Clone, Debug)]
pub struct Change {
    /// The key.
    pub key: String,
    /// The value; empty where it was deleted.
    pub value: Bytes,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// Writes to a bucket as they pass. A hint: what passes while nothing is connected is not seen.
#[derive(Debug)]
pub struct Watch {
    subscription: Subscription,
    prefix: String,
}

impl Bucket {
    /// A bucket of this name. Nothing is asked of the server.
    ///
    /// # Errors
    /// [`Kind::Closed`], [`Kind::Invalid`] for a name that is none.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn open(connection: &Connection, bucket: &str) -> Result<Self> {
        if !valid(bucket, b"-_") {
            return Err(Error::new(bucket, Kind::Invalid("not a bucket's name".into())));
        }
        let publisher = Publisher::open(connection).await?;
        let timeout = connection.options().request_timeout;
        Ok(Self { connection: connection.clone(), publisher, name: bucket.to_owned(), timeout })
    }

    /// The same bucket, whose writes wait this long for their answer. Reads keep the connection's time.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The value of a key. None where it does not exist or was deleted.
    ///
    /// # Errors
    /// As [`crate::Api::direct_get`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn read(&self, key: &str) -> Result<Option<Entry>> {
        Ok(self.last(key).await?.filter(|entry| !entry.deleted))
    }

    /// The last write to a key, a deletion too.
    ///
    /// # Errors
    /// As [`Self::read`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn last(&self, key: &str) -> Result<Option<Entry>> {
        let subject = self.subject(key)?;
        let tail = format!("DIRECT.GET.KV_{}.{subject}", self.name);
        let stored = self.connection.api().direct_one(&tail, Bytes::new()).await?;
        Ok(stored.and_then(|stored| self.entry(stored)))
    }

    /// All keys that a pattern matches (`lease.>`, `lease.*.m1`), in one request, deleted ones left out.
    ///
    /// # Errors
    /// As [`crate::Api::direct_batch`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn read_many(&self, pattern: &str) -> Result<Vec<Entry>> {
        let subject = self.pattern(pattern)?;
        let which = DirectBatch { multi_last: vec![subject], ..DirectBatch::default() };
        let batch = self.connection.api().direct_batch(&format!("KV_{}", self.name), &which).await?;
        let entries = batch.messages.into_iter().filter_map(|stored| self.entry(stored));
        Ok(entries.filter(|entry| !entry.deleted).collect())
    }

    /// Writes a key that does not exist, or was deleted. Says its revision.
    ///
    /// # Errors
    /// Class Conflict where it exists ([`is_conflict`]). Class Unknown where the answer was lost: read the key, and
    /// compare what it holds with what was to be written, before believing any later conflict.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn create(&self, key: &str, value: Bytes) -> Result<u64> {
        match self.write(key, Some(value.clone()), 0).await {
            Err(error) if is_conflict(&error) => match self.last(key).await? {
                Some(entry) if entry.deleted => self.write(key, Some(value), entry.revision).await,
                _ => Err(error),
            },
            outcome => outcome,
        }
    }

    /// Writes a key whose last write has this revision. Says the new one.
    ///
    /// # Errors
    /// As [`Self::create`]; a conflict where it has another revision.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn update(&self, key: &str, value: Bytes, revision: u64) -> Result<u64> {
        self.write(key, Some(value), revision).await
    }

    /// Deletes a key whose last write has this revision. Says the revision of the mark that is left.
    ///
    /// # Errors
    /// As [`Self::update`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn delete(&self, key: &str, revision: u64) -> Result<u64> {
        self.write(key, None, revision).await
    }

    /// Sees writes to keys that a pattern matches.
    ///
    /// # Errors
    /// As [`Connection::subscribe`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn watch(&self, pattern: &str) -> Result<Watch> {
        let subscription = self.connection.subscribe(&self.pattern(pattern)?).await?;
        Ok(Watch { subscription, prefix: format!("$KV.{}.", self.name) })
    }

    async fn write(&self, key: &str, value: Option<Bytes>, expected: u64) -> Result<u64> {
        let mut headers = Headers::new();
        headers.append("Nats-Expected-Last-Subject-Sequence", expected);
        if value.is_none() {
            headers.append("KV-Operation", "DEL");
        }
        let subject = match &self.connection.options().js_domain {
            Some(domain) => format!("$JS.{domain}.API.{}", self.subject(key)?),
            None => self.subject(key)?,
        };
        let ack = self.publisher.publish(&subject, headers, value.unwrap_or_default(), self.timeout).await?;
        Ok(ack.sequence)
    }

    fn subject(&self, key: &str) -> Result<String> {
        if key.contains(['*', '>']) {
            return Err(Error::new(key, Kind::Invalid("a pattern, not a key".into())));
        }
        self.pattern(key)
    }

    fn pattern(&self, key: &str) -> Result<String> {
        if valid(key, b"-_=./*>") && key.split('.').all(|token| !token.is_empty()) {
            Ok(format!("$KV.{}.{key}", self.name))
        } else {
            Err(Error::new(key, Kind::Invalid("not a key".into())))
        }
    }

    fn entry(&self, stored: Stored) -> Option<Entry> {
        let key = key_of(&stored.subject, &format!("$KV.{}.", self.name))?;
        let deleted = deleted(stored.message());
        let (revision, written) = (stored.sequence, stored.time);
        Some(Entry { key, value: stored.into_message().into_body(), revision, written, deleted })
    }
}

impl Watch {
    /// The next write. None once the connection is closed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            let message = self.subscription.next().await?;
            let deleted = deleted(&message);
            if let Some(key) = key_of(message.subject(), &self.prefix) {
                return Some(Change { key, value: message.into_body(), deleted });
            }
        }
    }
}

/// Whether a write was refused because the key had another revision.
#[must_use]
pub fn is_conflict(error: &Error) -> bool {
    error.is_api(WRONG_LAST_SEQUENCE) || error.is_api(WRONG_LAST_SEQUENCE_UNSAID)
}

fn deleted(message: &Message) -> bool {
    matches!(message.header("KV-Operation"), Some("DEL" | "PURGE")) || message.header("Nats-Marker-Reason").is_some()
}

/// The key in a subject, which may carry a domain's prefix before the bucket's.
fn key_of(subject: &str, prefix: &str) -> Option<String> {
    subject.find(prefix).map(|at| subject[at + prefix.len()..].to_owned())
}

fn valid(text: &str, also: &[u8]) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || also.contains(&byte))
}
