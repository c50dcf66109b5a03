//! The DynamoDB emulator moto, with the whole of what it needs for that pinned by version and checksum. Python runs it.

use super::{fetch, place::Place};
use crate::tell::Teller;
use anyhow::{Context, Result};
use std::{fs, path::Path, process::Command};

/// Versions and checksums of every file that pip may take.
const REQUIREMENTS: &str = include_str!("moto/requirements.txt");

pub(super) fn place() -> Place {
    Place {
        name: "dynamodb moto".into(),
        dir: "moto".into(),
        file: "site/moto/server.py",
        pin: "moto 5.2.5".into(),
        given: None,
        fill: Box::new(fill),
    }
}

fn fill(dir: &Path, teller: &mut Teller) -> Result<String> {
    let python = fetch::on_path("python3")
        .context("python3 is missing, and it runs this. Install Python 3.10 or newer with pip (Debian: python3-pip)")?;
    teller.step("dynamodb moto: downloading 30 MB");
    fs::write(dir.join("requirements.txt"), REQUIREMENTS)?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps"]);
    pip.args(["--only-binary=:all:", "--require-hashes", "--target", "site", "-r", "requirements.txt"]);
    fetch::run(&mut pip, dir, teller)?;
    let loads = "import moto, moto.server, sys; print(moto.__version__, sys.version.split()[0])";
    let said = fetch::run(Command::new(python).env("PYTHONPATH", "site").args(["-c", loads]), dir, teller)?;
    let (version, python) = said.trim().split_once(' ').unwrap_or((said.trim(), ""));
    Ok(format!("moto {version} on python {python}, an emulator"))
}
