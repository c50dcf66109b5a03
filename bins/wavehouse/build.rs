//! Tells the program which commit it is built from, where git knows.

use std::{path::Path, process::Command};

fn main() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=WAVEHOUSE_COMMIT={commit}");
    println!("cargo::rerun-if-changed=build.rs");
    // the log of HEAD moves with every commit and every switch; a path that is missing would mean a rerun every time
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}
