//! What cargo knows of the workspace, cut down to what the rules look at.

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::BTreeMap;

/// A crate of the workspace.
#[derive(Clone, Debug, Default)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) dependencies: Vec<Dependency>,
    pub(super) features: BTreeMap<String, Vec<String>>,
}

/// One dependency, as its manifest says it.
#[derive(Clone, Debug, Default)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// Only for tests, examples and benches.
    pub(super) dev: bool,
    pub(super) default_features: bool,
    pub(super) features: Vec<String>,
}

/// All crates of the workspace, without resolving anything.
pub(super) fn crates() -> Result<Vec<Crate>> {
    let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata")?;
    let crates = metadata.workspace_packages().into_iter().map(|package| Crate {
        name: package.name.to_string(),
        dependencies: package
            .dependencies
            .iter()
            .map(|dependency| Dependency {
                name: dependency.name.clone(),
                dev: dependency.kind == DependencyKind::Development,
                default_features: dependency.uses_default_features,
                features: dependency.features.clone(),
            })
            .collect(),
        features: package.features.clone(),
    });
    Ok(crates.collect())
}
