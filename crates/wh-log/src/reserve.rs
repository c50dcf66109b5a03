//! Room that is kept for the notes that freeing takes: a file of some megabytes that is given up when the disk is full,
//! and made anew when there is room. Decides nothing; the owner of the log says when.

use crate::{
    disk::{Disk, DiskFile, Mode, write_all},
    error::{Error, Kind, Result},
    names,
};
use parking_lot::Mutex;
use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

const OP: &str = "reserve";
const CHUNK: usize = 256 * 1024;

/// The reserve of one log.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// Bytes of the file; 0: there is none.
    bytes: AtomicU64,
    /// It was given up: only what frees room may be written.
    spent: AtomicBool,
    /// Held while the file is made or removed.
    file: Mutex<()>,
}

impl Reserve {
    /// The reserve that an earlier life of the log left.
    pub(crate) fn found(&self, disk: &dyn Disk, dir: &Path) {
        let size = disk.open(&dir.join(names::RESERVE), Mode::Read).and_then(|file| file.size());
        self.bytes.store(size.unwrap_or(0), Ordering::Release);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    pub(crate) fn spent(&self) -> bool {
        self.spent.load(Ordering::Acquire)
    }

    /// Gives the room to whoever writes next.
    pub(crate) fn spend(&self, disk: &dyn Disk, dir: &Path) -> Result<()> {
        let _file = self.file.lock();
        self.spent.store(true, Ordering::Release);
        let path = dir.join(names::RESERVE);
        match disk.remove(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Error::path(Kind::Io, OP, &path, e)),
            Ok(()) | Err(_) => {}
        }
        self.bytes.store(0, Ordering::Release);
        // a file system may give the room only when the removal is durable
        disk.sync_dir(dir).map_err(|e| Error::path(Kind::Io, OP, dir, e))
    }

    /// Makes the reserve of `bytes`, or finds out whether as many are free beside it.
    pub(crate) fn refill(&self, disk: &dyn Disk, dir: &Path, bytes: u64) -> Result<()> {
        let _file = self.file.lock();
        let path = dir.join(names::RESERVE);
        let temp = path.with_extension("tmp");
        let there = self.bytes.load(Ordering::Acquire) >= bytes;
        let wrap = |e| Error::path(Kind::Io, OP, &temp, e);
        match disk.remove(&temp) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(wrap(e)),
            Ok(()) | Err(_) => {}
        }
        let made = if bytes == 0 { Ok(()) } else { disk.open(&temp, Mode::Create).and_then(|file| fill(&file, bytes)) };
        let kept = match made {
            Ok(()) if bytes == 0 => Ok(()),
            Ok(()) if !there => disk.rename(&temp, &path).and_then(|()| disk.sync_dir(dir)),
            Ok(()) => disk.remove(&temp),
            Err(error) => {
                if let Err(error) = disk.remove(&temp) {
                    tracing::debug!(path = %temp.display(), %error, "{} is left over", temp.display());
                }
                Err(error)
            }
        };
        kept.map_err(wrap)?;
        if !there {
            self.bytes.store(bytes, Ordering::Release);
        }
        self.spent.store(false, Ordering::Release);
        Ok(())
    }
}

/// Writes bytes that no file system can make smaller.
fn fill(file: &Arc<dyn DiskFile>, bytes: u64) -> io::Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    while at < bytes {
        for word in chunk.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let len = usize::try_from(bytes - at).unwrap_or(CHUNK).min(CHUNK);
        write_all(&**file, &chunk[..len], at)?;
        at += len as u64;
    }
    file.sync_data()
}
