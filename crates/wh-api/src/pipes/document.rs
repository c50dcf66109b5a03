//! A settings file of JSON, read strictly: what stands where, unknown and doubled keys, values of the wrong kind. Knows
//! nothing of pipes.

use super::finding::{Findings, PipeFinding};
use crate::json::{Scanner, Value};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::Range,
};
use wh_clickhouse::types::JsonKind;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: String,
    pub(super) kind: JsonKind,
    span: Range<usize>,
}

/// A file's text, which is JSON, and what was found wrong in it so far.
#[derive(Debug)]
pub(super) struct Document<'a> {
    text: &'a str,
    pub(super) findings: Findings,
}

impl<'a> Document<'a> {
    /// Reads the text, which must be one object.
    pub(super) fn read(text: &'a [u8]) -> Result<(Self, Node), PipeFinding> {
        let line = |at: usize| 1 + memchr::memchr_iter(b'\n', &text[..at.min(text.len())]).count();
        let fault =
            |at: usize, problem: String| PipeFinding { place: String::new(), line: line(at), problem, warning: false };
        let text = std::str::from_utf8(text).map_err(|error| fault(error.valid_up_to(), "is not UTF-8".to_owned()))?;
        if text.trim().is_empty() {
            return Err(fault(0, "the file is empty; no pipes are {}".to_owned()));
        }
        let mut scanner = Scanner::new(text.as_bytes(), 0);
        let value = scanner.value(0).map_err(|found| fault(found.at, format!("not JSON: {found}")))?;
        if scanner.peek().is_some() {
            return Err(fault(scanner.at(), "something follows the object".to_owned()));
        }
        if value.kind != JsonKind::Object {
            return Err(fault(value.span.start, format!("the file holds {}, not an object", value.kind.name())));
        }
        let node = Node { place: String::new(), kind: value.kind, span: value.span };
        Ok((Self { text, findings: Findings::default() }, node))
    }

    /// The text of a value.
    pub(super) fn raw(&self, node: &Node) -> &'a str {
        &self.text[node.span.clone()]
    }

    fn line(&self, at: usize) -> usize {
        1 + memchr::memchr_iter(b'\n', &self.text.as_bytes()[..at]).count()
    }

    fn push(&mut self, node: &Node, problem: String, warning: bool) {
        let line = self.line(node.span.start);
        self.findings.push(PipeFinding { place: node.place.clone(), line, problem, warning });
    }

    /// Something is wrong with a value.
    pub(super) fn wrong(&mut self, node: &Node, problem: impl Into<String>) {
        self.push(node, problem.into(), false);
    }

    /// Something about a value should be known.
    pub(super) fn warn(&mut self, node: &Node, problem: impl Into<String>) {
        self.push(node, problem.into(), true);
    }

    /// The members of an object by their keys, each of which is one of `known`. No object has none.
    pub(super) fn members(&mut self, node: &Node, known: &[&str]) -> BTreeMap<String, Node> {
        let mut members = BTreeMap::new();
        if !self.is(node, JsonKind::Object) {
            return members;
        }
        let mut scanner = Scanner::new(self.text.as_bytes(), node.span.start + 1);
        let mut first = true;
        // what was read once is read again: no fault can come
        while let Ok(Some(key)) = scanner.key(first) {
            first = false;
            let Ok(value) = scanner.value(0) else { break };
            let quoted = &self.text[key.span.start - 1..key.span.end + 1];
            let name: String = serde_json::from_str(quoted).unwrap_or_default();
            let place = if node.place.is_empty() { name.clone() } else { format!("{}.{name}", node.place) };
            let member = Node { place, kind: value.kind, span: value.span };
            if !known.contains(&name.as_str()) {
                self.wrong(&member, format!("is an unknown key; there are {}", known.join(", ")));
                continue;
            }
            match members.entry(name) {
                Entry::Occupied(_) => self.wrong(&member, "stands there twice"),
                Entry::Vacant(free) => drop(free.insert(member)),
            }
        }
        members
    }

    /// The elements of an array, at most so many. No array has none.
    pub(super) fn elements(&mut self, node: &Node, most: usize) -> Vec<Node> {
        let mut elements = Vec::new();
        if !self.is(node, JsonKind::Array) {
            return elements;
        }
        let mut scanner = Scanner::new(self.text.as_bytes(), node.span.start + 1);
        while let Ok(true) = scanner.element(elements.is_empty()) {
            let Ok(Value { kind, span }) = scanner.value(0) else { break };
            elements.push(Node { place: format!("{}[{}]", node.place, elements.len()), kind, span });
            if elements.len() > most {
                self.wrong(node, format!("has more than {most} entries"));
                elements.clear();
                break;
            }
        }
        elements
    }

    /// A string of at most so many bytes.
    pub(super) fn text(&mut self, node: &Node, most: usize) -> Option<String> {
        if !self.is(node, JsonKind::String) {
            return None;
        }
        match serde_json::from_str::<String>(self.raw(node)) {
            Ok(text) if text.len() > most => {
                self.wrong(node, format!("is longer than {most} bytes"));
                None
            }
            Ok(text) => Some(text),
            Err(_) => {
                self.wrong(node, "is no text: half a surrogate pair is in it");
                None
            }
        }
    }

    /// true or false.
    pub(super) fn flag(&mut self, node: &Node) -> bool {
        self.is(node, JsonKind::Bool) && self.raw(node) == "true"
    }

    /// A whole number of at least 1.
    pub(super) fn count(&mut self, node: &Node) -> Option<u64> {
        let count = self.raw(node).parse().ok().filter(|count| *count > 0);
        if count.is_none() {
            self.wrong(node, "must be a whole number of at least 1");
        }
        count
    }

    fn is(&mut self, node: &Node, kind: JsonKind) -> bool {
        if node.kind != kind {
            self.wrong(node, format!("is {}, not {}", node.kind.name(), kind.name()));
        }
        node.kind == kind
    }
}
