//! From the text of a `pipes.json` to pipes. Everything that is wrong becomes a finding with its place.

use super::{
    document::{Document, Node},
    given::OURS,
    kind::Known,
    loose::Loose,
    parameter::{Absent, Declared, Parameter},
    pipe::{ADMIN, Piece, Pipe, PipeLimits},
    set::PipeSet,
    template::{self, Form, Slot},
    wire,
};
use crate::query::age;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use wh_clickhouse::types::{JsonKind, Type};

/// Longest statement. ClickHouse takes 128 KiB in a form; a parameter whose type is told there needs some of it.
const MAX_SQL: usize = 120 << 10;
const MAX_NAME: usize = 128;
const MAX_DESCRIPTION: usize = 4 << 10;
const MAX_PARAMETERS: usize = 100;
const MAX_ROLES: usize = 100;
const DAY: Duration = Duration::from_secs(86_400);

const PIPE: &[&str] = &[
    "name",
    "sql",
    "parameters",
    "description",
    "allowed_roles",
    "cache_ttl",
    "max_rows",
    "max_execution_time",
    "max_memory_usage",
    "max_rows_to_read",
];
const PARAMETER: &[&str] = &["name", "type", "required", "default", "description"];

/// Every pipe of the file, by name.
pub(super) fn pipes(document: &mut Document<'_>, root: &Node) -> BTreeMap<String, Arc<Pipe>> {
    let mut pipes = BTreeMap::new();
    let Some(list) = document.members(root, &["pipes"]).remove("pipes") else { return pipes };
    for node in document.elements(&list, PipeSet::MAX_PIPES) {
        let Some(pipe) = pipe(document, &node) else { continue };
        if pipes.contains_key(&pipe.name) {
            document.wrong(&node, format!("there are two pipes named {:?}", pipe.name));
            continue;
        }
        pipes.insert(pipe.name.clone(), Arc::new(pipe));
    }
    pipes
}

fn pipe(document: &mut Document<'_>, node: &Node) -> Option<Pipe> {
    let members = document.members(node, PIPE);
    let mut text = |key: &str, most: usize| members.get(key).map(|node| document.text(node, most).unwrap_or_default());
    let (name, sql, description) = (text("name", MAX_NAME), text("sql", MAX_SQL), text("description", MAX_DESCRIPTION));
    let (Some(name), Some(sql)) = (name, sql) else {
        document.wrong(node, "needs a name and sql");
        return None;
    };
    // what is no text is said already
    let is_text = |key: &str| members[key].kind == JsonKind::String;
    if is_text("name") && !is_path_segment(&name) {
        document.wrong(&members["name"], "must be a text without slashes and control characters, neither . nor ..");
    }
    if is_text("sql") && sql.trim().is_empty() {
        document.wrong(&members["sql"], "must be a statement");
    }
    let declared = members.get("parameters").map(|node| parameters(document, node)).unwrap_or_default();
    let (parameters, pieces) = statement(document, &members["sql"], &sql, declared);
    let limits = limits(document, &members);
    let ttl = members.get("cache_ttl").and_then(|node| duration(document, node, Duration::ZERO));
    let allowed_roles = members.get("allowed_roles").map(|node| roles(document, node)).unwrap_or_default();
    let description = description.unwrap_or_default();
    Some(Pipe { name, description, sql, pieces, parameters, allowed_roles, limits, ttl, known: Known::default() })
}

/// It is the last part of a path.
fn is_path_segment(name: &str) -> bool {
    !name.is_empty() && !matches!(name, "." | "..") && !name.contains(|c: char| c == '/' || c.is_control())
}

fn roles(document: &mut Document<'_>, node: &Node) -> Vec<String> {
    let mut roles = Vec::new();
    for node in document.elements(node, MAX_ROLES) {
        let Some(role) = document.text(&node, MAX_NAME) else { continue };
        if role.is_empty() || role.trim() != role {
            document.wrong(&node, "must be the name of a role, without white space around it");
        } else if role == ADMIN {
            document.warn(&node, "has no effect: the admin role may run every pipe");
        }
        roles.push(role);
    }
    roles
}

