//! Reads counts, failures and skips out of what the test runners print. Pure.

use super::ledger::Failure;
use std::collections::{BTreeMap, BTreeSet};

/// How many lines of what a failed test printed are kept from where it panicked on, and how many of the last.
const LINES: [usize; 2] = [12, 20];

/// What a runner reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// What failed, with the last it printed.
    pub(super) failures: Vec<Failure>,
    /// What did not run, and why.
    pub(super) skipped: Vec<(String, String)>,
}

/// The reason where a runner gives none.
const IGNORED: &str = "ignored, no reason given";

/// `Summary [ 2.7s] 40 tests run: 38 passed (1 slow), 1 failed, 1 timed out, 3 skipped`, with a line for each skip, and
/// for each failure one that what it printed follows.
pub(super) fn nextest(output: &str) -> Report {
    let mut report = Report::default();
    let (mut failures, mut skips) = (Failures::default(), BTreeSet::new());
    for shown in output.lines() {
        let line = shown.trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        // every status has a time in brackets, or the space for one; what a test prints may begin like one
        let status = rest.trim_start().starts_with('[') && word.starts_with(|c: char| c.is_ascii_uppercase());
        match word {
            _ if line.starts_with("────") => failures.over(),
            _ if !status => failures.line(shown),
            "Summary" => {
                failures.end();
                let (run, parts) = rest.split_once(" run: ").unwrap_or(("", ""));
                // a cancelled run says `10/40 tests run`
                let run = run.rsplit(']').next().unwrap_or("").trim();
                let run = number(run.split(['/', ' ']).next().unwrap_or(""));
                let passed = parts.split(", ").find(|part| part.contains(" passed")).map_or(0, number);
                report.passed += passed;
                report.failed += run.saturating_sub(passed);
            }
            "SKIP" => {
                failures.over();
                skips.insert(name_of(rest));
            }
            // every status that is not PASS, SKIP or SLOW is a failure: FAIL, TIMEOUT, ABORT, SIGSEGV, XFAIL …
            "FAIL" | "TIMEOUT" | "ABORT" | "XFAIL" | "LEAK-FAIL" => failures.of(&name_of(rest)),
            _ if word.starts_with("SIG") => failures.of(&name_of(rest)),
            _ => failures.over(),
        }
    }
    report.failures = failures.list();
    report.skipped = skips.into_iter().map(|name| with_reason(&name)).collect();
    report
}

/// What failed, while it is read.
#[derive(Default)]
struct Failures<'a> {
    all: BTreeMap<String, Vec<&'a str>>,
    /// Whose output the lines are that follow.
    open: Option<String>,
    ended: bool,
}

impl<'a> Failures<'a> {
    /// This one failed, and what it printed follows.
    fn of(&mut self, name: &str) {
        self.all.entry(name.to_owned()).or_default();
        self.open = (!self.ended).then(|| name.to_owned());
    }

    fn line(&mut self, line: &'a str) {
        if let Some(lines) = self.open.as_ref().and_then(|name| self.all.get_mut(name)) {
            lines.push(line);
        }
    }

    /// What follows is something else.
    fn over(&mut self) {
        self.open = None;
    }

    /// What follows repeats what was said.
    fn end(&mut self) {
        (self.open, self.ended) = (None, true);
    }

    fn list(self) -> Vec<Failure> {
        self.all.into_iter().map(|(name, lines)| Failure { name, output: gist(lines) }).collect()
    }
}

/// Where it panicked, which the logs of its servers may follow, and what came last. Without the frames of a backtrace.
fn gist(lines: Vec<&str>) -> Vec<String> {
    let frame = |line: &str| {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        line.starts_with("at ") || line.split_once(": ").is_some_and(|(number, _)| is_number(number))
    };
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.trim().is_empty() && !frame(line.trim())).collect();
    let [from_panic, last] = LINES;
    let panic = lines.iter().position(|line| line.contains("panicked at")).unwrap_or(lines.len());
    let end = lines.len().min(panic + from_panic);
    let rest = lines.len().saturating_sub(last).max(if panic < lines.len() { end } else { 0 });
    lines[panic..end].iter().chain(&lines[rest..]).map(|line| (*line).to_owned()).collect()
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

/// `test result: FAILED. 30 passed; 1 failed; 2 ignored; …`, with a line for each test, and what each failed one printed
/// under `---- name stdout ----`.
pub(super) fn libtest(output: &str) -> Report {
    let (mut report, mut failures) = (Report::default(), Failures::default());
    for shown in output.lines() {
        let line = shown.trim();
        if let Some(result) = line.strip_prefix("test result:") {
            failures.over();
            for part in result.split(['.', ';']).map(str::trim) {
                if part.ends_with(" passed") {
                    report.passed += number(part);
                } else if part.ends_with(" failed") {
                    report.failed += number(part);
                }
            }
        } else if let Some(name) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" ----")) {
            failures.of(name.strip_suffix(" stdout").unwrap_or(name));
        } else if let Some((name, end)) = line.strip_prefix("test ").and_then(|test| test.rsplit_once(" ... ")) {
            if let Some(reason) = end.strip_prefix("ignored") {
                let (name, kind) = with_reason(name);
                let reason = reason.trim_start_matches([',', ' ']);
                report.skipped.push((name, if reason.is_empty() { kind } else { reason.to_owned() }));
            } else if end.starts_with("FAILED") {
                failures.of(name);
                failures.over();
            }
        } else if line == "failures:" {
            failures.over();
        } else {
            failures.line(shown);
        }
    }
    report.failures = failures.list();
    report
}

fn number(text: &str) -> u64 {
    text.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
