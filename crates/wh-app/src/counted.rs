//! A number of things, in words.

use std::fmt;

/// So many of what has this name, in the singular: "1 row", "2 rows".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, name) = self;
        write!(f, "{count} {name}{}", if *count == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_none_is_not() {
        let said = [0, 1, 2].map(|count| Counted(count, "row").to_string());
        assert_eq!(said, ["0 rows", "1 row", "2 rows"]);
    }
}
