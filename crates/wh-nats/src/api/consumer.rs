//! Durables: their state, all of a stream at once, unpin and reset.

use super::{Api, MAX_PAGES, fields, next_offset, parse};
use crate::{PinId, Result};
use serde_json::{Value, json};
use std::time::Duration;
use wh_types::Timestamp;

/// How long a page of a list may take: a cluster waits 4 s for consumers without a leader before it says that they are
/// missing.
const LIST_TIMEOUT: Duration = Duration::from_secs(6);

/// A durable at a moment.
#[derive(Clone, Debug)]
pub struct ConsumerInfo {
    /// Its name.
    pub name: String,
    /// Messages not delivered yet.
    pub num_pending: u64,
    /// Messages delivered and not settled.
    pub num_ack_pending: u64,
    /// Pulls that wait.
    pub num_waiting: u64,
    /// The last delivery.
    pub delivered: Progress,
    /// Everything up to here is settled.
    pub ack_floor: Progress,
    /// The server's clock when it answered. None where the server sends none: times of activity cannot be judged then.
    pub ts: Option<Timestamp>,
    /// Who is pinned, in the first group.
    pub pinned: Option<PinId>,
    /// When it was created, as the server writes it.
    pub created: String,
    /// Its configuration.
    pub config: Value,
    /// All of it, as the server gave it.
    pub raw: Value,
}

/// A place in a durable's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The durable's own count.
    pub consumer_seq: u64,
    /// The sequence in the stream.
    pub stream_seq: u64,
    /// When it last moved, by the server's clock.
    pub last_active: Option<Timestamp>,
}

/// All durables of a stream.
#[derive(Clone, Debug, Default)]
pub struct ConsumerList {
    /// Those that answered.
    pub infos: Vec<ConsumerInfo>,
    /// Names of those that exist and did not answer: nothing is known of them.
    pub missing: Vec<String>,
    /// The pages as the server wrote them.
    pub pages: Vec<String>,
}

impl ConsumerInfo {
    pub(super) fn read(raw: Value) -> Self {
        let progress = |name: &str| {
            let of = raw.get(name).unwrap_or(&Value::Null);
            let (consumer_seq, stream_seq) = (fields::number(of, "consumer_seq"), fields::number(of, "stream_seq"));
            Progress { consumer_seq, stream_seq, last_active: fields::time(of, "last_active") }
        };
        let pinned = raw.pointer("/priority_groups/0/pinned_client_id").and_then(Value::as_str);
        Self {
            name: fields::text(&raw, "name"),
            num_pending: fields::number(&raw, "num_pending"),
            num_ack_pending: fields::number(&raw, "num_ack_pending"),
            num_waiting: fields::number(&raw, "num_waiting"),
            delivered: progress("delivered"),
            ack_floor: progress("ack_floor"),
            ts: fields::time(&raw, "ts"),
            pinned: pinned.filter(|id| !id.is_empty()).map(PinId::new),
            created: fields::text(&raw, "created"),
            config: raw.get("config").cloned().unwrap_or_default(),
            raw,
        }
    }
}

impl Api {
    /// A durable's state.
    ///
    /// # Errors
    /// As [`Api::request_json`]; [`crate::Error::is_gone`] where there is none. A durable without a leader does not
    /// answer.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn consumer_info(&self, stream: &str, durable: &str) -> Result<ConsumerInfo> {
        let tail = format!("CONSUMER.INFO.{stream}.{durable}");
        self.request_json(&tail, &Value::Null, self.timeout()).await.map(ConsumerInfo::read)
    }

    /// All durables of a stream, page after page. A name that is missing was not read; it is not absent.
    ///
    /// # Errors
    /// As [`Api::request_json`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn consumer_list(&self, stream: &str) -> Result<ConsumerList> {
        let (tail, mut list, mut offset) = (format!("CONSUMER.LIST.{stream}"), ConsumerList::default(), 0);
        for _ in 0..MAX_PAGES {
            let timeout = self.timeout().max(LIST_TIMEOUT);
            let text = self.request_text(&tail, &json!({"offset": offset}), timeout).await?;
            let mut answer = parse(&tail, &text)?;
            list.pages.push(String::from_utf8_lossy(&text).into_owned());
            let missing = names(answer.get("missing"));
            let infos = match answer.get_mut("consumers").map(Value::take) {
                Some(Value::Array(infos)) => infos,
                _ => Vec::new(),
            };
            // the offset counts what was asked for, answered or not
            let next = next_offset(&answer, offset, infos.len() + missing.len());
            list.infos.extend(infos.into_iter().map(ConsumerInfo::read));
            list.missing.extend(missing);
            match next {
                Some(next) => offset = next,
                None => break,
            }
        }
        Ok(list)
    }

    /// Takes the pin away from whoever has it.
    ///
    /// # Errors
    /// As [`Self::consumer_info`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn unpin(&self, stream: &str, durable: &str, group: &str) -> Result<()> {
        let tail = format!("CONSUMER.UNPIN.{stream}.{durable}");
        self.request_json(&tail, &json!({"group": group}), self.timeout()).await.map(|_| ())
    }

    /// Sets a durable back to what is settled: everything delivered and not settled is delivered again, at once, and
    /// counts start anew. The pin stays. It is refused to nobody: ask only for a unit that nobody works at.
    ///
    /// # Errors
    /// As [`Self::consumer_info`], but a missing durable is not answered at all: look it up after a timeout.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn reset(&self, stream: &str, durable: &str) -> Result<ConsumerInfo> {
        let tail = format!("CONSUMER.RESET.{stream}.{durable}");
        self.request_json(&tail, &Value::Null, self.timeout()).await.map(ConsumerInfo::read)
    }
}

fn names(list: Option<&Value>) -> Vec<String> {
    let all = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read_with_and_without_a_pin() {
        let info = json!({
            "stream_name": "S", "name": "d", "created": "2026-01-01T00:00:00Z", "ts": "2026-01-01T00:00:09Z",
            "config": {"ack_wait": 60_000_000_000_u64},
            "delivered": {"consumer_seq": 7, "stream_seq": 9, "last_active": "2026-01-01T00:00:08Z"},
            "ack_floor": {"consumer_seq": 5, "stream_seq": 6},
            "num_ack_pending": 2, "num_waiting": 1, "num_pending": 3,
            "priority_groups": [{"group": "wavehouse", "pinned_client_id": "abc", "pinned_ts": "2026-01-01T00:00:00Z"}],
        });
        let read = ConsumerInfo::read(info);
        assert_eq!((read.num_pending, read.num_ack_pending, read.num_waiting), (3, 2, 1));
        assert_eq!((read.delivered.consumer_seq, read.delivered.stream_seq), (7, 9));
        assert_eq!(read.ack_floor, Progress { consumer_seq: 5, stream_seq: 6, last_active: None });
        assert_eq!(read.pinned, Some(PinId::new("abc")));
        assert_eq!(read.config["ack_wait"].as_u64(), Some(60_000_000_000));
        assert!(read.delivered.last_active.is_some() && read.ts.is_some());
        for groups in [json!([{"group": "wavehouse"}]), json!([{"pinned_client_id": ""}]), json!([]), Value::Null] {
            assert_eq!(ConsumerInfo::read(json!({"priority_groups": groups})).pinned, None);
        }
    }
}
