//! Each numbered clause of a port has a conformance case of its number, and each case a clause.
//!
//! A clause is `**mq07**` in a comment of a file named `port.rs`; a case is a function whose name begins with
//! `mq07_`, in `tests/conformance`.

use crate::{
    finding::Finding,
    workspace::{File, Tree},
};
use std::collections::BTreeMap;

/// Ids, with the places where they stand.
type Ids<'a> = BTreeMap<&'a str, (&'a File, usize)>;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let (mut clauses, mut cases, mut findings) = (Ids::new(), Ids::new(), Vec::new());
    for file in tree.rust().filter(|file| file.name() == "port.rs") {
        for (line, id) in file.lines().filter_map(|(line, text)| Some((line, clause(text)?))) {
            if clauses.insert(id, (file, line)).is_some() {
                findings.push(file.finding(line, format!("clause {id} stands twice")));
            }
        }
    }
    for file in tree.rust().filter(|file| file.path.starts_with("tests/conformance/")) {
        for (line, id) in file.code_lines().filter_map(|(line, text)| Some((line, case(text)?))) {
            cases.insert(id, (file, line));
        }
    }
    let without = |of: &Ids<'_>, others: &Ids<'_>, text: fn(&str) -> String| {
        let alone = of.iter().filter(|(id, _)| !others.contains_key(*id));
        alone.map(|(id, (file, line))| file.finding(*line, text(id))).collect::<Vec<_>>()
    };
    findings.extend(without(&clauses, &cases, |id| format!("clause {id} has no case in tests/conformance")));
    findings.extend(without(&cases, &clauses, |id| format!("case {id} has no clause in a port.rs")));
    findings
}

/// The id of `//! - **mq07** …`: a clause is the first thing of its line.
fn clause(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!', ' ', '-', '*']);
    let (id, _) = text.split_once("**")?;
    is_id(id).then_some(id)
}

/// The id of `async fn mq07_…(`.
fn case(line: &str) -> Option<&str> {
    let (_, name) = line.split_once("fn ")?;
    let (id, _) = name.split_once('_')?;
    is_id(id).then_some(id)
}

/// Two to four small letters and two digits.
fn is_id(text: &str) -> bool {
    let (letters, digits) = text.split_at(text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len()));
    (2..=4).contains(&letters.len())
        && letters.bytes().all(|b| b.is_ascii_lowercase())
        && digits.len() == 2
        && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{super::said, *};

    const PORT: &str =
        "//! Port.\n//! - **mq01** It is durable.\n//! - **mq02** It is in order.\n//!   See **mq01**.\n";

    #[test]
    fn clauses_and_cases_that_stand_alone_are_found() {
        let cases =
            "//! Cases.\nasync fn mq02_blocks_come_in_order(arm: &Arm) {}\nfn mq03_more() {}\nfn helper_of() {}\n";
        let said = said(check, &[("crates/wh-mq/src/port.rs", PORT), ("tests/conformance/tests/mq.rs", cases)]);
        let expected = [
            "crates/wh-mq/src/port.rs:2: clause mq01 has no case in tests/conformance",
            "tests/conformance/tests/mq.rs:3: case mq03 has no clause in a port.rs",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_clause_may_have_several_cases_and_stands_once() {
        let cases = "fn mq01_a() {}\nfn mq01_b() {}\nfn mq02_c() {}\n";
        let port = |text| [("crates/x/src/port.rs", text), ("tests/conformance/src/a.rs", cases)];
        assert!(said(check, &port(PORT)).is_empty());
        let twice = format!("{PORT}//! - **mq02** Again.\n");
        assert_eq!(said(check, &port(&twice)), ["crates/x/src/port.rs:5: clause mq02 stands twice"]);
    }
}
