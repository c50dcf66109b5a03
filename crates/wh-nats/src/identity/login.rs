//! A login: read from its file, checked, and turned into what a server wants.

use crate::{Error, Result, options::Credentials};
use nkeys::{KeyPair, KeyPairType};
use std::{fmt, path::Path};
use wh_types::Secret;

/// A login that can be used.
#[derive(Clone, PartialEq)]
pub(super) enum Login {
    None,
    Jwt { jwt: Hidden, seed: Hidden },
    Nkey { seed: Hidden },
    Password { user: String, password: Hidden },
    Token(Hidden),
}

/// A secret that can be compared.
#[derive(Clone)]
pub(super) struct Hidden(Secret);

impl PartialEq for Hidden {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose() == other.0.expose()
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Jwt { .. } => "Jwt",
            Self::Nkey { .. } => "Nkey",
            Self::Password { .. } => "Password",
            Self::Token(_) => "Token",
        })
    }
}

/// Reads and checks a login.
pub(super) fn read(credentials: &Credentials) -> Result<Login> {
    match credentials {
        Credentials::None => Ok(Login::None),
        Credentials::CredsFile(file) => {
            let text = secret(file)?;
            let refuse = |what: &str| Error::config(format!("creds_file {}: {what}", file.display()));
            let jwt = section(text.expose(), "USER JWT").ok_or_else(|| refuse("has no user JWT"))?;
            let seed = section(text.expose(), "NKEY SEED").ok_or_else(|| refuse("has no seed of a user's key"))?;
            if jwt.split('.').count() != 3 {
                return Err(refuse("its user JWT has not three parts"));
            }
            user_key(seed).map_err(refuse)?;
            Ok(Login::Jwt { jwt: Hidden(jwt.into()), seed: Hidden(seed.into()) })
        }
        Credentials::NkeySeedFile(file) => {
            let text = secret(file)?;
            let seed = section(text.expose(), "NKEY SEED").unwrap_or(text.expose().trim());
            user_key(seed).map_err(|what| Error::config(format!("nkey_seed_file {}: {what}", file.display())))?;
            Ok(Login::Nkey { seed: Hidden(seed.into()) })
        }
        Credentials::PasswordFile { user, file } => {
            Ok(Login::Password { user: user.clone(), password: Hidden(filled(file, "password_file")?) })
        }
        Credentials::Password { user, password } => {
            Ok(Login::Password { user: user.clone(), password: Hidden(password.clone()) })
        }
        Credentials::TokenFile(file) => Ok(Login::Token(Hidden(filled(file, "token_file")?))),
    }
}

fn secret(file: &Path) -> Result<Secret> {
    Secret::read(file).map_err(|cause| Error::config("a file of credentials cannot be read").caused(cause))
}

fn filled(file: &Path, what: &str) -> Result<Secret> {
    let secret = secret(file)?;
    if secret.is_empty() {
        return Err(Error::config(format!("{what} {} is empty", file.display())));
    }
    Ok(secret)
}

fn user_key(seed: &str) -> Result<KeyPair, &'static str> {
    let pair = KeyPair::from_seed(seed).map_err(|_| "its seed cannot be read")?;
    if pair.key_pair_type() == KeyPairType::User { Ok(pair) } else { Err("its seed is not a user's") }
}

/// What stands between the lines `-----BEGIN … <name>-----` and `------END … <name>------`.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| !(rule(line, "BEGIN") && line.contains(name)));
    lines.next()?;
    let body = lines.find(|line| !line.is_empty())?;
    (!body.starts_with("--")).then_some(body)
}

fn rule(line: &str, word: &str) -> bool {
    line.starts_with("---") && line.ends_with("---") && line.contains(word)
}

impl Login {
    /// Whether it carries rights that count from the next login on.
    pub(super) fn has_rights(&self) -> bool {
        matches!(self, Self::Jwt { .. })
    }

