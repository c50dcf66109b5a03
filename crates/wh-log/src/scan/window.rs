//! A buffer that moves over a file, and reads past a few unreadable pages.

use crate::disk::{DiskFile, read_most};
use std::io;

/// How much is read at once.
const STEP: usize = 1024 * 1024;
/// How much is read at once where most of what is read is skipped.
const SKIP_STEP: usize = 8 * 1024;
const PAGE: usize = 4096;
/// Beyond this many unreadable pages in a segment it is the disk that fails, not a page.
const MAX_UNREADABLE: usize = 8;

/// Gives slices of a file.
pub(super) struct Window<'a> {
    file: &'a dyn DiskFile,
    size: u64,
    buffer: Vec<u8>,
    /// Where the buffer's first byte is in the file.
    at: u64,
    /// How much of the buffer is filled.
    filled: usize,
    unreadable: usize,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a dyn DiskFile, size: u64) -> Self {
        Self { file, size, buffer: Vec::new(), at: 0, filled: 0, unreadable: 0 }
    }

    /// Bytes of the file.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The bytes at an offset; fewer where the file ends.
    pub(super) fn get(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = len.min(left);
        let inside = offset.checked_sub(self.at).and_then(|skip| usize::try_from(skip).ok());
        match inside {
            Some(skip) if skip + len <= self.filled => Ok(self.buffer.get(skip..skip + len).unwrap_or_default()),
            _ => {
                // far from what was read last: the reader skips bodies
                let skipping = inside.is_none_or(|skip| skip > self.filled + STEP / 16) && self.filled > 0;
                let step = if skipping { SKIP_STEP } else { STEP };
                self.fill(offset, step.max(len).min(left))?;
                Ok(self.buffer.get(..len).unwrap_or_default())
            }
        }
    }

    fn fill(&mut self, offset: u64, len: usize) -> io::Result<()> {
        // what the buffer has of it already is moved to the front
        let skip = offset.checked_sub(self.at).and_then(|skip| usize::try_from(skip).ok()).unwrap_or(usize::MAX);
        let kept = self.filled.saturating_sub(skip);
        if kept > 0 {
            self.buffer.copy_within(skip..self.filled, 0);
        }
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        self.at = offset;
        self.filled = 0;
        let into = self.buffer.get_mut(kept..len).unwrap_or_default();
        let offset = offset + kept as u64;
        match read_most(self.file, into, offset) {
            Ok(n) => into.get_mut(n..).unwrap_or_default().fill(0),
            Err(error) => {
                let mut at = offset;
                for page in into.chunks_mut(PAGE) {
                    match read_most(self.file, page, at) {
                        Ok(n) => page.get_mut(n..).unwrap_or_default().fill(0),
                        Err(_) if self.unreadable < MAX_UNREADABLE => {
                            self.unreadable += 1;
                            page.fill(0);
                        }
                        Err(_) => return Err(error),
                    }
                    at += page.len() as u64;
                }
            }
        }
        self.filled = len;
        Ok(())
    }
}
