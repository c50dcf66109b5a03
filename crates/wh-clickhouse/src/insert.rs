//! One insert of rows that are already compressed. Neither retried nor split here.

use bytes::Bytes;
use wh_types::{Encoding, Table};

/// Rows of one table, as the queue delivered them.
#[derive(Clone, Copy, Debug)]
pub struct Insert<'a> {
    /// Where they go, in the client's database.
    pub table: &'a Table,
    /// The columns that the rows may name; `None` is every insertable column of the table.
    pub columns: Option<&'a [String]>,
    /// How every one of `frames` is compressed.
    pub encoding: Encoding,
    /// NDJSON in compressed frames, sent end to end as they are.
    pub frames: &'a [Bytes],
    /// Rows in all frames together. The insert is one block for ClickHouse only if this is not too small.
    pub rows: u64,
    /// The deduplication token: the same token stores the same rows once in a table that has a deduplication window.
    pub token: Option<&'a str>,
    /// Further settings. They come after the pinned ones and win over them.
    pub settings: &'a [(String, String)],
}

/// What ClickHouse said of an insert that went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// ClickHouse's id of the insert, for its logs.
    pub query_id: Option<String>,
    /// Rows written, views included; 0 where ClickHouse knew the token. `None` where a proxy dropped the header.
    pub written_rows: Option<u64>,
}
