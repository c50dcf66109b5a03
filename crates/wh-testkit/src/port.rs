//! Ports for servers under test.
//!
//! A port is taken from below the range from which the kernel serves outgoing connections, so that nothing takes it
//! while its server is down, and a lock on a file keeps other test processes from choosing it.

use anyhow::{Context, Result};
use parking_lot::Mutex;
use std::{
    fs::File,
    net::TcpListener,
    path::PathBuf,
    sync::atomic::{AtomicU16, Ordering},
};

const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// A free port on 127.0.0.1 that is this process's own until it ends: it stays free for a server that is stopped and
/// started again.
///
/// # Errors
/// The lock folder cannot be written, or none of 20,000 ports is free.
pub fn free_port() -> Result<u16> {
    static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let folder = lock_folder()?;
    // processes start at different places so that they seldom try each other's ports
    let start = u16::try_from(std::process::id() % 97).unwrap_or(0) * 200;
    for _ in 0..COUNT {
        let port = FIRST + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let path = folder.join(port.to_string());
        let lock = File::create(&path).with_context(|| format!("cannot lock a port at {}", path.display()))?;
        if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            HELD.lock().push(lock);
            return Ok(port);
        }
    }
    anyhow::bail!("no free port from {FIRST} on")
}

fn lock_folder() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("wh-test-ports-{}", rustix::process::getuid().as_raw()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ports_are_free_and_never_given_twice() {
        let ports: Vec<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 50);
        for port in ports {
            TcpListener::bind(("127.0.0.1", port)).unwrap();
        }
    }
}
