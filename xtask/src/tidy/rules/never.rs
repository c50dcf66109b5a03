//! Texts that stand nowhere: unfinished work, ignored tests, registries, places of one machine.

use crate::{
    finding::Finding,
    workspace::{File, Tree},
};

/// In Rust code. Written in two parts, so that this file does not hold them.
const IN_CODE: [(&str, &str); 3] = [
    (concat!("todo", "!("), "unfinished work"),
    (concat!("unimplemented", "!("), "unfinished work"),
    (concat!("#[", "ignore"), "a test is never ignored; what cannot run is a listed skip"),
];

/// In any file: tools use registries as they are configured.
const REGISTRIES: [&str; 8] = [
    concat!("pypi", ".org"),
    concat!("files.python", "hosted"),
    concat!("registry.", "npmjs"),
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("deb.", "debian.org"),
    concat!("arti", "factory"),
    concat!("proxy.", "golang.org"),
];

/// In any file: folders that only one machine has.
const PLACES: [&str; 6] = [
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!(".lib", "rary/"),
    concat!("/tmp/", "bash_jobs"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.name() != "Cargo.lock") {
        if file.is_rust() {
            for (text, why) in IN_CODE {
                findings.extend(found(file, text, why, true));
            }
        }
        for registry in REGISTRIES {
            findings.extend(found(file, registry, "a registry's host is named", false));
        }
        for place in PLACES {
            findings.extend(found(file, place, "a path of one machine", false));
        }
    }
    findings
}

fn found(file: &File, text: &str, why: &str, code_only: bool) -> Vec<Finding> {
    let holds = |(_, line): &(usize, &str)| line.contains(text) && !(code_only && line.trim_start().starts_with("//"));
    file.lines().filter(holds).map(|(line, _)| file.finding(line, format!("`{text}`: {why}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::said, *};

    #[test]
    fn each_of_the_texts_is_found_in_code() {
        for (text, why) in IN_CODE {
            let code = format!("//! a\n// {text}\nfn a() {{ {text} }}\n");
            assert_eq!(said(check, &[("a.rs", &code)]), [format!("a.rs:3: `{text}`: {why}")]);
        }
    }

    #[test]
    fn registries_and_machine_paths_are_found_in_any_file() {
        for text in REGISTRIES.iter().chain(&PLACES) {
            let page = format!("# a\nsee {text}x\n");
            assert_eq!(said(check, &[("docs/a.md", &page), ("Cargo.lock", &page)]).len(), 1, "{text}");
        }
    }
}
