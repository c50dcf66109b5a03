//! A disk in memory that can lose power, fail a sync, be full and write less than it was asked to: all by script, all
//! by a seed. It promises exactly what [`super`] says and breaks everything else.

mod inode;
mod world;

use super::{Disk, DiskFile, Guard, Lock, Mode};
use inode::Inode;
use parking_lot::Mutex;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use wh_types::{Entropy, SeededEntropy};
pub use world::{Counts, Survive};
use world::{NameOp, World, apply};

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
    entropy: Arc<SeededEntropy>,
}

fn eio() -> io::Error {
    io::Error::other("input/output error (simulated)")
}

fn full() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "no space left on device (simulated)")
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl SimDisk {
    /// An empty disk; the seed decides everything that is left to chance.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { world: Arc::new(Mutex::new(World::new())), entropy: Arc::new(SeededEntropy::new(seed)) }
    }

    /// What the following power cuts leave.
    pub fn survive(&self, what: Survive) {
        self.world.lock().survive = what;
    }

    /// Cuts the power now: every call fails until [`SimDisk::power_on`].
    pub fn cut_power(&self) {
        self.cut(&mut self.world.lock());
    }

    /// Cuts the power during the `n`-th changing call from now (1: the next).
    pub fn cut_power_in(&self, n: u64) {
        self.world.lock().cut_in = Some(n);
    }

    /// Power is back. Files must be opened anew.
    pub fn power_on(&self) {
        let mut world = self.world.lock();
        world.off = false;
        world.cut_in = None;
    }

    /// The process died, the machine did not: locks are free, open files are dead, the page cache is as it was.
    pub fn kill_process(&self) {
        let mut world = self.world.lock();
        world.life += 1;
        world.locks.clear();
    }

    /// The next `n` syncs of files fail; what they should have made durable is lost or not, sector by sector.
    pub fn fail_syncs(&self, n: u64) {
        self.world.lock().failing_syncs = n;
    }

    /// The next `n` writes fail.
    pub fn fail_writes(&self, n: u64) {
        self.world.lock().failing_writes = n;
    }

    /// The next `n` syncs of folders fail.
    pub fn fail_dir_syncs(&self, n: u64) {
        self.world.lock().failing_dir_syncs = n;
    }

    /// Whether writes take less than they are given.
    pub fn short_writes(&self, short: bool) {
        self.world.lock().short_writes = short;
    }

    /// Bytes all files may have together. With 0 nothing is written at all, not even over what is there.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.world.lock().capacity = bytes;
    }

    /// Flips the bits of `mask` in one byte of a file.
    pub fn corrupt(&self, path: &Path, offset: u64, mask: u8) {
        if let Some(inode) = self.world.lock().names.get(path) {
            inode.lock().corrupt(usize::try_from(offset).unwrap_or(usize::MAX), mask);
        }
    }

    /// Makes a byte of a file unreadable, for good.
    pub fn make_unreadable(&self, path: &Path, offset: u64) {
        if let Some(inode) = self.world.lock().names.get(path) {
            inode.lock().unreadable.push(usize::try_from(offset).unwrap_or(usize::MAX));
        }
    }

    /// Cuts a file short.
    pub fn truncate(&self, path: &Path, len: u64) {
        if let Some(inode) = self.world.lock().names.get(path) {
            inode.lock().truncate(usize::try_from(len).unwrap_or(usize::MAX));
        }
    }

    /// Every file and its size, by name.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let world = self.world.lock();
        world.names.iter().map(|(path, inode)| (path.clone(), inode.lock().len() as u64)).collect()
    }

    /// Bytes of all files.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.files().iter().map(|(_, len)| len).sum()
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.world.lock().counts
    }

    fn below(&self, n: usize) -> usize {
        (self.entropy.next_u64() % (n.max(1) as u64)) as usize
    }

    fn cut(&self, world: &mut World) {
        let survive = world.survive;
        // some cuts leave little, some much
        let share = self.below(5);
        let mut chance = |n: usize| match survive {
            Survive::Nothing => 0,
            Survive::Everything => n - 1,
            Survive::Chance if self.below(4) < share => n - 1,
            Survive::Chance => self.below(n),
        };
        let kept = chance(world.pending.len() + 1);
        let pending = std::mem::take(&mut world.pending);
        pending.into_iter().take(kept).for_each(|op| apply(&mut world.durable_names, op));
        world.names = world.durable_names.clone();
        // in the order of names, so that the seed says it all; a file has one name
        world.names.values().for_each(|inode| inode.lock().cut(&mut chance));
        world.life += 1;
        world.locks.clear();
        world.off = true;
        world.cut_in = None;
    }

    /// Before every call.
    fn begin(&self, life: Option<u64>) -> io::Result<parking_lot::MutexGuard<'_, World>> {
        let world = self.world.lock();
        match life {
            _ if world.off => Err(io::Error::other("the power is off (simulated)")),
            Some(life) if life != world.life => Err(io::Error::other("the process is dead (simulated)")),
            Some(_) | None => Ok(world),
        }
    }

    /// After the effect of every call that changes something: the power may go before the caller hears of it.
    fn end(&self, world: &mut World) -> io::Result<()> {
        world.counts.operations += 1;
        if let Some(left) = &mut world.cut_in {
            *left -= 1;
            if *left == 0 {
                self.cut(world);
                return Err(io::Error::other("the power is off (simulated)"));
            }
        }
        Ok(())
    }

    fn name(&self, world: &mut World, op: NameOp) -> io::Result<()> {
        world.pending.push(op.clone());
        apply(&mut world.names, op);
        self.end(world)
    }
}

