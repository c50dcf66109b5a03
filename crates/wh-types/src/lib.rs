//! The words every layer shares: ids, rows and blocks, cursors, error classes, clock, backoff, stop signal, secrets.
//!
//! Nothing here does I/O and nothing here knows a vendor.

mod backoff;
mod block;
mod class;
mod clock;
mod cursor;
mod entropy;
mod failure;
pub mod frame;
mod freezer;
mod label_cap;
mod row;
mod secret;
mod stop;
mod table;
mod tenant;
mod throttle;
mod timestamp;
mod topic_key;

pub use backoff::Backoff;
pub use block::{Block, BlockId, Chain, Encoding, MAX_BLOCK_ROWS, TARGET_BLOCK_BYTES};
pub use class::{Class, Severity};
pub use clock::{Clock, Mono, SimClock, SystemClock};
pub use cursor::{Cursor, CursorError, Epoch, RowCursor};
pub use entropy::{Entropy, OsEntropy, SeededEntropy};
pub use failure::{Failure, FailureKind};
pub use freezer::Freezer;
pub use label_cap::{LabelCap, OTHER_LABEL};
pub use row::Row;
pub use secret::{Secret, SecretFileError};
pub use stop::{Stop, Tasks};
pub use table::{Table, TableError};
pub use tenant::{Tenant, TenantError};
pub use throttle::Throttle;
pub use timestamp::Timestamp;
pub use topic_key::TopicKey;
