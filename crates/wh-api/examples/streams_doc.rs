//! Writes the table of types and operators into `docs/guide/streams.md`: `cargo run -p wh-api --example streams_doc`.
#![allow(clippy::expect_used, reason = "the page is ours")]

fn main() -> std::io::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/streams.md");
    let page = std::fs::read_to_string(path)?;
    let (before, rest) = page.split_once("<!-- pairs -->\n").expect("the mark in front of the table");
    let (_, after) = rest.split_once("<!-- -->\n").expect("the mark behind the table");
    let table = wh_api::stream_filters_markdown();
    std::fs::write(path, format!("{before}<!-- pairs -->\n{table}<!-- -->\n{after}"))
}
