//! Publishing: blocks pipelined in order per table, an ack per block, retried under the same id within a budget of time.
//!
//! No message here carries an expectation (`Nats-Expected-*`): republish copies headers, and the history would refuse
//! the block. The ack's stream is compared instead.

mod drive;
mod lane;
mod meters;

pub(crate) use drive::{Message, Publish, drive};
pub(crate) use lane::{Answer, Place};

use super::{envelope, shared::Shared};
use crate::{Error, Kind, Receipt, Result};
use std::collections::BTreeMap;
use wh_types::{Block, MAX_BLOCK_ROWS};

/// What a message's headers may take of the server's largest message.
const HEADERS: usize = 8 * 1024;

/// Stores blocks, one outcome each, in the order given.
pub(crate) async fn blocks(shared: &Shared, blocks: &[Block]) -> Vec<Result<Receipt>> {
    const OP: &str = "publish";
    let max_body = max_body(shared);
    let mut outcomes: Vec<Option<Result<Receipt>>> = Vec::with_capacity(blocks.len());
    let mut lanes: BTreeMap<(u32, String), Vec<usize>> = BTreeMap::new();
    for (index, block) in blocks.iter().enumerate() {
        let bad = check(block, max_body).err();
        if bad.is_none() {
            let route = shared.route(&block.tenant, &block.table);
            let subject = shared.names().ingest_subject(route, &Shared::key(&block.tenant, &block.table));
            lanes.entry((route.partition, subject)).or_default().push(index);
        }
        outcomes.push(bad.map(|kind| Err(Error::new(OP, kind))));
    }
    let lanes = lanes.into_iter().map(|((partition, subject), indices)| async move {
        let message = |index: &usize| Message {
            subject: subject.clone(),
            headers: envelope::headers(&blocks[*index]),
            body: blocks[*index].body.clone(),
        };
        let partition = &shared.partitions[partition as usize];
        let places = drive::drive(shared, OP, &partition.stream, indices.iter().map(message).collect()).await;
        let receipt = |block: &Block, place: Place| {
            let at = partition.cursor(place.sequence);
            match place {
                // the duplicate of an empty block proves rows only where it cannot be that block itself (decision D4)
                Place { duplicate: true, perhaps_own: true, .. } if block.rows == 0 => {
                    Err(Error::new(OP, Kind::Unknown))
                }
                Place { duplicate: true, .. } => Ok(Receipt::Duplicate(at)),
                Place { duplicate: false, .. } => Ok(Receipt::Stored(at)),
            }
        };
        let outcomes = indices.into_iter().zip(places);
        let outcomes = outcomes.map(|(index, place)| (index, place.and_then(|place| receipt(&blocks[index], place))));
        outcomes.collect::<Vec<_>>()
    });
    for (index, outcome) in futures::future::join_all(lanes).await.into_iter().flatten() {
        outcomes[index] = Some(outcome);
    }
    let lost = || Err(Error::new(OP, Kind::Bug("a block has no outcome".into())));
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(lost)).collect()
}

/// The largest body of a block that the server takes.
pub(crate) fn max_body(shared: &Shared) -> usize {
    shared.connection.max_payload().saturating_sub(HEADERS)
}

fn check(block: &Block, max_body: usize) -> std::result::Result<(), Kind> {
    let bad = |text: String| Err(Kind::BadBlock(text.into()));
    let Block { rows, body, .. } = block;
    if *rows > MAX_BLOCK_ROWS {
        return bad(format!("it has {rows} rows, at most {MAX_BLOCK_ROWS} are allowed"));
    }
    if body.len() > max_body {
        return bad(format!("its body has {} bytes, at most {max_body} are allowed", body.len()));
    }
    if (*rows == 0) != body.is_empty() {
        return bad(format!("it has {rows} rows and a body of {} bytes", body.len()));
    }
    let texts = [block.chain.as_ref().map(|chain| &chain.process), block.trace.as_ref()];
    for text in texts.into_iter().flatten() {
        if text.len() > envelope::MAX_TEXT || text.contains(char::is_control) {
            let (len, most) = (text.len(), envelope::MAX_TEXT);
            return bad(format!("its chain or trace has {len} bytes or controls; at most {most} and none are allowed"));
        }
    }
    Ok(())
}
