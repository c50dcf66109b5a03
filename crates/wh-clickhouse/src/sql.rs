//! Quoting of names and the wire form of parameter values. Values never become part of a statement's text.

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

/// The wire form of a value for a parameter of a scalar type (`{x:String}`, `{x:Nullable(Int32)}`, ...): ClickHouse
/// reads it as a field of a tab-separated line.
#[must_use]
pub fn scalar(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            other => out.push(other),
        }
    }
    out
}

/// The wire form of NULL for a parameter of a `Nullable` type.
pub const NULL: &str = "\\N";

/// The wire form of a value for a parameter of type `Array(String)`, or of an array of anything that is written as a
/// string (dates, UUIDs).
#[must_use]
pub fn string_array<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = |value: &str| format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"));
    format!("[{}]", values.into_iter().map(quoted).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_escaped_for_where_they_go() {
        assert_eq!(quoted_list(["a", "b`c", "d\\e", "é f"]), r"`a`, `b\`c`, `d\\e`, `é f`");
        assert_eq!(scalar("a\tb\nc\\d'e\r"), r"a\tb\nc\\d'e\r");
        assert_eq!(string_array(["a", "it's", "c\\d"]), r"['a','it\'s','c\\d']");
        assert_eq!(string_array([]), "[]");
    }
}
