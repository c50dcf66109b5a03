//! What the log is known to hold, kept beside it, so that a segment that vanished or was cut short is noticed.
//!
//! The list of segments is replaced whenever one begins or is retired. How far the segment is that is being written is
//! noted in place after each group and never synced by itself: after a power cut the note may be old, but it never says
//! more than what was durable. Knows numbers and lengths, never what is in a segment.

use crate::{
    disk::{Disk, DiskFile, Mode, read_file, write_all, write_beside},
    error::{Error, Kind, Result},
    format::{
        NoHeader,
        extent::{Extent, Held, Loss, Mark},
    },
    names,
};
use parking_lot::Mutex;
use std::{collections::BTreeMap, io, path::Path, sync::Arc};

/// Most bytes of the file: some millions of segments.
const MAX_BYTES: u64 = 256 << 20;
/// Most losses that are remembered; later ones count as one with the last.
const MAX_LOSSES: usize = 1_000;

/// The file, and what was last written to it.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    file: Option<Arc<dyn DiskFile>>,
    mark: Mark,
    losses: Vec<Loss>,
}

/// Reads the file; `Ok(None)`: there is none.
pub(crate) fn read(disk: &dyn Disk, dir: &Path, log: u64) -> Result<Option<Extent>> {
    Ok(read_whole(disk, dir, log)?.map(|(_, extent)| extent))
}

/// The same, with the bytes.
pub(crate) fn read_whole(disk: &dyn Disk, dir: &Path, log: u64) -> Result<Option<(Vec<u8>, Extent)>> {
    const OP: &str = "read extent";
    let path = dir.join(names::EXTENT);
    let bytes = match read_file(disk, &path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => return Err(Error::path(Kind::Corrupt, OP, &path, e)),
        Err(e) => return Err(Error::path(Kind::Io, OP, &path, e)),
    };
    match Extent::decode(&bytes, log) {
        Ok(extent) => Ok(Some((bytes, extent))),
        Err(NoHeader::Broken) => Err(Error::new(Kind::Corrupt, OP, path.display().to_string())),
        Err(NoHeader::Version(version)) => {
            let text = format!("{} has format version {version}, this reads {}", path.display(), crate::FORMAT_VERSION);
            Err(Error::new(Kind::Version, OP, text))
        }
    }
}

impl Keeper {
    /// Takes over what an earlier life of the log wrote.
    pub(crate) fn adopt(&self, mark: Mark, mut losses: Vec<Loss>) {
        losses.truncate(MAX_LOSSES);
        let mut inner = self.inner.lock();
        inner.mark = mark;
        inner.losses = losses;
    }

    /// Replaces the list. The name is durable with the next sync of the folder; until then the one before stands.
    pub(crate) fn replace(
        &self,
        disk: &dyn Disk,
        dir: &Path,
        log: u64,
        segments: impl FnOnce() -> BTreeMap<u64, Held>,
    ) -> io::Result<()> {
        let mut inner = self.inner.lock();
        // asked for under the lock: of two lists the later one is written last
        let segments = segments();
        let oldest = segments.first_key_value().map(|(number, _)| *number);
        // what is lost is told as long as something of its time is there
        inner.losses.retain(|loss| oldest.is_none_or(|oldest| oldest <= loss.until));
        inner.mark.count += 1;
        if !segments.contains_key(&inner.mark.segment) {
            // retired, or nothing in it; its number and sequence are still the highest there were
            inner.mark.held.end = 0;
        }
        let extent = Extent { segments, losses: inner.losses.clone(), mark: inner.mark };
        let path = dir.join(names::EXTENT);
        let written = write_beside(disk, &path, &[&extent.encode(log)]);
        if let Ok(file) = &written {
            inner.file = Some(Arc::clone(file));
        }
        written.map(drop)
    }

    /// Goes on with the file that is there, where a new one could not be written.
    pub(crate) fn keep(&self, disk: &dyn Disk, dir: &Path) {
        self.inner.lock().file = disk.open(&dir.join(names::EXTENT), Mode::Write).ok();
    }

    /// Notes how far the segment is that is being written. Never waits: the next note says it too.
    pub(crate) fn note(&self, log: u64, segment: u64, held: Held) {
        if let Some(mut inner) = self.inner.try_lock() {
            inner.note(log, segment, held);
        }
    }

    /// The same, durably.
    pub(crate) fn settle(&self, log: u64, segment: u64, held: Held) {
        let mut inner = self.inner.lock();
        inner.note(log, segment, held);
        if let Some(Err(error)) = inner.file.as_ref().map(|file| file.sync_data()) {
            tracing::debug!(%error, "the log's extent could not be synced");
        }
    }
}

impl Inner {
    fn note(&mut self, log: u64, segment: u64, held: Held) {
        if (self.mark.segment, self.mark.held) == (segment, held) {
            return;
        }
        self.mark = Mark { segment, held, count: self.mark.count + 1 };
        let Some(file) = &self.file else { return };
        if let Err(error) = write_all(&**file, &self.mark.encode(log), self.mark.offset()) {
            tracing::debug!(%error, "the log's extent could not be noted");
        }
    }
}
