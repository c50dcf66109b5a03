//! What a check found, and how it is told.

use crate::tell::Teller;
use anyhow::{Result, bail};
use std::fmt;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    place: String,
    line: Option<usize>,
    text: String,
}

impl Finding {
    /// About a crate or a whole file.
    pub(crate) fn of(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), line: None, text: text.into() }
    }

    /// About a line of a file.
    pub(crate) fn at(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { place: path.into(), line: Some(line), text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.text)
    }
}

/// Says all findings of a check; any is a failure.
pub(crate) fn report(teller: &mut Teller, check: &str, mut findings: Vec<Finding>) -> Result<()> {
    findings.sort();
    findings.dedup();
    for finding in &findings {
        teller.say(&finding.to_string());
    }
    if !findings.is_empty() {
        bail!("{check}: {} findings", findings.len());
    }
    teller.say(&format!("✓ {check}: nothing found"));
    Ok(())
}
