//! Publishing: blocks pipelined in order per table, an ack per block, retried under the same id within a budget of time.
//!
//! No message here carries an expectation (`Nats-Expected-*`): republish copies headers, and the history would refuse
//! the block. The ack's stream is compared instead.

mod drive;
mod lane;
mod meters;

pub(crate) use drive::{Message, Outgoing, Publish, drive};
pub(crate) use lane::{Answer, Place};

use super::{
    envelope,
    shared::{PartitionStream, Shared},
};
use crate::{Error, Kind, Receipt, Result};
use bytes::Bytes;
use std::collections::HashMap;
use wh_nats::Headers;
use wh_types::{Block, MAX_BLOCK_ROWS, Table, Tenant};

const OP: &str = "publish";

/// What a message's headers may take of the server's largest message.
const HEADERS: usize = 8 * 1024;

/// The blocks of one table in one call.
struct TableLane<'a> {
    partition: &'a PartitionStream,
    subject: String,
    table: (&'a Tenant, &'a Table),
    /// Which of the call's blocks they are.
    indices: Vec<usize>,
}

/// A block on its way to its table's subject.
struct Sent<'a> {
    subject: &'a str,
    block: &'a Block,
}

impl Outgoing for Sent<'_> {
    fn subject(&self) -> &str {
        self.subject
    }

    fn headers(&self) -> Headers {
        envelope::headers(self.block)
    }

    fn body(&self) -> &Bytes {
        &self.block.body
    }
}

/// Stores blocks, one outcome each, in the order given.
pub(crate) async fn blocks(shared: &Shared, blocks: &[Block]) -> Vec<Result<Receipt>> {
    let max_body = max_body(shared);
    if let [block] = blocks {
        return vec![alone(shared, block, max_body).await];
    }
    let mut outcomes: Vec<Option<Result<Receipt>>> = Vec::with_capacity(blocks.len());
    let mut lanes: Vec<TableLane<'_>> = Vec::new();
    let mut known: HashMap<(&Tenant, &Table), usize> = HashMap::new();
    for (index, block) in blocks.iter().enumerate() {
        let bad = check(block, max_body).err();
        if bad.is_none() {
            let table = (&block.tenant, &block.table);
            // mostly a call is of one table
            let at = match lanes.first() {
                Some(first) if first.table == table => 0,
                Some(_) => known.get(&table).copied().unwrap_or(lanes.len()),
                None => 0,
            };
            if at == lanes.len() {
                let route = shared.route(table.0, table.1);
                let subject = shared.names().ingest_subject(route, &Shared::key(table.0, table.1));
                let partition = &shared.partitions[route.partition as usize];
                let indices = if at == 0 { Vec::with_capacity(blocks.len()) } else { Vec::new() };
                lanes.push(TableLane { partition, subject, table, indices });
                if at > 0 {
                    known.insert(table, at);
                }
            }
            lanes[at].indices.push(index);
        }
        outcomes.push(bad.map(|kind| Err(Error::new(OP, kind))));
    }
    let driven = match &mut *lanes {
        [only] => vec![only.drive(shared, blocks).await],
        lanes => futures::future::join_all(lanes.iter().map(|lane| lane.drive(shared, blocks))).await,
    };
    for (lane, receipts) in lanes.iter().zip(driven) {
        for (index, receipt) in lane.indices.iter().zip(receipts) {
            outcomes[*index] = Some(receipt);
        }
    }
    let lost = || Err(Error::new(OP, Kind::Bug("a block has no outcome".into())));
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(lost)).collect()
}

/// Stores one block, which has no others to be in order with.
async fn alone(shared: &Shared, block: &Block, max_body: usize) -> Result<Receipt> {
    check(block, max_body).map_err(|kind| Error::new(OP, kind))?;
    let route = shared.route(&block.tenant, &block.table);
    let subject = shared.names().ingest_subject(route, &Shared::key(&block.tenant, &block.table));
    let partition = &shared.partitions[route.partition as usize];
    let place = drive::drive_one(shared, OP, &partition.stream, Sent { subject: &subject, block }).await?;
    receipt(partition, block, place)
}

fn receipt(partition: &PartitionStream, block: &Block, place: Place) -> Result<Receipt> {
    let at = partition.cursor(place.sequence);
    match place {
        // the duplicate of an empty block proves rows only where it cannot be that block itself (decision D4)
        Place { duplicate: true, perhaps_own: true, .. } if block.rows == 0 => Err(Error::new(OP, Kind::Unknown)),
        Place { duplicate: true, .. } => Ok(Receipt::Duplicate(at)),
        Place { duplicate: false, .. } => Ok(Receipt::Stored(at)),
    }
}

impl TableLane<'_> {
    async fn drive(&self, shared: &Shared, blocks: &[Block]) -> Vec<Result<Receipt>> {
        let own = self.indices.iter().map(|index| &blocks[*index]);
        let sent = own.clone().map(|block| Sent { subject: &self.subject, block }).collect();
        let places = drive::drive(shared, OP, &self.partition.stream, sent).await;
        own.zip(places).map(|(block, place)| place.and_then(|place| receipt(self.partition, block, place))).collect()
    }
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
