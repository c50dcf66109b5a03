//! The workspace's files, as the checks read them.

use crate::finding::Finding;
use anyhow::{Context, Result};
use std::{ffi::OsStr, fs, path::Path, process::Command};

/// cargo, as the one that runs us, with the environment that it was run with. What it told us of our own package would
/// make build scripts run again that ask for it, and everything that depends on them be built twice.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let told = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| told.iter().any(|told| name.starts_with(told))) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Folders that hold nothing of ours.
const NOT_OURS: [&str; 5] = ["target", ".git", "data", "node_modules", ".idea"];
/// Kinds of files that are read as text.
const TEXT: [&str; 10] = ["rs", "md", "toml", "yaml", "yml", "xml", "json", "sh", "html", "conf"];

/// A text file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The file's own name.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Its lines that are not comments, numbered from 1.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines().filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Its lines, numbered from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    pub(crate) fn finding(&self, line: usize, text: impl Into<String>) -> Finding {
        Finding::at(&self.path, line, text)
    }
}

/// All text files of the workspace, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

impl Tree {
    /// Reads them.
    pub(crate) fn read() -> Result<Self> {
        let root = wh_testkit::workspace::root()?;
        let mut files = Vec::new();
        walk(&root, &root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// The file at a path.
    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// A tree made up by a test.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).into(), text: (*text).into() };
        Self { files: files.iter().map(file).collect() }
    }
}

fn walk(root: &Path, dir: &Path, files: &mut Vec<File>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            // data/ is a run's own folder at the root only: examples have one with files of ours
            if !NOT_OURS.contains(&name.as_str()) || (name == "data" && dir != root) {
                walk(root, &path, files)?;
            }
        } else if kind.is_file() && is_text(&path) {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            files.push(File { path: path.strip_prefix(root)?.to_string_lossy().replace('\\', "/"), text });
        }
    }
    Ok(())
}

/// By its extension; a file without one (a script, a Dockerfile) is text too.
fn is_text(path: &Path) -> bool {
    match path.extension() {
        Some(extension) => TEXT.iter().any(|text| extension == *text),
        None => true,
    }
}
