//! The owner's state as of a position, replaced as a whole.

use crate::{
    disk::{Disk, read_file, replace_file},
    error::{Error, Kind, Result},
    format::{
        NoHeader,
        small::{CHECKPOINT_HEADER, checkpoint_header, decode_checkpoint},
    },
    names,
    record::Position,
};
use bytes::Bytes;
use std::{io, path::Path};

/// Most bytes of a checkpoint.
pub const MAX_CHECKPOINT_BYTES: u64 = 4 << 30;

/// The owner's state, and the position in the log it stands for: it has the effect of every record before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// What follows is to be replayed from here.
    pub position: Position,
    /// What the owner wrote.
    pub content: Bytes,
}

pub(crate) fn write(disk: &dyn Disk, dir: &Path, log: u64, position: Position, content: &[&[u8]]) -> Result<()> {
    const OP: &str = "write checkpoint";
    let len: u64 = content.iter().map(|part| part.len() as u64).sum();
    if len > MAX_CHECKPOINT_BYTES {
        let text = format!("it has {len} bytes, at most {MAX_CHECKPOINT_BYTES} can be");
        return Err(Error::new(Kind::Invalid, OP, text));
    }
    let header = checkpoint_header(log, position, content);
    let mut parts: Vec<&[u8]> = Vec::with_capacity(content.len() + 1);
    parts.push(&header);
    parts.extend_from_slice(content);
    let path = dir.join(names::CHECKPOINT);
    replace_file(disk, &path, &parts).map_err(|e| Error::path(Kind::Io, OP, &path, e))
}

/// `Ok(None)`: there is none. `Corrupt`: there is one that cannot be read.
pub(crate) fn read(disk: &dyn Disk, dir: &Path, log: u64) -> Result<Option<Checkpoint>> {
    const OP: &str = "read checkpoint";
    let path = dir.join(names::CHECKPOINT);
    let bytes = match read_file(disk, &path, MAX_CHECKPOINT_BYTES + CHECKPOINT_HEADER as u64) {
        Ok(bytes) => Bytes::from(bytes),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::path(Kind::Io, OP, &path, e)),
    };
    match decode_checkpoint(&bytes) {
        Ok((of, position, content)) if of == log => {
            Ok(Some(Checkpoint { position, content: bytes.slice_ref(content) }))
        }
        Ok((of, ..)) => {
            let text = format!("{} is of log {of:016x}, this is {log:016x}", path.display());
            Err(Error::new(Kind::Invalid, OP, text))
        }
        Err(NoHeader::Version(version)) => {
            let text = format!("{} has format version {version}, this reads {}", path.display(), crate::FORMAT_VERSION);
            Err(Error::new(Kind::Version, OP, text))
        }
        Err(NoHeader::Broken) => Err(Error::new(Kind::Corrupt, OP, path.display().to_string())),
    }
}
