//! Runs tests with nextest where it is installed, else with cargo's own runner, and counts what they report.

use super::{
    ledger::Outcome,
    summary::{self, Report},
};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::{
    io::{BufRead, BufReader, Write, pipe},
    process::{Command, Stdio},
};

/// What `proptest` takes its seed from.
const PROPERTY_SEED: &str = "PROPTEST_RNG_SEED";

/// A test to leave out, by a part of its name, and why.
pub(super) type LeftOut = (&'static str, &'static str);

/// Builds the tests of the workspace without running them.
pub(super) fn build() -> Result<()> {
    let args: &[&str] = if has_nextest() { &["nextest", "run", "--no-run"] } else { &["test", "--no-run"] };
    let status = cargo(args).arg("--workspace").status()?;
    ensure!(status.success(), "building the tests failed");
    Ok(())
}

/// Which packages' tests to run.
#[derive(Clone, Copy)]
pub(super) enum Packages {
    /// This one's.
    Only(&'static str),
    /// All but these.
    Except(&'static [&'static str]),
}

/// Runs the tests of some packages. With nextest the whole workspace is selected and filtered: cargo would otherwise
/// unite the features of fewer packages, and build dependencies again for it.
pub(super) fn run(packages: Packages, left_out: &[LeftOut], round: u32) -> Result<Outcome> {
    let mut command;
    let read: fn(&str) -> Report;
    if has_nextest() {
        command = cargo(&["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "all"]);
        command.args(["--color", "never", "-E", &filter(packages, left_out)]);
        read = summary::nextest;
    } else {
        command = cargo(&["test", "--no-fail-fast", "--lib", "--bins", "--tests"]);
        match packages {
            Packages::Only(name) => command.args(["--package", name]),
            Packages::Except(names) => {
                command.arg("--workspace").args(names.iter().flat_map(|name| ["--exclude", name]))
            }
        };
        command.arg("--");
        for (test, _) in left_out {
            command.args(["--skip", test]);
        }
        read = summary::libtest;
    }
    seed(&mut command, round);
    count(command, read, left_out)
}

/// Property tests draw the same cases in the same round, so that a red run can be repeated and a green one stays green.
/// Whoever looks for new cases runs more rounds, or sets the seed.
fn seed(command: &mut Command, round: u32) {
    if std::env::var_os(PROPERTY_SEED).is_none() {
        command.env(PROPERTY_SEED, round.to_string());
    }
}

/// What nextest is told to run.
fn filter(packages: Packages, left_out: &[LeftOut]) -> String {
    let mut filter = match packages {
        Packages::Only(name) => format!("package({name})"),
        Packages::Except(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("package({name})")).collect();
            format!("not ({})", names.join(" | "))
        }
    };
    for (test, _) in left_out {
        filter.push_str(&format!(" & not test({test})"));
    }
    filter
}

/// Runs the tests in the documentation, which nextest does not.
pub(super) fn documentation() -> Result<Outcome> {
    count(cargo(&["test", "--quiet", "--workspace", "--doc"]), summary::libtest, &[])
}

/// Runs any test command with cargo's own runner.
pub(super) fn libtest(args: &[&str], env: &[(String, String)]) -> Result<Outcome> {
    let mut command = cargo(args);
    command.envs(env.iter().map(|(name, value)| (name, value)));
    count(command, summary::libtest, &[])
}

fn cargo(args: &[&str]) -> Command {
    let mut command = workspace::cargo();
    command.args(args);
    command
}

fn has_nextest() -> bool {
    cargo(&["nextest", "--version"]).output().is_ok_and(|out| out.status.success())
}

fn count(mut command: Command, read: fn(&str) -> Report, left_out: &[LeftOut]) -> Result<Outcome> {
    command.current_dir(wh_testkit::workspace::root()?);
    let shown = workspace::shown(&command);
    let (output, good) = tee(&mut command).with_context(|| shown.clone())?;
    let report = read(&output);
    let (passed, failed, failures) = (report.passed, report.failed, report.failures);
    let mut outcome = Outcome { passed, failed, failures, ..Outcome::default() };
    for (name, reason) in report.skipped {
        let ours = left_out.iter().find(|(test, _)| name.contains(test));
        outcome.skip(&name, ours.map_or(&reason, |(_, why)| why));
    }
    // cargo's own runner does not name what it filters out
    for (test, why) in left_out {
        if !outcome.skipped.iter().any(|skip| skip.name.contains(test)) {
            outcome.skip(test, why);
        }
    }
    if !good && outcome.failed == 0 {
        outcome.merge(Outcome::failure(format!("{shown} failed beside its tests")));
    }
    Ok(outcome)
}

/// Runs a command, shows what it prints and keeps it. Whether it succeeded comes with it.
fn tee(command: &mut Command) -> Result<(String, bool)> {
    let (reader, writer) = pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // the command holds the pipe's other end, and reading would not end before it is gone
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut all = String::new();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        all.push_str(&text);
        // a closed pipe must not end the tests
        std::io::stdout().write_all(text.as_bytes()).ok();
        line.clear();
    }
    Ok((all, child.wait()?.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_say_what_is_run_and_what_is_left_out() {
        assert_eq!(filter(Packages::Only("procs"), &[]), "package(procs)");
        let left_out = [("redis_answers", "no server")];
        let except = filter(Packages::Except(&["procs", "conformance"]), &left_out);
        assert_eq!(except, "not (package(procs) | package(conformance)) & not test(redis_answers)");
    }
}
