//! Which cases run on which arm, and which do not and why. Read from `matrix.toml`; counted against `expected.toml`.

use crate::{Arm, Case};
use anyhow::Context as _;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Whether a run without an arm counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// It must run.
    Required,
    /// It runs where its surroundings are.
    Optional,
}

/// One arm as `matrix.toml` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The arm.
    pub name: String,
    /// Its tier.
    pub tier: Tier,
    /// The variable that says where its server is.
    #[serde(default)]
    pub env: Option<String>,
    /// Cases that are known to fail on it, each with the link that says why.
    #[serde(default)]
    pub divergences: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Matrix {
    arm: Vec<Line>,
}

/// How many cases an arm has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Cases as they are.
    pub cases: usize,
    /// Twins that run in their place.
    pub twins: usize,
    /// Cases left out, with a reason each.
    pub skipped: usize,
}

/// What becomes of a case on an arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Run,
    /// Its twin runs.
    Twin,
    /// It is listed, not run.
    Skip(String),
}

/// The whole plan of a run.
#[derive(Debug)]
pub struct Ledger {
    matrix: Vec<Line>,
    expected: BTreeMap<String, Counts>,
}

impl Ledger {
    /// Reads the two files.
    ///
    /// # Errors
    /// Either cannot be read as what it is.
    pub fn read(matrix: &str, expected: &str) -> anyhow::Result<Self> {
        let matrix: Matrix = toml::from_str(matrix).context("matrix.toml")?;
        let expected = toml::from_str(expected).context("expected.toml")?;
        Ok(Self { matrix: matrix.arm, expected })
    }

    /// The arms.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.matrix
    }

    /// What becomes of a case. `unset`: the arm's variable is named and not set.
    #[must_use]
    pub fn verdict(line: &Line, case: &Case, arm: Option<&dyn Arm>) -> Verdict {
        if let Some(why) = line.divergences.get(case.name) {
            return Verdict::Skip(format!("known divergence: {why}"));
        }
        match arm {
            None => Verdict::Skip(format!("{} unset", line.env.as_deref().unwrap_or("its surroundings are"))),
            Some(arm) if case.needs.met_by(arm.profile()) => Verdict::Run,
            Some(_) if case.twin.is_some() => Verdict::Twin,
            Some(_) => Verdict::Skip("the backend cannot do this, and the case has no twin".to_owned()),
        }
    }

    /// Compares what an arm has with what it should have. A required arm must skip nothing.
    ///
    /// # Errors
    /// Says what differs.
    pub fn check(&self, line: &Line, counts: Counts) -> anyhow::Result<()> {
        let expected = self
            .expected
            .get(&line.name)
            .copied()
            .with_context(|| format!("expected.toml has no counts for the arm {}: it has {counts:?}", line.name))?;
        anyhow::ensure!(
            line.tier == Tier::Optional || counts.skipped == line.divergences.len(),
            "the required arm {} skipped {} cases",
            line.name,
            counts.skipped
        );
        anyhow::ensure!(
            expected == counts || (line.tier == Tier::Optional && total(counts) == total(expected)),
            "the arm {} should have {expected:?} and has {counts:?}: a case came or went",
            line.name
        );
        Ok(())
    }
}

fn total(counts: Counts) -> usize {
    counts.cases + counts.twins + counts.skipped
}
