//! `cargo xtask layers`: dependencies go down the layers, and each vendor's client has one home.
//!
//! It also checks each L3 crate alone: building the whole workspace unifies features, and would hide that one of them
//! names a backend.

mod hyper_client;
mod read;
mod rules;
mod table;

use crate::{finding, tell::Teller, workspace};
use anyhow::{Result, ensure};

/// Runs all checks.
pub(crate) fn run() -> Result<()> {
    let mut teller = Teller::new();
    let crates = read::crates()?;
    let mut findings = rules::check(&crates);
    findings.extend(hyper_client::check(&workspace::Tree::read()?));
    finding::report(&mut teller, "layers", findings)?;
    for name in table::ALONE {
        teller.step(&format!("checking {name} alone"));
        let status = workspace::cargo().args(["check", "--quiet", "-p", name]).status()?;
        ensure!(
            status.success(),
            "{name} does not build alone; where it builds with the workspace, it uses a feature that only wh-app turns on"
        );
        teller.done(&format!("{name} builds alone"));
    }
    Ok(())
}

/// The crates whose features choose a backend, each with its features.
pub(crate) fn features_of_backends() -> Result<Vec<(String, Vec<String>)>> {
    let crates = read::crates()?.into_iter().filter(|own| table::has_backends(&own.name));
    let features = |own: &read::Crate| own.features.keys().filter(|name| *name != "default").cloned().collect();
    Ok(crates.map(|own| (own.name.clone(), features(&own))).collect())
}
