//! One thing that is wrong with a topology.

use serde::Serialize;
use std::fmt;

/// Whether a process may run on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// No: rows would be lost, doubled or stuck.
    Required,
    /// Yes, and someone should know this.
    Recommended,
}

/// One thing that is wrong: where, what was seen, what is needed, and what to run.
///
/// Findings are ordered: required ones first, then by object and field, numbers in names by their value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether a process may run on it.
    pub severity: Severity,
    /// The rule that is broken, a name that stays: `partition.retention`.
    pub rule: &'static str,
    /// The stream, durable, bucket, server or process.
    pub object: String,
    /// The field, as JetStream calls it.
    pub field: &'static str,
    /// What was seen.
    pub seen: String,
    /// What is needed, and why where that is short.
    pub needed: String,
    /// The command that fixes it.
    pub fix: String,
}

impl Finding {
    /// What findings are sorted by.
    pub(super) fn place(&self) -> (Severity, Vec<Piece>, &'static str, &'static str) {
        (self.severity, pieces(&self.object), self.field, self.rule)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Required => "required",
            Severity::Recommended => "recommended",
        };
        write!(f, "{severity}: {}: {}: {}; needed: {}", self.object, self.field, self.seen, self.needed)?;
        if self.fix.is_empty() { Ok(()) } else { write!(f, "\n    fix: {}", self.fix) }
    }
}

/// A run of digits, or of anything else.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Piece {
    Number(u64),
    Text(String),
}

/// A name in pieces, so that 10 comes after 9.
pub(crate) fn pieces(name: &str) -> Vec<Piece> {
    let (mut pieces, mut rest) = (Vec::new(), name);
    while let Some(first) = rest.chars().next() {
        let digits = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        let number = piece.parse().ok().filter(|_| digits);
        pieces.push(number.map_or_else(|| Piece::Text(piece.to_owned()), Piece::Number));
        rest = after;
    }
    pieces
}
