//! Reads counts, failures and skips out of what the test runners print. Pure.

use std::collections::BTreeSet;

/// What a runner reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// Names of what failed.
    pub(super) failures: Vec<String>,
    /// What did not run, and why.
    pub(super) skipped: Vec<(String, String)>,
}

/// The reason where a runner gives none.
const IGNORED: &str = "ignored, no reason given";

/// `Summary [ 2.7s] 40 tests run: 38 passed (1 slow), 1 failed, 1 timed out, 3 skipped`, with a line for each skip.
pub(super) fn nextest(output: &str) -> Report {
    let mut report = Report::default();
    let (mut failures, mut skips) = (BTreeSet::new(), BTreeSet::new());
    for line in output.lines().map(str::trim) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "Summary" => {
                let (run, parts) = rest.split_once(" run: ").unwrap_or(("", ""));
                // a cancelled run says `10/40 tests run`
                let run = run.rsplit(']').next().unwrap_or("").trim();
                let run = number(run.split(['/', ' ']).next().unwrap_or(""));
                let passed = parts.split(", ").find(|part| part.contains(" passed")).map_or(0, number);
                report.passed += passed;
                report.failed += run.saturating_sub(passed);
            }
            "SKIP" => {
                skips.insert(name_of(rest));
            }
            // every status that is not PASS, SKIP or SLOW is a failure: FAIL, TIMEOUT, ABORT, SIGSEGV, XFAIL …
            "FAIL" | "TIMEOUT" | "ABORT" | "XFAIL" | "LEAK-FAIL" => {
                failures.insert(name_of(rest));
            }
            _ if word.starts_with("SIG") => {
                failures.insert(name_of(rest));
            }
            _ => {}
        }
    }
    report.failures = failures.into_iter().collect();
    report.skipped = skips.into_iter().map(|name| with_reason(&name)).collect();
    report
}

/// The name behind `[   0.2s] (3/40) `.
fn name_of(rest: &str) -> String {
    let rest = rest.split_once(']').map_or(rest, |(_, rest)| rest).trim_start();
    let rest = if rest.starts_with('(') { rest.split_once(')').map_or(rest, |(_, rest)| rest) } else { rest };
    rest.trim().to_owned()
}

/// A suite of our own puts the reason for a skip into the test's kind, which is shown as `[reason] name`.
fn with_reason(name: &str) -> (String, String) {
    if let Some((before, rest)) = name.split_once('[')
        && let Some((reason, after)) = rest.split_once(']')
    {
        return (format!("{before}{}", after.trim_start()), reason.to_owned());
    }
    (name.to_owned(), IGNORED.to_owned())
}

/// `test result: FAILED. 30 passed; 1 failed; 2 ignored; …`, with a line for each test.
pub(super) fn libtest(output: &str) -> Report {
    let mut report = Report::default();
    for line in output.lines().map(str::trim) {
        if let Some(result) = line.strip_prefix("test result:") {
            for part in result.split(['.', ';']).map(str::trim) {
                if part.ends_with(" passed") {
                    report.passed += number(part);
                } else if part.ends_with(" failed") {
                    report.failed += number(part);
                }
            }
        } else if let Some((name, end)) = line.strip_prefix("test ").and_then(|test| test.rsplit_once(" ... ")) {
            if let Some(reason) = end.strip_prefix("ignored") {
                let (name, kind) = with_reason(name);
                let reason = reason.trim_start_matches([',', ' ']);
                report.skipped.push((name, if reason.is_empty() { kind } else { reason.to_owned() }));
            } else if end.starts_with("FAILED") {
                report.failures.push(name.to_owned());
            }
        }
    }
    report
}

fn number(text: &str) -> u64 {
    text.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
