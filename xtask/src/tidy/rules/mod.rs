//! One file a rule. Each is a pure function from the workspace's files to findings.

mod changelog;
mod clauses;
mod lints;
mod module_docs;
mod never;
mod quiet_skips;
mod sizes;
mod unsafe_code;

use crate::{finding::Finding, workspace::Tree};

type Rule = fn(&Tree) -> Vec<Finding>;

/// Every rule.
pub(super) const ALL: [Rule; 8] = [
    changelog::check,
    clauses::check,
    lints::check,
    module_docs::check,
    never::check,
    quiet_skips::check,
    sizes::check,
    unsafe_code::check,
];

/// What a rule says of made-up files, as text.
#[cfg(test)]
fn said(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    rule(&Tree::of(files)).iter().map(ToString::to_string).collect()
}
