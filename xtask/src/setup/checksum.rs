//! SHA-256 of a downloaded file against the one we pin.

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use std::{fmt::Write, fs::File, io::Read, path::Path};

/// The file's SHA-256 in hexadecimal.
pub(super) fn of(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    let mut hex = String::new();
    for byte in hash.finalize() {
        write!(hex, "{byte:02x}")?;
    }
    Ok(hex)
}

/// Refuses a file that is not the pinned one. Gives what to say about it: nothing, or that nothing is pinned for this
/// machine's architecture.
pub(super) fn check(path: &Path, pinned: Option<&str>) -> Result<&'static str> {
    let Some(pinned) = pinned else { return Ok(" (checksum unpinned on this architecture)") };
    let got = of(path)?;
    ensure!(got == pinned, "{} has SHA-256 {got}, and {pinned} is pinned", path.display());
    Ok("")
}

/// The pin on the architecture where it was taken.
pub(super) fn on_x86_64(pin: &'static str) -> Option<&'static str> {
    (cfg!(target_os = "linux") && cfg!(target_arch = "x86_64")).then_some(pin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_is_refused_with_both_checksums() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(check(file.path(), Some(abc)).unwrap(), "");
        let error = check(file.path(), Some("00")).unwrap_err().to_string();
        assert!(error.contains(abc) && error.contains("00 is pinned"), "{error}");
        assert!(check(file.path(), None).unwrap().contains("unpinned"));
    }
}
