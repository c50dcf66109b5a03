//! Rows that are to be stored once (decision D31): claimed when their block is cut, committed when it is stored.
//!
//! `decide` judges, `call` claims the blocks of one publish call (`reserve` one of them), `contest` settles which of two
//! requests with one key goes on, `lapsed` asks the queue for blocks whose claimants vanished, `settle` commits and
//! releases. Nothing here publishes rows.

mod call;
mod contest;
mod decide;
mod lapsed;
mod limit;
mod once;
mod reserve;
mod settle;

pub(crate) use call::{Aside, Call, Claimed};
pub(crate) use limit::Limit;
pub(crate) use once::Once;
pub(crate) use settle::{Act, Held};

use super::{Failure, Outcome};
use crate::{
    codes,
    dedupe::{DedupeStore, IdRule},
    probes::Health,
};
use parking_lot::Mutex;
use std::time::Duration;
use wh_dedupe::{Retention, Scope};
use wh_types::{Class, Table, Tenant};

/// What a claim of somebody else has that may be free in a moment.
pub(super) const SOON: Duration = Duration::from_secs(1);

/// The store of keys, as every coalescer of the process uses it.
#[derive(Debug)]
pub(crate) struct Claims {
    pub(crate) with: DedupeStore,
    /// Why the last reservation failed, if it did.
    ailing: Mutex<Option<String>>,
}

/// How rows of one table are named.
#[derive(Debug)]
pub(crate) struct Keying {
    scope: Scope,
    /// How long an id is known, where ids tell rows apart.
    retention: Option<Retention>,
}

impl Keying {
    pub(crate) fn new(tenant: &Tenant, table: &Table, rule: Option<&IdRule>) -> Self {
        Self { scope: Scope::new(tenant, table), retention: rule.map(|rule| rule.retention) }
    }
}

impl Claims {
    pub(crate) fn new(with: DedupeStore) -> Self {
        Self { with, ailing: Mutex::new(None) }
    }

    /// How the store does, as far as requests have told.
    pub(crate) fn health(&self) -> Health {
        self.ailing.lock().clone().map_or(Health::Good, Health::Degraded)
    }

    fn fared(&self, error: Option<&wh_dedupe::Error>) {
        let mut ailing = self.ailing.lock();
        if error.is_some() || ailing.is_some() {
            *ailing = error.map(ToString::to_string);
        }
    }
}

/// Why rows were not published: the store could not be asked.
fn away(error: &wh_dedupe::Error) -> Failure {
    let class = error.class();
    let code = if class.retryable() { &codes::DEDUPE_UNAVAILABLE } else { &codes::DEDUPE_FAILED };
    // a bound of ours that is broken is no fault of the record
    let class = if class == Class::Invalid { Class::Bug } else { class };
    Failure { class, code, reason: format!("events cannot be told apart: {}", error.kind()).into() }
}

/// The id is somebody else's just now.
pub(super) fn busy(retry_after: Duration) -> Outcome {
    Outcome::Unknown(Failure {
        class: Class::Exhausted { retry_after },
        code: &codes::DEDUPE_BUSY,
        reason: "a record with this id is being stored".into(),
    })
}

/// Claiming took so long that nothing may be published under the claims any more.
pub(super) fn too_late() -> Failure {
    Failure {
        class: Class::Unavailable,
        code: &codes::DEDUPE_UNAVAILABLE,
        reason: "telling events apart took too long".into(),
    }
}
