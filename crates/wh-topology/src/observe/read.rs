//! Reads answers of JetStream and of servers, each told by its shape.

use super::{Consumer, Fields, Observed, Server, State, Stream};
use serde_json::{Deserializer, Map, Value};

impl Observed {
    /// Adds what a text of one or more JSON answers says: `STREAM.INFO`, `STREAM.LIST`, `STREAM.NAMES`,
    /// `CONSUMER.INFO`, `CONSUMER.LIST`, a server's INFO or an answer of `$SYS.REQ.SERVER.PING`, and the same as
    /// `nats … --json` prints them. An account's INFO says nothing here.
    ///
    /// # Errors
    /// What cannot be read, in words.
    pub fn read(&mut self, text: &str) -> Result<(), String> {
        let mut answers = 0;
        for value in Deserializer::from_str(text).into_iter::<Value>() {
            let value = value.map_err(|error| format!("is no JSON: {error}"))?;
            answers += 1;
            self.take(value).map_err(|problem| format!("answer {answers}: {problem}"))?;
        }
        // a request that timed out leaves an empty file: that is not an empty cluster
        if answers == 0 { Err("holds no answer".to_owned()) } else { Ok(()) }
    }

    /// Adds one page of `CONSUMER.LIST` of `stream`.
    ///
    /// # Errors
    /// What cannot be read, in words.
    pub fn read_consumers(&mut self, stream: &str, text: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
        let Value::Object(mut page) = value else { return Err("is no list of consumers".to_owned()) };
        failed(&page)?;
        self.take_consumers(Some(stream), &mut page)
    }

    fn take(&mut self, value: Value) -> Result<(), String> {
        let mut map = match value {
            Value::Array(values) if values.is_empty() => return Err("is an empty list".to_owned()),
            Value::Array(values) => return values.into_iter().try_for_each(|value| self.take(value)),
            Value::Object(map) => map,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Err("is neither an object nor a list of them".to_owned());
            }
        };
        failed(&map)?;
        if map.get("streams").is_some_and(Value::is_array) {
            self.take_streams(&mut map)
        } else if map.get("consumers").is_some_and(Value::is_array) {
            self.take_consumers(None, &mut map)
        } else if map.contains_key("config") && map.contains_key("stream_name") {
            self.take_consumer(map)
        } else if map.contains_key("config") && map.contains_key("created") {
            self.take_stream(map)
        } else if let Some(server) = server(&map) {
            self.servers.push(server);
            Ok(())
        } else if text(&map, "type").ends_with(".account_info_response") {
            Ok(())
        } else {
            let keys: Vec<_> = map.keys().take(8).map(String::as_str).collect();
            Err(format!("is no known answer: an object with {}", keys.join(", ")))
        }
    }

    fn take_streams(&mut self, page: &mut Map<String, Value>) -> Result<(), String> {
        self.stream_total = self.stream_total.max(page.get("total").and_then(Value::as_u64).unwrap_or(0));
        for stream in list(page, "streams") {
            if let Value::String(name) = stream {
                self.listed_streams.insert(name);
            } else {
                self.take(stream)?;
            }
        }
        let missing = list(page, "missing").into_iter().filter_map(|name| Some(name.as_str()?.to_owned()));
        self.unread_streams.extend(missing);
        Ok(())
    }

    fn take_consumers(&mut self, stream: Option<&str>, page: &mut Map<String, Value>) -> Result<(), String> {
        let (consumers, missing) = (list(page, "consumers"), list(page, "missing"));
        let first = consumers.first().and_then(|consumer| consumer.get("stream_name")).and_then(Value::as_str);
        let stream = stream.or(first).map(str::to_owned);
        if let (Some(stream), Some(total)) = (&stream, page.get("total").and_then(Value::as_u64)) {
            let most = self.consumer_totals.entry(stream.clone()).or_default();
            *most = total.max(*most);
        }
        for consumer in consumers {
            self.take(consumer)?;
        }
        match stream {
            Some(stream) => {
                let names = missing.iter().filter_map(Value::as_str);
                self.unread_consumers.extend(names.map(|name| (stream.clone(), name.to_owned())));
                Ok(())
            }
            None if missing.is_empty() => Ok(()),
            None => Err("is a list of consumers without one: whose they are is not said".to_owned()),
        }
    }

    fn take_stream(&mut self, mut map: Map<String, Value>) -> Result<(), String> {
        let created = text(&map, "created").to_owned();
        let number = |key: &str| map.get("state").and_then(|state| state.get(key)).and_then(Value::as_u64).unwrap_or(0);
        let state = State { messages: number("messages"), bytes: number("bytes"), last_seq: number("last_seq") };
        let config = Fields::new(map.remove("config").unwrap_or_default());
        let name = config.text("name").to_owned();
        if name.is_empty() {
            return Err("is a stream without a name".to_owned());
        }
        self.streams.insert(name, Stream { config, created, state });
        Ok(())
    }

    fn take_consumer(&mut self, mut map: Map<String, Value>) -> Result<(), String> {
        let (stream, name) = (text(&map, "stream_name").to_owned(), text(&map, "name").to_owned());
        if stream.is_empty() || name.is_empty() {
            return Err("is a consumer without a stream or a name".to_owned());
        }
        let number = |key: &str| map.get(key).and_then(Value::as_u64).unwrap_or(0);
        let (num_pending, num_ack_pending) = (number("num_pending"), number("num_ack_pending"));
        let config = Fields::new(map.remove("config").unwrap_or_default());
        self.consumers.insert((stream, name), Consumer { config, num_pending, num_ack_pending });
        Ok(())
    }
}

