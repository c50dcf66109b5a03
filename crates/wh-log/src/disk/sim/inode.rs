//! One file's bytes, as the page cache sees them and as the platter does.

use std::{collections::BTreeMap, fmt};

/// What is written whole or not at all.
pub(super) const SECTOR: usize = 512;

type Sector = [u8; SECTOR];

/// A file.
#[derive(Default)]
pub(super) struct Inode {
    /// What a reader sees.
    seen: Vec<u8>,
    /// What is there for sure after a power cut.
    durable: Vec<u8>,
    /// Per sector, every content it had since the last sync, in order: any of them may be on the platter.
    dirty: BTreeMap<usize, Vec<Sector>>,
    /// Bytes that cannot be read.
    pub(super) unreadable: Vec<usize>,
}

impl fmt::Debug for Inode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, {} sectors not synced", self.seen.len(), self.dirty.len())
    }
}

impl Inode {
    pub(super) fn len(&self) -> usize {
        self.seen.len()
    }

    /// `None`: there is a byte among them that cannot be read.
    pub(super) fn read(&self, into: &mut [u8], offset: usize) -> Option<usize> {
        let from = self.seen.get(offset..).unwrap_or_default();
        let n = from.len().min(into.len());
        into[..n].copy_from_slice(&from[..n]);
        let lost = self.unreadable.iter().any(|&bad| bad.checked_sub(offset).is_some_and(|at| at < n));
        (!lost).then_some(n)
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if self.seen.len() < end {
            self.seen.resize(end, 0);
        }
        self.seen[offset..end].copy_from_slice(bytes);
        for sector in offset / SECTOR..end.div_ceil(SECTOR) {
            let content = sector_of(&self.seen, sector);
            self.dirty.entry(sector).or_default().push(content);
        }
    }

    pub(super) fn sync(&mut self) {
        for (sector, versions) in std::mem::take(&mut self.dirty) {
            if let Some(last) = versions.last() {
                put_sector(&mut self.durable, sector, last);
            }
        }
        self.durable.resize(self.seen.len(), 0);
    }

    /// A sync that fails: some sectors reached the platter, none will be tried again, and readers do not notice.
    pub(super) fn fail_sync(&mut self, chance: &mut dyn FnMut(usize) -> usize) {
        let len = self.durable.len() + chance(self.seen.len().saturating_sub(self.durable.len()) + 1);
        self.settle(len, chance);
    }

    /// What is left after the power was cut. `chance(n)` is below n.
    pub(super) fn cut(&mut self, chance: &mut dyn FnMut(usize) -> usize) {
        let len = self.durable.len() + chance(self.seen.len().saturating_sub(self.durable.len()) + 1);
        self.settle(len, chance);
        self.seen = self.durable.clone();
    }

    fn settle(&mut self, len: usize, chance: &mut dyn FnMut(usize) -> usize) {
        for (sector, versions) in std::mem::take(&mut self.dirty) {
            let version = chance(versions.len() + 1);
            if let Some(content) = version.checked_sub(1).and_then(|i| versions.get(i)) {
                put_sector(&mut self.durable, sector, content);
            }
        }
        self.durable.resize(len, 0);
    }

    /// Flips bits on the platter and in the cache.
    pub(super) fn corrupt(&mut self, offset: usize, mask: u8) {
        for bytes in [&mut self.seen, &mut self.durable] {
            if let Some(byte) = bytes.get_mut(offset) {
                *byte ^= mask;
            }
        }
    }

    /// Cuts the file short on the platter and in the cache.
    pub(super) fn truncate(&mut self, len: usize) {
        self.sync();
        self.seen.truncate(len);
        self.durable.truncate(len);
    }
}

fn sector_of(bytes: &[u8], sector: usize) -> Sector {
    let mut out = [0; SECTOR];
    let from = bytes.get(sector * SECTOR..).unwrap_or_default();
    let n = from.len().min(SECTOR);
    out[..n].copy_from_slice(&from[..n]);
    out
}

fn put_sector(bytes: &mut Vec<u8>, sector: usize, content: &Sector) {
    let at = sector * SECTOR;
    if bytes.len() < at + SECTOR {
        bytes.resize(at + SECTOR, 0);
    }
    bytes[at..at + SECTOR].copy_from_slice(content);
}
