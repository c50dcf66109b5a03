//! The changelog has a section for what is not released yet.

use crate::{finding::Finding, workspace::Tree};

const PATH: &str = "CHANGELOG.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let has = |text: &str| text.lines().any(|line| matches!(line.trim(), "## Unreleased" | "## [Unreleased]"));
    match tree.get(PATH) {
        None => vec![Finding::of(PATH, "is missing")],
        Some(file) if !has(&file.text) => vec![Finding::of(PATH, "has no section `## Unreleased`")],
        Some(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::said, *};

    #[test]
    fn a_changelog_without_the_section_is_found() {
        assert_eq!(said(check, &[]), ["CHANGELOG.md: is missing"]);
        assert_eq!(said(check, &[(PATH, "# Changelog\n\n## 1.0\n")]), ["CHANGELOG.md: has no section `## Unreleased`"]);
        assert!(said(check, &[(PATH, "# Changelog\n\n## Unreleased\n")]).is_empty());
    }
}
