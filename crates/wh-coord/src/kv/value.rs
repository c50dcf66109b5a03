//! The value of a lease as it is stored: JSON that an operator can read.

use crate::{Error, Kind, Result, Seen, Session};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wh_types::Mono;

/// A stored length beyond this is taken as this, the longest lease that can be configured: a foreign value must not keep
/// a key, and the units of its member, for ever.
const LONGEST: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Value {
    pub(super) holder: String,
    pub(super) session: String,
    pub(super) duration_ms: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) note: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<String>,
}

impl Value {
    /// Reads a value. One that is not ours to read is held by nobody we know, for as long as a lease of ours.
    pub(super) fn read(bytes: &Bytes, own: Duration) -> Self {
        serde_json::from_slice(bytes).unwrap_or_else(|_| Self {
            holder: "?".to_owned(),
            session: String::new(),
            duration_ms: u64::try_from(own.as_millis()).unwrap_or(u64::MAX),
            note: String::new(),
            over: None,
        })
    }

    pub(super) fn bytes(&self) -> Result<Bytes> {
        let bytes = serde_json::to_vec(self);
        bytes.map(Bytes::from).map_err(|e| Error::new("lease", Kind::Bug("a value has no text".into())).with_source(e))
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms).min(LONGEST)
    }

    pub(super) fn seen(self, revision: u64, lapses: Mono) -> Seen {
        let duration = self.duration();
        Seen {
            holder: self.holder,
            session: Session::from(&*self.session),
            duration,
            note: self.note,
            over: self.over.as_deref().map(Session::from),
            revision,
            lapses: Some(lapses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_plain_json_and_comes_back() {
        let value = Value {
            holder: "pod-1".to_owned(),
            session: "00ff".to_owned(),
            duration_ms: 15_000,
            note: String::new(),
            over: None,
        };
        let bytes = value.bytes().unwrap();
        assert_eq!(&bytes[..], br#"{"holder":"pod-1","session":"00ff","duration_ms":15000}"#);
        assert_eq!(Value::read(&bytes, Duration::ZERO), value);
        let noted = Value { note: "own 0:1".to_owned(), over: Some("aa".to_owned()), ..value };
        assert_eq!(Value::read(&noted.bytes().unwrap(), Duration::ZERO), noted);
    }

    #[test]
    fn a_foreign_value_is_held_for_a_lease_and_a_long_one_is_cut() {
        let own = Duration::from_secs(15);
        for foreign in ["", "x", "{}", "[1]", "{\"holder\":1}"] {
            let value = Value::read(&Bytes::from(foreign), own);
            assert_eq!((value.holder.as_str(), value.duration()), ("?", own), "{foreign}");
        }
        let long = br#"{"holder":"h","session":"s","duration_ms":18446744073709551615,"more":[1]}"#;
        assert_eq!(Value::read(&Bytes::from_static(long), own).duration(), LONGEST);
    }
}
