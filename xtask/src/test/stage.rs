//! The stages of a run, in order, and what each does.

use super::{
    ledger::Outcome,
    runner::{self, Packages},
};
use crate::{
    layers,
    setup::{self, Server},
    tell::Teller,
    tidy, workspace,
};
use anyhow::{Result, ensure};
use std::{
    fmt,
    process::{Command, Stdio},
};

/// One stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stage {
    Fmt,
    Clippy,
    Layers,
    Tidy,
    Doc,
    Setup,
    Build,
    Unit,
    Conformance,
    Procs,
    Examples,
    Deny,
}

/// All of them, the quick ones first.
pub(super) const ALL: [Stage; 12] = [
    Stage::Fmt,
    Stage::Clippy,
    Stage::Layers,
    Stage::Tidy,
    Stage::Doc,
    Stage::Setup,
    Stage::Build,
    Stage::Unit,
    Stage::Conformance,
    Stage::Procs,
    Stage::Examples,
    Stage::Deny,
];

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

impl Stage {
    /// Whether it runs tests, which are counted and can be repeated.
    pub(super) fn is_tests(self) -> bool {
        matches!(self, Self::Unit | Self::Conformance | Self::Procs)
    }

    /// Runs it, for this time of several.
    pub(super) fn run(self, teller: &mut Teller, round: u32) -> Result<Outcome> {
        match self {
            Self::Fmt => cargo(&["fmt", "--all", "--check"]).map(|()| Outcome::default()),
            Self::Clippy => clippy(),
            Self::Layers => layers::run().map(|()| Outcome::default()),
            Self::Tidy => tidy::run().map(|()| Outcome::default()),
            Self::Doc => doc(),
            Self::Setup => set_up(teller),
            Self::Build => build(),
            Self::Unit => unit(round),
            Self::Conformance => runner::run(Packages::Only("conformance"), &[], round),
            Self::Procs => runner::run(Packages::Only("procs"), &[], round),
            Self::Examples => cargo(&["build", "--workspace", "--examples"]).map(|()| Outcome::default()),
            Self::Deny => deny(),
        }
    }
}

/// Runs cargo to its end; its output is the stage's.
fn cargo(args: &[&str]) -> Result<()> {
    run(workspace::cargo().args(args))
}

fn run(command: &mut Command) -> Result<()> {
    command.current_dir(wh_testkit::workspace::root()?).stdin(Stdio::null());
    ensure!(command.status()?.success(), "{} failed", workspace::shown(command));
    Ok(())
}

/// The whole workspace, then each crate with backends once for each: together they hide what one of them lacks.
fn clippy() -> Result<Outcome> {
    let deny = ["--", "-D", "warnings"];
    cargo(&[&["clippy", "--workspace", "--all-targets"][..], &deny].concat())?;
    for (name, features) in layers::features_of_backends()? {
        cargo(&[&["clippy", "-p", &name, "--no-default-features"][..], &deny].concat())?;
        for feature in &features {
            let one = ["clippy", "-p", &name, "--no-default-features", "--features", feature];
            cargo(&[&one[..], &deny].concat())?;
        }
    }
    Ok(Outcome::default())
}

fn doc() -> Result<Outcome> {
    let mut doc = workspace::cargo();
    doc.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    run(&mut doc)?;
    Ok(Outcome::default())
}

/// Brings the servers. Without an optional one its tests are listed as skipped, see `unit`.
fn set_up(teller: &mut Teller) -> Result<Outcome> {
    let missing = setup::bring(&setup::ALL, false, teller)?;
    ensure!(missing.is_empty(), "missing, and tests need them: {}", missing.join(", "));
    Ok(Outcome::default())
}

/// Everything that tests start, and the tests themselves: at once, so that dependencies are built with one set of
/// features.
fn build() -> Result<Outcome> {
    cargo(&["build", "--workspace", "--all-targets"])?;
    runner::build()?;
    Ok(Outcome::default())
}

/// The tests that need an optional server.
const NEED: [(Server, &str); 5] = [
    (Server::Redis, "redis_answers_and_stops"),
    (Server::DynamoDb, "dynamodb_answers_and_stops"),
    (Server::DynamoDb, "dynalite_faults"),
    (Server::Moto, "moto_answers_and_stops"),
    (Server::ClickhouseNewer, "newer_engine"),
];

/// The tests beside the code, and those in the documentation.
fn unit(round: u32) -> Result<Outcome> {
    let mut left_out = Vec::new();
    for (server, test) in NEED {
        if !server.present()? {
            left_out.push((test, "its server could not be had: `cargo xtask setup` says why"));
        }
    }
    let mut outcome = runner::run(Packages::Except(&["conformance", "procs"]), &left_out, round)?;
    outcome.merge(runner::documentation()?);
    let reason = "Terraform and its provider are not at hand on the build machines; it is parsed as HCL";
    outcome.skip("terraform validate deployments/nats/terraform", reason);
    Ok(outcome)
}

/// Licences, bans and sources. Advisories need a database that is fetched from the internet.
fn deny() -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let installed = workspace::cargo().args(["deny", "--version"]).output();
    if installed.is_ok_and(|out| out.status.success()) {
        cargo(&["deny", "check", "bans", "licenses", "sources"])?;
    } else {
        outcome.skip("cargo deny check bans licenses sources", "cargo-deny is not installed");
    }
    outcome.skip("cargo deny check advisories", "its database is not at hand on the build machines");
    Ok(outcome)
}
