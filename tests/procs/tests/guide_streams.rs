//! The guide on streams: its commands print what it says.

use crate::guide::{blocks, page, run};
use procs::System;

#[tokio::test]
async fn the_commands_of_the_guide_on_streams_print_what_it_says() {
    // a command that has seen enough ends with the next thing that its stream says
    let system = System::with("  stream: {keepalive_interval: 1s}").await.unwrap();
    assert_eq!(run(&blocks(&page("streams.md")), &system).await, 4);
}
