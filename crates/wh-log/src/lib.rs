//! Segmented append-only log: group commit, recycled segments, footers, checkpoints.
//!
//! A [`Log`] stores [`Record`]s of any kind and stream in one sequence of files. It knows nothing of what they mean.
//!
//! * **Durable**: [`Log::append`] resolves when the records are on the disk. One thread writes, everything that is
//!   queued at once, with one write and one sync for all: the more wait, the larger the group. No timer.
//! * **Lazy**: [`Log::append_lazy`] rides on the next group and is not waited for.
//! * **Read back**: by [`Place`] ([`Log::read`]) or in order ([`Log::scan`]), verified.
//! * **Reclaimed**: an owner that needs nothing of a segment any more says so ([`Log::retire`]); its file is overwritten
//!   later. To free a segment that holds a little, append that again, then retire.
//! * **Recovered**: [`Log::open`] shows every record that was acknowledged, in order, and what is damaged. With a
//!   checkpoint ([`Log::write_checkpoint`], [`Opening`]) only what follows it.
//!
//! * **Copied** while it is open: [`copy`].
//!
//! `docs/log-format.md` has the bytes.

mod batch;
mod checkpoint;
mod committer;
mod copy;
pub mod disk;
mod error;
mod extent;
mod format;
mod frames;
mod log;
mod names;
mod opening;
mod options;
mod queue;
mod record;
mod reserve;
mod scan;
mod segments;
mod stats;
mod ticket;
mod writer;

pub use checkpoint::{Checkpoint, MAX_CHECKPOINT_BYTES};
pub use copy::{Copied, copy};
pub use error::{Error, Kind, Result};
pub use format::{
    FORMAT_VERSION,
    footer::{Footer, Span},
};
pub use log::Log;
pub use opening::{Missing, Opening, Recovered};
pub use options::Options;
pub use queue::Room;
pub use record::{Head, MAX_META_BYTES, Place, Position, Record, RecordRef, Stored};
pub use scan::{Damage, Detail};
pub use segments::SegmentInfo;
pub use stats::Stats;
pub use ticket::{Pending, Places};

#[cfg(test)]
mod tests;
