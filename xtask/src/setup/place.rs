//! One server's folder: whether what is in it is what we pin, and how it is filled all or nothing.

use crate::tell::Teller;
use anyhow::{Context, Result, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
};
use wh_testkit::servers;

/// Fills an empty folder and says what it got.
pub(super) type Fill = Box<dyn Fn(&Path, &mut Teller) -> Result<String>>;

/// A server's folder in `target/servers/`.
pub(super) struct Place {
    /// What messages call it.
    pub(super) name: String,
    /// The folder's name.
    pub(super) dir: String,
    /// What must stand in it in the end, relative to it.
    pub(super) file: &'static str,
    /// What is pinned. A folder with another stamp is brought anew.
    pub(super) pin: String,
    /// Given by the user instead: nothing is brought.
    pub(super) given: Option<String>,
    /// How it is filled.
    pub(super) fill: Fill,
}

const STAMP: &str = ".stamp";

impl Place {
    fn path(&self) -> Result<PathBuf> {
        Ok(servers::dir()?.join(&self.dir))
    }

    /// What is there, when it is what we pin.
    pub(super) fn present(&self) -> Result<Option<String>> {
        if self.given.is_some() {
            return Ok(self.given.clone());
        }
        let path = self.path()?;
        let stamp = fs::read_to_string(path.join(STAMP)).unwrap_or_default();
        let (pin, what) = stamp.split_once('\n').unwrap_or_default();
        let whole = pin == self.pin && path.join(self.file).exists();
        Ok(whole.then(|| what.trim_end().to_owned()))
    }

    /// Fills it. A setup that is interrupted leaves what was there.
    pub(super) fn bring(&self, teller: &mut Teller) -> Result<()> {
        let path = self.path()?;
        let new = path.with_extension("new");
        if new.exists() {
            fs::remove_dir_all(&new)?;
        }
        fs::create_dir_all(&new).with_context(|| format!("cannot write to {}", new.display()))?;
        let filled = (self.fill)(&new, teller);
        let finish = filled.and_then(|what| {
            ensure!(new.join(self.file).exists(), "the package has no {}", self.file);
            fs::write(new.join(STAMP), format!("{}\n{what}\n", self.pin))?;
            if path.exists() {
                fs::remove_dir_all(&path)?;
            }
            fs::rename(&new, &path)?;
            Ok(what)
        });
        match finish {
            Ok(what) => {
                teller.done(&format!("{}: {what}", self.name));
                Ok(())
            }
            Err(error) => {
                teller.give_up();
                fs::remove_dir_all(&new).ok();
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(pin: &str, fill: Fill) -> Place {
        // an absolute name replaces the servers' folder
        let dir = tempfile::tempdir().unwrap().keep().join("server").display().to_string();
        Place { name: "test".into(), dir, file: "bin", pin: pin.into(), given: None, fill }
    }

    fn writes(content: &'static str) -> Fill {
        Box::new(move |dir, _| {
            fs::write(dir.join("bin"), content)?;
            Ok(format!("got {content}"))
        })
    }

    #[test]
    fn it_is_brought_once_and_again_for_another_pin() {
        let mut place = place("one", writes("1"));
        assert_eq!(place.present().unwrap(), None);
        place.bring(&mut Teller::new()).unwrap();
        assert_eq!(place.present().unwrap().as_deref(), Some("got 1"));
        (place.pin, place.fill) = ("two".into(), writes("2"));
        assert_eq!(place.present().unwrap(), None);
        place.bring(&mut Teller::new()).unwrap();
        assert_eq!(place.present().unwrap().as_deref(), Some("got 2"));
        fs::remove_dir_all(Path::new(&place.dir).parent().unwrap()).unwrap();
    }

    #[test]
    fn a_failed_bring_leaves_what_was_there_and_no_rest() {
        let mut place = place("one", writes("1"));
        place.bring(&mut Teller::new()).unwrap();
        place.fill = Box::new(|dir, _| {
            fs::write(dir.join("half"), "")?;
            anyhow::bail!("no network")
        });
        assert_eq!(place.bring(&mut Teller::new()).unwrap_err().to_string(), "no network");
        place.fill = Box::new(|_, _| Ok("nothing".into()));
        assert!(place.bring(&mut Teller::new()).unwrap_err().to_string().contains("has no bin"));
        assert_eq!(place.present().unwrap().as_deref(), Some("got 1"));
        let parent = Path::new(&place.dir).parent().unwrap().to_owned();
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 1);
        fs::remove_dir_all(parent).unwrap();
    }
}
