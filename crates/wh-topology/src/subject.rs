//! Patterns of subjects: whether two of them can mean the same subject.

/// Whether some subject matches both patterns. `*` is one token, `>` one or more at the end.
#[must_use]
pub fn overlap(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(">"), Some(_)) | (Some(_), Some(">")) => return true,
            (Some(a), Some(b)) if a == b || a == "*" || b == "*" => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_overlap_where_one_subject_matches_both() {
        for (one, other) in [
            ("a.b", "a.b"),
            ("a.*", "*.b"),
            ("a.>", "a.b.c"),
            (">", "a"),
            ("a.>", "a.*.x"),
            ("wh.ingest.>", "wh.ingest.0.x"),
        ] {
            assert!(overlap(one, other) && overlap(other, one), "{one} {other}");
        }
        for (one, other) in [("a.b", "a.c"), ("a.>", "a"), ("a.*", "a.b.c"), ("wh.ingest.0.>", "wh.ingest.1.x")] {
            assert!(!overlap(one, other) && !overlap(other, one), "{one} {other}");
        }
    }
}
