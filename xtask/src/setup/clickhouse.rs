//! The ClickHouse engine: `libchdb.so` out of chDB's npm package. Node is not needed to run it. And a newer one, out of
//! chDB's wheel, which python3 runs and which only answers what it would store.

use super::{checksum, fetch, place::Place};
use crate::tell::Teller;
use anyhow::{Context, Result, bail};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use wh_testkit::servers;

/// The package's version; its tag `latest` is older.
const VERSION: &str = "26.7.3-stable.1";
/// The engine's own version.
const ENGINE: &str = "26.7.2.1";
/// SHA-256 of `libchdb.so` for `x86_64`.
const SHA256: &str = "36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5";

pub(super) fn place() -> Place {
    let given = servers::clickhouse_lib_given().map(|path| format!("{} (WH_TEST_CLICKHOUSE_LIB)", path.display()));
    Place {
        name: "clickhouse".into(),
        dir: "clickhouse".into(),
        file: "libchdb.so",
        pin: format!("{VERSION} {SHA256}"),
        given,
        fill: Box::new(fill),
    }
}

/// SHA-256 of the newer engine's wheel for `x86_64`.
const NEWER_SHA256: &str = "707e2ec3fe0f7953bac97942eaeb7a1ed1d66b1e56ecef3f0aa2130f61f6e735";

/// The newer engine: the types are tested on both.
pub(super) fn newer() -> Place {
    Place {
        name: format!("clickhouse {}", servers::CLICKHOUSE_NEWER),
        dir: format!("clickhouse-{}", servers::CLICKHOUSE_NEWER),
        file: "chdb/__init__.py",
        pin: format!("{} {NEWER_SHA256}", servers::CLICKHOUSE_NEWER),
        given: None,
        fill: Box::new(fill_newer),
    }
}

fn fill_newer(dir: &Path, teller: &mut Teller) -> Result<String> {
    let requirement = format!("chdb-core=={}", servers::CLICKHOUSE_NEWER);
    teller.step(&format!("clickhouse: downloading the newer engine, 182 MB ({requirement})"));
    let download = dir.join("download");
    fs::create_dir(&download)?;
    let wheel = fetch::wheel(&requirement, &[], &download, teller)?;
    let note = checksum::check(&wheel, checksum::on_x86_64(NEWER_SHA256))?;
    teller.step("clickhouse: unpacking 558 MB");
    let unpacked = fetch::unpack_wheel(&wheel, teller)?;
    for entry in fs::read_dir(unpacked)? {
        let from = entry?.path();
        fs::rename(&from, dir.join(from.file_name().context("a file without a name")?))?;
    }
    fs::remove_dir_all(download)?;
    Ok(format!("chDB {} for python3{note}", servers::CLICKHOUSE_NEWER))
}

fn package() -> Result<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok("lib-linux-x64-gnu"),
        ("linux", "aarch64") => Ok("lib-linux-arm64-gnu"),
        (os, arch) => bail!(
            "there is no engine for {os} on {arch}: set WH_TEST_CLICKHOUSE_URL to a ClickHouse of yours; tests that \
             need a server of their own cannot run here"
        ),
    }
}

fn fill(dir: &Path, teller: &mut Teller) -> Result<String> {
    let package = package()?;
    // npm checks the registry's own integrity value
    let named = format!("@chdb/{package}@{VERSION}");
    teller.step(&format!("clickhouse: downloading the engine, 178 MB ({named})"));
    fetch::run(fetch::npm()?.args(["pack", "--silent", &named]), dir, teller)?;
    teller.step("clickhouse: unpacking 566 MB");
    let archive: PathBuf = fetch::only_file(dir, "tgz")?;
    fetch::run(Command::new("tar").arg("xzf").arg(&archive).arg("package/libchdb.so"), dir, teller)
        .context("tar is needed")?;
    teller.step("clickhouse: checking");
    let library = dir.join("libchdb.so");
    fs::rename(dir.join("package/libchdb.so"), &library)?;
    let note = checksum::check(&library, checksum::on_x86_64(SHA256))?;
    fs::remove_dir(dir.join("package"))?;
    fs::remove_file(archive)?;
    Ok(format!("engine {ENGINE} of chDB {VERSION}{note}"))
}
