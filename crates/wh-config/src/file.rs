//! The configuration file: read within a bound, kept as written, its keys checked. Its values are checked later.

use crate::{
    finding::Finding,
    layers::insert,
    nearest::unknown,
    table::{find, is_section},
};
use figment::{
    providers::{Format, Yaml},
    value::{Dict, Value},
};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::{fmt, io::Read, path::Path};

/// The largest configuration file.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a file. A problem is the whole of its findings: nothing in it can be judged then.
pub(crate) fn read(path: &Path) -> Result<String, Finding> {
    let fail = |problem: String| Finding::error(path.display().to_string(), problem);
    let file = std::fs::File::open(path).map_err(|error| fail(format!("cannot be read: {error}")))?;
    let mut text = String::new();
    match file.take(MAX_BYTES + 1).read_to_string(&mut text) {
        Err(error) => Err(fail(format!("cannot be read: {error}"))),
        Ok(_) if text.len() as u64 > MAX_BYTES => Err(fail("has more than 1 MiB: it is some other file".to_owned())),
        Ok(_) => Ok(text),
    }
}

/// The known keys that a file's text gives, and what is wrong with its others.
pub(crate) fn keys(text: &str, name: &str) -> (Dict, Vec<Finding>) {
    let mut walk = Walk { name, dict: Dict::new(), findings: Vec::new() };
    match <Yaml as Format>::from_str::<Node>(text) {
        Ok(Node::Nothing) => {}
        Ok(Node::Map(entries)) => walk.section("", entries),
        Ok(Node::Leaf(_) | Node::List(_)) => {
            walk.findings.push(Finding::error(name, "must be a mapping of keys to values"));
        }
        Err(error) => walk.findings.push(Finding::error(name, format!("is not valid YAML: {error}"))),
    }
    (walk.dict, walk.findings)
}

struct Walk<'a> {
    name: &'a str,
    dict: Dict,
    findings: Vec<Finding>,
}

impl Walk<'_> {
    fn section(&mut self, prefix: &str, entries: Vec<(String, Node)>) {
        let mut seen = std::collections::BTreeSet::new();
        for (name, node) in entries {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            if !seen.insert(name.clone()) {
                self.problem(&path, "is given twice");
            } else if name.contains('.') {
                self.problem(&path, "has a dot in its name: write it as sections, one below the other");
            } else if find(&path).is_some() {
                self.leaf(&path, node);
            } else if is_section(&path) {
                match node {
                    Node::Nothing => {}
                    Node::Map(entries) => self.section(&path, entries),
                    Node::Leaf(_) | Node::List(_) => self.problem(&path, "is a section: keys belong below it"),
                }
            } else {
                self.findings.push(unknown(&self.subject(&path), &path));
            }
        }
    }

    fn leaf(&mut self, path: &str, node: Node) {
        match node.into_value() {
            Ok(value) => insert(&mut self.dict, path, value),
            Err(problem) => self.problem(path, problem),
        }
    }

    fn subject(&self, path: &str) -> String {
        format!("{path} in {}", self.name)
    }

    fn problem(&mut self, path: &str, problem: &str) {
        self.findings.push(Finding::error(self.subject(path), problem));
    }
}

/// A piece of YAML, as written: a name given twice is there twice.
enum Node {
    Nothing,
    Leaf(Value),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn into_value(self) -> Result<Value, &'static str> {
        match self {
            Self::Nothing => Err("has no value: give it one, or remove the line"),
            Self::Leaf(value) => Ok(value),
            Self::List(items) => {
                Ok(Value::from(items.into_iter().map(Self::into_value).collect::<Result<Vec<_>, _>>()?))
            }
            Self::Map(entries) => {
                let mut dict = Dict::new();
                for (name, node) in entries {
                    if dict.insert(name, node.into_value()?).is_some() {
                        return Err("has an entry twice");
                    }
                }
                Ok(Value::from(dict))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("plain YAML without tags")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Leaf(Value::from(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Leaf(Value::from(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Leaf(Value::from(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Leaf(Value::from(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Leaf(Value::from(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry::<String, Node>()? {
            map.push(entry);
        }
        Ok(Node::Map(map))
    }
}
