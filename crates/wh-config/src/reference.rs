//! The reference of all keys, written from the table: `docs/guide/configuration.md`.

use crate::{
    key::{Default, Key},
    table::KEYS,
};

const HEAD: &str = include_str!("reference_head.md");
const COLUMNS: &str = "| Key | Variable | Takes | Default | Meaning |\n|---|---|---|---|---|";

/// The whole page, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    let mut section = None;
    for key in KEYS {
        let of = key.path.rsplit_once('.').map_or("", |(section, _)| section);
        if section != Some(of) {
            section = Some(of);
            let title = if of.is_empty() { "The process".to_owned() } else { format!("`{of}`") };
            page.push_str(&format!("\n### {title}\n\n{COLUMNS}\n"));
        }
        page.push_str(&row(key));
    }
    page
}

fn row(key: &Key) -> String {
    let default = match key.default {
        Default::Is("") => "empty".to_owned(),
        Default::From(words) => words.to_owned(),
        plain @ (Default::Is(_) | Default::Number(_) | Default::Span(_)) => {
            format!("`{}`", plain.text().unwrap_or_default())
        }
    };
    let (path, variable, takes, meaning) = (key.path, key.variable(), key.kind.describe(), key.meaning);
    format!("| `{path}` | `{variable}` | {takes} | {default} | {meaning} |\n")
}
