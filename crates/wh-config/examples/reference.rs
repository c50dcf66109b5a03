//! Prints the reference of all configuration keys, for `docs/guide/configuration.md`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(wh_config::reference().as_bytes())
}
