//! The types and the edges that the differential test and `docs/guide/types.md` are made of, out of `types.txt` and
//! `values.txt`.

/// A type and what its section of the page is called.
pub(crate) struct Subject {
    pub(crate) family: &'static str,
    pub(crate) ty: &'static str,
}

/// Every type, family by family.
pub(crate) fn subjects() -> Vec<Subject> {
    let mut family = "";
    let mut out = Vec::new();
    for line in include_str!("types.txt").lines() {
        match line.strip_prefix("# ") {
            Some(name) => family = name,
            None => out.push(Subject { family, ty: line }),
        }
    }
    out
}

/// The values of one section, which stand between bars.
pub(crate) fn section(name: &str) -> Vec<&'static str> {
    let lines = include_str!("values.txt").lines().skip_while(|line| line.strip_prefix("# ") != Some(name)).skip(1);
    let values: Vec<_> =
        lines.map_while(|line| line.strip_prefix('|')).map(|line| line.strip_suffix('|').unwrap()).collect();
    assert!(!values.is_empty(), "no section {name}");
    values
}
