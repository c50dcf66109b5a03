//! Each crate takes the workspace's lints.

use crate::{
    finding::Finding,
    workspace::{File, Tree},
};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter(|file| file.name() == "Cargo.toml" && file.path != "Cargo.toml");
    let without = manifests.filter(|file| !takes_lints(file));
    without.map(|file| Finding::of(&file.path, "has no `[lints] workspace = true`")).collect()
}

fn takes_lints(manifest: &File) -> bool {
    let mut section = "";
    for line in manifest.text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[lints]" && line.replace(' ', "") == "workspace=true" {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{super::said, *};

    #[test]
    fn a_crate_without_the_lints_is_found() {
        let with = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";
        let without = "[package]\nversion.workspace = true\n\n[dependencies]\nworkspace = true\n";
        let files = [("Cargo.toml", "[workspace]"), ("crates/a/Cargo.toml", with), ("crates/b/Cargo.toml", without)];
        assert_eq!(said(check, &files), ["crates/b/Cargo.toml: has no `[lints] workspace = true`"]);
    }
}
