//! The queue in a data folder. A crash is a copy of the folder as it is at that moment: what a process that is killed
//! leaves behind.

use crate::{Arm, Ending, Profile, Setup, Stand};
use anyhow::Context as _;
use async_trait::async_trait;
use std::{fs, io::ErrorKind, path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;
use wh_mq::{Broker, embedded};

/// The arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Embedded;

#[derive(Debug)]
struct EmbeddedStand {
    setup: Setup,
    dir: TempDir,
    broker: embedded::Broker,
}

async fn open(dir: &Path, setup: &Setup) -> anyhow::Result<embedded::Broker> {
    let mut options = embedded::Options::new(dir.join("queue"));
    options.shards = setup.shards;
    options.ack_wait = setup.ack_wait;
    options.duplicate_window = setup.duplicate_window;
    options.default_allowance = setup.allowance;
    options.upkeep_every = Duration::from_millis(50);
    Ok(embedded::Broker::open(options).await?)
}

#[async_trait]
impl Arm for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn profile(&self) -> Profile {
        Profile {
            allowances: true,
            purge: true,
            tables_take_turns: true,
            whole_history: true,
            ack_wait: true,
            max_body: embedded::Options::new("").max_body(),
        }
    }

    async fn open(&self, setup: Setup) -> anyhow::Result<Box<dyn Stand>> {
        let dir = tempfile::tempdir()?;
        let broker = open(dir.path(), &setup).await?;
        Ok(Box::new(EmbeddedStand { setup, dir, broker }))
    }
}

#[async_trait]
impl Stand for EmbeddedStand {
    fn broker(&self) -> Arc<dyn Broker> {
        Arc::new(self.broker.clone())
    }

    async fn reopen(&mut self, ending: Ending) -> anyhow::Result<()> {
        match ending {
            Ending::Clean => self.broker.close().await,
            Ending::Crash => {
                let copy = loop {
                    let copy = tempfile::tempdir()?;
                    match copy_dir(&self.dir.path().join("queue"), &copy.path().join("queue")) {
                        Ok(()) => break copy,
                        // a file that was written under another name, or freed, just now: as it is at the next moment
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => return Err(error).context("copying the folder"),
                    }
                };
                // only now, so that its farewell is not in the copy
                self.broker.close().await;
                self.dir = copy;
            }
        }
        self.broker = open(self.dir.path(), &self.setup).await?;
        Ok(())
    }
}

fn copy_dir(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    let mut entries = fs::read_dir(from)?.collect::<Result<Vec<_>, _>>()?;
    // first what says how far the log is: the queue goes on writing while the rest is copied
    entries.sort_by_key(|entry| entry.file_name() != "extent");
    for entry in entries {
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
