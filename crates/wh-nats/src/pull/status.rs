//! What a server answers to a pull instead of a message.

use crate::Message;

/// An answer to a pull that is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// 100: the pull still waits. What the durable delivered last; absent in control messages of another kind.
    Heartbeat {
        /// The durable's last consumer sequence.
        last_consumer: Option<u64>,
        /// The durable's last stream sequence.
        last_stream: Option<u64>,
    },
    /// 404: nothing was there for a pull that does not wait.
    NoMessages,
    /// 408: its time is over. The normal end of a pull that was not filled, and the answer to a renewal.
    Expired(Rest),
    /// 408: the puller's inbox had no interest.
    InterestExpired,
    /// 408: others wait already.
    RequestsPending,
    /// 409: the next message is larger than the pull takes. A renewal that held a message back.
    MaxBytes(Rest),
    /// 409: the pull's bytes are used up.
    BatchCompleted,
    /// 409: the durable, or its stream, was deleted.
    ConsumerDeleted,
    /// 409: another server leads the durable now.
    LeadershipChange,
    /// 409: the server is stopping.
    ServerShutdown,
    /// 409: the pull is beyond a limit of the durable; the text says which.
    Exceeded(String),
    /// 409: the durable pushes.
    PushBased,
    /// 423, at once: another client is pinned.
    PinMismatch,
    /// 423, when a message is ready: the pin was lost meanwhile.
    WrongPin(Rest),
    /// 400: the request itself, for example a missing group. The durable is configured otherwise than we think.
    BadRequest(String),
    /// 412: the server's API is older than the request demands.
    ApiLevel,
    /// 503: no such durable or stream, or nobody leads it at the moment.
    NoResponders,
    /// Something this version does not know.
    Other(u16, String),
}

/// What was left of a pull when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Messages not delivered.
    pub messages: Option<u64>,
    /// Bytes not delivered.
    pub bytes: Option<u64>,
}

impl Status {
    /// Reads a status. None where the message has none, and so is a delivery.
    #[must_use]
    pub fn of(message: &Message) -> Option<Self> {
        let (code, text) = message.status()?;
        let number = |name: &str| message.header(name).and_then(|value| value.parse().ok());
        let rest = Rest { messages: number("Nats-Pending-Messages"), bytes: number("Nats-Pending-Bytes") };
        let (last_consumer, last_stream) = (number("Nats-Last-Consumer"), number("Nats-Last-Stream"));
        Some(Self::read(code, text, rest, (last_consumer, last_stream)))
    }

    pub(crate) fn read(code: u16, text: &str, rest: Rest, last: (Option<u64>, Option<u64>)) -> Self {
        let text = text.trim();
        let is = |begin: &str| text.get(..begin.len()).is_some_and(|head| head.eq_ignore_ascii_case(begin));
        match code {
            100 => Self::Heartbeat { last_consumer: last.0, last_stream: last.1 },
            400 => Self::BadRequest(text.to_owned()),
            404 => Self::NoMessages,
            408 if is("Interest Expired") => Self::InterestExpired,
            408 if is("Requests Pending") => Self::RequestsPending,
            408 => Self::Expired(rest),
            409 if is("Message Size Exceeds MaxBytes") => Self::MaxBytes(rest),
            409 if is("Batch Completed") => Self::BatchCompleted,
            409 if is("Consumer Deleted") => Self::ConsumerDeleted,
            409 if is("Leadership Change") => Self::LeadershipChange,
            409 if is("Server Shutdown") => Self::ServerShutdown,
            409 if is("Exceeded") => Self::Exceeded(text.to_owned()),
            409 if is("Consumer is push based") => Self::PushBased,
            412 => Self::ApiLevel,
            423 if is("Nats-Pin-Id mismatch") => Self::PinMismatch,
            423 => Self::WrongPin(rest),
            503 => Self::NoResponders,
            _ => Self::Other(code, text.to_owned()),
        }
    }

    /// Whether the pull it belongs to waits on.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        matches!(self, Self::Heartbeat { .. })
    }

    /// Whether a renewal that got it has renewed the pin: the server restarts the pin's time on receipt, whatever else
    /// it finds, but not for a request that it does not understand or that has another pin.
    #[must_use]
    pub fn renewed(&self) -> bool {
        matches!(
            self,
            Self::NoMessages | Self::Expired(_) | Self::MaxBytes(_) | Self::BatchCompleted | Self::RequestsPending
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: u16, text: &str) -> Status {
        Status::read(code, text, Rest::default(), (None, None))
    }

    #[test]
    fn every_line_of_the_table_is_typed() {
        let rest = Rest { messages: Some(3), bytes: Some(4) };
        let heartbeat = Status::Heartbeat { last_consumer: Some(5), last_stream: Some(6) };
        assert_eq!(Status::read(100, "Idle Heartbeat", rest, (Some(5), Some(6))), heartbeat);
        assert_eq!(Status::read(408, "Request Timeout", rest, (None, None)), Status::Expired(rest));
        assert_eq!(Status::read(409, "Message Size Exceeds MaxBytes", rest, (None, None)), Status::MaxBytes(rest));
        assert_eq!(Status::read(423, "Nats-Wrong-Pin-Id", rest, (None, None)), Status::WrongPin(rest));
        for (code, text, status) in [
            (404, "No Messages", Status::NoMessages),
            (408, "Interest Expired", Status::InterestExpired),
            (408, "Requests Pending", Status::RequestsPending),
            (409, "Batch Completed", Status::BatchCompleted),
            (409, "Consumer Deleted", Status::ConsumerDeleted),
            (409, "Leadership Change", Status::LeadershipChange),
            (409, "Server Shutdown", Status::ServerShutdown),
            (409, "Consumer is push based", Status::PushBased),
            (412, "Required Api Level: 4", Status::ApiLevel),
            (423, "Nats-Pin-Id mismatch", Status::PinMismatch),
            (503, "", Status::NoResponders),
            (503, "No Responders", Status::NoResponders),
            (499, "Tea", Status::Other(499, "Tea".into())),
            (409, "Something new", Status::Other(409, "Something new".into())),
        ] {
            assert_eq!(read(code, text), status, "{code} {text}");
        }
        for limit in ["MaxWaiting", "MaxRequestBatch of 5", "MaxRequestExpires of 1s", "MaxRequestMaxBytes of 9"] {
            assert_eq!(read(409, &format!("Exceeded {limit}")), Status::Exceeded(format!("Exceeded {limit}")));
        }
        for reason in ["Priority Group missing", "Invalid Priority Group", "heartbeat value too large"] {
            let text = format!("Bad Request - {reason}");
            assert_eq!(read(400, &text), Status::BadRequest(text.clone()));
        }
    }

    #[test]
    fn only_what_the_server_took_renews() {
        for (code, text, renewed) in [
            (404, "No Messages", true),
            (408, "Request Timeout", true),
            (409, "Message Size Exceeds MaxBytes", true),
            (400, "Bad Request - Priority Group missing", false),
            (409, "Leadership Change", false),
            (409, "Consumer Deleted", false),
            (423, "Nats-Pin-Id mismatch", false),
            (423, "Nats-Wrong-Pin-Id", false),
            (503, "", false),
        ] {
            assert_eq!(read(code, text).renewed(), renewed, "{code} {text}");
        }
    }
}
