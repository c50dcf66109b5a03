//! Server-sent events, read line by line as the format's specification says.

use super::in_time;
use ::http::HeaderMap;
use anyhow::{Context, Result};
use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::time::Duration;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event:` field, `message` where there was none.
    pub kind: String,
    /// The `id:` field of this event, where there was one.
    pub id: Option<String>,
    /// The `data:` lines, joined by line feeds.
    pub data: String,
}

impl Event {
    /// The data as JSON.
    ///
    /// # Errors
    /// It is not JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.data).with_context(|| format!("{self:?}"))
    }
}

/// An open stream of events. Dropping it closes the connection.
#[derive(Debug)]
pub struct Events {
    headers: HeaderMap,
    body: Incoming,
    parser: Parser,
}

impl Events {
    pub(super) fn new(headers: HeaderMap, body: Incoming) -> Self {
        Self { headers, body, parser: Parser::default() }
    }

    /// The reply's headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// How many comment lines (keep-alives) came so far.
    #[must_use]
    pub fn comments(&self) -> u64 {
        self.parser.comments
    }

    /// The next event, or `None` when the server ended the stream in order.
    ///
    /// # Errors
    /// None came within the time, or the connection broke.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn next(&mut self, within: Duration) -> Result<Option<Event>> {
        in_time(within, async {
            loop {
                if let Some(event) = self.parser.next() {
                    return Ok(Some(event));
                }
                let Some(frame) = self.body.frame().await else { return Ok(None) };
                if let Ok(data) = frame.context("the event stream broke")?.into_data() {
                    self.parser.feed(&data);
                }
            }
        })
        .await
    }
}

#[derive(Debug, Default)]
struct Parser {
    unread: BytesMut,
    building: Event,
    has_data: bool,
    comments: u64,
}

impl Parser {
    fn feed(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// The next whole event of what was fed.
    fn next(&mut self) -> Option<Event> {
        while let Some(end) = self.unread.iter().position(|&b| b == b'\n') {
            let line = String::from_utf8_lossy(&self.unread[..end]).trim_end_matches('\r').to_owned();
            self.unread.advance(end + 1);
            if line.is_empty() {
                let event = std::mem::take(&mut self.building);
                if std::mem::take(&mut self.has_data) {
                    let kind = if event.kind.is_empty() { "message".to_owned() } else { event.kind };
                    return Some(Event { kind, ..event });
                }
                continue;
            }
            self.line(&line);
        }
        None
    }

    fn line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => self.comments += 1,
            "event" => value.clone_into(&mut self.building.kind),
            "id" => self.building.id = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.building.data.push('\n');
                }
                self.building.data.push_str(value);
                self.has_data = true;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_whatever_way_the_bytes_are_cut() {
        let text = ": hello\r\nevent: row\r\nid: 7\r\ndata: {\"a\":1}\r\n\r\ndata:x\ndata: y\n\nevent: empty\n\n:\n";
        let row = Event { kind: "row".into(), id: Some("7".into()), data: "{\"a\":1}".into() };
        let two_lines = Event { kind: "message".into(), id: None, data: "x\ny".into() };
        for step in 1..text.len() {
            let mut parser = Parser::default();
            let mut events = Vec::new();
            for piece in text.as_bytes().chunks(step) {
                parser.feed(piece);
                events.extend(std::iter::from_fn(|| parser.next()));
            }
            assert_eq!(events, [row.clone(), two_lines.clone()], "step {step}");
            assert_eq!(parser.comments, 2);
        }
    }
}
