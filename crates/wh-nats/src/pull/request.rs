//! What a pull asks for.

use bytes::Bytes;
use std::{fmt, fmt::Write as _, sync::Arc, time::Duration};

/// The server's word for who receives: it comes with every delivered message and goes with every later pull.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PinId(Arc<str>);

impl PinId {
    /// Takes an id that the server gave.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PinId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PinId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pull. Each asks for one batch, which ends when it is full or its time is over.
#[derive(Clone, Debug)]
pub struct PullRequest {
    /// Messages wanted; 0 counts as 1, because the server takes it so.
    pub batch: u32,
    /// How long it waits for them.
    pub expires: Duration,
    /// How often the server says that it still waits; at most half of `expires`, none where it is zero.
    pub idle_heartbeat: Duration,
    /// The pin, once there is one.
    pub pin: Option<PinId>,
}

impl PullRequest {
    /// The body. It always names the group: an empty one would take messages past the pin.
    pub(super) fn body(&self, group: &str) -> Bytes {
        let mut text = format!("{{\"batch\":{},\"expires\":{}", self.batch.max(1), self.expires.as_nanos());
        if !self.idle_heartbeat.is_zero() {
            _ = write!(text, ",\"idle_heartbeat\":{}", self.idle_heartbeat.as_nanos());
        }
        end(text, group, self.pin.as_ref())
    }
}

/// A pull that renews the pin and delivers nothing, in every state of the durable.
pub(super) fn null(group: &str, pin: &PinId) -> Bytes {
    end("{\"batch\":1,\"max_bytes\":1,\"expires\":1".to_owned(), group, Some(pin))
}

fn end(mut text: String, group: &str, pin: Option<&PinId>) -> Bytes {
    // neither can need an escape: the group's grammar and the server's ids have none of JSON's special characters
    _ = write!(text, ",\"group\":{}", serde_json::Value::from(group));
    if let Some(pin) = pin {
        _ = write!(text, ",\"id\":{}", serde_json::Value::from(pin.as_str()));
    }
    text.push('}');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &Bytes) -> &str {
        std::str::from_utf8(body).unwrap()
    }

    #[test]
    fn bodies_are_those_that_were_measured() {
        let (expires, idle_heartbeat) = (Duration::from_secs(5), Duration::from_millis(1250));
        let mut pull = PullRequest { batch: 500, expires, idle_heartbeat, pin: None };
        let first = r#"{"batch":500,"expires":5000000000,"idle_heartbeat":1250000000,"group":"wavehouse"}"#;
        assert_eq!(text(&pull.body("wavehouse")), first);
        pull.pin = Some(PinId::new("abc"));
        pull.batch = 0;
        let later = r#"{"batch":1,"expires":5000000000,"idle_heartbeat":1250000000,"group":"wavehouse","id":"abc"}"#;
        assert_eq!(text(&pull.body("wavehouse")), later);
        let renewal = r#"{"batch":1,"max_bytes":1,"expires":1,"group":"wavehouse","id":"abc"}"#;
        assert_eq!(text(&null("wavehouse", &PinId::new("abc"))), renewal);
    }
}
