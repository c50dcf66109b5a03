//! The few operations the log asks of a file system. `real` is the operating system's; `sim` (feature `sim-disk`) is
//! one in memory that can lose power.
//!
//! What the log relies on, and nothing more:
//! - after [`DiskFile::sync_data`] returned `Ok`, what was written before is there after a power cut;
//! - after [`Disk::sync_dir`] returned `Ok`, what was created, renamed and removed in it before stays so;
//! - a sector of 512 bytes is written whole or not at all;
//! - after a failed `sync_data` nothing is known of what was written since the last good one.

mod real;
#[cfg(any(test, feature = "sim-disk"))]
pub mod sim;

pub use real::RealDisk;

use std::{any::Any, fmt::Debug, io, path::Path, sync::Arc};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Make it for reading and writing; it must not exist.
    Create,
    /// Read and write a file that exists.
    Write,
    /// Read a file that exists.
    Read,
}

/// What became of an attempt to lock.
#[derive(Debug)]
pub enum Lock {
    /// It is ours until the guard is dropped or the process ends, however it ends.
    Taken(Guard),
    /// Another has it; what that one wrote about itself.
    Held(String),
}

/// Holds a lock by being alive.
pub struct Guard(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>);

impl Guard {
    /// Keeps `held` alive as the lock.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self(Box::new(held))
    }
}

impl Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guard")
    }
}

/// A file system as the log needs it. Every call may block.
pub trait Disk: Debug + Send + Sync {
    /// Makes a folder and its parents; one that exists is fine.
    ///
    /// # Errors
    /// The file system's.
    fn make_dir(&self, dir: &Path) -> io::Result<()>;
    /// The names in a folder, in any order.
    ///
    /// # Errors
    /// The file system's.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Opens a file.
    ///
    /// # Errors
    /// The file system's.
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file within a folder, over one that may exist. Open files stay open.
    ///
    /// # Errors
    /// The file system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Open files stay open.
    ///
    /// # Errors
    /// The file system's.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes what was done to names in a folder durable.
    ///
    /// # Errors
    /// The file system's.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Locks a file, made where it is missing, and writes into it who has it.
    ///
    /// # Errors
    /// The file system's.
    fn lock(&self, path: &Path, owner: &str) -> io::Result<Lock>;
}

/// An open file. Every call may block.
pub trait DiskFile: Debug + Send + Sync {
    /// Bytes the file has.
    ///
    /// # Errors
    /// The file system's.
    fn size(&self) -> io::Result<u64>;
    /// Reads at an offset, possibly less than asked; 0 only at the end.
    ///
    /// # Errors
    /// The file system's.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at an offset, possibly less than given; the file grows as needed.
    ///
    /// # Errors
    /// The file system's.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes what was written durable (`fdatasync`).
    ///
    /// # Errors
    /// The file system's. What was written since the last good call is then in an unknown state.
    fn sync_data(&self) -> io::Result<()>;
}

/// Writes all of `bytes`, going on after short writes.
pub(crate) fn write_all(file: &dyn DiskFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = bytes.get(n..).unwrap_or_default();
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Reads until `into` is full or the file ends; gives how much there was.
pub(crate) fn read_most(file: &dyn DiskFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Reads a small file whole; one larger than `limit` is an error.
pub(crate) fn read_file(disk: &dyn Disk, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(path, Mode::Read)?;
    let size = file.size()?;
    if size > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has {size} bytes, at most {limit} can be")));
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
    let n = read_most(&*file, &mut bytes, 0)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// Replaces a file so that after a crash there is the old one or the new one, whole.
pub(crate) fn replace_file(disk: &dyn Disk, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    write_beside(disk, path, parts)?;
    disk.sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// The same, but it is certain to be the new one only after the next sync of the folder. What a full disk has no room
/// for is taken away again.
pub(crate) fn write_beside(disk: &dyn Disk, path: &Path, parts: &[&[u8]]) -> io::Result<Arc<dyn DiskFile>> {
    let temp = path.with_extension("tmp");
    match disk.remove(&temp) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        Ok(()) | Err(_) => {}
    }
    let file = disk.open(&temp, Mode::Create)?;
    let write = || {
        let mut offset = 0;
        for part in parts {
            write_all(&*file, part, offset)?;
            offset += part.len() as u64;
        }
        file.sync_data()
    };
    match write() {
        Ok(()) => disk.rename(&temp, path).map(|()| file),
        Err(error) => {
            // left behind, it would take the room that somebody frees
            if let Err(error) = disk.remove(&temp) {
                tracing::warn!(path = %temp.display(), %error, "{} is left over", temp.display());
            }
            Err(error)
        }
    }
}
