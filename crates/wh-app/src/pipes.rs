//! The file of pipes: read at boot, and again when it changes. One that is refused leaves the pipes there were.

use crate::{counted::Counted, metrics};
use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};
use tracing::{error, info, warn};
use wh_api::{PipeFinding, PipeSet, Pipes};
use wh_config::Config;
use wh_types::{Stop, Tasks};

/// How often the file is read. A swapped link, as orchestrators make them, is seen like any other change.
const EVERY: Duration = Duration::from_secs(5);

/// Why a file of pipes is not used.
#[derive(Debug, thiserror::Error)]
#[error("the pipes in {} cannot be used{problem}", path.display())]
pub struct PipesError {
    path: PathBuf,
    problem: Problem,
}

#[derive(Debug)]
enum Problem {
    Unread(io::Error),
    Refused(Vec<PipeFinding>),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(error) => write!(f, ": {error}"),
            Self::Refused(findings) => {
                let errors = findings.iter().filter(|finding| !finding.warning).count();
                write!(f, ": {}", Counted(errors as u64, "error"))?;
                lines(f, findings)
            }
        }
    }
}

fn lines(f: &mut fmt::Formatter<'_>, findings: &[PipeFinding]) -> fmt::Result {
    findings.iter().try_for_each(|finding| write!(f, "\n  {}{finding}", if finding.warning { "warning: " } else { "" }))
}

/// The pipes of a process, and the file they are from.
#[derive(Debug, Default)]
pub(crate) struct PipesFile {
    /// As they are now.
    pub(crate) pipes: Pipes,
    from: Option<(PathBuf, Vec<u8>)>,
}

/// What a file holds.
#[derive(Debug)]
pub(crate) struct Found {
    path: PathBuf,
    text: Vec<u8>,
    set: PipeSet,
    warnings: Vec<PipeFinding>,
}

/// Reads what the configuration names; `None` where it names nothing, and where the process serves no clients.
pub(crate) fn look(config: &Config) -> Result<Option<Found>, PipesError> {
    let file = config.tenant_defaults.pipes_file.as_ref();
    let Some(path) = file.filter(|_| config.roles.api) else { return Ok(None) };
    let refused = |problem| PipesError { path: path.clone(), problem };
    let text = read(path).map_err(|error| refused(Problem::Unread(error)))?;
    let (set, warnings) = PipeSet::parse(&text).map_err(|findings| refused(Problem::Refused(findings)))?;
    Ok(Some(Found { path: path.clone(), text, set, warnings }))
}

/// No more of it than is judged.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(PipeSet::MAX_BYTES as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pipes in {}: {}", self.path.display(), Counted(self.set.len() as u64, "pipe"))?;
        lines(f, &self.warnings)
    }
}

impl PipesFile {
    /// At boot.
    ///
    /// # Errors
    /// The file cannot be used.
    pub(crate) fn load(config: &Config) -> Result<Self, PipesError> {
        let Some(Found { path, text, set, warnings }) = look(config)? else { return Ok(Self::default()) };
        told(&path, set.len(), &warnings);
        Ok(Self { pipes: Pipes::new(set), from: Some((path, text)) })
    }

    /// From now on a changed file is used, whole or not at all.
    pub(crate) fn watch(&self, tasks: &Tasks, stop: &Stop) {
        if let Some((path, text)) = self.from.clone() {
            tasks.spawn("app/pipes", watch(path, text, self.pipes.clone(), stop.clone(), EVERY));
        }
    }
}

fn told(path: &Path, count: usize, warnings: &[PipeFinding]) {
    let path = path.display();
    for warning in warnings {
        warn!(%path, "{path}: {warning}");
    }
    info!(%path, count, "{} in {path}", Counted(count as u64, "pipe"));
    metrics::pipes(count);
}

/// What became of a look at a file.
enum Look {
    Same,
    New(Vec<u8>),
    Unread(io::Error),
}