/// A server's own INFO, or its answer to a ping.
fn server(map: &Map<String, Value>) -> Option<Server> {
    let own = |map: &Map<String, Value>, name: &str, version: &str| {
        let (name, version) = (text(map, name).to_owned(), text(map, version).to_owned());
        (!name.is_empty() && !version.is_empty()).then_some(Server { name, version })
    };
    let named = own(map, "server_name", "version").or_else(|| own(map, "server_id", "version"));
    named.or_else(|| own(map.get("server")?.as_object()?, "name", "ver"))
}

fn failed(map: &Map<String, Value>) -> Result<(), String> {
    match map.get("error").filter(|error| error.is_object()) {
        Some(error) => Err(format!("is a refusal: {error}")),
        None => Ok(()),
    }
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or("")
}

fn list(map: &mut Map<String, Value>, key: &str) -> Vec<Value> {
    match map.remove(key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Observed, String> {
        let mut observed = Observed::default();
        observed.read(text).map(|()| observed)
    }

    #[test]
    fn a_list_that_is_not_whole_and_an_empty_answer_are_told() {
        let streams = r#"{"total":3,"limit":256,"offset":0,"streams":["A","B"],"missing":["C"]}"#;
        assert_eq!(read(streams).unwrap().missing_pages(), None, "what gave no answer is not a missing page");
        let cut = read(r#"{"total":7,"streams":["A","B"]}"#).unwrap().missing_pages().unwrap();
        assert!(cut.starts_with("hold 2 of 7 streams"), "{cut}");
        let page = r#"{"total":2,"consumers":[{"stream_name":"A","name":"d","config":{},"created":"t"}]}"#;
        let cut = read(page).unwrap().missing_pages().unwrap();
        assert!(cut.starts_with("hold 1 of 2 consumers of A"), "{cut}");
        assert_eq!(read(" \n"), Err("holds no answer".to_owned()));
        assert!(read("[]").unwrap_err().contains("empty list"));
    }

    #[test]
    fn each_answer_is_told_by_its_shape() {
        let text = r#"
            {"server_id":"NA","server_name":"n1","version":"2.14.6","proto":1}
            {"server":{"name":"n2","id":"NB","ver":"2.15.1"},"statsz":{}}
            {"type":"io.nats.jetstream.api.v1.stream_names_response","streams":["A","B"]}
            {"type":"io.nats.jetstream.api.v1.stream_list_response","streams":[
                {"config":{"name":"A","max_age":5},"created":"2026-01-01T00:00:00Z","state":{"messages":3,"last_seq":9}}],
             "missing":["C"]}
            {"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":"B"},"created":"t","state":{}}
            {"type":"io.nats.jetstream.api.v1.consumer_info_response","stream_name":"A","name":"d",
             "config":{"durable_name":"d"},"num_pending":2,"num_ack_pending":1}
            {"type":"io.nats.jetstream.api.v1.consumer_list_response","consumers":[
                {"stream_name":"A","name":"e","config":{},"created":"t"}],"missing":["f"]}
            {"type":"io.nats.jetstream.api.v1.account_info_response","streams":2,"consumers":3}"#;
        let seen = read(text).unwrap();
        let versions: Vec<_> = seen.servers.iter().map(|s| (s.name.as_str(), s.version.as_str())).collect();
        assert_eq!(versions, [("n1", "2.14.6"), ("n2", "2.15.1")]);
        assert_eq!(seen.streams.keys().collect::<Vec<_>>(), ["A", "B"]);
        assert_eq!((seen.streams["A"].state.messages, seen.streams["A"].state.last_seq), (3, 9));
        assert!(seen.unread_streams.contains("C") && seen.listed_streams.contains("B"));
        let key = |name: &str| ("A".to_owned(), name.to_owned());
        assert_eq!((seen.consumers[&key("d")].num_pending, seen.consumers[&key("d")].num_ack_pending), (2, 1));
        assert!(seen.consumers.contains_key(&key("e")) && seen.unread_consumers.contains(&key("f")));
    }

    #[test]
    fn a_list_of_answers_reads_as_its_answers() {
        let seen = read(r#"[{"config":{"name":"A"},"created":"t"},{"config":{"name":"B"},"created":"t"}]"#).unwrap();
        assert_eq!(seen.streams.len(), 2);
    }

    #[test]
    fn a_page_of_consumers_may_be_all_missing() {
        let mut seen = Observed::default();
        seen.read_consumers("S", r#"{"consumers":[],"missing":["d"]}"#).unwrap();
        assert!(seen.unread_consumers.contains(&("S".to_owned(), "d".to_owned())));
        assert!(seen.read_consumers("S", "[]").is_err() && seen.read_consumers("S", "x").is_err());
        assert!(seen.read(r#"{"consumers":[],"missing":["d"]}"#).unwrap_err().contains("whose they are"));
    }

    #[test]
    fn what_is_no_answer_is_refused_with_its_place() {
        for (text, problem) in [
            ("{", "is no JSON"),
            ("7", "answer 1: is neither an object"),
            (r#"{"a":1,"b":2}"#, "answer 1: is no known answer: an object with a, b"),
            (r#"{"config":{},"created":"t"}"#, "a stream without a name"),
            (r#"{"config":{},"stream_name":"","name":"x"}"#, "without a stream"),
            (r#"{"server_id":"a","version":"1"} {"error":{"code":404}}"#, "answer 2: is a refusal: {\"code\":404}"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(problem), "{said}");
        }
    }
}
