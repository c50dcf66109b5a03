//! hyper is client and server in one crate, so its client's home is checked in the source text.

use super::table::HYPER_CLIENT;
use crate::{
    finding::Finding,
    workspace::{File, Tree},
};

const CLIENT: [&str; 2] = ["hyper::client", "hyper_util::client"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let outside = |file: &&File| file.is_rust() && !HYPER_CLIENT.iter().any(|home| file.path.starts_with(home));
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(outside).filter(|file| !file.path.starts_with("xtask/src/layers/")) {
        for (line, text) in file.code_lines() {
            if CLIENT.iter().any(|client| text.contains(client)) {
                findings.push(file.finding(line, "hyper's client has its home in wh-clickhouse"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_found_outside_of_its_home_and_the_server_is_not() {
        let client = "//! x\nuse hyper_util::client::legacy::Client;\n// hyper::client\n";
        let tree = Tree::of(&[
            ("crates/wh-api/src/a.rs", client),
            ("crates/wh-clickhouse/src/a.rs", client),
            ("crates/wh-api/src/b.rs", "//! x\nuse hyper::server::conn;\n"),
        ]);
        let findings: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(findings, ["crates/wh-api/src/a.rs:2: hyper's client has its home in wh-clickhouse"]);
    }
}
