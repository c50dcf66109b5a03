//! What the client's errors mean. The only file that judges them.
//!
//! Of what a server says only the first word is kept: some servers repeat the arguments of a command in their error, and
//! one of the commands is AUTH.

use crate::{Error, Kind};
use fred::error::{Error as Vendor, ErrorKind};

/// The first word of a server's error that means: of no use until somebody acts, or it recovers.
const REFUSING: [(&str, &str); 10] = [
    ("READONLY", "READONLY: it is a replica"),
    ("MASTERDOWN", "MASTERDOWN: a replica without its primary"),
    ("NOREPLICAS", "NOREPLICAS: too few replicas to take writes"),
    ("MISCONF", "MISCONF: it cannot save and takes no writes"),
    ("LOADING", "LOADING: it reads its data"),
    ("BUSY", "BUSY: a script runs"),
    ("CLUSTERDOWN", "CLUSTERDOWN: the cluster is not whole"),
    ("WRONGPASS", "WRONGPASS: the user or the password is wrong"),
    ("NOAUTH", "NOAUTH: it wants a password"),
    ("MOVED", "MOVED: it is a node of a cluster, and the cache is set up for a server that stands alone"),
];

/// What a failed operation means.
pub(super) fn of(op: &'static str, vendor: &Vendor) -> Error {
    let word = vendor.details().split_whitespace().next().unwrap_or("");
    let kind = match vendor.kind() {
        ErrorKind::Timeout => Kind::TimedOut,
        ErrorKind::IO | ErrorKind::Canceled => Kind::Disconnected,
        ErrorKind::Routing | ErrorKind::Sentinel | ErrorKind::Backpressure => Kind::Unavailable,
        ErrorKind::Tls => Kind::Refused("no encrypted connection could be made".into()),
        ErrorKind::Config => Kind::Refused("it is not of the kind the cache is set up for".into()),
        ErrorKind::Auth
        | ErrorKind::InvalidCommand
        | ErrorKind::InvalidArgument
        | ErrorKind::Url
        | ErrorKind::Protocol
        | ErrorKind::Unknown
        | ErrorKind::Cluster
        | ErrorKind::Parse
        | ErrorKind::NotFound => said(word, vendor),
    };
    Error::new(op, kind).with_source(Said(format!("{} {word}", vendor.kind().to_str())))
}

fn said(word: &str, vendor: &Vendor) -> Kind {
    if let Some((_, meaning)) = REFUSING.iter().find(|(refusing, _)| *refusing == word) {
        return Kind::Refused((*meaning).into());
    }
    match word {
        "OOM" => Kind::Full,
        "NOPERM" => Kind::Forbidden("NOPERM: the user may not do that".into()),
        // "ERR AUTH <password> called without any password configured", and what old servers say of a bad login
        _ if *vendor.kind() == ErrorKind::Auth => Kind::Refused("it does not accept the login".into()),
        "ERR" if vendor.details().starts_with("ERR AUTH") => {
            Kind::Refused("it has no password, and one was sent".into())
        }
        _ => Kind::Unavailable,
    }
}

/// What may be shown of a vendor's error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Said(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_has_a_meaning() {
        let kind = |kind: ErrorKind, text: &'static str| of("set", &Vendor::new(kind, text)).kind().clone();
        for (word, _) in REFUSING {
            let text: &'static str = String::leak(format!("{word} something"));
            assert!(matches!(kind(ErrorKind::Unknown, text), Kind::Refused(_)), "{word}");
        }
        assert!(matches!(kind(ErrorKind::Auth, "WRONGPASS invalid"), Kind::Refused(_)));
        assert!(matches!(kind(ErrorKind::Cluster, "MOVED 1 127.0.0.1:1"), Kind::Refused(_)));
        assert!(matches!(kind(ErrorKind::Unknown, "NOPERM this user has no permissions"), Kind::Forbidden(_)));
        assert_eq!(kind(ErrorKind::Unknown, "OOM command not allowed"), Kind::Full);
        assert_eq!(kind(ErrorKind::IO, "Connection Closed"), Kind::Disconnected);
        assert_eq!(kind(ErrorKind::Timeout, "Request timed out."), Kind::TimedOut);
        assert_eq!(kind(ErrorKind::Unknown, "ERR unknown"), Kind::Unavailable);
    }

    #[test]
    fn a_password_that_a_server_repeats_is_not_shown() {
        let text = "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `me`, `hush`";
        let error = of("connect", &Vendor::new(ErrorKind::Unknown, text));
        assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
    }
}