fn limits(document: &mut Document<'_>, members: &BTreeMap<String, Node>) -> PipeLimits {
    let mut count = |key: &str| members.get(key).and_then(|node| document.count(node));
    let (max_rows, max_rows_to_read) = (count("max_rows"), count("max_rows_to_read"));
    let max_memory_usage = members.get("max_memory_usage").and_then(|node| size(document, node));
    let least = Duration::from_millis(1);
    let max_execution_time = members.get("max_execution_time").and_then(|node| duration(document, node, least));
    PipeLimits { max_rows, max_execution_time, max_memory_usage, max_rows_to_read }
}

/// A number of milliseconds, or a text with a unit; `"0"` where nothing is allowed.
fn duration(document: &mut Document<'_>, node: &Node, least: Duration) -> Option<Duration> {
    let raw = document.raw(node);
    let text: Option<String> = serde_json::from_str(raw).ok();
    let span = match text.as_deref() {
        Some("0") => Some(Duration::ZERO),
        Some(text) => age(text),
        None => raw.parse().ok().map(Duration::from_millis),
    };
    let span = span.filter(|span| (least..=DAY).contains(span));
    if span.is_none() {
        let zero = if least.is_zero() { ", or \"0\"" } else { "" };
        document.wrong(node, format!("must be a time of at most a day, like \"500ms\" or \"1m\"{zero}"));
    }
    span
}

/// A number of bytes, or a text with a unit.
fn size(document: &mut Document<'_>, node: &Node) -> Option<u64> {
    let raw = document.raw(node);
    let bytes = match serde_json::from_str::<String>(raw) {
        Ok(text) => bytes(&text),
        Err(_) => raw.parse().ok(),
    };
    let bytes = bytes.filter(|bytes| *bytes > 0);
    if bytes.is_none() {
        document.wrong(node, "must be a size like \"512MiB\" or \"1GB\", or a number of bytes");
    }
    bytes
}

