//! What ran and how it ended: the source of the closing line and of `target/test-ledger.json`.

use anyhow::Result;
use serde::Serialize;
use std::{collections::BTreeSet, fmt::Write, time::Duration};

/// Something that did not run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Skip {
    pub(super) name: String,
    pub(super) reason: String,
}

/// A test that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    pub(super) name: String,
    /// The last lines it printed.
    pub(super) output: Vec<String>,
}

/// Of how many failed tests of a stage the closing summary shows what they printed; it names all.
const SHOWN: usize = 20;

/// How a stage ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Outcome {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: Vec<Skip>,
    /// Which tests failed, as far as the runner named them.
    pub(super) failures: Vec<Failure>,
    /// Why the stage itself failed, beside its tests.
    pub(super) error: Option<String>,
}

impl Outcome {
    /// The stage itself failed: it counts as one, so that the closing line is never green on a red run.
    pub(super) fn failure(error: String) -> Self {
        Self { failed: 1, error: Some(error), ..Self::default() }
    }

    pub(super) fn skip(&mut self, name: &str, reason: &str) {
        self.skipped.push(Skip { name: name.into(), reason: reason.into() });
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped);
        self.failures.extend(other.failures);
        self.error = self.error.take().or(other.error);
    }
}

#[derive(Debug, Serialize)]
struct Entry {
    stage: String,
    tests: bool,
    seconds: f64,
    #[serde(flatten)]
    outcome: Outcome,
}

/// All stages of a run, as they ended.
#[derive(Debug, Default, Serialize)]
pub(super) struct Ledger {
    stages: Vec<Entry>,
}

impl Ledger {
    pub(super) fn add(&mut self, stage: String, tests: bool, took: Duration, outcome: Outcome) {
        self.stages.push(Entry { stage, tests, seconds: took.as_secs_f64(), outcome });
    }

    fn count(&self, of: impl Fn(&Outcome) -> u64) -> u64 {
        self.stages.iter().map(|entry| of(&entry.outcome)).sum()
    }

    fn skipped(&self) -> u64 {
        self.count(|outcome| u64::try_from(outcome.skipped.len()).unwrap_or(u64::MAX))
    }

    /// Nothing failed, and tests that were asked for ran.
    pub(super) fn good(&self) -> bool {
        let asked = self.stages.iter().any(|entry| entry.tests);
        self.count(|outcome| outcome.failed) == 0 && (!asked || self.count(|outcome| outcome.passed) > 0)
    }

    /// Each stage with its time, then every skip with its reason, then what failed.
    pub(super) fn table(&self) -> String {
        let mut out = String::new();
        for Entry { stage, tests, seconds, outcome } in &self.stages {
            let mark = if outcome.failed == 0 { '✓' } else { '✗' };
            let counts = if *tests {
                format!("{} passed, {} failed, {} skipped", outcome.passed, outcome.failed, outcome.skipped.len())
            } else {
                String::new()
            };
            // writing to a String cannot fail
            writeln!(out, "{}", format!("{mark} {stage:<18} {seconds:>7.1} s  {counts}").trim_end()).ok();
        }
        // a stage that ran several times skips the same each time
        let skips: BTreeSet<_> = self.stages.iter().flat_map(|entry| &entry.outcome.skipped).collect();
        for Skip { name, reason } in skips {
            writeln!(out, "skipped: {name}: {reason}").ok();
        }
        for Entry { stage, outcome, .. } in &self.stages {
            for (nth, Failure { name, output }) in outcome.failures.iter().enumerate() {
                writeln!(out, "failed: {stage}: {name}").ok();
                for line in output.iter().filter(|_| nth < SHOWN) {
                    writeln!(out, "    │ {line}").ok();
                }
            }
            if let Some(error) = &outcome.error {
                writeln!(out, "failed: {stage}: {}", error.lines().next().unwrap_or("")).ok();
            }
        }
        out
    }

    /// The closing line.
    pub(super) fn line(&self) -> String {
        let (passed, failed) = (self.count(|outcome| outcome.passed), self.count(|outcome| outcome.failed));
        format!("{passed} passed, {failed} failed, {} skipped", self.skipped())
    }

    /// Writes it where CI and people find it.
    pub(super) fn write(&self) -> Result<()> {
        let target = wh_testkit::workspace::root()?.join("target");
        std::fs::create_dir_all(&target)?;
        Ok(std::fs::write(target.join("test-ledger.json"), serde_json::to_vec_pretty(self)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn with(outcomes: &[(&str, bool, Outcome)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (stage, tests, outcome) in outcomes {
            ledger.add((*stage).into(), *tests, SECOND, outcome.clone());
        }
        ledger
    }

    #[test]
    fn the_line_counts_all_stages_and_a_failed_stage_is_one_failure() {
        let mut unit = Outcome { passed: 7, ..Outcome::default() };
        unit.skip("redis", "not there");
        let ledger = with(&[("unit", true, unit), ("deny", false, Outcome::failure("a licence\nmore".into()))]);
        assert_eq!(ledger.line(), "7 passed, 1 failed, 1 skipped");
        assert!(!ledger.good());
        let table = ledger.table();
        assert!(table.contains("✓ unit") && table.contains("✗ deny"), "{table}");
        assert!(table.contains("skipped: redis: not there\n"), "{table}");
        assert!(table.contains("failed: deny: a licence\n"), "{table}");
    }

    #[test]
    fn failed_tests_are_named_with_what_they_printed_last() {
        let failure = |name: &str| Failure { name: name.into(), output: vec!["left: 1".into(), "right: 2".into()] };
        let failures: Vec<_> = (0..=SHOWN).map(|n| failure(&format!("test {n}"))).collect();
        let unit = Outcome { failed: 21, failures, ..Outcome::default() };
        let procs = Outcome { passed: 1, failed: 1, failures: vec![failure("c")], ..Outcome::default() };
        let ledger = with(&[("unit", true, unit), ("procs", true, procs)]);
        let table = ledger.table();
        assert!(table.contains("failed: unit: test 3\n    │ left: 1\n    │ right: 2\n"), "{table}");
        assert!(table.contains("failed: unit: test 20\nfailed: procs: c\n    │ left: 1\n"), "{table}");
        assert!(!ledger.good());
    }

    #[test]
    fn a_run_of_tests_in_which_none_ran_is_not_good() {
        let none = Outcome::default();
        assert!(!with(&[("unit", true, none.clone())]).good());
        assert!(with(&[("fmt", false, none)]).good(), "no test was asked for");
    }
}
