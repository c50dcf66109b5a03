//! Quoting of identifiers. Values are never quoted here: they travel as typed parameters.

/// An identifier in backticks, as ClickHouse reads it back: `` ` `` and `\` escaped, everything else as it is.
#[must_use]
pub fn quoted(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('`');
    for c in name.chars() {
        if matches!(c, '`' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('`');
    out
}

/// Identifiers in backticks, with commas between them.
#[must_use]
pub fn quoted_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}
