//! `/v1/ops/dead-letters`: looking at what was parked, trying it again, removing it (decision D5). Every request is
//! bounded in rows, bytes and time, and its answer says where to go on.

mod act;
mod edit;
mod named;
mod publish;
mod report;
mod select;
mod trial;
mod view;

pub(crate) use act::{check, purge, replay};
pub(crate) use view::{counts, list, show};

use crate::{
    codes::{self, Code},
    error::ApiError,
};

/// A failure of the queue as an answer.
fn failed(error: &wh_mq::Error) -> ApiError {
    let code = Code::by_name(error.code()).unwrap_or(&codes::QUEUE_FAILED);
    ApiError::new(code, error.to_string())
}
