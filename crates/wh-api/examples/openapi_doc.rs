//! Prints `docs/openapi.json`, or writes it: `cargo run -p wh-api --example openapi_doc -- docs/openapi.json`.
#![allow(clippy::print_stdout, reason = "its output is the document")]

fn main() -> std::io::Result<()> {
    let text = wh_api::openapi_json();
    match std::env::args_os().nth(1) {
        Some(path) => std::fs::write(path, text),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}
