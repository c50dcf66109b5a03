//! Queue in, ClickHouse out: table batchers on a feed.