fn bytes(text: &str) -> Option<u64> {
    const UNITS: &[(&str, u64)] = &[
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
        ("", 1),
    ];
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// A parameter as it is declared, and where.
struct Declaration {
    node: Node,
    default: Option<Node>,
    parameter: Parameter,
}

fn parameters(document: &mut Document<'_>, node: &Node) -> Vec<Declaration> {
    let mut all: Vec<Declaration> = Vec::new();
    for node in document.elements(node, MAX_PARAMETERS) {
        let mut members = document.members(&node, PARAMETER);
        let mut text = |key: &str, most| members.get(key).map(|node| document.text(node, most).unwrap_or_default());
        let (name, description) = (text("name", MAX_NAME), text("description", MAX_DESCRIPTION));
        let Some(name) = name else {
            document.wrong(&node, "needs a name");
            continue;
        };
        if !template::is_name(&name) {
            let why = "must be letters, digits and underscores, not a digit first, at most 64";
            document.wrong(&members["name"], why);
        } else if OURS.contains(&name.as_str()) {
            document
                .warn(&members["name"], "can be given in the body only: in the query string it is the answer's form");
        }
        if all.iter().any(|other| other.parameter.name == name) {
            document.wrong(&node, format!("there are two parameters named {name:?}"));
            continue;
        }
        let declared = members.get("type").map_or(Declared::Loose(Loose::Any), |node| declared(document, node));
        let default = members.remove("default");
        let parameter = Parameter {
            name,
            declared,
            required: members.get("required").is_some_and(|node| document.flag(node)),
            default: default.as_ref().map(|node| Absent::Json(document.raw(node).to_owned())),
            description: description.unwrap_or_default(),
            used: false,
        };
        all.push(Declaration { node, default, parameter });
    }
    all
}

fn declared(document: &mut Document<'_>, node: &Node) -> Declared {
    let text = document.text(node, MAX_DESCRIPTION).unwrap_or_default();
    if text.is_empty() {
        return Declared::Loose(Loose::Any);
    }
    if let Some(loose) = Loose::of(&text) {
        return Declared::Loose(loose);
    }
    let ty = Type::parse(&text);
    if let Some(why) = wire::unusable(&ty) {
        document.wrong(node, why);
    }
    Declared::Typed(ty, text)
}

/// Puts the declarations and the places of a statement together.
fn statement(
    document: &mut Document<'_>,
    node: &Node,
    sql: &str,
    mut declared: Vec<Declaration>,
) -> (Vec<Parameter>, Vec<Piece>) {
    let (slots, faults) = template::scan(sql);
    for (at, problem) in faults {
        let line = 1 + sql[..at].matches('\n').count();
        document.wrong(node, format!("line {line} of the statement: {problem}"));
    }
    let (mut pieces, mut from) = (Vec::new(), 0);
    for slot in slots {
        let known = declared.iter().position(|other| other.parameter.name == slot.name);
        let at = known.unwrap_or_else(|| {
            let parameter = Parameter {
                name: slot.name.clone(),
                declared: Declared::Loose(Loose::Any),
                required: false,
                default: None,
                description: String::new(),
                used: false,
            };
            declared.push(Declaration { node: node.clone(), default: None, parameter });
            declared.len() - 1
        });
        let Slot { span, form, .. } = slot;
        placed(document, node, &form, &mut declared[at].parameter);
        if let Form::Loose(_) = form {
            pieces.push(Piece::Text(sql[from..span.start].to_owned()));
            pieces.push(Piece::Slot(at));
            from = span.end;
        }
    }
    pieces.push(Piece::Text(sql[from..].to_owned()));
    if declared.len() > MAX_PARAMETERS {
        document.wrong(node, format!("has more than {MAX_PARAMETERS} parameters"));
    }
    for Declaration { node, default, parameter } in &declared {
        judged(document, node, default.as_ref(), parameter);
    }
    (declared.into_iter().map(|declaration| declaration.parameter).collect(), pieces)
}

/// A place of a parameter says more of it.
fn placed(document: &mut Document<'_>, node: &Node, form: &Form, parameter: &mut Parameter) {
    let name = parameter.name.clone();
    parameter.used = true;
    match form {
        Form::Native(text) => {
            let ty = Type::parse(text);
            if let Some(why) = wire::unusable(&ty) {
                document.wrong(node, format!("the place of {name:?}: {why}"));
            }
            match &parameter.declared {
                Declared::Typed(other, said) if *other != ty => {
                    document.wrong(node, format!("{name:?} is {text} in one place and {said} in another"));
                }
                Declared::Typed(..) => {}
                // the statement's own word is ClickHouse's
                Declared::Loose(_) => parameter.declared = Declared::Typed(ty, text.clone()),
            }
        }
        Form::Loose(Some(text)) => match &parameter.default {
            Some(Absent::Text(other)) if other != text => {
                document.wrong(node, format!("{name:?} has two defaults: {other:?} and {text:?}"));
            }
            Some(_) => {}
            None => parameter.default = Some(Absent::Text(text.clone())),
        },
        Form::Loose(None) => {}
    }
}

/// What can be said of a parameter once all of it is known.
fn judged(document: &mut Document<'_>, node: &Node, default: Option<&Node>, parameter: &Parameter) {
    let name = &parameter.name;
    if !parameter.used {
        document.warn(node, format!("the statement has no place for {name:?}"));
    }
    let Some(value) = &parameter.default else { return };
    if parameter.required {
        document.warn(default.unwrap_or(node), format!("the default of {name:?} has no effect: it is required"));
    }
    if let Err(why) = parameter.of_default(value, "UTC") {
        document.wrong(default.unwrap_or(node), format!("the default of {name:?} ({}) {why}", parameter.type_text()));
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
