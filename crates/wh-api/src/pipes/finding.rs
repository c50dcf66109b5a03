//! What is wrong with a file of pipes: all of it at once, each with its place.

use std::fmt;

/// Most findings of one file; the rest is counted.
const MOST: usize = 100;

/// One thing that is wrong, or that somebody should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeFinding {
    /// Where it stands: `pipes[2].parameters[0].type`.
    pub place: String,
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
    /// The file can be used nevertheless.
    pub warning: bool,
}

impl fmt::Display for PipeFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, line, problem, .. } = self;
        if place.is_empty() {
            write!(f, "line {line}: {problem}")
        } else {
            write!(f, "{place} (line {line}): {problem}")
        }
    }
}

/// Findings as they are gathered.
#[derive(Debug, Default)]
pub(super) struct Findings {
    all: Vec<PipeFinding>,
    more: usize,
}

impl Findings {
    pub(super) fn push(&mut self, finding: PipeFinding) {
        if self.all.len() < MOST {
            self.all.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// All of them; whether the file cannot be used.
    pub(super) fn finish(mut self) -> (Vec<PipeFinding>, bool) {
        if let (1.., Some(last)) = (self.more, self.all.last()) {
            let (line, problem) = (last.line, format!("{} more findings are not listed", self.more));
            self.all.push(PipeFinding { place: String::new(), line, problem, warning: false });
        }
        let refused = self.all.iter().any(|finding| !finding.warning);
        (self.all, refused)
    }
}
