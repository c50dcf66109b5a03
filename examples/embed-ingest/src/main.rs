//! A service of one's own that embeds wh-ingest without wh-api.

fn main() {}
