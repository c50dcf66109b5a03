//! `unsafe` stands only in the modules listed here, each with the record that says why.

use crate::{finding::Finding, workspace::Tree};

/// The modules and their records.
const MODULES: [(&str, &str); 2] = [
    ("crates/wh-testkit/src/bin/wh-chserver/engine.rs", "docs/adr/2026-11-29-clickhouse-engine-in-tests.md"),
    ("crates/wh-testkit/src/process/orphan.rs", "docs/adr/2026-11-29-children-die-with-the-test.md"),
];

/// The word with what follows it in code; in two parts, so that this file does not hold it.
const WORDS: [&str; 6] = [
    concat!("unsafe", " {"),
    concat!("unsafe", " fn"),
    concat!("unsafe", " impl"),
    concat!("unsafe", " trait"),
    concat!("unsafe", " extern"),
    concat!("(unsafe", "_code"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| MODULES.iter().all(|(path, _)| *path != file.path)) {
        let unsafe_lines = file.code_lines().filter(|(_, text)| WORDS.iter().any(|word| text.contains(word)));
        findings.extend(unsafe_lines.map(|(line, _)| {
            file.finding(line, "unsafe code outside of the modules that xtask/src/tidy/rules/unsafe_code.rs lists")
        }));
    }
    for (path, record) in MODULES {
        if tree.get(path).is_none() {
            findings.push(Finding::of(path, "may use unsafe and does not exist"));
        }
        match tree.get(record) {
            None => findings.push(Finding::of(path, format!("its record {record} does not exist"))),
            Some(page) if !page.text.contains(path) => {
                findings.push(Finding::of(record, format!("does not name {path}")));
            }
            Some(_) => {}
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{super::said, *};

    #[test]
    fn unsafe_elsewhere_and_a_module_without_its_record_are_found() {
        let code = format!("//! a\nfn a() {{ {} b() }} }}\n", WORDS[0]);
        let [(engine, its_record), (orphan, _)] = MODULES;
        let files = [("crates/a/src/lib.rs", &*code), (engine, &*code), (orphan, &*code), (its_record, "nothing")];
        let said = said(check, &files);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].starts_with("crates/a/src/lib.rs:2: unsafe code outside"), "{said:?}");
        assert!(said[1].contains(&format!("does not name {engine}")), "{said:?}");
        assert!(said[2].contains("does not exist"), "{said:?}");
    }
}
