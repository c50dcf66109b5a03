//! The folder: sled's files, and the fdatasync that sled leaves out.
//!
//! sled 0.34 ends a flush with `sync_file_range`, which on Linux promises nothing after a power cut. So every flush is
//! followed by an fdatasync of its data file, and nothing is answered before.

use super::{Options, error};
use crate::{Kind, Result};
use ::sled::{Batch, Db, Mode, Tree};
use std::{
    fs::{self, File},
    path::Path,
    time::Duration,
};

/// How long a folder is waited for that somebody has.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Disk {
    db: Db,
    data: File,
    pub(super) claims: Tree,
    pub(super) known: Tree,
}

impl Disk {
    /// Blocking.
    pub(super) fn open(options: &Options) -> Result<Self> {
        const OP: &str = "open";
        let dir = &options.dir;
        fs::create_dir_all(dir).map_err(|e| error::io(OP, e))?;
        let config = ::sled::Config::new().path(dir).cache_capacity(options.cache_bytes).mode(Mode::HighThroughput);
        // it is flushed when something is to be answered
        let db = open(&config.flush_every_ms(None), options)?;
        let claims = db.open_tree("claims").map_err(|e| error::of(OP, e))?;
        let known = db.open_tree("known").map_err(|e| error::of(OP, e))?;
        let data = File::open(dir.join("db")).map_err(|e| error::io(OP, e))?;
        let disk = Self { db, data, claims, known };
        disk.flush(OP)?;
        sync_all(dir).map_err(|e| error::io(OP, e))?;
        Ok(disk)
    }

    pub(super) fn apply(tree: &Tree, batch: Batch, op: &'static str) -> Result<()> {
        tree.apply_batch(batch).map_err(|e| error::of(op, e))
    }

    /// Makes everything that was applied durable.
    pub(super) fn flush(&self, op: &'static str) -> Result<()> {
        self.db.flush().map_err(|e| error::of(op, e))?;
        self.data.sync_data().map_err(|e| error::io(op, e))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.db.size_on_disk().unwrap_or(0)
    }
}

/// sled lets its folder go a moment after it was dropped, once none of its threads can look at it any more.
fn open(config: &::sled::Config, options: &Options) -> Result<Db> {
    let patience = options.clock.now() + PATIENCE;
    loop {
        match config.open().map_err(|e| error::of("open", e)) {
            Err(held) if matches!(held.kind(), Kind::Held(_)) && options.clock.now() < patience => {
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => return opened,
        }
    }
}

/// Every file of the folder, its names, and its own name.
fn sync_all(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        File::open(entry?.path())?.sync_all()?;
    }
    File::open(dir)?.sync_all()?;
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(above)?.sync_all()
}
