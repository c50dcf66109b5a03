//! A reader, and what it was shown.

use anyhow::{Context as _, Result};
use std::time::Duration;
use wh_mq::{Gap, Happening, History};
use wh_types::Cursor;

const PATIENCE: Duration = Duration::from_secs(120);

/// A reader that is waited for.
#[derive(Debug)]
pub(super) struct Watch(Box<dyn History>);

/// What a reader was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Of blocks.
    pub(super) cursors: Vec<Cursor>,
    pub(super) gaps: Vec<Gap>,
    /// How often `Live` came.
    pub(super) lives: usize,
}

impl Shown {
    /// These blocks, no gap, and once that it is live.
    pub(super) fn new(cursors: &[Cursor]) -> Self {
        Self { cursors: cursors.to_vec(), gaps: Vec::new(), lives: 1 }
    }

    pub(super) fn without_live(self) -> Self {
        Self { lives: 0, ..self }
    }

    /// Where it differs from what should be.
    pub(super) fn compared(&self, expected: &[Cursor]) -> String {
        let same = self.cursors.iter().zip(expected).take_while(|(one, other)| one == other).count();
        let (shown, wanted) = (self.cursors.get(same), expected.get(same));
        let (all, of, gaps) = (self.cursors.len(), expected.len(), &self.gaps);
        format!("{all} of {of}; the first {same} are right, then {shown:?} for {wanted:?}; gaps {gaps:?}")
    }
}

impl Watch {
    pub(super) fn new(history: Box<dyn History>) -> Self {
        Self(history)
    }

    /// What is shown next, which must come.
    pub(super) async fn next(&mut self) -> Result<Happening> {
        let next = tokio::time::timeout(PATIENCE, self.0.next()).await.context("nothing was shown")?;
        next?.context("the history ended")
    }

    async fn while_not(&mut self, done: impl Fn(&Happening) -> bool) -> Result<Shown> {
        let mut shown = Shown::default();
        loop {
            let next = self.next().await.with_context(|| {
                let (last, count) = (shown.cursors.last(), shown.cursors.len());
                format!("after {last:?}, {count} blocks, gaps {:?}", shown.gaps)
            })?;
            let done = done(&next);
            match next {
                Happening::Block(cursor, _) => shown.cursors.push(cursor),
                Happening::Gap(gap) => shown.gaps.push(gap),
                Happening::Live => shown.lives += 1,
            }
            if done {
                return Ok(shown);
            }
        }
    }

    /// Everything up to a block that must come.
    pub(super) async fn until(&mut self, last: Cursor) -> Result<Shown> {
        self.while_not(|next| matches!(next, Happening::Block(cursor, _) if *cursor == last)).await
    }

    /// Everything up to `Live`, which must come.
    pub(super) async fn live(&mut self) -> Result<Shown> {
        self.while_not(|next| *next == Happening::Live).await
    }
}
