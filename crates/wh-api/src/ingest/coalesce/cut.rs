//! From gathered rows to blocks, and back from outcomes to those who wait: what a publish call is made of.

use super::{
    Coalescer, Failure, LARGE, Outcome, Publishing,
    dedupe::{Act, Aside, Call, Claimed, Limit, SOON, busy},
    gather::{self, Open, Part},
    probe::{self, Doubt},
};
use crate::{codes, metrics::TableMeters};
use futures::future::join_all;
use std::{collections::BTreeMap, sync::Arc};
use wh_types::{Block, BlockId, Chain, Class, frame};

/// Rows under an id, before they are compressed.
pub(super) struct Cut {
    id: BlockId,
    open: Open,
    /// Where some of its rows are to be stored once.
    claimed: Option<Claimed>,
}

/// Blocks that never change any more, and who waits for them.
pub(super) struct Sealed {
    pub(super) blocks: Vec<Block>,
    cuts: Vec<Waiting>,
}

struct Waiting {
    parts: Vec<Part>,
    claimed: Option<Claimed>,
    /// Its place among the blocks; `None`: no row of it is left to publish, or it could not be compressed.
    block: Option<usize>,
}

impl Coalescer {
    /// Gives blocks their ids, and claims the rows that are to be stored once.
    pub(super) async fn cut(&self, mut taken: Vec<Open>) -> (Vec<Cut>, Option<Limit>) {
        let entropy = &*self.publishing.entropy;
        let claims = self.publishing.claims.as_ref().filter(|_| taken.iter().any(|open| !open.keyed.is_empty()));
        let Some(claims) = claims else {
            let cut = |open| Cut { id: BlockId::draw(entropy), open, claimed: None };
            return (taken.into_iter().map(cut).collect(), None);
        };
        let Self { keying, publishing, tenant, table, .. } = self;
        let claimed = Call { claims, keying, publishing, tenant, table }.claim(&mut taken).await;
        let attempt = publishing.options.publish_timeout;
        let (lease, call) = (claims.with.lease, publishing.broker.publish_budget());
        let limits = claimed.iter().filter_map(|one| Some(Limit::new(one.since?, lease, attempt, call)));
        let limit = limits.reduce(Limit::and);
        let cut = |(open, claimed): (_, Claimed)| Cut { id: claimed.id, open, claimed: Some(claimed) };
        (taken.into_iter().zip(claimed).map(cut).collect(), limit)
    }

    /// Gives blocks their bodies. From here on a block never changes.
    pub(super) async fn seal(&self, cuts: Vec<Cut>, chain: u64) -> Sealed {
        let Publishing { options, process, .. } = &*self.publishing;
        let mut sealed = Sealed { blocks: Vec::with_capacity(cuts.len()), cuts: Vec::with_capacity(cuts.len()) };
        for Cut { id, open, claimed } in cuts {
            let body = if open.rows == 0 { None } else { frame::encode(options.encoding, &open.text).ok() };
            let block = body.as_ref().map(|_| sealed.blocks.len());
            sealed.cuts.push(Waiting { parts: open.parts, claimed, block });
            let Some(body) = body else { continue };
            sealed.blocks.push(Block {
                id,
                tenant: self.tenant.clone(),
                table: self.table.clone(),
                received: open.stamp.received,
                rows: open.rows,
                decoded_bytes: u32::try_from(open.text.len()).unwrap_or(u32::MAX),
                encoding: options.encoding,
                body,
                chain: Some(Chain { process: Arc::clone(process), n: chain + 1 + sealed.blocks.len() as u64 }),
                trace: open.stamp.trace,
            });
            if open.text.len() > LARGE {
                // compressing it took as long as some hundred requests
                tokio::task::yield_now().await;
            }
        }
        sealed
    }

    /// Does what follows from each block's outcome, and tells it. Gives the chain's new end.
    pub(super) async fn conclude(
        &self,
        sealed: Sealed,
        outcomes: Vec<Outcome>,
        limit: Option<Limit>,
        chain: u64,
    ) -> u64 {
        let Sealed { blocks, mut cuts } = sealed;
        let (mut end, mut unanswered, mut rows) = (chain, 0_u32, 0);
        for (block, outcome) in blocks.iter().zip(&outcomes) {
            if let (Some(chain), Outcome::Stored(_) | Outcome::Unknown(_)) = (&block.chain, outcome) {
                end = chain.n;
            }
            self.meters.block(block, outcome);
            if let Outcome::Refused(failure) = outcome {
                self.warn(failure);
            }
            if matches!(outcome, Outcome::Unknown(_)) {
                unanswered += 1;
                rows += block.rows;
            }
        }
        if let (Some(claims), Some(limit)) = (&self.publishing.claims, limit) {
            let settle = cuts.iter_mut().filter_map(|cut| {
                let held = std::mem::take(&mut cut.claimed.as_mut()?.held);
                let act = match cut.block.map(|at| &outcomes[at]) {
                    Some(Outcome::Unknown(_)) => {
                        // put back for the probe
                        cut.claimed.as_mut()?.held = held;
                        return None;
                    }
                    Some(Outcome::Stored(_)) => Act::Commit,
                    _ => Act::Release,
                };
                (!held.is_empty()).then(|| claims.settle(&self.publishing, act, held, limit.until))
            });
            join_all(settle).await;
        }
        self.tell(&mut cuts, &outcomes);
        let mut in_doubt: Vec<_> = blocks.into_iter().map(Some).collect();
        for cut in cuts {
            let Some(at) = cut.block else { continue };
            if let (Outcome::Unknown(_), Some(block)) = (&outcomes[at], in_doubt[at].take()) {
                let held = cut.claimed.map(|claimed| claimed.held).filter(|held| !held.is_empty());
                let doubt = held.zip(self.publishing.claims.as_ref()).zip(limit);
                let doubt = doubt.map(|((held, claims), limit)| Doubt { claims: Arc::clone(claims), held, limit });
                self.probe(block, doubt);
            }
        }
        if unanswered > 0 {
            let table = &self.table;
            tracing::warn!(%table, blocks = unanswered, rows, "{unanswered} blocks of table {table} unanswered, asking for them");
        }
        end
    }

