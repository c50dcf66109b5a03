//! The workspace's own commands: setup, quickstart, test, layers, tidy, bench.

fn main() {}
