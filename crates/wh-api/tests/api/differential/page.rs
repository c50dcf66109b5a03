//! `docs/guide/types.md`: what is written about all types, and a table of each family out of the judge and the values.

use super::{
    data::{Subject, subjects},
    generate::values,
};
use std::collections::{BTreeMap, BTreeSet};
use wh_clickhouse::types::{Accept, JsonKind, Type, Verdict, accepts, judge};

/// How the page is made.
pub(crate) const HOW: &str = "cargo run -p wh-api --example types_doc -- docs/guide/types.md";

/// Most examples in a cell.
const EXAMPLES: usize = 4;

/// The whole page.
pub(crate) fn markdown() -> String {
    let mut out = include_str!("page.md").replace("{how}", HOW);
    let mut family = "";
    for subject in subjects() {
        if subject.family != family {
            family = subject.family;
            out += &format!("\n## {family}\n\n{}", notes(family));
            out += "| Type | Takes | Refused in strict mode | Refused always | Left to ClickHouse |\n|---|---|---|---|---|\n";
        }
        out += &row(&subject);
    }
    out
}

/// What is to be said of a family, from `notes.md`.
fn notes(family: &str) -> String {
    let all = include_str!("notes.md");
    let found = all.split("# ").find_map(|section| section.strip_prefix(family)?.strip_prefix('\n'));
    found.map_or_else(String::new, |text| format!("{}\n\n", text.trim()))
}

fn row(Subject { ty, .. }: &Subject) -> String {
    let parsed = Type::parse(ty);
    let kinds: Vec<&str> = JsonKind::ALL
        .into_iter()
        .filter(|kind| *kind != JsonKind::Null || parsed.nullable())
        .filter(|kind| !matches!(accepts(&parsed, *kind), Accept::No(_)))
        .map(short)
        .collect();
    let mut altered: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut left = Vec::new();
    for value in values(ty) {
        let kind = JsonKind::of(value.as_bytes()).unwrap();
        match judge(&parsed, value.as_bytes(), 0..value.len(), kind, &mut Vec::new()) {
            Verdict::Alters(why) => altered.entry(why.into_owned()).or_default().push(value),
            Verdict::Refuses(why) => refused.entry(why.into_owned()).or_default().push(value),
            Verdict::CannotTell => left.push(value),
            Verdict::Takes | Verdict::WrongKind(_) => {}
        }
    }
    let left = if left.is_empty() { "–".to_owned() } else { shortest(left, 3) };
    format!("| `{ty}` | {} | {} | {} | {left} |\n", kinds.join(", "), reasons(altered), reasons(refused))
}

fn short(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Null => "null",
        JsonKind::Bool => "true/false",
        JsonKind::Integer => "whole number",
        JsonKind::Float => "fraction",
        JsonKind::String => "string",
        JsonKind::Array => "array",
        JsonKind::Object => "object",
    }
}

/// A few of the reasons, each with its shortest value.
fn reasons(of: BTreeMap<String, Vec<String>>) -> String {
    let mut seen = BTreeSet::new();
    let mut all: Vec<(usize, String, String)> =
        of.into_iter().map(|(why, values)| (values.len(), why, shortest(values, 1))).collect();
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    // one of those that differ in a number alone
    all.retain(|(_, why, _)| seen.insert(why.replace(|c: char| c.is_ascii_digit(), "")));
    if all.is_empty() {
        return "–".into();
    }
    all.into_iter().take(EXAMPLES).map(|(_, why, value)| format!("{value} {why}")).collect::<Vec<_>>().join("; ")
}

fn shortest(mut values: Vec<String>, count: usize) -> String {
    values.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    values.iter().take(count).map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_page_of_types_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/types.md");
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(there == markdown(), "docs/guide/types.md is stale: {HOW}");
}
