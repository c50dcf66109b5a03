//! Live streams: what is stored from now on and what was, to everybody at their own pace.

mod live;
mod replay;
mod seam;
mod slow;
mod tables;

use crate::rig::{Rig, get};
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;

/// A stream being read.
struct Reading {
    body: Body,
    text: String,
}

/// An event as a client of the protocol has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Event {
    kind: String,
    id: Option<String>,
    data: String,
    replay: bool,
}

impl Event {
    fn of(lines: &[String]) -> Self {
        let field =
            |name: &str| lines.iter().find_map(|line| line.strip_prefix(&format!("{name}: "))).map(str::to_owned);
        Self {
            kind: field("event").unwrap_or_default(),
            id: field("id"),
            data: field("data").unwrap_or_default(),
            replay: field("replay").is_some_and(|text| text == "true"),
        }
    }

    fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// A live row.
fn row(id: &str, text: &str) -> Event {
    Event { kind: "row".into(), id: Some(id.into()), data: text.into(), replay: false }
}

/// A row of before.
fn old(id: &str, text: &str) -> Event {
    Event { replay: true, ..row(id, text) }
}

fn ready(id: &str, table: &str) -> Event {
    Event { kind: "ready".into(), id: Some(id.into()), data: format!("{{\"table\":\"{table}\"}}"), replay: false }
}

fn gap(from: Option<&str>, to: Option<&str>, reason: &str) -> Event {
    let place = |place: Option<&str>| place.map_or("null".to_owned(), |place| format!("\"{place}\""));
    let (from, to) = (place(from), place(to));
    let data = format!("{{\"table\":\"t\",\"from\":{from},\"to\":{to},\"reason\":\"{reason}\"}}");
    Event { kind: "gap".into(), data, ..Event::default() }
}

fn end(reason: &str, resume: Option<&str>) -> Event {
    let resume = resume.map_or("null".to_owned(), |resume| format!("\"{resume}\""));
    let data = format!("{{\"reason\":\"{reason}\",\"resume\":{resume}}}");
    Event { kind: "end".into(), data, ..Event::default() }
}

/// A client that comes back.
fn resume(path: &str, id: &str) -> Request<Body> {
    let mut request = get(path);
    request.headers_mut().insert("last-event-id", id.parse().unwrap());
    request
}

impl Reading {
    /// Opens a stream, up to its first event.
    async fn begin(rig: &Rig, request: Request<Body>) -> Self {
        let response = rig.raw(request).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut this = Self { body: response.into_body(), text: String::new() };
        let opening = this.block().await.unwrap();
        let retry = opening[0].strip_prefix("retry: ").unwrap().parse::<u64>().unwrap();
        assert!(opening.len() == 1 && (1_000..2_000).contains(&retry), "{opening:?}");
        this
    }

    /// Opens a stream of what is stored from now on.
    async fn open(rig: &Rig, request: Request<Body>) -> Self {
        let mut this = Self::begin(rig, request).await;
        let first = this.event().await;
        assert_eq!((first.kind.as_str(), first.data.as_str()), ("ready", r#"{"table":"t"}"#));
        this
    }

    /// The next lines that stand together; `None` at the end.
    async fn block(&mut self) -> Option<Vec<String>> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.lines().map(str::to_owned).collect();
                self.text = rest.to_owned();
                return Some(block);
            }
            let piece = self.piece().await?;
            self.text.push_str(&piece);
        }
    }

    /// What is sent next in one piece.
    async fn piece(&mut self) -> Option<String> {
        let frame = self.body.frame().await?.unwrap().into_data().unwrap();
        Some(String::from_utf8(frame.to_vec()).unwrap())
    }

    /// The next event, whatever comments there are before it; `None` at the end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let block = self.block().await?;
            if block.iter().any(|line| line.starts_with("event: ")) {
                return Some(Event::of(&block));
            }
        }
    }

    async fn event(&mut self) -> Event {
        self.next().await.expect("the stream ended")
    }

    /// These come next.
    async fn shows(&mut self, events: &[Event]) {
        for event in events {
            assert_eq!(self.event().await, *event);
        }
    }
}
