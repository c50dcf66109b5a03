//! Objects for a `JSON` column. What every version stores alike is taken; the rest is the engine's to decide.

use super::{
    Verdict, inside, text,
    walk::{Part, Parts},
};
use crate::types::{JsonKind, Type};
use std::{collections::HashSet, ops::Range};

/// Objects inside of each other that are looked at.
const DEEPEST: usize = 32;

pub(super) fn object(json: &[u8], span: &Range<usize>) -> Verdict {
    if plain(json, span, 0) { Verdict::Takes } else { Verdict::CannotTell }
}

/// Whether no key occurs twice, none has a dot or an escape, and every value is one that all versions read alike.
fn plain(json: &[u8], span: &Range<usize>, depth: usize) -> bool {
    if depth > DEEPEST {
        return false;
    }
    let mut seen = HashSet::new();
    Parts::of(json, span).all(|Part { key, value, kind }| {
        let key = key.map(|at| inside(&json[at]));
        let named = key.is_none_or(|key| !key.iter().any(|b| matches!(b, b'.' | b'\\')) && seen.insert(key));
        let text = &json[value.clone()];
        named
            && match kind {
                JsonKind::Null | JsonKind::Bool => true,
                JsonKind::Integer => text.len() <= 18,
                JsonKind::Float => text.len() <= 18 && !text.iter().any(|b| matches!(b, b'e' | b'E')),
                JsonKind::String => text::string(&Type::String, inside(text)) == Verdict::Takes,
                JsonKind::Array | JsonKind::Object => plain(json, &value, depth + 1),
            }
    })
}
