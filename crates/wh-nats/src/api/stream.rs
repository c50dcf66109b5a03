//! Streams: which there are, their state, their subjects, and the deletion of one message.

use super::{Api, DirectGet, MAX_PAGES, fields, next_offset};
use crate::Result;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wh_types::Timestamp;

/// A stream at a moment.
#[derive(Clone, Debug)]
pub struct StreamState {
    /// When it was created, as the server writes it: another stream of the same name has another.
    pub created: String,
    /// Sequence of the first message; one above the last where there is none.
    pub first_seq: u64,
    /// Sequence of the last message ever stored.
    pub last_seq: u64,
    /// Messages in it.
    pub messages: u64,
    /// Bytes in it.
    pub bytes: u64,
    /// When the first message was stored.
    pub first_ts: Option<Timestamp>,
    /// When the last message was stored.
    pub last_ts: Option<Timestamp>,
    /// The server's clock when it answered.
    pub ts: Option<Timestamp>,
    /// Its configuration.
    pub config: Value,
}

impl StreamState {
    fn read(info: &Value) -> Self {
        let state = info.get("state").unwrap_or(&Value::Null);
        Self {
            created: fields::text(info, "created"),
            first_seq: fields::number(state, "first_seq"),
            last_seq: fields::number(state, "last_seq"),
            messages: fields::number(state, "messages"),
            bytes: fields::number(state, "bytes"),
            first_ts: fields::time(state, "first_ts"),
            last_ts: fields::time(state, "last_ts"),
            ts: fields::time(info, "ts"),
            config: info.get("config").cloned().unwrap_or_default(),
        }
    }
}

impl Api {
    /// The streams that take a subject, or any subject that a pattern matches; all of them.
    ///
    /// # Errors
    /// As [`Api::request_json`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn stream_names(&self, subject: &str) -> Result<Vec<String>> {
        let (mut names, mut offset) = (Vec::new(), 0);
        for _ in 0..MAX_PAGES {
            let body = json!({"subject": subject, "offset": offset});
            let answer = self.request_json("STREAM.NAMES", &body, self.timeout()).await?;
            let page = answer.get("streams").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            names.extend(page.iter().filter_map(Value::as_str).map(str::to_owned));
            match next_offset(&answer, offset, page.len()) {
                Some(next) => offset = next,
                None => break,
            }
        }
        Ok(names)
    }

    /// A stream's INFO as the server gives it.
    ///
    /// # Errors
    /// As [`Api::request_json`]; [`crate::Error::is_gone`] where there is none.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn stream_info(&self, stream: &str) -> Result<Value> {
        self.request_json(&format!("STREAM.INFO.{stream}"), &Value::Null, self.timeout()).await
    }

    /// A stream's state.
    ///
    /// # Errors
    /// As [`Self::stream_info`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn stream_state(&self, stream: &str) -> Result<StreamState> {
        self.stream_info(stream).await.map(|info| StreamState::read(&info))
    }

    /// Messages per subject, of the subjects that match `filter`. Read page after page: a subject may be missing that
    /// came or went meanwhile.
    ///
    /// # Errors
    /// As [`Self::stream_info`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn stream_subjects(&self, stream: &str, filter: &str) -> Result<BTreeMap<String, u64>> {
        let (tail, mut subjects, mut offset) = (format!("STREAM.INFO.{stream}"), BTreeMap::new(), 0);
        for _ in 0..MAX_PAGES {
            let body = json!({"subjects_filter": filter, "offset": offset});
            let answer = self.request_json(&tail, &body, self.timeout()).await?;
            let Some(page) = answer.pointer("/state/subjects").and_then(Value::as_object) else { break };
            subjects.extend(page.iter().filter_map(|(subject, count)| Some((subject.clone(), count.as_u64()?))));
            match next_offset(&answer, offset, page.len()) {
                Some(next) => offset = next,
                None => break,
            }
        }
        Ok(subjects)
    }

    /// Deletes one message. False where it is not there; where it was a stream's first or last, that is only known of a
    /// stream with `allow_direct`, and an error of the server elsewhere.
    ///
    /// # Errors
    /// As [`Api::request_json`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn message_delete(&self, stream: &str, sequence: u64) -> Result<bool> {
        use crate::error::err_code::{DELETE_FAILED, MESSAGE_NOT_FOUND, SEQUENCE_NOT_FOUND};
        let body = json!({"seq": sequence, "no_erase": true});
        let answer = self.request_json(&format!("STREAM.MSG.DELETE.{stream}"), &body, self.timeout()).await;
        match answer {
            Ok(_) => Ok(true),
            Err(error) if error.is_api(SEQUENCE_NOT_FOUND) || error.is_api(MESSAGE_NOT_FOUND) => Ok(false),
            // of a message that is gone, where it was the first or the last; the code alone does not tell
            Err(error) if error.is_api(DELETE_FAILED) => {
                match self.direct_get(stream, DirectGet::Sequence(sequence)).await {
                    Ok(None) => Ok(false),
                    Ok(Some(_)) | Err(_) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_from_info() {
        let info = json!({
            "created": "2026-01-01T00:00:00Z", "ts": "2026-01-02T00:00:00Z", "config": {"name": "X"},
            "state": {"messages": 2, "bytes": 10, "first_seq": 4, "last_seq": 5,
                "first_ts": "2026-01-01T00:00:01Z", "last_ts": "0001-01-01T00:00:00Z"},
        });
        let state = StreamState::read(&info);
        assert_eq!((state.first_seq, state.last_seq, state.messages, state.bytes), (4, 5, 2, 10));
        assert_eq!((state.first_ts.is_some(), state.last_ts, state.config["name"].as_str()), (true, None, Some("X")));
    }
}
