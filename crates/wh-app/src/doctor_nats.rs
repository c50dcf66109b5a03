//! What `wavehouse doctor` says of a queue on NATS: whether its servers answer and how fast, whether the topology is sound
//! and the user may do what its role must, and who takes part in sharing the units. Changes nothing.

use crate::{
    error::with_causes,
    nats::{options, role},
    peers::Counts,
};
use std::{fmt, sync::Arc, time::Duration};
use wh_config::Config;
use wh_coord::{Key, Leases as _};
use wh_mq::nats::boot::{Check, Report};
use wh_nats::Connection;
use wh_topology::Role;
use wh_types::{Clock, OsEntropy, SystemClock, Tasks};

/// Most time for the check, once connected.
const PATIENCE: Duration = Duration::from_secs(30);
/// Round trips that are measured.
const TRIPS: usize = 50;

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    place: String,
    role: Role,
    counts: Counts,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing can be said of what is on it.
    Unknown(String),
    Read(Read),
}

/// Names, and the counts of those that say them.
type Members = Vec<(String, Option<Counts>)>;

#[derive(Debug)]
struct Read {
    servers: String,
    /// Times of round trips, shortest first. Never empty.
    trips: Vec<Duration>,
    report: Report,
    /// Who is a member, with its counts where it says them; of a process that ingests.
    members: Option<Result<Members, String>>,
}

impl Found {
    /// Whether somebody must change something before a process can run.
    pub(crate) fn is_fault(&self) -> bool {
        match &self.state {
            State::Unknown(_) => true,
            State::Read(Read { report, members, .. }) => !report.is_sound() || matches!(members, Some(Err(_))),
        }
    }
}

/// Asks once.
pub(crate) async fn look(config: &Config) -> Found {
    let (queue, role) = (&config.mq.nats, role(config.roles));
    let urls: Vec<_> = queue.urls.iter().map(|url| wh_nats::masked(url)).collect();
    let counts = Counts::of(queue.topology.choices());
    let state = match Connection::open(options(queue, "wavehouse-doctor")).await {
        Err(error) => State::Unknown(format!("no server can be used: {}", with_causes(&error))),
        Ok(connection) => {
            let read = tokio::time::timeout(PATIENCE, read(config, role, &connection)).await;
            let slow = || Err(format!("the servers did not answer everything within {} s", PATIENCE.as_secs()));
            connection.close().await;
            read.unwrap_or_else(|_| slow()).map_or_else(State::Unknown, State::Read)
        }
    };
    Found { place: urls.join(", "), role, counts, state }
}

async fn read(config: &Config, role: Role, connection: &Connection) -> Result<Read, String> {
    let mut trips = Vec::new();
    for _ in 0..TRIPS {
        let began = SystemClock.now();
        connection.round_trip().await.map_err(|error| with_causes(&error))?;
        trips.push(SystemClock.now() - began);
    }
    trips.sort_unstable();
    let check = Check::new(connection, &config.mq.nats.topology, role);
    let report = check.run().await.map_err(|error| error.to_string())?;
    let servers = connection.state().servers.into_iter().map(|(name, version)| format!("{name} {version}"));
    let members = if role.ingests() { Some(members(config, connection).await) } else { None };
    Ok(Read { servers: servers.collect::<Vec<_>>().join(", "), trips, report, members })
}

