//! What is in a log's folder before anything of it is read: names, the identity, who has the lock.

use super::OP;
use crate::{
    disk::{Disk, Mode, read_file, read_most, replace_file},
    error::{Error, Kind, Result},
    format::{FORMAT_VERSION, NoHeader, SEGMENT_HEADER, SegmentHeader, small},
    names::{self, Name},
    options::Options,
};
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::Path,
};

pub(super) fn unreadable(path: &Path, version: u32) -> Error {
    let text = format!("{} has format version {version}, this reads {FORMAT_VERSION}", path.display());
    Error::new(Kind::Version, OP, text)
}

/// Who we are, for the one who finds the folder locked.
pub(super) fn owner(options: &Options) -> String {
    let host = rustix::system::uname();
    let (pid, host) = (std::process::id(), host.nodename().to_string_lossy());
    format!("process {pid} on {host} since {}", options.clock.wall())
}

/// What is in the folder.
pub(super) struct Listing {
    pub(super) live: BTreeMap<u64, Name>,
    pub(super) free: Vec<u64>,
    pub(super) bad: VecDeque<u64>,
    pub(super) highest: u64,
}

impl Listing {
    pub(super) fn read(disk: &dyn Disk, dir: &Path) -> Result<Self> {
        let mut listing = Self { live: BTreeMap::new(), free: Vec::new(), bad: VecDeque::new(), highest: 0 };
        let names = disk.list(dir).map_err(|e| Error::path(Kind::Path, OP, dir, e))?;
        for file in names {
            let Some(name) = Name::parse(&file) else { continue };
            listing.highest = listing.highest.max(name.segment().unwrap_or(0));
            match name {
                Name::Sealed(number, _) => {
                    listing.live.insert(number, name);
                }
                // both names can only be there if someone copied files; the one with the end says more
                Name::Open(number) => {
                    listing.live.entry(number).or_insert(name);
                }
                Name::Free(number) => listing.free.push(number),
                Name::Bad(number) => listing.bad.push_back(number),
                Name::Temp => {
                    let path = dir.join(&file);
                    disk.remove(&path).map_err(|e| Error::path(Kind::Path, OP, &path, e))?;
                }
            }
        }
        listing.free.sort_unstable();
        listing.bad.make_contiguous().sort_unstable();
        Ok(listing)
    }
}

/// The log's id: from its file, or from a segment where that is lost, or drawn for a new log.
pub(super) fn identity(options: &Options, listing: &Listing) -> Result<(u64, bool)> {
    let (disk, dir) = (&*options.disk, &options.dir);
    let path = dir.join(names::IDENTITY);
    match read_file(disk, &path, small::IDENTITY as u64).map(|bytes| small::decode_identity(&bytes)) {
        Ok(Ok((log, _))) => return Ok((log, false)),
        Ok(Err(NoHeader::Version(version))) => return Err(unreadable(&path, version)),
        Ok(Err(NoHeader::Broken)) => {}
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {}
        Err(e) => return Err(Error::path(Kind::Path, OP, &path, e)),
    }
    let from_segment = listing.live.values().find_map(|name| {
        let file = disk.open(&name.path(dir), Mode::Read).ok()?;
        let mut bytes = [0; SEGMENT_HEADER as usize];
        read_most(&*file, &mut bytes, 0).ok()?;
        SegmentHeader::decode(&bytes).ok().filter(|header| Some(header.number) == name.segment())
    });
    let (log, created) = match from_segment {
        Some(header) => {
            tracing::warn!(path = %path.display(), "the log's identity was lost, it is taken from a segment");
            (header.log, false)
        }
        None => (options.entropy.next_u64(), true),
    };
    let bytes = small::encode_identity(log, options.clock.wall());
    replace_file(disk, &path, &[&bytes]).map_err(|e| Error::path(Kind::Path, OP, &path, e))?;
    Ok((log, created))
}
