//! Every module begins by saying what it is.

use crate::{finding::Finding, workspace::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let without = tree.rust().filter(|file| !file.text.starts_with("//! "));
    without.map(|file| file.finding(1, "a module begins with `//!`: what it is and is not")).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::said, *};

    #[test]
    fn a_module_that_begins_with_code_is_found() {
        let files = [("a.rs", "//! It is a.\n"), ("b.rs", "use a;\n\n//! late\n"), ("c.md", "text")];
        assert_eq!(said(check, &files), ["b.rs:1: a module begins with `//!`: what it is and is not"]);
    }
}
