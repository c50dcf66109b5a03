//! Answers for people. What came from outside is shown without control characters.

use super::say;
use serde_json::Value;
use std::io::Write;

/// Widest reason in a list.
const REASON: usize = 80;

/// An answer as JSON, or for people.
pub(super) fn show(json: bool, answer: &Value, print: fn(&Value, &mut dyn Write), out: &mut dyn Write) {
    if json { say(out, answer) } else { print(answer, out) }
}

fn plain(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// ClickHouse's words without its code, which has a column of its own.
fn said(reason: &str) -> &str {
    let after = reason.strip_prefix("Code: ").and_then(|rest| rest.split_once(". DB::Exception: "));
    after.filter(|(code, _)| code.bytes().all(|b| b.is_ascii_digit())).map_or(reason, |(_, words)| words)
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Rows under a head, each column as wide as its widest cell.
fn table(head: &[&str], rows: &[Vec<String>], out: &mut dyn Write) {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain([head[at].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| {
            let room = width.saturating_sub(cell.chars().count());
            format!("{cell}{}", " ".repeat(room))
        });
        say(out, &padded.collect::<Vec<_>>().join("  ").trim_end());
    };
    line(&head.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
}

pub(super) fn list(page: &Value, out: &mut dyn Write) {
    let letters = page["letters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<Vec<String>> = letters
        .iter()
        .map(|letter| {
            let mut row: Vec<String> =
                ["id", "table", "code", "column", "attempted"].iter().map(|name| plain(&letter[*name])).collect();
            row[4].truncate(19);
            row.push(if letter["retry_until"].is_null() { String::new() } else { "held".to_owned() });
            row.push(cut(said(&plain(&letter["reason"])), REASON));
            row
        })
        .collect();
    table(&["ID", "TABLE", "CODE", "COLUMN", "ATTEMPTED", "HELD", "REASON"], &rows, out);
    if let Some(next) = page["next"].as_str() {
        say(out, &format_args!("there may be more: --cursor {next}"));
    }
}

pub(super) fn letter(letter: &Value, out: &mut dyn Write) {
    for name in ["id", "table", "code", "column", "reason", "attempted", "received", "retry_until", "body_bytes"] {
        if let Some(value) = letter.get(name) {
            say(out, &format_args!("{name:<12} {}", plain(value)));
        }
    }
    let note = if letter["body_encoding"] == "base64" { " (base64)" } else { "" };
    say(out, &format_args!("body{note}"));
    say(out, &plain(&letter["body"]));
}

pub(super) fn counts(counts: &Value, out: &mut dyn Write) {
    let mut rows = Vec::new();
    for entry in counts["tables"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let names = [plain(&entry["tenant"]), plain(&entry["table"])];
        let codes = entry["codes"].as_object().into_iter().flatten();
        for (code, count) in codes {
            rows.push([names[0].clone(), names[1].clone(), plain(&code.as_str().into()), plain(count)].to_vec());
        }
        let held = plain(&entry["held"]);
        let total = format!(
            "{}{}",
            plain(&entry["total"]),
            if held == "0" { String::new() } else { format!(" ({held} held)") }
        );
        rows.push([names[0].clone(), names[1].clone(), "all".to_owned(), total].to_vec());
    }
    table(&["TENANT", "TABLE", "CODE", "COUNT"], &rows, out);
    if counts["complete"] == false {
        say(out, &"codes were counted as far as there was time");
    }
}

/// The rows of one answer that are not simply done.
pub(super) fn results(report: &Value, out: &mut dyn Write) {
    for entry in report["results"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let status = plain(&entry["status"]);
        let rest = match entry.get("code") {
            Some(code) => format!("  {}: {}", plain(code), plain(&entry["reason"])),
            None => entry.get("row").map(|row| format!("  {}", cut(&plain(row), 200))).unwrap_or_default(),
        };
        say(out, &format_args!("{}  {}  {status}{rest}", plain(&entry["id"]), plain(&entry["table"])));
    }
}

/// What several answers add up to.
#[derive(Debug, Default)]
pub(super) struct Totals([u64; 8]);

const COUNTED: [&str; 8] =
    ["matched", "accepted", "replayed", "duplicates", "refused", "not_attempted", "purged", "not_found"];
/// Those of them that ought to be none.
const BAD: [&str; 3] = ["refused", "not_attempted", "not_found"];

impl Totals {
    pub(super) fn add(&mut self, report: &Value) {
        for (sum, name) in self.0.iter_mut().zip(COUNTED) {
            *sum += report[name].as_u64().unwrap_or(0);
        }
    }

    /// Whether every row is as was asked.
    pub(super) fn is_good(&self, last: &Value) -> bool {
        let bad = self.0.iter().zip(COUNTED).any(|(count, name)| *count > 0 && BAD.contains(&name));
        !bad && last.get("stopped").is_none()
    }

    pub(super) fn print(&self, what: &str, last: &Value, out: &mut dyn Write) {
        let counted = self.0.iter().zip(COUNTED).skip(1).filter(|(count, _)| **count > 0);
        let words: Vec<String> = counted.map(|(count, name)| format!("{count} {}", name.replace('_', " "))).collect();
        let words = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
        say(out, &format_args!("{what}: {} looked at, {words}", self.0[0]));
        if let Some(stopped) = last.get("stopped") {
            say(out, &format_args!("stopped: {} ({})", plain(&stopped["reason"]), plain(&stopped["code"])));
        }
        if let Some(next) = last["next"].as_str() {
            say(out, &format_args!("there may be more: --cursor {next}"));
        }
    }
}
