//! Where a table lives: placement over partitions and shards, pure.
