//! One request, made until it is answered or its time is over.

use super::{
    Dedupe,
    error::{self, Outcome},
    item::Attributes,
};
use crate::Kind;
use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
    operation::{delete_item::DeleteItemError, put_item::PutItemError, update_item::UpdateItemError},
    types::error::ConditionalCheckFailedException,
};
use std::{error::Error as StdError, time::Duration};
use wh_types::Mono;

/// A definite answer.
#[derive(Debug)]
pub(super) enum Answer {
    Done,
    /// The condition did not hold; the item as it is, where it was told.
    Refused(Option<Attributes>),
}

/// No definite answer.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) kind: Kind,
    /// It may have been done.
    pub(super) doubt: bool,
}

impl Failed {
    pub(super) fn into_kind(self) -> Kind {
        if self.doubt { Kind::Unknown } else { self.kind }
    }
}

/// An error that may say that a condition did not hold.
pub(super) trait Conditional: ProvideErrorMetadata + StdError + Send + Sync + 'static {
    fn condition(&self) -> Option<&ConditionalCheckFailedException>;
}

macro_rules! conditional {
    ($($error:ident),*) => {$(
        impl Conditional for $error {
            fn condition(&self) -> Option<&ConditionalCheckFailedException> {
                if let Self::ConditionalCheckFailedException(failed) = self { Some(failed) } else { None }
            }
        }
    )*};
}
conditional!(PutItemError, UpdateItemError, DeleteItemError);

impl Dedupe {
    /// Sends until there is a definite answer. Gives with it whether an attempt before may have been done.
    pub(super) async fn tries<T, E, F>(&self, deadline: Mono, send: impl Fn() -> F) -> Result<(Answer, bool), Failed>
    where
        E: Conditional,
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    {
        let clock = &self.options.clock;
        let mut failed = Failed { kind: Kind::Unavailable, doubt: false };
        // waits have half of the time at most
        let mut waits = self.options.timeout / 2;
        loop {
            let now = clock.now();
            if now >= deadline {
                return Err(failed);
            }
            match tokio::time::timeout_at(deadline.min(now + self.options.attempt), send()).await {
                Err(_) => failed.doubt = true,
                Ok(Ok(_)) => return Ok((Answer::Done, failed.doubt)),
                Ok(Err(error)) => {
                    let condition = error.as_service_error().and_then(Conditional::condition);
                    if let Some(condition) = condition {
                        return Ok((Answer::Refused(condition.item().cloned()), failed.doubt));
                    }
                    match error::of(&error) {
                        Outcome::Nothing(kind) => failed.kind = kind,
                        Outcome::Doubt => failed.doubt = true,
                        Outcome::Final(kind) => return Err(Failed { kind, ..failed }),
                    }
                }
            }
            let wait = Duration::from_millis(10) + Duration::from_millis(50).mul_f64(self.options.entropy.unit());
            let Some(left) = waits.checked_sub(wait) else { return Err(failed) };
            waits = left;
            tokio::time::sleep(wait).await;
        }
    }
}
