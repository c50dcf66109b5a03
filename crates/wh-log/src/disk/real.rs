//! The operating system's file system.

use super::{Disk, DiskFile, Guard, Lock, Mode};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
};

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

/// What a lock file may say about its owner.
const OWNER_BYTES: u64 = 512;

impl Disk for RealDisk {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        // a folder is there for good once the one above it was synced
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.make_dir(parent)?;
        match std::fs::create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !dir.is_dir() => Err(error),
            Ok(()) | Err(_) => self.sync_dir(parent),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        std::fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut how = OpenOptions::new();
        how.read(true).write(mode != Mode::Read).create_new(mode == Mode::Create);
        Ok(Arc::new(RealFile(how.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path, owner: &str) -> io::Result<Lock> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                // on a full disk the lock has no text, and holds all the same
                let named =
                    file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(owner.as_bytes()));
                if let Err(error) = named {
                    tracing::warn!(path = %path.display(), %error, "the lock cannot name its owner");
                }
                Ok(Lock::Taken(Guard::new(Locked(file))))
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = Vec::new();
                file.take(OWNER_BYTES).read_to_end(&mut text)?;
                Ok(Lock::Held(String::from_utf8_lossy(&text).into_owned()))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A locked file. Unlocks by itself: a process that is being started at this moment has a copy of the open file until
/// it becomes another program, and closing ours would leave the lock with it.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "a lock could not be given back");
        }
    }
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
