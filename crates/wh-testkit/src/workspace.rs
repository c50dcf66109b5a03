//! Where the workspace and what it built are found from within a test, an example or xtask.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The workspace's root: the nearest folder above this process's package, or above its current folder, whose
/// `Cargo.toml` has a `[workspace]`.
///
/// # Errors
/// Neither of them is inside a workspace.
pub fn root() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let current = std::env::current_dir().ok();
    [package, current]
        .into_iter()
        .flatten()
        .find_map(|start| above(&start))
        .context("neither CARGO_MANIFEST_DIR nor the current folder is inside the workspace")
}

fn above(start: &Path) -> Option<PathBuf> {
    let is_root = |dir: &&Path| {
        std::fs::read_to_string(dir.join("Cargo.toml"))
            .is_ok_and(|text| text.lines().any(|l| l.trim() == "[workspace]"))
    };
    start.ancestors().find(is_root).map(Path::to_path_buf)
}

/// A binary of this workspace as cargo built it: beside this process's own executable, else in another profile's
/// folder.
///
/// # Errors
/// It was not built; the error names the command that builds it.
pub fn binary(name: &str, package: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("where is this executable?")?;
    let mut places: Vec<PathBuf> = own.ancestors().skip(1).take(2).map(Path::to_path_buf).collect();
    if let Some(target) = own.ancestors().find(|dir| dir.join("CACHEDIR.TAG").exists()) {
        places.extend(["debug", "quick", "release"].map(|profile| target.join(profile)));
    }
    let found = places.iter().map(|dir| dir.join(name)).find(|path| path.is_file());
    let Some(found) = found else {
        bail!("the binary {name} is not built: run `cargo build -p {package} --bin {name}` (looked in {places:?})");
    };
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_workspace_not_the_package() {
        let root = root().unwrap();
        assert!(root.join("crates/wh-testkit/Cargo.toml").is_file(), "{root:?}");
    }

    #[test]
    fn a_missing_binary_says_how_to_build_it() {
        let error = binary("wh-none", "wh-some").unwrap_err().to_string();
        assert!(error.contains("cargo build -p wh-some --bin wh-none"), "{error}");
    }
}
