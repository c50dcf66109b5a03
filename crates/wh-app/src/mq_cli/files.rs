//! The files of `wavehouse mq`: answers that were kept, and what is printed into a folder.

use std::{
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use wh_topology::{Captured, File, Observed, Role, Spec};

/// The largest file that is read: 256 full answers for one page of consumers are far below it.
const MAX_BYTES: u64 = 64 << 20;

/// What the answers in these files say, and in the `.json` files of these folders, for a process of this role.
pub(super) fn captured(paths: &[PathBuf], spec: &Spec, role: Role) -> Result<Observed, String> {
    let mut texts = Vec::new();
    for path in paths {
        for file in files(path)? {
            texts.push((file.display().to_string(), read(&file)?));
        }
    }
    let seen = Captured::new(texts).read().map_err(|error| error.to_string())?;
    match seen.unlisted_consumers(spec, role) {
        Some(problem) => Err(format!("the answers together {problem}")),
        None => Ok(seen),
    }
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

/// Writes the files into a folder, which is made where it is missing: all of them or none. Returns their paths.
pub(super) fn write(folder: &Path, files: &[File]) -> Result<Vec<PathBuf>, String> {
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // beside where they will be, so that each is put in place by a rename
    let aside = tempfile::Builder::new().prefix(".wavehouse-").tempdir_in(folder);
    let aside = aside.map_err(|error| format!("cannot write into {}: {error}", folder.display()))?;
    for file in files {
        write_one(&aside.path().join(&file.name), file)?;
        if folder.join(&file.name).is_dir() {
            return Err(format!("cannot write {}: it is a folder", folder.join(&file.name).display()));
        }
    }
    let place = |file: &File| {
        let path = folder.join(&file.name);
        fs::rename(aside.path().join(&file.name), &path)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    };
    files.iter().map(place).collect()
}

/// The same, and removes what an earlier set of that name had and this one has not. A hidden list in the folder says
/// what that was; files of others stay. Returns what was written and what was removed.
pub(super) fn write_set(folder: &Path, set: &str, files: &[File]) -> Result<(Vec<PathBuf>, Vec<PathBuf>), String> {
    let list = format!(".wavehouse-{set}");
    let earlier = match read(&folder.join(&list)) {
        Ok(text) => text,
        Err(_) if !folder.join(&list).exists() => String::new(),
        Err(error) => return Err(error),
    };
    let text: String = files.iter().map(|file| format!("{}\n", file.name)).collect();
    let paths = write(folder, files)?;
    let mut removed = Vec::new();
    let gone = earlier.lines().filter(|name| is_plain(name) && !files.iter().any(|file| file.name == **name));
    for path in gone.map(|name| folder.join(name)).filter(|path| path.is_file()) {
        fs::remove_file(&path).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
        removed.push(path);
    }
    // last, so that a run that was cut short leaves nothing that nobody knows
    let _ = write(folder, &[File { name: list, text, executable: false }])?;
    Ok((paths, removed))
}

/// Whether it is a name in the folder, and not a way out of it.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

fn write_one(path: &Path, file: &File) -> Result<(), String> {
    let failed = |error| format!("cannot write {}: {error}", file.name);
    fs::write(path, &file.text).map_err(failed)?;
    if file.executable {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    Ok(())
}
