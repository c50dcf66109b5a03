//! Which program this is. Filled in by the binary, whose build script knows the commit.

use std::fmt;

/// Name, version and commit of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The binary's name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The git commit it was built from, or `unknown`.
    pub commit: &'static str,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.name, self.version, self.commit)
    }
}
