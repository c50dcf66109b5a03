//! Copying the folder of a log that is open, so that the copy is what a crash at one moment would have left.
//!
//! What the `extent` says was there is copied, and nothing that came later: files are renamed, grow and are overwritten
//! meanwhile. Where a segment was given up before it was copied, the copy begins anew. Takes no lock and changes nothing.

use crate::{
    disk::{Disk, DiskFile, Mode, read_file, read_most, write_all},
    error::{Error, Kind, Result},
    extent,
    format::{NoHeader, extent::Held, small},
    names::{self, Name},
};
use std::{io, path::Path};

const OP: &str = "copy";
/// How often a copy begins anew. Old segments are copied first, so the first try mostly is the last.
const TRIES: u32 = 20;
const CHUNK: usize = 1 << 20;
/// Most bytes of a checkpoint's file.
const CHECKPOINT_BYTES: u64 = crate::MAX_CHECKPOINT_BYTES + small::CHECKPOINT_HEADER as u64;

/// What a copy has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Segments.
    pub segments: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// Why a copy is not one of a single moment.
enum Missed {
    /// Something went or changed meanwhile: again.
    Moved(String),
    Failed(Error),
}

type Outcome<T> = std::result::Result<T, Missed>;

impl From<Error> for Missed {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Copies the log in `from`, open or not, into the folder `to`, which is made or must be empty. What was acknowledged in
/// the last moment may not be in the copy; what was before, and is not retired, is. Blocking, for as long as the disk takes.
///
/// # Errors
/// `Path` (there is no log, or `to` is not empty; the text names path and cause), `Version`, `Corrupt` (it is not known
/// which segments there should be), `Io`. What was copied until then is left there.
pub fn copy(disk: &dyn Disk, from: &Path, to: &Path) -> Result<Copied> {
    let path = |at: &Path, e: io::Error| Error::path(Kind::Path, OP, at, e);
    disk.list(from).map_err(|e| path(from, e))?;
    disk.make_dir(to).map_err(|e| path(to, e))?;
    if !disk.list(to).map_err(|e| path(to, e))?.is_empty() {
        return Err(Error::new(Kind::Path, OP, format!("{} is not empty", to.display())));
    }
    let mut moved = String::new();
    for _ in 0..TRIES {
        match (Pass { disk, from, to }).run() {
            Ok(copied) => return Ok(copied),
            Err(Missed::Failed(error)) => return Err(error),
            Err(Missed::Moved(what)) => moved = what,
        }
        for file in disk.list(to).map_err(|e| path(to, e))? {
            let file = to.join(file);
            disk.remove(&file).map_err(|e| path(&file, e))?;
        }
    }
    let text = format!("{} changes faster than it can be copied: {moved}", from.display());
    Err(Error::new(Kind::Io, OP, text))
}

/// One try.
struct Pass<'a> {
    disk: &'a dyn Disk,
    from: &'a Path,
    to: &'a Path,
}

