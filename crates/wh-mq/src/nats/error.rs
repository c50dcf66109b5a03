//! The client's errors as the queue's. The one file that knows both.

use super::publish::Answer;
use crate::{Error, Kind};
use wh_nats::{ApiError, Kind as Nats, err_code};
use wh_types::Class;

/// What a failed attempt of a publish means. `stream` is whose limits a refusal speaks of.
pub(crate) fn attempt(error: &wh_nats::Error, stream: &str) -> Answer {
    match error.kind() {
        Nats::Disconnected | Nats::Unsent | Nats::NoResponders => Answer::Refused,
        Nats::Refused { subject } => Answer::Never(Kind::Denied(format!("it refuses {subject}").into())),
        Nats::TooLarge { bytes, limit } => {
            Answer::Never(Kind::BadBlock(format!("it takes {bytes} bytes, the server takes {limit}").into()))
        }
        Nats::Invalid(what) | Nats::Config(what) => Answer::Never(Kind::Bug(what.clone().into())),
        Nats::Api(api) => answered(api, stream),
        // it was handed over, and nothing says what became of it
        Nats::Interrupted | Nats::Timeout | Nats::BadAnswer(_) | Nats::Closed | _ => Answer::Unanswered,
    }
}

/// What JetStream answered, by number (decision D17).
fn answered(api: &ApiError, stream: &str) -> Answer {
    match (api.err_code, api.class()) {
        (err_code::STREAM_FULL, Class::Exhausted { retry_after }) => {
            Answer::Never(Kind::Full { what: format!("{stream} ({})", api.description), retry_after })
        }
        (err_code::ID_IN_PROCESS, _) => Answer::Unanswered,
        (err_code::ACCOUNT_LIMIT | err_code::NO_RESOURCES | err_code::NO_STORAGE, _) => Answer::Never(Kind::NoSpace),
        (err_code::MESSAGE_TOO_LARGE, _) => {
            Answer::Never(Kind::BadBlock("its stream takes no message as large".into()))
        }
        // no leader; or 429, more is waiting there than the stream has stored yet
        (_, Class::Unavailable | Class::Exhausted { .. }) if api.err_code != err_code::OTHER_STREAM => Answer::Refused,
        // what is wrong with the request will be wrong again
        _ => Answer::Never(Kind::Unavailable),
    }
}

/// A request that reads and failed.
pub(crate) fn request(op: &'static str, error: wh_nats::Error) -> Error {
    let kind = match error.class() {
        Class::Denied => Kind::Denied(error.to_string().into()),
        Class::NotFound => Kind::NotFound(error.op().to_owned().into()),
        Class::Exhausted { .. } => Kind::NoSpace,
        Class::Stopping => Kind::Stopping,
        Class::Invalid => Kind::Bug(error.to_string().into()),
        Class::Unauthenticated
        | Class::Forbidden
        | Class::Conflict
        | Class::Unsupported
        | Class::Unavailable
        | Class::Unknown
        | Class::Fenced
        | Class::Corrupt
        | Class::Bug => Kind::Unavailable,
    };
    Error::new(op, kind).with_source(error)
}

/// A request that changes something and failed: unanswered, it may have been done.
pub(crate) fn change(op: &'static str, error: wh_nats::Error) -> Error {
    if error.class() == Class::Unknown { Error::new(op, Kind::Unknown).with_source(error) } else { request(op, error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn api(code: u16, err_code: u64) -> wh_nats::Error {
        wh_nats::Error::from(Nats::Api(ApiError { code, err_code, description: "text".into() }))
    }

    #[test]
    fn numbers_decide_what_an_attempt_came_to() {
        let class = |error: &wh_nats::Error| {
            let Answer::Never(kind) = attempt(error, "S") else { return None };
            Some(Error::new("publish", kind).class())
        };
        let full = Some(Class::Exhausted { retry_after: Duration::from_secs(30) });
        for (status, code) in [(503, 10_077), (503, 10_023), (500, 10_047), (503, 10_002), (400, 10_077)] {
            assert_eq!(class(&api(status, code)), full, "{code}");
        }
        for error in [api(503, 10_008), api(500, 1), api(503, 99_999), api(429, 0), Nats::NoResponders.into()] {
            assert_eq!(attempt(&error, "S"), Answer::Refused, "{error}");
        }
        for error in [Nats::Disconnected, Nats::Unsent] {
            assert_eq!(attempt(&error.into(), "S"), Answer::Refused);
        }
        for error in [Nats::Timeout, Nats::Interrupted, Nats::BadAnswer("?".into()), Nats::Closed] {
            assert_eq!(attempt(&error.into(), "S"), Answer::Unanswered);
        }
        assert_eq!(attempt(&api(409, 10_158), "S"), Answer::Unanswered);
        assert_eq!(class(&api(400, 10_054)), Some(Class::Invalid));
        assert_eq!(class(&api(400, 10_060)), Some(Class::Unavailable));
        assert_eq!(class(&api(400, 99_999)), Some(Class::Unavailable), "never a 500");
        let refused = Nats::Refused { subject: "wh.ingest.0.0.0.t".into() }.into();
        assert_eq!(class(&refused), Some(Class::Denied));
    }

    #[test]
    fn a_lost_answer_is_unknown_only_where_something_may_have_changed() {
        for (error, read, changed) in [
            (Nats::Timeout, Class::Unavailable, Class::Unknown),
            (Nats::Disconnected, Class::Unavailable, Class::Unavailable),
            (Nats::NoResponders, Class::Unavailable, Class::Unavailable),
            (Nats::Closed, Class::Stopping, Class::Stopping),
            (Nats::Refused { subject: "x".into() }, Class::Denied, Class::Denied),
        ] {
            assert_eq!(request("x", error.clone().into()).class(), read, "{error}");
            assert_eq!(change("x", error.clone().into()).class(), changed, "{error}");
        }
    }
}
