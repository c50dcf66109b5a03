//! Where the live NATS is and who we are there, from the environment.

use anyhow::{Context as _, ensure};
use std::path::{Path, PathBuf};
use wh_nats::Credentials;
use wh_types::Secret;

/// A live NATS.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Its servers.
    pub urls: Vec<String>,
    /// The JetStream domain, where clients address one.
    pub js_domain: Option<String>,
    /// The authorities of its certificate.
    pub ca_file: Option<PathBuf>,
    /// The restricted user that is judged.
    pub user: Credentials,
    /// Who creates and deletes the topology.
    pub operator: Option<Credentials>,
    /// The topology's prefix.
    pub prefix: String,
}

impl LiveOptions {
    /// Reads `WH_TEST_NATS_URL`, `_CREDS`, `_OPERATOR_CREDS`, `_PREFIX`, `_DOMAIN` and `_CA`; `None` where there is no
    /// URL.
    ///
    /// # Errors
    /// A file of credentials cannot be read.
    pub fn from(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<Self>> {
        let get = |name: &str| variable(&format!("WH_TEST_NATS_{name}")).filter(|value| !value.is_empty());
        let Some(urls) = get("URL") else { return Ok(None) };
        let operator = get("OPERATOR_CREDS").map(|path| credentials(Path::new(&path))).transpose()?;
        let user = get("CREDS").map(|path| credentials(Path::new(&path))).transpose()?.unwrap_or_default();
        // a topology that the suite makes must not be one that somebody uses
        let prefix = get("PREFIX").unwrap_or_else(|| if operator.is_some() { "whconf" } else { "wh" }.to_owned());
        ensure!(
            operator.is_none() || prefix != "wh",
            "the suite does not create a topology of the prefix wh: use another"
        );
        Ok(Some(Self {
            urls: urls.split(',').map(str::to_owned).collect(),
            js_domain: get("DOMAIN"),
            ca_file: get("CA").map(PathBuf::from),
            user,
            operator,
            prefix,
        }))
    }

    /// How to connect as somebody.
    pub(super) fn connecting(&self, who: &Credentials, inbox: &str) -> wh_nats::Options {
        let mut options = wh_nats::Options::new(self.urls.clone());
        options.credentials = who.clone();
        options.js_domain = self.js_domain.clone();
        options.tls.ca_file = self.ca_file.clone();
        options.inbox_prefix = inbox.to_owned();
        options
    }
}

/// A `.creds` file, or a file of the one line `user:password`.
fn credentials(path: &Path) -> anyhow::Result<Credentials> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    if text.contains("BEGIN NATS USER JWT") {
        return Ok(Credentials::CredsFile(path.to_owned()));
    }
    let line = text.trim_end_matches(['\r', '\n']);
    let (user, password) = line
        .split_once(':')
        .with_context(|| format!("{} is neither a .creds file nor the one line user:password", path.display()))?;
    ensure!(!line.contains('\n'), "{} has more than one line", path.display());
    Ok(Credentials::Password { user: user.to_owned(), password: Secret::from(password) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn read(pairs: &[(&str, &str)]) -> anyhow::Result<Option<LiveOptions>> {
        let map: BTreeMap<&str, &str> = pairs.iter().copied().collect();
        LiveOptions::from(|name| map.get(name.strip_prefix("WH_TEST_NATS_")?).map(|value| (*value).to_owned()))
    }

    #[test]
    fn the_environment_says_where_and_who() {
        assert!(read(&[]).unwrap().is_none());
        let plain = read(&[("URL", "nats://a:1,nats://b:2")]).unwrap().unwrap();
        assert_eq!((plain.urls.len(), plain.prefix.as_str(), plain.operator.is_some()), (2, "wh", false));
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name).display().to_string()
        };
        let (user, operator) = (file("user", "u:p:w\n"), file("operator", "-----BEGIN NATS USER JWT-----\n"));
        let both = read(&[("URL", "nats://a:1"), ("CREDS", &user), ("OPERATOR_CREDS", &operator)]).unwrap().unwrap();
        assert_eq!(both.prefix, "whconf");
        assert!(
            matches!(&both.user, Credentials::Password { user, password } if user == "u" && password.expose() == "p:w")
        );
        assert!(matches!(both.operator, Some(Credentials::CredsFile(_))));
        let shipped = [("URL", "nats://a:1"), ("OPERATOR_CREDS", operator.as_str()), ("PREFIX", "wh")];
        assert!(read(&shipped).unwrap_err().to_string().contains("prefix wh"));
        let neither = file("neither", "nothing");
        assert!(read(&[("URL", "nats://a:1"), ("CREDS", &neither)]).is_err());
        assert!(read(&[("URL", "nats://a:1"), ("CREDS", "/nowhere")]).is_err());
    }
}