impl Pass<'_> {
    fn run(&self) -> Outcome<Copied> {
        let log = self.identity()?;
        let checkpoint = self.small(names::CHECKPOINT, CHECKPOINT_BYTES)?;
        let Some((bytes, listed)) = extent::read_whole(self.disk, self.from, log)? else {
            let text =
                format!("{} does not say which segments it has: copy it while nobody uses it", self.from.display());
            return Err(Error::new(Kind::Corrupt, OP, text).into());
        };
        // a checkpoint that is newer than the list would speak of what is not in the copy
        if self.small(names::CHECKPOINT, CHECKPOINT_BYTES)? != checkpoint {
            return Err(Missed::Moved("its checkpoint was replaced".into()));
        }
        let known = listed.known();
        let lost = |number: &u64| listed.losses.iter().any(|loss| loss.segment == *number);
        let mut copied = Copied::default();
        let last = known.last_key_value().map(|(number, _)| *number);
        for (number, held) in &known {
            // told of as lost already, and still so
            if lost(number) && self.named(*number)?.is_none() {
                continue;
            }
            copied.bytes += self.segment(*number, *held, Some(*number) == last)?;
            copied.segments += 1;
        }
        self.write(names::EXTENT, &bytes)?;
        if let Some(checkpoint) = checkpoint {
            self.write(names::CHECKPOINT, &checkpoint)?;
        }
        self.disk.sync_dir(self.to).map_err(|e| self.failed(self.to, e))?;
        Ok(copied)
    }

    fn identity(&self) -> Outcome<u64> {
        let path = self.from.join(names::IDENTITY);
        let bytes = read_file(self.disk, &path, small::IDENTITY as u64);
        let bytes = bytes.map_err(|e| Error::path(Kind::Path, OP, &path, e))?;
        let log = match small::decode_identity(&bytes) {
            Ok((log, _)) => log,
            Err(NoHeader::Version(version)) => {
                return Err(Error::new(Kind::Version, OP, format!("{} has version {version}", path.display())).into());
            }
            Err(NoHeader::Broken) => return Err(Error::new(Kind::Corrupt, OP, path.display().to_string()).into()),
        };
        self.write(names::IDENTITY, &bytes)?;
        Ok(log)
    }

    /// A file that is replaced as a whole; `None`: there is none.
    fn small(&self, name: &str, limit: u64) -> Outcome<Option<Vec<u8>>> {
        let path = self.from.join(name);
        match read_file(self.disk, &path, limit) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.failed(&path, e).into()),
        }
    }

    /// Copies a segment: whole where it was written no more, else up to where it was durable.
    fn segment(&self, number: u64, held: Held, last: bool) -> Outcome<u64> {
        let gone = || Missed::Moved(format!("segment {number} was given up"));
        let name = self.named(number)?.ok_or_else(gone)?;
        let path = name.path(self.from);
        let file = match self.disk.open(&path, Mode::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(Missed::Moved(format!("segment {number} got another name")));
            }
            Err(e) => return Err(self.failed(&path, e).into()),
        };
        let (to, most) = match name {
            // it was written to since the list was made
            Name::Sealed(_, end) if last && end != held.end => (Name::Open(number), u64::from(held.end)),
            Name::Open(_) if last => (name, u64::from(held.end)),
            Name::Open(_) | Name::Sealed(..) | Name::Free(_) | Name::Bad(_) | Name::Temp => (name, u64::MAX),
        };
        let copied = self.bytes(&*file, &to.path(self.to), most).map_err(|e| self.failed(&path, e))?;
        // while it has its name its file is not overwritten; what was read until now was its own
        match self.named(number)? {
            Some(_) => Ok(copied),
            None => Err(gone()),
        }
    }

    /// What a segment of the log is called now.
    fn named(&self, number: u64) -> Outcome<Option<Name>> {
        let names = self.disk.list(self.from).map_err(|e| self.failed(self.from, e))?;
        let live = names.iter().filter_map(|file| Name::parse(file)).filter(|name| match name {
            Name::Open(segment) | Name::Sealed(segment, _) => *segment == number,
            Name::Free(_) | Name::Bad(_) | Name::Temp => false,
        });
        // both names can only be there if someone copied files; the one with the end says more
        Ok(live.max_by_key(|name| matches!(name, Name::Sealed(..))))
    }

    fn bytes(&self, from: &dyn DiskFile, to: &Path, most: u64) -> io::Result<u64> {
        let to = self.disk.open(to, Mode::Create)?;
        let (mut chunk, mut at) = (vec![0; CHUNK], 0_u64);
        while at < most {
            let wanted = usize::try_from(most - at).unwrap_or(CHUNK).min(CHUNK);
            let n = read_most(from, &mut chunk[..wanted], at)?;
            if n == 0 {
                break;
            }
            write_all(&*to, &chunk[..n], at)?;
            at += n as u64;
        }
        to.sync_data()?;
        Ok(at)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Outcome<()> {
        let path = self.to.join(name);
        let written = || {
            let file = self.disk.open(&path, Mode::Create)?;
            write_all(&*file, bytes, 0)?;
            file.sync_data()
        };
        written().map_err(|e| self.failed(&path, e).into())
    }

    fn failed(&self, path: &Path, error: io::Error) -> Error {
        Error::path(Kind::Io, OP, path, error)
    }
}
