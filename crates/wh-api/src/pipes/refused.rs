//! Why a pipe is not run: a code, and a text that names the parameter and the reason.

use crate::{codes::Code, error::ApiError};

/// Why a pipe is not run.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) code: &'static Code,
    pub(super) text: String,
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        Self::new(refused.code, refused.text)
    }
}
