//! A file holds one noun, and one that grows past its limit usually holds two.

use crate::{
    finding::Finding,
    workspace::{File, Tree},
};

const CODE: usize = 400;
const TESTS: usize = 600;

/// Files that may be longer, with the reason.
const EXCEPTIONS: [(&str, &str); 0] = [];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| EXCEPTIONS.iter().all(|(path, _)| *path != file.path)) {
        let (lines, limit) = (file.text.lines().count(), limit(file));
        if lines > limit {
            findings.push(Finding::of(&file.path, format!("has {lines} lines, more than {limit}")));
        }
    }
    findings
}

fn limit(file: &File) -> usize {
    let tests = file.name().ends_with("tests.rs") || file.path.starts_with("tests/") || file.path.contains("/tests/");
    if tests { TESTS } else { CODE }
}

#[cfg(test)]
mod tests {
    use super::{super::said, *};

    #[test]
    fn a_long_file_is_found_and_tests_may_be_longer() {
        let lines = |count| "//! a\n".repeat(count);
        let long = |path: &'static str, count| said(check, &[(path, &lines(count))]);
        assert!(long("crates/a/src/b.rs", 400).is_empty());
        assert_eq!(long("crates/a/src/b.rs", 401), ["crates/a/src/b.rs: has 401 lines, more than 400"]);
        assert!(long("crates/a/src/b/tests.rs", 600).is_empty());
        assert!(long("crates/a/src/b_tests.rs", 600).is_empty());
        assert!(long("crates/a/tests/b/main.rs", 600).is_empty());
        assert_eq!(long("tests/procs/tests/crash.rs", 601).len(), 1);
    }
}
