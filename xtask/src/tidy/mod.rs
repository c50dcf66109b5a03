//! `cargo xtask tidy`: the rules that neither the compiler nor clippy checks.

mod rules;

use crate::{finding, tell::Teller, workspace::Tree};
use anyhow::Result;

/// Runs every rule over the workspace's files.
pub(crate) fn run() -> Result<()> {
    let tree = Tree::read()?;
    let findings = rules::ALL.iter().flat_map(|rule| rule(&tree)).collect();
    finding::report(&mut Teller::new(), "tidy", findings)
}