/// Who has a lease now, alive or not.
async fn members(config: &Config, connection: &Connection) -> Result<Members, String> {
    let tasks = Tasks::new();
    let options = wh_coord::Options {
        holder: "wavehouse-doctor".to_owned(),
        duration: config.coord.lease,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(OsEntropy),
        tasks: tasks.clone(),
    };
    let read = async {
        let leases = wh_coord::nats::Leases::open(connection, &config.mq.nats.topology.names().bucket, options).await?;
        let seen = leases.observe(&Key::new(wh_ingest::MEMBERS)?).await;
        leases.close().await;
        seen
    };
    let seen = read.await.map_err(|error| with_causes(&error))?;
    tasks.wait().await;
    Ok(seen.into_values().map(|seen| (seen.holder, Counts::read(&seen.note))).collect())
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Api => "api",
            Role::Ingest => "ingest",
            Role::Both => "api and ingest",
        };
        writeln!(f, "queue on NATS {}, for the role {role}; no data folder is needed", self.place)?;
        let Read { servers, trips, report, members } = match &self.state {
            State::Unknown(why) => return write!(f, "{why}"),
            State::Read(read) => read,
        };
        let (median, slowest) = (trips[trips.len() / 2], trips[trips.len() - 1]);
        writeln!(f, "it answers: {servers}; a round trip takes {median:.1?} at the median, {slowest:.1?} at most")?;
        let Counts { partitions, shards } = self.counts;
        if report.is_sound() {
            write!(
                f,
                "the topology of {partitions} partitions of {shards} shards is sound, and the user may do its work"
            )?;
        } else {
            write!(f, "a process cannot start on it")?;
        }
        report.findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))?;
        match members {
            None => Ok(()),
            Some(Err(why)) => write!(f, "\nthe members cannot be read: {why}"),
            Some(Ok(members)) if members.is_empty() => write!(f, "\nno other process ingests from it"),
            Some(Ok(members)) => {
                write!(f, "\nmembers that ingest from it, or did until a moment ago:")?;
                members.iter().try_for_each(|(name, counts)| match counts {
                    Some(counts) if *counts != self.counts => {
                        write!(f, " {name} ({counts}, which keeps this one from starting)")
                    }
                    Some(_) | None => write!(f, " {name}"),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use wh_config::{Environment, load};
    use wh_testkit::nats::{self, PASSWORD, Shape};
    use wh_topology::{Choices, Rights, RightsFormat, Spec, Topology, renderer};

    async fn found(url: &str, user: &str, roles: &str) -> Found {
        let dir = tempfile::tempdir().unwrap();
        let (password, key) = (dir.path().join("password"), dir.path().join("key"));
        fs::write(&password, PASSWORD).unwrap();
        fs::write(&key, "an-operator-key").unwrap();
        let variables = [
            ("WH_MQ_BACKEND", "nats"),
            ("WH_COORD_BACKEND", "nats"),
            ("WH_MQ_NATS_URLS", url),
            ("WH_MQ_NATS_USER", user),
            ("WH_MQ_NATS_PASSWORD_FILE", password.to_str().unwrap()),
            ("WH_MQ_NATS_PARTITIONS", "1"),
            ("WH_MQ_NATS_SHARDS", "2"),
            ("WH_MQ_NATS_REPLICAS", "1"),
            ("WH_ROLES", roles),
            ("WH_AUTH_OPERATOR_KEY_FILE", key.to_str().unwrap()),
        ];
        look(&load(None, &Environment::new(variables)).unwrap().config).await
    }

    #[tokio::test]
    async fn what_a_role_needs_on_nats_is_told() {
        let choices = Choices { partitions: 1, shards: 2, replicas: 1, file_store: 1 << 30, ..Choices::default() };
        let spec = Spec::new(choices).unwrap();
        let user = |options: nats::Options, role: Role| {
            options.user(role.user(), Rights::new(&spec, role).print(RightsFormat::Nats))
        };
        let server = nats::Server::with(Role::ALL.into_iter().fold(nats::Options::default(), user)).await.unwrap();
        let (api, ingest) = ("api", "ingest");
        let bare = found(&server.url(), Role::Ingest.user(), ingest).await;
        assert!(bare.is_fault() && bare.to_string().contains("a process cannot start on it"), "{bare}");

        let files = renderer("nats-cli").unwrap().render(&Topology::new(spec.clone()).unwrap()).unwrap();
        let files = files.into_iter().map(|file| (file.name, file.text));
        server.operator().apply(files, &Shape::default()).await.unwrap();
        let good = found(&server.url(), Role::Ingest.user(), ingest).await;
        let text = good.to_string();
        assert!(!good.is_fault() && text.contains("for the role ingest; no data folder"), "{text}");
        assert!(text.contains("1 partitions of 2 shards is sound") && text.contains("no other process"), "{text}");
        let good = found(&server.url(), Role::Api.user(), api).await;
        assert!(!good.is_fault() && !good.to_string().contains("no other process"), "{good}");

        // the rights of another role
        let wrong = found(&server.url(), Role::Api.user(), ingest).await;
        assert!(wrong.is_fault(), "{wrong}");
        let away = found("nats://127.0.0.1:1", Role::Api.user(), api).await;
        assert!(away.is_fault() && away.to_string().contains("no server can be used"), "{away}");
    }
}
