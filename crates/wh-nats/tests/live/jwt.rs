//! An operator's tokens, made here: the server knows users by what their account has signed.

use nkeys::KeyPair;
use serde_json::{Value, json};

/// An operator with one account, and the keys to sign for both.
pub(crate) struct Operator {
    operator: KeyPair,
    account: KeyPair,
    system: KeyPair,
}

impl Operator {
    pub(crate) fn new() -> Self {
        let (operator, account, system) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account());
        Self { operator, account, system }
    }

    /// Lines for a server's configuration.
    pub(crate) fn lines(&self) -> String {
        let (operator, account, system) =
            (self.operator.public_key(), self.account.public_key(), self.system.public_key());
        let own =
            token(&self.operator, &operator, "O", &json!({"type": "operator", "version": 2, "system_account": system}));
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "wildcards": true,
        });
        let of = |name: &str, key: &str| {
            token(&self.operator, key, name, &json!({"type": "account", "version": 2, "limits": limits}))
        };
        format!(
            "operator: {own}\nsystem_account: {system}\nresolver: MEMORY\nresolver_preload: {{ {account}: {}, {system}: {} }}",
            of("A", &account),
            of("SYS", &system)
        )
    }

    /// A credentials file of a user who may publish these.
    pub(crate) fn creds(&self, user: &KeyPair, publish: &[&str]) -> String {
        let claims = json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1,
            "pub": {"allow": publish}, "sub": {"allow": ["_INBOX_wh.>"]},
        });
        let jwt = token(&self.account, &user.public_key(), "wavehouse", &claims);
        let seed = user.seed().unwrap();
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    }
}

fn token(issuer: &KeyPair, subject: &str, name: &str, nats: &Value) -> String {
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let claims = json!({
        "jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name, "sub": subject, "nats": nats,
    });
    let signed = format!("{}.{}", base64(header.to_string().as_bytes()), base64(claims.to_string().as_bytes()));
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", base64(&signature))
}

/// The URL form, without padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            text.push(char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]));
        }
    }
    text
}
