//! From the configuration's settings of NATS to what its client takes.

use wh_config::{NatsCredentials, NatsQueue, Roles};
use wh_nats::{Credentials, Options, Tls};
use wh_topology::Role;

/// Whose rights a process with these roles needs.
pub(crate) fn role(roles: Roles) -> Role {
    match (roles.api, roles.ingest) {
        (true, true) => Role::Both,
        (false, true) => Role::Ingest,
        (_, false) => Role::Api,
    }
}

/// How to connect; a connection that is to be told from others says its name.
pub(crate) fn options(nats: &NatsQueue, name: &str) -> Options {
    let mut options = Options::new(nats.urls.iter().cloned());
    name.clone_into(&mut options.name);
    options.credentials = credentials(&nats.credentials);
    let (cert_file, key_file) = nats.tls.identity.clone().unzip();
    options.tls = Tls {
        ca_file: nats.tls.ca_file.clone(),
        cert_file,
        key_file,
        server_name: nats.tls.server_name.clone(),
        required: nats.tls.required(),
        handshake_first: nats.tls.handshake_first,
    };
    options.js_domain.clone_from(&nats.topology.choices().js_domain);
    nats.topology.names().inbox().clone_into(&mut options.inbox_prefix);
    options.connect_timeout = nats.connect_timeout;
    options
}

fn credentials(given: &NatsCredentials) -> Credentials {
    match given {
        NatsCredentials::None => Credentials::None,
        NatsCredentials::Creds(file) => Credentials::CredsFile(file.clone()),
        NatsCredentials::NkeySeed(file) => Credentials::NkeySeedFile(file.clone()),
        NatsCredentials::Password { user, file } => {
            Credentials::PasswordFile { user: user.clone(), file: file.clone() }
        }
        NatsCredentials::Token(file) => Credentials::TokenFile(file.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wh_config::NatsTls;
    use wh_topology::{Choices, Spec};

    #[test]
    fn every_setting_reaches_the_client() {
        let choices =
            Choices { js_domain: Some("hub".into()), inbox_prefix: Some("_INBOX.a".into()), ..Choices::default() };
        let mut nats = NatsQueue {
            urls: vec!["tls://a:4222".into(), "tls://b:4222".into()],
            name: None,
            credentials: NatsCredentials::None,
            tls: NatsTls {
                ca_file: Some("ca.pem".into()),
                identity: Some(("cert.pem".into(), "key.pem".into())),
                server_name: Some("nats.internal".into()),
                handshake_first: true,
            },
            topology: Spec::new(choices).unwrap(),
            connect_timeout: Duration::from_secs(7),
            topology_wait: Duration::ZERO,
            topology_recheck: Duration::ZERO,
        };
        let made = options(&nats, "wavehouse-x");
        assert_eq!((made.urls.as_slice(), made.name.as_str()), (nats.urls.as_slice(), "wavehouse-x"));
        assert_eq!((made.js_domain.as_deref(), made.inbox_prefix.as_str()), (Some("hub"), "_INBOX.a"));
        assert_eq!(made.connect_timeout, Duration::from_secs(7));
        assert_eq!(made.tls.cert_file.as_deref(), Some("cert.pem".as_ref()));
        assert_eq!(made.tls.key_file.as_deref(), Some("key.pem".as_ref()));
        assert_eq!(made.tls.ca_file.as_deref(), Some("ca.pem".as_ref()));
        assert_eq!(made.tls.server_name.as_deref(), Some("nats.internal"));
        assert!(made.tls.required && made.tls.handshake_first);
        for (given, shown) in [
            (NatsCredentials::None, "None"),
            (NatsCredentials::Creds("f".into()), "CredsFile"),
            (NatsCredentials::NkeySeed("f".into()), "NkeySeedFile"),
            (NatsCredentials::Password { user: "u".into(), file: "f".into() }, "PasswordFile"),
            (NatsCredentials::Token("f".into()), "TokenFile"),
        ] {
            nats.credentials = given;
            let made = format!("{:?}", options(&nats, "x").credentials);
            assert!(made.starts_with(shown), "{made}");
        }
    }
}
