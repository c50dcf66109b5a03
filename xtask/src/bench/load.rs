//! Runs `wh-load` and reads what it measured.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::{path::Path, process::Command};

/// What `wh-load http` measured.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Http {
    pub(crate) ok: u64,
    /// Rows of the requests that were ok.
    pub(crate) rows: u64,
    pub(crate) refused: u64,
    pub(crate) seconds: f64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
}

/// What `wh-load yardstick` measured.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Yardstick {
    pub(crate) rows: u64,
    pub(crate) compressed_bytes: u64,
    pub(crate) seconds: f64,
}

/// Runs one mode to its end.
pub(crate) fn run<T: for<'a> Deserialize<'a>>(binary: &Path, mode: &str, options: &[(&str, String)]) -> Result<T> {
    let mut command = Command::new(binary);
    command.arg(mode).args(options.iter().map(|(key, value)| format!("{key}={value}")));
    let output = command.output().with_context(|| binary.display().to_string())?;
    if !output.status.success() {
        bail!("wh-load {mode} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("wh-load printed something else than its result")
}
