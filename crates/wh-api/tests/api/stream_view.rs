//! What a stream shows of its tables, through the API; and that every event is as its published schema says.

use crate::{
    engine::Engine,
    rig::{Rig, get, post},
};
use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;

/// An event: its name, its lines, its data.
#[derive(Clone, Debug)]
struct Event {
    name: String,
    id: Option<String>,
    replay: bool,
    data: String,
}

struct Reading {
    body: Body,
    text: String,
}

fn path(parameters: &[(&str, &str)]) -> String {
    let query = parameters.iter().fold(String::new(), |all, (name, value)| {
        let value: String = value.bytes().map(|b| format!("%{b:02X}")).collect();
        format!("{all}&{name}={value}")
    });
    format!("/v1/stream?{}", &query[1..])
}

impl Reading {
    async fn open(rig: &Rig, parameters: &[(&str, &str)]) -> Self {
        let response = rig.raw(get(&path(parameters))).await;
        assert_eq!(response.status(), 200, "{parameters:?}");
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next event.
    async fn next(&mut self) -> Event {
        loop {
            while let Some((text, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let event = field("event: ").map(|name| Event {
                    name,
                    id: field("id: "),
                    replay: text.lines().any(|line| line == "replay: true"),
                    data: field("data: ").unwrap_or_default(),
                });
                self.text = rest.to_owned();
                if let Some(event) = event {
                    return event;
                }
            }
            let frame = tokio::time::timeout(Duration::from_secs(60), self.body.frame());
            let frame = frame.await.unwrap().expect("the stream ended").unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&frame).unwrap());
        }
    }

    /// The next one of this name.
    async fn next_of(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().await;
            if event.name == name {
                return event;
            }
        }
    }

    async fn row(&mut self) -> String {
        self.next_of("row").await.data
    }
}

fn filter(column: &str, op: &str, value: Value) -> String {
    json!({ "column": column, "op": op, "value": value }).to_string()
}

