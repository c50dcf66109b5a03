//! Prints `docs/errors.md`, or writes it: `cargo run -p wh-api --example errors_doc -- docs/errors.md`.
#![allow(clippy::print_stdout, reason = "its output is the document")]

fn main() -> std::io::Result<()> {
    let text = wh_api::errors_markdown();
    match std::env::args_os().nth(1) {
        Some(path) => std::fs::write(path, text),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}
