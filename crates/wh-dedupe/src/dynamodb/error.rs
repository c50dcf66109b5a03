//! What DynamoDB and the way to it answer, as the store's errors. The one file that knows both.

use crate::Kind;
use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{DisplayErrorContext, ProvideErrorMetadata, SdkError},
};
use std::{error::Error as StdError, io, time::Duration};

/// What an attempt came to that did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing was changed, and another attempt may work.
    Nothing(Kind),
    /// It may have been done.
    Doubt,
    /// Nothing was changed, and another attempt will not work either.
    Final(Kind),
}

pub(super) fn throttled(why: &str) -> Kind {
    Kind::Exhausted { why: why.to_owned().into(), retry_after: Duration::from_secs(1) }
}

/// By the code that DynamoDB answers with.
fn of_code(code: &str, status: u16, message: &str) -> Outcome {
    let said = || if message.is_empty() { code.to_owned() } else { format!("{code}: {message}") };
    match code {
        "ThrottlingException"
        | "ProvisionedThroughputExceededException"
        | "RequestLimitExceeded"
        | "LimitExceededException" => Outcome::Nothing(throttled(code)),
        "TransactionConflictException" | "ReplicatedWriteConflictException" => Outcome::Nothing(Kind::Unavailable),
        "ResourceNotFoundException" => Outcome::Final(Kind::NotFound("the dedupe table".into())),
        "AccessDeniedException"
        | "UnrecognizedClientException"
        | "InvalidSignatureException"
        | "IncompleteSignatureException"
        | "MissingAuthenticationTokenException"
        | "MissingAuthenticationToken"
        | "ExpiredTokenException"
        | "OptInRequired" => Outcome::Final(Kind::Denied(said().into())),
        "ItemCollectionSizeLimitExceededException" => Outcome::Final(throttled(code)),
        "ValidationException" | "SerializationException" => Outcome::Final(Kind::Bug(said().into())),
        // a server's own failure may come after it wrote
        _ if status >= 500 => Outcome::Doubt,
        _ => Outcome::Final(Kind::Bug(said().into())),
    }
}

/// What an attempt came to.
pub(super) fn of<E>(error: &SdkError<E, HttpResponse>) -> Outcome
where
    E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
{
    match error {
        SdkError::ServiceError(answer) => {
            let status = answer.raw().status().as_u16();
            of_code(answer.err().code().unwrap_or(""), status, answer.err().message().unwrap_or(""))
        }
        // no credentials, for one
        SdkError::ConstructionFailure(_) => Outcome::Final(Kind::Denied(DisplayErrorContext(error).to_string().into())),
        SdkError::DispatchFailure(failure) if failure.is_user() => {
            Outcome::Final(Kind::Bug(DisplayErrorContext(error).to_string().into()))
        }
        SdkError::DispatchFailure(_) if never_sent(error) => Outcome::Nothing(Kind::Unavailable),
        // and kinds that the SDK may learn
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) | _ => Outcome::Doubt,
    }
}

/// Whether there was no connection to send it on.
fn never_sent(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
            if matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | AddrNotAvailable) {
                return true;
            }
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_whether_something_was_changed() {
        let rows = [
            ("ThrottlingException", 400, Outcome::Nothing(throttled("ThrottlingException"))),
            (
                "ProvisionedThroughputExceededException",
                400,
                Outcome::Nothing(throttled("ProvisionedThroughputExceededException")),
            ),
            ("TransactionConflictException", 400, Outcome::Nothing(Kind::Unavailable)),
            ("InternalServerError", 500, Outcome::Doubt),
            ("", 503, Outcome::Doubt),
            ("ResourceNotFoundException", 400, Outcome::Final(Kind::NotFound("the dedupe table".into()))),
            ("AccessDeniedException", 400, Outcome::Final(Kind::Denied("AccessDeniedException".into()))),
            ("ValidationException", 400, Outcome::Final(Kind::Bug("ValidationException".into()))),
        ];
        for (code, status, outcome) in rows {
            assert_eq!(of_code(code, status, ""), outcome, "{code}");
        }
    }
}