    pub(super) fn auth(&self, nonce: &[u8]) -> Result<async_nats::Auth, String> {
        let mut auth = async_nats::Auth::new();
        let sign = |seed: &Hidden| {
            let pair = user_key(seed.0.expose())?;
            let signature = pair.sign(nonce).map_err(|_| "the nonce cannot be signed")?;
            Ok::<_, &'static str>((pair.public_key(), signature))
        };
        match self {
            Self::None => {}
            Self::Jwt { jwt, seed } => {
                auth.signature = Some(sign(seed)?.1);
                auth.jwt = Some(jwt.0.expose().to_owned());
            }
            Self::Nkey { seed } => {
                let (key, signature) = sign(seed)?;
                (auth.nkey, auth.signature) = (Some(key), Some(signature));
            }
            Self::Password { user, password } => {
                (auth.username, auth.password) = (Some(user.clone()), Some(password.0.expose().to_owned()));
            }
            Self::Token(token) => auth.token = Some(token.0.expose().to_owned()),
        }
        Ok(auth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JWT: &str = "aaa.bbb.ccc";

    fn seed() -> String {
        KeyPair::new_user().seed().unwrap()
    }

    fn creds(jwt: &str, seed: &str) -> String {
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n****** IMPORTANT ******\n\
             NKEY Seed printed below.\n\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    }

    fn read_text(text: &str, form: impl Fn(std::path::PathBuf) -> Credentials) -> Result<Login> {
        let dir = tempfile::TempDir::new().unwrap();
        let file = dir.path().join("hush.creds");
        std::fs::write(&file, text).unwrap();
        read(&form(file))
    }

    #[test]
    fn every_form_is_read() {
        let seed = seed();
        let jwt = read_text(&creds(JWT, &seed), Credentials::CredsFile).unwrap();
        assert!(matches!(&jwt, Login::Jwt { jwt, seed: key } if jwt.0.expose() == JWT && key.0.expose() == seed));
        assert!(matches!(read_text(&format!("{seed}\r\n"), Credentials::NkeySeedFile).unwrap(), Login::Nkey { .. }));
        assert!(matches!(read_text(&creds(JWT, &seed), Credentials::NkeySeedFile).unwrap(), Login::Nkey { .. }));
        let password = |file| Credentials::PasswordFile { user: "joe".into(), file };
        assert!(
            matches!(read_text("hush\n", password).unwrap(), Login::Password { password, .. } if password.0.expose() == "hush")
        );
        assert!(matches!(read_text("hush\n", Credentials::TokenFile).unwrap(), Login::Token(_)));
        assert!(jwt.has_rights() && !read(&Credentials::None).unwrap().has_rights());
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_showing_it() {
        let (user, account) = (seed(), KeyPair::new_account().seed().unwrap());
        let half = creds(JWT, &user);
        for (text, form) in [
            (half[..60].to_owned(), Credentials::CredsFile as fn(std::path::PathBuf) -> Credentials),
            (creds("aaa.bbb", &user), Credentials::CredsFile),
            (creds(JWT, &account), Credentials::CredsFile),
            (creds(JWT, "SUANOSEED"), Credentials::CredsFile),
            (String::new(), Credentials::CredsFile),
            (account.clone(), Credentials::NkeySeedFile),
            (String::new(), Credentials::NkeySeedFile),
            ("\n".to_owned(), Credentials::TokenFile),
        ] {
            let error = read_text(&text, form).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("hush.creds"), "{shown}");
            assert!(!shown.contains(&user) && !shown.contains(&account) && !shown.contains("SUANOSEED"), "{shown}");
        }
        let missing = read(&Credentials::TokenFile("/nonexistent/token".into())).unwrap_err();
        assert!(format!("{missing:?}").contains("/nonexistent/token"));
    }

    #[test]
    fn a_login_signs_the_nonce_and_shows_no_secret() {
        let seed = seed();
        let login = read_text(&creds(JWT, &seed), Credentials::CredsFile).unwrap();
        let auth = login.auth(b"nonce").unwrap();
        let key = KeyPair::from_seed(&seed).unwrap();
        key.verify(b"nonce", &auth.signature.unwrap()).unwrap();
        assert_eq!((auth.jwt.as_deref(), auth.nkey), (Some(JWT), None));
        assert_eq!(format!("{login:?}"), "Jwt");
        let auth = read_text(&seed, Credentials::NkeySeedFile).unwrap().auth(b"nonce").unwrap();
        assert_eq!((auth.nkey, auth.jwt), (Some(key.public_key()), None));
    }
}
