//! A test that returns early because something is missing is green without having run.
//!
//! Looked for in tests and conformance cases: a `return` without a value whose nearest condition asks for an
//! environment variable, a file, or whether something is there.

use crate::{
    finding::Finding,
    workspace::{File, Tree},
};

/// What a condition for a quiet skip asks.
const ASKS: [&str; 10] =
    ["env", "var(", "is_none()", "is_err()", "exists()", "is_file()", "skip", "cfg!", "let Some(", "let Ok("];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(skips).collect()
}

fn skips(file: &File) -> Vec<Finding> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut findings = Vec::new();
    let mut test_indent = None;
    let mut attribute = false;
    for (index, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        attribute |= trimmed.starts_with("#[") && is_test_attribute(trimmed);
        if is_function(trimmed) && test_indent.is_none() {
            let is_case = file.path.starts_with("tests/conformance/") && is_case(trimmed);
            test_indent = (attribute || is_case).then(|| indent(line));
            attribute = false;
        } else if test_indent == Some(indent(line)) && trimmed.starts_with('}') {
            test_indent = None;
        } else if test_indent.is_some()
            && returns_nothing(trimmed)
            && ASKS.iter().any(|ask| condition(&lines, index).contains(ask))
        {
            findings.push(file.finding(index + 1, "a test skips quietly; make it fail, or a listed skip"));
        }
    }
    findings
}

fn is_test_attribute(line: &str) -> bool {
    let name = line.trim_start_matches("#[").split(['(', ']', ' ']).next().unwrap_or("");
    name == "test" || name.ends_with("::test")
}

fn is_function(line: &str) -> bool {
    let line = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim_start_matches("async ");
    line.starts_with("fn ")
}

/// A conformance case is a function named after a clause: `mq07_…`.
fn is_case(line: &str) -> bool {
    let name = line.split_once("fn ").map_or("", |(_, name)| name);
    name.split_once('_').is_some_and(|(id, _)| {
        id.len() >= 4 && id.ends_with(|c: char| c.is_ascii_digit()) && id.starts_with(|c: char| c.is_ascii_lowercase())
    })
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn returns_nothing(line: &str) -> bool {
    ["return;", "return Ok(());", "return }", "return Ok(()) }"].iter().any(|text| line.contains(text))
}

/// The line itself and the line that opens the block around it.
fn condition(lines: &[&str], index: usize) -> String {
    let own = indent(lines[index]);
    let opens = lines[..index].iter().rev().find(|line| !line.trim().is_empty() && indent(line) < own);
    format!("{}{}", opens.unwrap_or(&""), lines[index])
}

#[cfg(test)]
mod tests {
    use super::{super::said, *};

    // BACK stands for `return`, so that these samples are not found themselves
    fn found(path: &str, code: &str) -> Vec<String> {
        said(check, &[(path, &code.replace("BACK", "return"))])
    }

    fn in_test(body: &str) -> Vec<String> {
        found("crates/a/src/tests.rs", &format!("//! a\n#[tokio::test]\nasync fn it_works() {{\n{body}\n}}\n"))
    }

    #[test]
    fn a_test_that_returns_when_something_is_missing_is_found() {
        for body in [
            "    if std::env::var_os(\"X\").is_none() {\n        BACK;\n    }",
            "    let Some(url) = url() else { BACK };",
            "    let Ok(server) = start() else {\n        say(\"no server\");\n\n        BACK Ok(());\n    };",
            "    if !library.exists() { BACK; }",
        ] {
            assert_eq!(in_test(body).len(), 1, "{body}");
        }
    }

    #[test]
    fn a_conformance_case_is_a_test_too() {
        let code = "//! a\nasync fn mq07_more(arm: &Arm) -> Result<()> {\n    if arm.skips() {\n        BACK Ok(());\n    }\n}\n";
        assert_eq!(found("tests/conformance/src/mq.rs", code).len(), 1);
        assert!(found("crates/a/src/mq.rs", code).is_empty());
    }

    #[test]
    fn other_returns_and_other_functions_are_left_alone() {
        assert!(in_test("    loop {\n        if done() {\n            BACK;\n        }\n    }").is_empty());
        let helper = "//! a\nfn helper() {\n    let Some(a) = b else { BACK };\n}\n\n#[test]\nfn t() {\n    a();\n}\n\nfn more() {\n    if c.is_none() {\n        BACK;\n    }\n}\n";
        assert!(found("crates/a/src/b.rs", helper).is_empty());
    }
}
