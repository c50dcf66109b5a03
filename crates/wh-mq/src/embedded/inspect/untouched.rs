//! A file system on which nothing is changed: writes and renames are only remembered, so that opening a log shows what
//! is there and leaves it as it is.

use parking_lot::Mutex;
use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use wh_log::disk::{Disk, DiskFile, Lock, Mode, RealDisk};

/// The operating system's files, for reading.
#[derive(Debug, Default)]
pub(super) struct Untouched {
    real: RealDisk,
    /// New names, and what the files are really called.
    renamed: Mutex<HashMap<PathBuf, PathBuf>>,
}

#[derive(Debug)]
struct ReadOnly(Option<Arc<dyn DiskFile>>);

impl Disk for Untouched {
    fn make_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.real.list(dir)
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.renamed.lock().get(path).cloned().unwrap_or_else(|| path.to_owned());
        let file = match mode {
            Mode::Create => None,
            Mode::Read | Mode::Write => Some(self.real.open(&path, Mode::Read)?),
        };
        Ok(Arc::new(ReadOnly(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut renamed = self.renamed.lock();
        let real = renamed.remove(from).unwrap_or_else(|| from.to_owned());
        renamed.insert(to.to_owned(), real);
        Ok(())
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path, owner: &str) -> io::Result<Lock> {
        self.real.lock(path, owner)
    }
}

impl DiskFile for ReadOnly {
    fn size(&self) -> io::Result<u64> {
        self.0.as_ref().map_or(Ok(0), |file| file.size())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.as_ref().map_or(Ok(0), |file| file.read_at(into, offset))
    }

    fn write_at(&self, bytes: &[u8], _: u64) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}
