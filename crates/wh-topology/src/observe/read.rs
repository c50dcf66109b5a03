//! Reads answers of JetStream and of servers, each told by its shape.

use super::{Consumer, Fields, Observed, Server, State, Stream, kinds};
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
        let listed = |key: &str| match map.get(key) {
            // an account's INFO counts them
            None | Some(Value::Number(_)) => Ok(false),
            Some(Value::Array(_)) => Ok(true),
            // an empty list, as Go writes it
            Some(Value::Null) => Ok(!map.contains_key("config")),
            Some(_) => Err(format!("{key} must be a list")),
        };
        if listed("streams")? {
            self.take_streams(&mut map)
        } else if listed("consumers")? {
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
        kinds::check(page, "", kinds::LIST)?;
        self.stream_total = self.stream_total.max(page.get("total").and_then(Value::as_u64).unwrap_or(0));
        for (index, stream) in list(page, "streams").into_iter().enumerate() {
            if let Value::String(name) = stream {
                self.listed_streams.insert(name);
            } else {
                self.take(stream).map_err(|problem| format!("streams[{index}] {problem}"))?;
            }
        }
        let missing = list(page, "missing").into_iter().filter_map(|name| Some(name.as_str()?.to_owned()));
        self.unread_streams.extend(missing);
        Ok(())
    }

    fn take_consumers(&mut self, stream: Option<&str>, page: &mut Map<String, Value>) -> Result<(), String> {
        kinds::check(page, "", kinds::LIST)?;
        let (consumers, missing) = (list(page, "consumers"), list(page, "missing"));
        let first = consumers.first().and_then(|consumer| consumer.get("stream_name")).and_then(Value::as_str);
        let stream = stream.or(first).map(str::to_owned);
        if let (Some(stream), Some(total)) = (&stream, page.get("total").and_then(Value::as_u64)) {
            let most = self.consumer_totals.entry(stream.clone()).or_default();
            *most = total.max(*most);
        }
        for (index, consumer) in consumers.into_iter().enumerate() {
            self.take(consumer).map_err(|problem| format!("consumers[{index}] {problem}"))?;
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
        kinds::check(&map, "", kinds::STREAM_INFO)?;
        let created = text(&map, "created").to_owned();
        let state = match map.get("state") {
            Some(Value::Object(state)) => {
                kinds::check(state, "state.", kinds::STATE)?;
                let number = |key: &str| state.get(key).and_then(Value::as_u64).unwrap_or(0);
                let (messages, bytes) = (number("messages"), number("bytes"));
                State { messages, bytes, last_seq: number("last_seq"), consumers: number("consumer_count") }
            }
            _ => State::default(),
        };
        let config = config(&mut map, kinds::STREAM)?;
        let name = config.text("name").to_owned();
        if name.is_empty() {
            return Err("is a stream without a name: config.name is missing".to_owned());
        }
        self.streams.insert(name, Stream { config, created, state });
        Ok(())
    }

    fn take_consumer(&mut self, mut map: Map<String, Value>) -> Result<(), String> {
        kinds::check(&map, "", kinds::CONSUMER_INFO)?;
        let (stream, name) = (text(&map, "stream_name").to_owned(), text(&map, "name").to_owned());
        if stream.is_empty() || name.is_empty() {
            return Err("is a consumer without a stream or a name: stream_name or name is missing".to_owned());
        }
        let number = |key: &str| map.get(key).and_then(Value::as_u64).unwrap_or(0);
        let (num_pending, num_ack_pending) = (number("num_pending"), number("num_ack_pending"));
        let config = config(&mut map, kinds::CONSUMER)?;
        self.consumers.insert((stream, name), Consumer { config, num_pending, num_ack_pending });
        Ok(())
    }
}

/// The configuration of what an answer is about.
fn config(map: &mut Map<String, Value>, kinds: &[(&str, kinds::Kind)]) -> Result<Fields, String> {
    let Some(Value::Object(config)) = map.remove("config") else { return Err("config must be an object".to_owned()) };
    kinds::check(&config, "config.", kinds)?;
    Ok(Fields::new(Value::Object(config)))
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
    use crate::{Role, Spec};

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
    fn consumers_that_nobody_listed_are_told_and_not_taken_as_missing() {
        let spec = Spec::default();
        let stream = |count: &str| {
            format!(r#"{{"config":{{"name":"P","subjects":["wh.ingest.0.>"]}},"created":"t","state":{{{count}}}}}"#)
        };
        let two = stream(r#""consumer_count":2"#);
        let told = read(&two).unwrap().unlisted_consumers(&spec, Role::Both).unwrap();
        assert!(told.starts_with("hold none of the 2 consumers of P: their list"), "{told}");
        assert_eq!(read(&two).unwrap().unlisted_consumers(&spec, Role::Api), None, "an api checks no durable");
        let one = format!(r#"{two} {{"config":{{}},"stream_name":"P","name":"wh-ingest-0"}}"#);
        let told = read(&one).unwrap().unlisted_consumers(&spec, Role::Ingest).unwrap();
        assert!(told.starts_with("hold 1 of the 2 consumers of P"), "{told}");
        let both = format!(r#"{one} {{"consumers":[{{"config":{{}},"stream_name":"P","name":"x"}}]}}"#);
        assert_eq!(read(&both).unwrap().unlisted_consumers(&spec, Role::Both), None);
        // a stream that has none, and one that is no partition
        assert_eq!(read(&stream("")).unwrap().unlisted_consumers(&spec, Role::Both), None);
        let other = two.replace("wh.ingest.0.>", "other.>");
        assert_eq!(read(&other).unwrap().unlisted_consumers(&spec, Role::Both), None);
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
            (r#"{"config":{},"created":"t"}"#, "a stream without a name: config.name is missing"),
            (r#"{"config":7,"created":"t"}"#, "answer 1: config is a number; it must be an object"),
            (r#"{"config":{"name":7},"created":"t"}"#, "answer 1: config.name is a number; it must be a text"),
            (r#"{"config":{"name":"A"},"created":5}"#, "created is a number"),
            (r#"{"config":{"name":"A"},"created":"t","state":{"messages":"3"}}"#, "state.messages is a text"),
            (
                r#"{"streams":[{"config":{"name":"A","max_age":"5m"},"created":"t"}]}"#,
                "answer 1: streams[0] config.max_age is a text; it must be a whole number",
            ),
            (r#"{"streams":"A"}"#, "answer 1: streams must be a list"),
            (r#"{"streams":[],"total":"1"}"#, "total is a text"),
            (r#"{"streams":[],"missing":[1]}"#, "missing is a list; it must be a list of texts"),
            (
                r#"{"consumers":[{"stream_name":"A","name":"d","config":{"ack_wait":"60s"}}]}"#,
                "consumers[0] config.ack_wait is a text",
            ),
            (r#"{"config":{},"stream_name":"A","name":"d","num_pending":-0.5}"#, "num_pending is a number that is not"),
            (r#"{"config":{},"stream_name":[],"name":"x"}"#, "stream_name is a list; it must be a text"),
            (r#"{"config":{},"stream_name":"","name":"x"}"#, "without a stream"),
            (r#"{"server_id":"a","version":"1"} {"error":{"code":404}}"#, "answer 2: is a refusal: {\"code\":404}"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(problem), "{said}");
        }
    }
}
