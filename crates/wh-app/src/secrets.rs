//! Secrets that stand in files, read again when the file changes (decision D18). A file that cannot be read keeps the
//! secret there was.

use std::{sync::Arc, time::Duration};
use tracing::{info, warn};
use wh_config::SecretSource;
use wh_types::{Secret, Stop};

/// How often files are read. A swapped link, as orchestrators make them, is seen like any other change.
const EVERY: Duration = Duration::from_secs(5);

/// Told when a secret has changed.
pub(crate) type Changed = Arc<dyn Fn(Option<Secret>) + Send + Sync>;

/// One watched secret.
#[derive(Clone)]
pub(crate) struct Watched {
    /// Its key in the configuration.
    pub(crate) name: &'static str,
    /// Where it stands.
    pub(crate) source: SecretSource,
    /// What it was at boot.
    pub(crate) current: Option<Secret>,
    /// Who uses it.
    pub(crate) changed: Changed,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Watched").field(&self.name).finish()
    }
}

/// Watches until `stop` is given. Returns at once for a secret that is in no file.
pub(crate) async fn watch(watched: Watched, stop: Stop) {
    watch_every(watched, stop, EVERY).await;
}

async fn watch_every(watched: Watched, stop: Stop, every: Duration) {
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
            changed: Arc::new(move |secret| told.send(secret.map(|s| s.expose().to_owned())).unwrap()),
        };
        let (tasks, stop) = (wh_types::Tasks::new(), Stop::new());
        tasks.spawn("watch", watch_every(watched, stop.clone(), Duration::from_millis(1)));
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