async fn watch(path: PathBuf, mut current: Vec<u8>, pipes: Pipes, stop: Stop, every: Duration) {
    let mut unread = false;
    loop {
        tokio::select! {
            () = stop.wait() => return,
            () = tokio::time::sleep(every) => {}
        }
        let (at, known) = (path.clone(), current.clone());
        // a file may stand on a disk that hangs
        let look = tokio::task::spawn_blocking(move || match read(&at) {
            Ok(text) if text == known => Look::Same,
            Ok(text) => Look::New(text),
            Err(error) => Look::Unread(error),
        });
        match look.await {
            Ok(Look::Same) | Err(_) => unread = false,
            Ok(Look::New(text)) => {
                unread = false;
                adopt(&path, &text, &pipes);
                current = text;
            }
            Ok(Look::Unread(_)) if unread => {}
            Ok(Look::Unread(error)) => {
                unread = true;
                warn!(path = %path.display(), %error, "{} cannot be read, the pipes there were are kept", path.display());
            }
        }
    }
}

fn adopt(path: &Path, text: &[u8], pipes: &Pipes) {
    match PipeSet::parse(text) {
        Ok((set, warnings)) => {
            told(path, set.len(), &warnings);
            pipes.set(set);
        }
        Err(findings) => {
            let refused = PipesError { path: path.to_owned(), problem: Problem::Refused(findings) };
            error!(path = %path.display(), "the pipes there were are kept: {refused}");
            metrics::pipes_refused();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_config::{Environment, load};

    fn configured(path: &Path) -> Config {
        let variables = [("WH_TENANT_DEFAULTS_PIPES_FILE", path.display().to_string())];
        load(None, &Environment::new(variables)).unwrap().config
    }

    #[test]
    fn a_file_that_cannot_be_used_is_told_with_every_finding() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pipes.json");
        let missing = look(&configured(&file)).unwrap_err().to_string();
        assert!(missing.contains("pipes.json cannot be used: No such file"), "{missing}");
        std::fs::write(&file, "{\"pipes\": [{\"name\": \"a\"},\n{\"sql\": 5, \"name\": \"b\"}]}").unwrap();
        let refused = look(&configured(&file)).unwrap_err().to_string();
        for part in ["2 errors", "\n  pipes[0] (line 1): needs a name and sql", "\n  pipes[1].sql (line 2): is a"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        let warned = "{\"pipes\": [{\"name\": \"a\", \"sql\": \"SELECT 1\", \"allowed_roles\": [\"admin\"]}]}";
        std::fs::write(&file, warned).unwrap();
        let found = look(&configured(&file)).unwrap().unwrap().to_string();
        assert!(found.contains("pipes.json: 1 pipe\n  warning: pipes[0].allowed_roles[0]"), "{found}");
        assert!(look(&load(None, &Environment::default()).unwrap().config).unwrap().is_none());
    }

    #[tokio::test]
    async fn a_changed_file_is_used_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let (file, fresh) = (folder.path().join("pipes.json"), folder.path().join("fresh"));
        let text = |names: &[&str]| {
            let pipes: Vec<_> =
                names.iter().map(|name| format!("{{\"name\": \"{name}\", \"sql\": \"SELECT 1\"}}")).collect();
            format!("{{\"pipes\": [{}]}}", pipes.join(","))
        };
        std::fs::write(&file, text(&["a"])).unwrap();
        let loaded = PipesFile::load(&configured(&file)).unwrap();
        assert_eq!(loaded.pipes.len(), 1);
        let (tasks, stop) = (Tasks::new(), Stop::new());
        let (path, first) = loaded.from.clone().unwrap();
        tasks.spawn("watch", watch(path, first, loaded.pipes.clone(), stop.clone(), Duration::from_millis(1)));
        let held = |expected: usize| {
            let pipes = loaded.pipes.clone();
            async move {
                let len = || async { pipes.len() };
                wh_testkit::until_equal(Duration::from_secs(60), "pipes", expected, len).await.unwrap();
            }
        };
        let replace = |text: String| {
            std::fs::write(&fresh, text).unwrap();
            std::fs::rename(&fresh, &file).unwrap();
        };
        replace(text(&["a", "b"]));
        held(2).await;
        // refused, then gone: the two stay until there is a good one
        replace(text(&["a", "a", "c"]));
        std::fs::remove_file(&file).unwrap();
        adopt(&file, text(&["a", "a", "c"]).as_bytes(), &loaded.pipes);
        assert_eq!(loaded.pipes.len(), 2);
        replace(text(&["a", "b", "c"]));
        held(3).await;
        stop.give();
        tasks.wait().await;
    }
}
