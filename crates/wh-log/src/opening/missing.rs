//! Comparing a log's segments with what is known of them.

use super::{OP, Opening, Recovered};
use crate::{
    error::{Error, Kind, Result},
    format::extent::{Held, Loss},
    record::Place,
    segments::{FIRST, Segment},
};
use std::collections::BTreeMap;
use wh_types::Timestamp;

/// A stretch of a segment that was durable once and is not there any more: its file is gone, or shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The segment's number, and which bytes of it.
    pub place: Place,
    /// The segment's file is gone.
    pub whole: bool,
    /// No record of the segment had a higher sequence.
    pub last_sequence: u64,
    /// When it was first noticed.
    pub noticed: Timestamp,
}

impl Missing {
    fn of(loss: &Loss) -> Self {
        let len = loss.to.saturating_sub(loss.from);
        Self {
            place: Place { segment: loss.segment, offset: loss.from, len },
            whole: loss.from == FIRST,
            last_sequence: loss.top,
            noticed: loss.noticed,
        }
    }
}

impl Opening {
    fn loss(&self, segment: u64, from: u32, held: Held) -> Loss {
        let (noticed, until) = (self.segments.options.clock.wall(), self.next_segment);
        Loss { segment, from, to: held.end, top: held.top, noticed, until }
    }

    /// Segments that were there and are not.
    pub(super) fn missing(&self, known: &BTreeMap<u64, Held>) -> Vec<Loss> {
        let gone = known.iter().filter(|(number, _)| self.segments.get(**number).is_none());
        gone.map(|(number, held)| self.loss(*number, FIRST, *held)).collect()
    }

    /// What is missing at the end of a segment.
    pub(super) fn cut_short(&self, segment: &Segment, held: Held, end: u32) -> Result<Option<Loss>> {
        let size = self.segments.file(segment, OP)?.size();
        let size = size.map_err(|e| Error::new(Kind::Io, OP, format!("segment {}: {e}", segment.number)))?;
        let held = Held { end: held.end.max(if segment.sealed() { end } else { 0 }), ..held };
        let from = u32::try_from(size).unwrap_or(u32::MAX).max(FIRST).min(end);
        Ok((from < held.end).then(|| self.loss(segment.number, from, Held { top: segment.top(), ..held })))
    }

    /// Reports what is missing, and writes down which segments there are.
    pub(super) fn note(&self, losses: Vec<Loss>, recovered: &mut Recovered) -> Result<()> {
        let (mark, mut told) = self.extent.as_ref().map(|e| (e.mark, e.losses.clone())).unwrap_or_default();
        for loss in losses {
            // noticed before, and still so
            let before = |old: &Loss| (old.segment, old.from, old.to) == (loss.segment, loss.from, loss.to);
            if !told.iter().any(before) {
                told.push(loss);
            }
        }
        recovered.missing = told.iter().map(Missing::of).collect();
        self.segments.extent.adopt(mark, told);
        match self.segments.write_extent() {
            // a full disk is served from; what is missing is found again the next time
            Err(error) if error.kind() == Kind::NoSpace => {
                tracing::warn!(%error, "the list of segments could not be written");
                self.segments.extent.keep(&*self.segments.options.disk, &self.segments.options.dir);
                Ok(())
            }
            written => written,
        }
    }
}