#[tokio::test]
async fn streams_of_one_table_see_it_each_in_its_own_way() {
    let rig = Rig::new();
    rig.lines("{\"id\":1,\"note\":\"old\"}\n{\"id\":2}").await;
    let even = filter("id", "in", json!([2, "4"]));
    let mut whole = Reading::open(&rig, &[("table", "t"), ("since", "1h")]).await;
    let mut notes = Reading::open(&rig, &[("table", "t"), ("since", "1h"), ("columns", "note")]).await;
    let mut evens = Reading::open(&rig, &[("table", "t"), ("since", "1h"), ("columns", "id"), ("filter", &even)]).await;
    assert_eq!(whole.row().await, r#"{"id":1,"note":"old"}"#);
    assert_eq!((notes.row().await, notes.row().await), (r#"{"note":"old"}"#.into(), "{}".into()));
    let replayed = evens.next().await;
    assert_eq!((replayed.data.as_str(), replayed.replay), (r#"{"id":2}"#, true));
    assert!(replayed.id.unwrap().ends_with(".1"), "hidden rows count");
    for reading in [&mut whole, &mut notes, &mut evens] {
        reading.next_of("ready").await;
    }
    rig.lines("{\"id\":3,\"note\":\"x\"}\n{\"note\":\"y\",\"id\":4}").await;
    assert_eq!(
        (whole.row().await, whole.row().await),
        (r#"{"id":3,"note":"x"}"#.into(), r#"{"note":"y","id":4}"#.into())
    );
    assert_eq!((notes.row().await, notes.row().await), (r#"{"note":"x"}"#.into(), r#"{"note":"y"}"#.into()));
    assert_eq!(evens.row().await, r#"{"id":4}"#);
}

#[tokio::test]
async fn of_several_tables_each_may_be_seen_in_a_way_of_its_own() {
    let rig = Rig::new();
    let three = filter("id", "eq", json!(3));
    let asked =
        [("table", "t"), ("table", "a.b/c"), ("columns", "id,note"), ("columns.t", "id"), ("filter.a.b/c", &three)];
    let mut both = Reading::open(&rig, &asked).await;
    both.next_of("ready").await;
    both.next_of("ready").await;
    rig.send(post("/v1/ingest?table=a.b%2Fc", "application/x-ndjson", "{\"id\":1}\n{\"id\":3,\"note\":\"n\",\"n\":1}"))
        .await;
    assert_eq!(both.row().await, r#"{"table":"a.b/c","row":{"id":3,"note":"n"}}"#);
    rig.json(r#"{"id":2,"note":"n"}"#).await;
    assert_eq!(both.row().await, r#"{"table":"t","row":{"id":2}}"#);
}

#[tokio::test]
async fn what_cannot_be_shown_is_refused_before_the_stream_opens() {
    let rig = Rig::new();
    let (twice, like) = (filter("twice", "eq", json!(1)), filter("id", "like", json!("1%")));
    for (parameters, code) in [
        (vec![("columns", "nope")], "column.not_found"),
        (vec![("columns", "twice")], "request.invalid"),
        (vec![("filter", "{")], "query.invalid"),
        (vec![("filter", &*twice)], "stream.filter_unsupported"),
        (vec![("filter", &*like)], "stream.filter_unsupported"),
        // of one table there is no other
        (vec![("filter.t", &*like)], "request.invalid"),
        (vec![("filter.other", &*like)], "request.invalid"),
        (vec![("columns", "id"), ("columns", "note")], "request.invalid"),
    ] {
        let parameters = [vec![("table", "t")], parameters].concat();
        let reply = rig.send(get(&path(&parameters))).await;
        assert_eq!(reply.outcome(), (400, Some(code.to_owned())), "{parameters:?}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_view_follows_its_table_and_ends_where_it_cannot() {
    let table = "CREATE TABLE t (id Int8, note String, gone Int8) ENGINE = MergeTree ORDER BY tuple()";
    let engine = Engine::new(&[table]).await;
    let large = filter("id", "gt", json!(100));
    let mut follows = Reading::open(&engine.rig, &[("table", "t"), ("columns", "id"), ("filter", &large)]).await;
    let mut ends = Reading::open(&engine.rig, &[("table", "t"), ("columns", "gone")]).await;
    let mut whole = Reading::open(&engine.rig, &[("table", "t")]).await;
    for reading in [&mut follows, &mut ends, &mut whole] {
        reading.next_of("ready").await;
    }
    engine.rig.json(r#"{"id":101,"note":"","gone":1}"#).await;
    assert_eq!(follows.row().await, r#"{"id":101}"#);
    assert_eq!(ends.row().await, r#"{"gone":1}"#);
    let place = whole.next_of("row").await.id.unwrap();
    engine.database.query("ALTER TABLE t MODIFY COLUMN id Int32, DROP COLUMN gone").await.unwrap();
    engine.schema().refresh().await.unwrap();
    engine.rig.json(r#"{"id":1000,"note":""}"#).await;
    assert_eq!(follows.row().await, r#"{"id":1000}"#, "by the type as it is now");
    assert_eq!(whole.row().await, r#"{"id":1000,"note":""}"#);
    let end: Value = serde_json::from_str(&ends.next().await.data).unwrap();
    assert_eq!(end, json!({ "reason": "view_gone", "resume": place }));
    let refused = engine.rig.send(get(&path(&[("table", "t"), ("columns", "gone")]))).await;
    assert_eq!(refused.outcome(), (400, Some("column.not_found".into())));
}

#[tokio::test]
async fn every_event_is_as_its_schema_says() {
    let text = include_str!("../../../../docs/stream-events.schema.json");
    let document: Value = serde_json::from_str(text).unwrap();
    let valid = |name: &str, data: &str| {
        let schema = json!({ "$ref": format!("#/$defs/{name}"), "$defs": document["$defs"] });
        let data: Value = serde_json::from_str(data).unwrap();
        jsonschema::validator_for(&schema).unwrap().is_valid(&data)
    };
    let rig = Rig::new();
    rig.json(r#"{"id":1}"#).await;
    let mut seen = Vec::new();
    let committed = [("table", "t"), ("since", "1h"), ("events", "committed")];
    let mut one = Reading::open(&rig, &committed).await;
    let mut two = Reading::open(&rig, &[("table", "t"), ("table", "a.b/c"), ("since", "1h")]).await;
    // a place in another history
    let mut lost = Reading::open(&rig, &[("table", "t"), ("since", "0000dead-7.0")]).await;
    // in whichever order they come
    let mut wanted = vec!["committed", "row"];
    while !wanted.is_empty() {
        let event = one.next().await;
        if let Some(at) = wanted.iter().position(|name| *name == event.name) {
            seen.push((wanted.remove(at), event));
        }
    }
    seen.push(("row_of_several", two.next_of("row").await));
    seen.push(("ready", two.next_of("ready").await));
    seen.push(("gap", lost.next_of("gap").await));
    rig.stop.give();
    seen.push(("end", two.next_of("end").await));
    let names = document["$defs"].as_object().unwrap().keys();
    let events: Vec<&String> =
        names.filter(|name| !["table", "block", "known_place"].contains(&name.as_str())).collect();
    assert_eq!(seen.len(), events.len(), "each of {events:?}");
    for (name, event) in &seen {
        assert!(valid(name, &event.data), "{name}: {event:?}");
        assert!(!valid(name, "[]") && (*name == "row" || !valid(name, "{}")), "{name} is told apart");
    }
}
