//! Where a command finds its configuration, and for which program it is read.

use std::path::Path;
use wh_config::{Environment, Findings, Loaded, Program, load_for};

/// Where the configuration is, and for whom.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// The program, where its roles are fixed.
    pub(crate) program: Option<Program>,
    /// The file that the command line names.
    pub(crate) file: Option<&'a Path>,
    /// The variables.
    pub(crate) environment: &'a Environment,
}

impl Place<'_> {
    /// Reads it.
    pub(crate) fn load(&self) -> Result<Loaded, Findings> {
        load_for(self.program, self.file, self.environment)
    }
}