impl Disk for SimDisk {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.begin(None)?;
        world.dirs.insert(dir.into());
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let world = self.begin(None)?;
        if !world.dirs.contains(dir) {
            return Err(not_found());
        }
        let inside = world.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut world = self.begin(None)?;
        let inode = match (world.names.get(path), mode) {
            (Some(_), Mode::Create) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(inode), _) => Arc::clone(inode),
            (None, Mode::Create) => {
                let inode = Arc::default();
                self.name(&mut world, NameOp::Set(path.into(), Arc::clone(&inode)))?;
                inode
            }
            (None, _) => return Err(not_found()),
        };
        Ok(Arc::new(SimFile { disk: self.clone(), inode, life: world.life }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.begin(None)?;
        if !world.names.contains_key(from) {
            return Err(not_found());
        }
        self.name(&mut world, NameOp::Rename(from.into(), to.into()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.begin(None)?;
        if !world.names.contains_key(path) {
            return Err(not_found());
        }
        self.name(&mut world, NameOp::Remove(path.into()))
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let mut world = self.begin(None)?;
        if world.failing_dir_syncs > 0 {
            world.failing_dir_syncs -= 1;
            return Err(eio());
        }
        self.end(&mut world)?;
        world.pending.clear();
        world.durable_names = world.names.clone();
        Ok(())
    }

    fn lock(&self, path: &Path, owner: &str) -> io::Result<Lock> {
        let mut world = self.begin(None)?;
        if let Some(other) = world.locks.get(path) {
            return Ok(Lock::Held(other.clone()));
        }
        world.locks.insert(path.into(), owner.into());
        Ok(Lock::Taken(Guard::new(Unlock { disk: self.clone(), path: path.into(), life: world.life })))
    }
}

struct Unlock {
    disk: SimDisk,
    path: PathBuf,
    life: u64,
}

impl Drop for Unlock {
    fn drop(&mut self) {
        let mut world = self.disk.world.lock();
        if world.life == self.life {
            world.locks.remove(&self.path);
        }
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: Arc<Mutex<Inode>>,
    life: u64,
}

impl DiskFile for SimFile {
    fn size(&self) -> io::Result<u64> {
        let _world = self.disk.begin(Some(self.life))?;
        Ok(self.inode.lock().len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let _world = self.disk.begin(Some(self.life))?;
        self.inode.lock().read(into, usize::try_from(offset).unwrap_or(usize::MAX)).ok_or_else(eio)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut world = self.disk.begin(Some(self.life))?;
        if world.failing_writes > 0 {
            world.failing_writes -= 1;
            return Err(eio());
        }
        let mut n = bytes.len();
        if world.short_writes {
            n = self.disk.below(n) + 1;
        }
        if let Some(capacity) = world.capacity {
            if capacity == 0 {
                return Err(full());
            }
            let used: u64 = world.names.values().map(|inode| inode.lock().len() as u64).sum();
            let room = self.inode.lock().len() as u64 + capacity.saturating_sub(used);
            n = n.min(usize::try_from(room.saturating_sub(offset)).unwrap_or(usize::MAX));
            if n == 0 {
                return Err(full());
            }
        }
        self.inode.lock().write(&bytes[..n], usize::try_from(offset).map_err(io::Error::other)?);
        world.counts.bytes += n as u64;
        self.disk.end(&mut world)?;
        Ok(n)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut world = self.disk.begin(Some(self.life))?;
        if world.failing_syncs > 0 {
            world.failing_syncs -= 1;
            self.inode.lock().fail_sync(&mut |n| self.disk.below(n));
            return Err(eio());
        }
        self.disk.end(&mut world)?;
        self.inode.lock().sync();
        world.counts.syncs += 1;
        Ok(())
    }
}