    /// Tells everybody what became of their rows.
    fn tell(&self, cuts: &mut [Waiting], outcomes: &[Outcome]) {
        let parts: Vec<Vec<Part>> = cuts.iter_mut().map(|cut| std::mem::take(&mut cut.parts)).collect();
        let cuts = &*cuts;
        for (at, (cut, parts)) in cuts.iter().zip(parts).enumerate() {
            let plain =
                cut.claimed.as_ref().is_none_or(|claimed| claimed.aside.is_empty() && claimed.unchecked.is_empty());
            if plain {
                gather::tell(parts, &of_block(cut, outcomes));
                continue;
            }
            let (mut told, mut left) = (Told::default(), 0);
            gather::tell_each(parts, |row| {
                let (outcome, aside) = of_row(cuts, outcomes, at, row);
                told.count(&outcome, aside);
                // rows that were taken out do not count in the block
                let place = left;
                left += u32::from(!aside);
                outcome.at_row(place)
            });
            told.record(&self.meters);
        }
    }

    /// Asks for a block that got no answer.
    fn probe(&self, block: Block, doubt: Option<Doubt>) {
        let publishing = Arc::clone(&self.publishing);
        let Ok(permit) = Arc::clone(&publishing.probes).try_acquire_owned() else {
            return publishing.meters.unknown_resolved("lost");
        };
        let until = publishing.clock.now() + publishing.options.probe_for;
        let tasks = publishing.tasks.clone();
        drop(tasks.spawn("probe", async move {
            probe::settle(publishing, block, until, doubt).await;
            drop(permit);
        }));
    }
}

/// What became of the rows that are in a block.
fn of_block(cut: &Waiting, outcomes: &[Outcome]) -> Outcome {
    cut.block.and_then(|at| outcomes.get(at).cloned()).unwrap_or_else(|| {
        let reason = "the block could not be compressed";
        Outcome::Refused(Failure { class: Class::Bug, code: &codes::QUEUE_FAILED, reason: reason.into() })
    })
}

/// What became of a row, by its number as it was gathered, and whether it was not in the block.
fn of_row(cuts: &[Waiting], outcomes: &[Outcome], at: usize, row: u32) -> (Outcome, bool) {
    let cut = &cuts[at];
    let Some(claimed) = &cut.claimed else { return (of_block(cut, outcomes), false) };
    if let Ok(found) = claimed.aside.binary_search_by_key(&row, |(row, _)| *row) {
        let outcome = match &claimed.aside[found].1 {
            Aside::Said(outcome) => outcome.clone(),
            Aside::As(block, first) => as_first(of_row(cuts, outcomes, *block, *first).0),
        };
        return (outcome, true);
    }
    let outcome = of_block(cut, outcomes);
    if let Outcome::Stored(place) = outcome
        && claimed.unchecked.contains(&row)
    {
        return (Outcome::Unchecked(place), false);
    }
    (outcome, false)
}

/// What becomes of a row whose id a row before it has, which fared so.
fn as_first(first: Outcome) -> Outcome {
    match first {
        Outcome::Stored(_) | Outcome::Unchecked(_) | Outcome::Duplicate | Outcome::Replayed => Outcome::Duplicate,
        // that is the other request's matter
        Outcome::Refused(failure) | Outcome::Unknown(failure)
            if failure.code == &codes::IDEMPOTENCY_MISMATCH || failure.code == &codes::IDEMPOTENCY_RUNNING =>
        {
            busy(SOON)
        }
        same @ (Outcome::Refused(_) | Outcome::Unknown(_)) => same,
    }
}

/// Rows that are not counted with their block.
#[derive(Default)]
struct Told {
    aside: BTreeMap<&'static str, u64>,
    unchecked: u64,
}

impl Told {
    fn count(&mut self, outcome: &Outcome, aside: bool) {
        if matches!(outcome, Outcome::Unchecked(_)) {
            self.unchecked += 1;
        }
        if aside {
            *self.aside.entry(outcome.name()).or_default() += 1;
        }
    }

    fn record(self, meters: &TableMeters) {
        for (outcome, rows) in self.aside {
            meters.aside(outcome, rows);
        }
        if self.unchecked > 0 {
            meters.unchecked(self.unchecked);
        }
    }
}
