//! Prints `docs/guide/types.md`, or writes it: `cargo run -p wh-api --example types_doc -- docs/guide/types.md`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "its output is the document; what it reads is ours")]

#[path = "../tests/api/differential/data.rs"]
mod data;
#[path = "../tests/api/differential/generate.rs"]
mod generate;
#[path = "../tests/api/differential/page.rs"]
mod page;

fn main() -> std::io::Result<()> {
    let text = page::markdown();
    match std::env::args_os().nth(1) {
        Some(path) => std::fs::write(path, text),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}
