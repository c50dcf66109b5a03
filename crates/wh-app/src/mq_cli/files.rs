//! The files of `wavehouse mq`: answers that were kept, and what is printed into a folder.

use std::{
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use wh_topology::{Captured, File, Observed};

/// The largest file that is read: 256 full answers for one page of consumers are far below it.
const MAX_BYTES: u64 = 64 << 20;

/// What the answers in these files say, and in the `.json` files of these folders.
pub(super) fn captured(paths: &[PathBuf]) -> Result<Observed, String> {
    let mut texts = Vec::new();
    for path in paths {
        for file in files(path)? {
            texts.push((file.display().to_string(), read(&file)?));
        }
    }
    Captured::new(texts).read().map_err(|error| error.to_string())
}

fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("cannot read {}: {error}", path.display());
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut files: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    if files.is_empty() { Err(format!("{} holds no .json file", path.display())) } else { Ok(files) }
}

fn read(path: &Path) -> Result<String, String> {
    let failed = |error| format!("cannot read {}: {error}", path.display());
    let mut text = String::new();
    fs::File::open(path).map_err(failed)?.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("{} is larger than {} MiB", path.display(), MAX_BYTES >> 20));
    }
    Ok(text)
}

/// Writes the files into a folder, which is made where it is missing. Returns their paths.
pub(super) fn write(folder: &Path, files: &[File]) -> Result<Vec<PathBuf>, String> {
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    files.iter().map(|file| write_one(folder, file)).collect()
}

fn write_one(folder: &Path, file: &File) -> Result<PathBuf, String> {
    let path = folder.join(&file.name);
    let failed = |error| format!("cannot write {}: {error}", path.display());
    fs::write(&path, &file.text).map_err(failed)?;
    if file.executable {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    Ok(path)
}
