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
        std::fs::create_dir_all(dir)
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
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(owner.as_bytes())?;
                Ok(Lock::Taken(Guard::new(file)))
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
