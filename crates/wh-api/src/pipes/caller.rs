//! Who calls, and which pipe is meant. A pipe that is not there and one that the caller may not run are the same
//! (decision D23).

use super::pipe::{ADMIN, Pipe};
use crate::{
    app::App,
    auth::Asker,
    codes,
    error::{ApiError, shown},
    served::TenantState,
};
use http::HeaderMap;
use std::sync::Arc;

/// Who calls.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) tenant: Arc<TenantState>,
    pub(super) role: String,
}

impl Caller {
    /// Of a request.
    ///
    /// # Errors
    /// No tenant of ours, a bad credential, or no role at all.
    pub(super) fn of(app: &App, headers: &HeaderMap) -> Result<Self, ApiError> {
        let tenant = app.served.of_headers(headers)?;
        let role = match app.key.asker(headers, &app.meters)? {
            Asker::Operator => Some(ADMIN),
            Asker::Nobody => tenant.runtime.default_role.as_deref(),
        };
        let role = role.ok_or_else(|| {
            let text = "a pipe is run under a role, and this request has none: it presents no credential, and \
                tenant_defaults.default_role is not set";
            ApiError::new(&codes::AUTH_REQUIRED, text)
        })?;
        Ok(Self { tenant: Arc::clone(tenant), role: role.to_owned() })
    }

    /// A pipe that the caller may run.
    pub(super) fn pipe(&self, name: &str) -> Result<Arc<Pipe>, ApiError> {
        let set = self.tenant.runtime.pipes.load();
        let pipe = set.get(name).filter(|pipe| pipe.allows(&self.role));
        pipe.map(Arc::clone).ok_or_else(|| missing(name))
    }
}

/// The answer where there is no such pipe.
pub(super) fn missing(name: &str) -> ApiError {
    ApiError::new(&codes::PIPE_NOT_FOUND, format!("unknown pipe: {}", shown(name.as_bytes())))
}
