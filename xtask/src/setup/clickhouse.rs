//! The ClickHouse engine: `libchdb.so` out of chDB's npm package. Node is not needed to run it.

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
