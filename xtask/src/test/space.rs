//! Whether the disk has room for a run, said before an hour is spent on finding out.

use anyhow::{Context, Result};
use rustix::fs::{StatVfs, statvfs};

/// What a build from nothing and the servers take, in bytes, with some to spare for what tests write.
const COLD: u64 = 16 << 30;
/// The same where all was built before.
const WARM: u64 = 4 << 30;

/// A line on the room there is; the run will hardly pass where it begins with `warning`.
pub(super) fn line() -> Result<String> {
    let root = wh_testkit::workspace::root()?;
    let target = root.join("target");
    let at = if target.exists() { &target } else { &root };
    let disk = statvfs(at).with_context(|| at.display().to_string())?;
    Ok(said(free(&disk), target.join("debug/deps").exists() && target.join("servers").exists()))
}

fn free(disk: &StatVfs) -> u64 {
    disk.f_bavail.saturating_mul(disk.f_frsize)
}

fn said(free: u64, built: bool) -> String {
    let (needed, what) = if built { (WARM, "what is built again") } else { (COLD, "a build from nothing") };
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    if free < needed {
        format!("warning: the disk has {:.1} GiB free; {what} and its tests take up to {:.0}", gib(free), gib(needed))
    } else {
        format!("the disk has {:.0} GiB free", gib(free))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_room_is_a_warning() {
        assert_eq!(said(20 << 30, false), "the disk has 20 GiB free");
        assert_eq!(said(5 << 30, true), "the disk has 5 GiB free");
        let warning = "warning: the disk has 5.0 GiB free; a build from nothing and its tests take up to 16";
        assert_eq!(said(5 << 30, false), warning);
        assert!(line().unwrap().contains("GiB free"));
    }
}
