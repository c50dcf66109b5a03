//! What a simulated disk holds, and what is to happen to it.

use super::inode::Inode;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

/// What unsynced writes a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survive {
    /// None of them.
    Nothing,
    /// All of them.
    Everything,
    /// Each sector by chance, and names up to a chosen operation.
    Chance,
}

/// What was done to a name.
#[derive(Clone, Debug)]
pub(super) enum NameOp {
    Set(PathBuf, Arc<Mutex<Inode>>),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

pub(super) type Names = BTreeMap<PathBuf, Arc<Mutex<Inode>>>;

pub(super) fn apply(names: &mut Names, op: NameOp) {
    match op {
        NameOp::Set(path, inode) => drop(names.insert(path, inode)),
        NameOp::Remove(path) => drop(names.remove(&path)),
        NameOp::Rename(from, to) => {
            if let Some(inode) = names.remove(&from) {
                names.insert(to, inode);
            }
        }
    }
}

/// Everything a disk is.
#[derive(Debug)]
pub(super) struct World {
    pub(super) names: Names,
    pub(super) durable_names: Names,
    /// What was done to names since the folder was synced.
    pub(super) pending: Vec<NameOp>,
    pub(super) dirs: BTreeSet<PathBuf>,
    pub(super) locks: BTreeMap<PathBuf, String>,
    /// Files opened in an earlier life are dead.
    pub(super) life: u64,
    pub(super) off: bool,
    pub(super) survive: Survive,
    pub(super) cut_in: Option<u64>,
    pub(super) failing_syncs: u64,
    pub(super) failing_writes: u64,
    pub(super) failing_dir_syncs: u64,
    pub(super) short_writes: bool,
    pub(super) capacity: Option<u64>,
    pub(super) counts: Counts,
}

/// What was done with the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that change something.
    pub operations: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Successful `sync_data` calls.
    pub syncs: u64,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            names: Names::new(),
            durable_names: Names::new(),
            pending: Vec::new(),
            dirs: BTreeSet::new(),
            locks: BTreeMap::new(),
            life: 0,
            off: false,
            survive: Survive::Chance,
            cut_in: None,
            failing_syncs: 0,
            failing_writes: 0,
            failing_dir_syncs: 0,
            short_writes: false,
            capacity: None,
            counts: Counts::default(),
        }
    }
}
