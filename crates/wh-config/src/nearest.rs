//! Unknown names: what the nearest known one is.

use crate::{
    elsewhere::{ELSEWHERE, elsewhere},
    finding::Finding,
    key::{Key, variable},
    table::KEYS,
};
use std::collections::BTreeSet;

/// How like the nearest name must be to be worth naming, from 0 to 1.
const NEAR: f64 = 0.7;

/// A finding about a key of the file that nobody knows.
pub(crate) fn unknown(subject: &str, path: &str) -> Finding {
    let finding = Finding::error(subject, "is no key of ours");
    if let Some(say) = elsewhere(path) {
        return finding.hint(say);
    }
    let last = path.rsplit('.').next().unwrap_or(path);
    let mut names: BTreeSet<&str> = KEYS.iter().map(|key| key.path).collect();
    for key in KEYS {
        names.extend(key.path.match_indices('.').map(|(at, _)| &key.path[..at]));
    }
    let moved = || KEYS.iter().find(|key| key.path.rsplit('.').next() == Some(last)).map(|key| key.path);
    match nearest(path, names.iter().copied()).or_else(moved) {
        Some(name) => finding.hint(format!("did you mean {name}?")),
        None => finding,
    }
}

/// A finding about a variable that nobody knows.
pub(crate) fn unknown_variable(name: &str) -> Finding {
    let finding = Finding::error(name, "is no variable of ours");
    let upstream = ELSEWHERE.iter().find(|(path, _)| {
        name.strip_prefix(&variable(path)).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    });
    if let Some((_, say)) = upstream {
        return finding.hint(*say);
    }
    let names: Vec<String> = KEYS.iter().map(Key::variable).collect();
    match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => finding.hint(format!("did you mean {near}?")),
        None => finding,
    }
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_ascii_lowercase();
    known
        .map(|known| (strsim::normalized_damerau_levenshtein(&lower, &known.to_ascii_lowercase()), known))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}
