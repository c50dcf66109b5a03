//! The blocks that are sent: rows of 256 bytes, half of each noise, which compress about as events do.

use bytes::Bytes;
use wh_types::{Block, BlockId, Encoding, Entropy as _, OsEntropy, Table, Tenant, Timestamp};

/// Headers of a block: names, values and what stands between them.
pub(crate) const HEADER_BYTES: usize = 130;

pub(crate) fn body(rows: u32) -> Bytes {
    let mut text = String::new();
    for _ in 0..rows {
        let mut row = String::from("{\"event\":\"page_view\",\"path\":\"/docs/getting-started\",\"k\":\"");
        while row.len() < 120 {
            row += &format!("{:016x}", OsEntropy.next_u64());
        }
        while row.len() < 253 {
            row.push('a');
        }
        text += &row[..253];
        text += "\"}\n";
    }
    wh_types::frame::encode(Encoding::Zstd, text.as_bytes()).unwrap()
}

pub(crate) fn block(table: usize, rows: u32, body: &Bytes) -> Block {
    Block {
        id: BlockId::draw(&OsEntropy),
        tenant: Tenant::default(),
        table: Table::new(&format!("t{table}")).unwrap(),
        received: Timestamp::default(),
        rows,
        decoded_bytes: 256 * rows,
        encoding: Encoding::Zstd,
        body: body.clone(),
        chain: None,
        trace: None,
    }
}
