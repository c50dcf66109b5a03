//! WaveHouse in one process: every role and the command line.

fn main() {}
