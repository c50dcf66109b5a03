//! Secrets that stand in files, read again when the file changes (decision D18). A file that cannot be read keeps the
//! secret there was.

use crate::clickhouse::Clients;
use std::time::Duration;
use tracing::{info, warn};
use wh_api::OperatorKey;
use wh_config::{Config, SecretSource};
use wh_types::{Secret, SecretFileError, Stop, Tasks};

/// How often files are read. A swapped link, as orchestrators make them, is seen like any other change.
const EVERY: Duration = Duration::from_secs(5);

/// Told when a secret has changed.
type Changed = Box<dyn Fn(Option<Secret>) + Send + Sync>;

/// The secrets of a configuration, as they were read at boot.
#[derive(Clone, Debug)]
pub(crate) struct Secrets {
    password: (SecretSource, Option<Secret>),
    operator_key: (SecretSource, Option<Secret>),
}

impl Secrets {
    pub(crate) fn read(config: &Config) -> Result<Self, SecretFileError> {
        let read = |source: &SecretSource| Ok((source.clone(), source.read()?));
        Ok(Self {
            password: read(&config.tenant_defaults.clickhouse.password)?,
            operator_key: read(&config.auth.operator_key)?,
        })
    }

    /// ClickHouse's.
    pub(crate) fn password(&self) -> Option<&Secret> {
        self.password.1.as_ref()
    }

    /// From now on a changed file reaches the clients, and the key that this gives.
    pub(crate) fn watch(&self, clients: &Clients, tasks: &Tasks, stop: &Stop) -> OperatorKey {
        let operator_key = OperatorKey::new(self.operator_key.1.clone());
        let (key, clients) = (operator_key.clone(), clients.clone());
        let watched = [
            Watched {
                name: "auth.operator_key_file",
                source: self.operator_key.0.clone(),
                current: self.operator_key.1.clone(),
                changed: Box::new(move |secret| key.set(secret)),
            },
            Watched {
                name: "tenant_defaults.clickhouse.password_file",
                source: self.password.0.clone(),
                current: self.password.1.clone(),
                changed: Box::new(move |secret| clients.set_password(secret.as_ref())),
            },
        ];
        for one in watched {
            tasks.spawn("app/secret", watch(one, stop.clone(), EVERY));
        }
        operator_key
    }
}

/// One watched secret.
struct Watched {
    /// Its key in the configuration.
    name: &'static str,
    source: SecretSource,
    /// What it was at boot.
    current: Option<Secret>,
    /// Who uses it.
    changed: Changed,
}

/// Watches until `stop` is given. Returns at once for a secret that is in no file.
async fn watch(watched: Watched, stop: Stop, every: Duration) {
    let Watched { name, source, mut current, changed } = watched;
    if source.file().is_none() {
        return;
    }
    let mut failing = false;
    loop {
        tokio::select! {
            () = stop.wait() => return,
            () = tokio::time::sleep(every) => {}
        }
        let source = source.clone();
        // a file may stand on a disk that hangs
        let read = tokio::task::spawn_blocking(move || source.read()).await;
        match read {
            Ok(Ok(secret)) => {
                failing = false;
                if secret.as_ref().map(Secret::expose) != current.as_ref().map(Secret::expose) {
                    info!(key = name, "the file of {name} has changed and is used from now on");
                    current.clone_from(&secret);
                    changed(secret);
                }
            }
            Ok(Err(error)) if !failing => {
                failing = true;
                warn!(key = name, %error, "the file of {name} cannot be read, the secret there was is kept");
            }
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_changed_file_is_told_once_and_an_unreadable_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, "one").unwrap();
        let source = SecretSource::File(file.clone());
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let watched = Watched {
            name: "auth.operator_key_file",
            current: source.read().unwrap(),
            source,
            changed: Box::new(move |secret| told.send(secret.map(|s| s.expose().to_owned())).unwrap()),
        };
        let (tasks, stop) = (wh_types::Tasks::new(), Stop::new());
        tasks.spawn("watch", watch(watched, stop.clone(), Duration::from_millis(1)));
        let fresh = folder.path().join("fresh");
        for (text, expected) in [("two\n", Some("two")), ("", None), ("three", Some("three"))] {
            std::fs::write(&fresh, text).unwrap();
            std::fs::rename(&fresh, &file).unwrap();
            assert_eq!(heard.recv().await.unwrap().as_deref(), expected);
            std::fs::remove_file(&file).unwrap();
        }
        stop.give();
        tasks.wait().await;
        assert!(heard.recv().await.is_none(), "a missing file is no change");
    }
}
