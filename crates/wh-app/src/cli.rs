//! The command line: flags in, exit code out. What a command does stands elsewhere.

use crate::{
    About, Exit, counted::Counted, dlq_cli, doctor, doctor_cache, doctor_clickhouse, doctor_nats, error::with_causes,
    health, mq_cli, parts, pipes, place::Place, queue, queue_report, run, telemetry::install_logs,
};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};
use wh_config::{Config, Environment, Loaded, LogLevel, Program, QueueBackend, reference};
use wh_mq::embedded::inspect;
use wh_types::SystemClock;

// Its name and its first line of help are the program's.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Cli {
    /// Print version and commit
    #[arg(long, short = 'V')]
    version: bool,
    /// The configuration file
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help = "The configuration file [default: WH_CONFIG, else config.yaml]"
    )]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server (the default)
    Serve,
    /// The configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look into the queue of a server that does not run
    #[command(subcommand)]
    Queue(QueueCommand),
    /// What to create on a NATS cluster: print it, permit it, judge it, plan it
    #[command(subcommand)]
    Mq(Box<mq_cli::MqCommand>),
    /// The dead letters of a running server: list, show, count, check, replay and purge them
    Dlq(Box<dlq_cli::Dlq>),
    /// Measure what the data folder's disk can do and what ingest rate to expect, or look at what the role needs on NATS, and
    /// see whether ClickHouse, and a cache on Redis, answer and can be used: exit code 1 when something is not as it must be
    Doctor,
    /// Ask a running server whether it lives: exit code 0 or 1
    Health {
        /// Where to ask [default: /livez where the configuration says the server is]
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
    /// Print version and commit
    Version {
        /// As the JSON object that /version gives
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Check the configuration without starting anything: exit code 0 or 64
    Check {
        /// Print every value in effect and where it came from
        #[arg(long)]
        show: bool,
    },
    /// Print the reference of all keys, in Markdown
    Reference,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// List what is in it: exit code 0, or 1 when something cannot be read
    Inspect(QueueArgs),
    /// The same, and read every byte of it
    Verify(QueueArgs),
    /// Copy the queue of a server that may run, to inspect or verify the copy
    Copy {
        /// The queue's folder [default: the one of the configuration]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// The folder of the copy: it is made, or must be empty
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct QueueArgs {
    /// The queue's folder [default: the one of the configuration]; with --config, budgets are shown as that one has them
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// As a JSON object
    #[arg(long)]
    json: bool,
}

/// Runs a command with the process's own environment, output and signals. A program with fixed roles names them, in the
/// words of the key `roles`.
#[must_use]
pub fn main(about: About, roles: Option<&'static [&'static str]>) -> Exit {
    let arguments = std::env::args_os();
    run_with(about, roles, arguments, &Environment::of_process(), &mut io::stdout().lock(), &mut io::stderr())
}

/// Runs a command. Prints its result to `out` and what is wrong to `err`; logs go to standard error.
pub fn run_with(
    about: About,
    roles: Option<&'static [&'static str]>,
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Exit {
    let program = roles.map(|roles| Program { name: about.name, roles });
    let cli = match parse(about, roles, arguments) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            say(err, &error.render());
            return Exit::Usage;
        }
        Err(help) => {
            say(out, &help.render());
            return Exit::Ok;
        }
    };
    if cli.version {
        say(out, &about);
        return Exit::Ok;
    }
    let place = &Place { program, file: cli.config.as_deref(), environment };
    match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => with_config(place, err, |loaded, err| serve(about, loaded, err)),
        Command::Config(ConfigCommand::Check { show }) => {
            with_config(place, err, |loaded, err| check(&loaded, show, out, err))
        }
        Command::Config(ConfigCommand::Reference) => {
            say(out, &reference().trim_end());
            Exit::Ok
        }
        Command::Queue(QueueCommand::Inspect(args)) => look(args, inspect::inspect, place, out, err),
        Command::Queue(QueueCommand::Verify(args)) => look(args, inspect::verify, place, out, err),
        Command::Queue(QueueCommand::Copy { dir, to }) => copy(dir.as_deref(), &to, place, out, err),
        Command::Mq(command) => mq_cli::run(*command, place, out, err),
        Command::Dlq(command) => dlq_cli::run(*command, place, out, err),
        Command::Doctor => with_config(place, err, |loaded, err| examine(&loaded, out, err)),
        Command::Health { url: Some(url) } => ask(&url, err),
        Command::Health { url: None } => {
            with_config(place, err, |loaded, err| ask(&health::url(&loaded.config.server), err))
        }
        Command::Version { json } => {
            match json.then(|| serde_json::to_string(&parts::version(about))) {
                Some(Ok(json)) => say(out, &json),
                Some(Err(error)) => say(err, &error),
                None => say(out, &about),
            }
            Exit::Ok
        }
    }
}

/// What `queue inspect` says where there is no folder to look into.
const NO_FOLDER: &str = "mq.backend is nats: the queue is on NATS and has no folder. `wavehouse mq verify --live` judges \
    what is there; --dir names the folder of an embedded queue";

/// Whether the configuration puts the queue on NATS. One that cannot be is told of elsewhere.
fn on_nats(place: &Place<'_>) -> bool {
    place.load().is_ok_and(|loaded| loaded.config.mq.backend == QueueBackend::Nats)
}

/// A closed pipe is nobody's fault.
fn say(to: &mut dyn Write, what: &dyn std::fmt::Display) {
    drop(writeln!(to, "{what}"));
}

/// Reads the command line as the program's.
fn parse(
    about: About,
    roles: Option<&[&str]>,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Cli, clap::Error> {
    let does = match roles {
        None => "events over HTTP into ClickHouse, queried and streamed".to_owned(),
        Some(["api"]) => "events over HTTP into the queue on NATS, queries and streams".to_owned(),
        Some(["ingest"]) => "rows from the queue on NATS into ClickHouse".to_owned(),
        Some(roles) => format!("the roles {}", roles.join(", ")),
    };
    let command = Cli::command().name(about.name).about(format!("WaveHouse: {does}"));
    Cli::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

fn with_config(place: &Place<'_>, err: &mut dyn Write, act: impl FnOnce(Loaded, &mut dyn Write) -> Exit) -> Exit {
    match place.load() {
        Ok(loaded) => act(loaded, err),
        Err(findings) => {
            say(err, &findings);
            Exit::Config
        }
    }
}

fn check(loaded: &Loaded, show: bool, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    for warning in &loaded.warnings {
        say(err, &format_args!("warning: {warning}"));
    }
    if show {
        for key in &loaded.effective {
            let line = format!("{}: {}", key.path, key.value);
            let bytes = key.bytes.map(|bytes| format!("; {bytes} bytes")).unwrap_or_default();
            say(out, &format_args!("{line:<64} # {}{bytes}", key.origin));
        }
    } else {
        let file = loaded.file.as_ref().map_or("no file".to_owned(), |file| file.display().to_string());
        say(out, &format_args!("the configuration is good ({file})"));
    }
    Exit::Ok
}

fn look(
    args: QueueArgs,
    look: fn(&Path, Option<wh_mq::Allowance>) -> wh_mq::Result<inspect::Report>,
    place: &Place<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Exit {
    let mut print = |dir: &Path, default, err: &mut dyn Write| match look(dir, default) {
        Ok(report) => {
            if args.json {
                say(out, &queue_report::json(&report));
            } else {
                say(out, &queue_report::Text(&report));
            }
            if report.is_sound() { Exit::Ok } else { Exit::Failure }
        }
        Err(error) => {
            say(err, &with_causes(&error));
            Exit::Failure
        }
    };
    match &args.dir {
        // a folder by itself may be of any server: what its tenants have by default is in that one's configuration
        Some(dir) if place.file.is_none() => print(dir, None, err),
        None if on_nats(place) => {
            say(err, &NO_FOLDER);
            Exit::Usage
        }
        dir => with_config(place, err, |loaded, err| {
            let folder = queue::folder(&loaded.config);
            print(dir.as_ref().unwrap_or(&folder), Some(queue::allowance(&loaded.config)), err)
        }),
    }
}

/// Copies a queue's folder while its server writes to it.
fn copy(dir: Option<&Path>, to: &Path, place: &Place<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let mut copy = |from: &Path, err: &mut dyn Write| match inspect::copy(from, to) {
        Ok(copied) => {
            let segments = Counted(copied.segments, "segment");
            say(out, &format_args!("copied {segments}, {} bytes, to {}", copied.bytes, to.display()));
            Exit::Ok
        }
        Err(error) => {
            say(err, &with_causes(&error));
            Exit::Failure
        }
    };
    match dir {
        Some(dir) => copy(dir, err),
        None if on_nats(place) => {
            say(err, &NO_FOLDER);
            Exit::Usage
        }
        None => with_config(place, err, |loaded, err| copy(&queue::folder(&loaded.config), err)),
    }
}

fn examine(loaded: &Loaded, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    match queue_found(&loaded.config) {
        Ok((found, true)) => say(out, &found),
        Ok((found, false)) => {
            say(out, &found);
            return Exit::Failure;
        }
        Err(error) => {
            say(err, &format_args!("{error:#}"));
            return Exit::Failure;
        }
    }
    let pipes = match pipes::look(&loaded.config) {
        Ok(found) => {
            found.iter().for_each(|found| say(out, found));
            true
        }
        Err(refused) => {
            say(out, &refused);
            false
        }
    };
    let both = async {
        let clickhouse = doctor_clickhouse::look(&loaded.config).await?;
        Ok((clickhouse, doctor_cache::look(&loaded.config).await))
    };
    match blocking(both) {
        Ok((clickhouse, cache)) => {
            say(out, &clickhouse);
            if let Some(cache) = &cache {
                say(out, cache);
            }
            let fault = !pipes || clickhouse.is_fault() || cache.is_some_and(|cache| cache.is_fault());
            if fault { Exit::Failure } else { Exit::Ok }
        }
        Err(error) => {
            say(err, &format_args!("{error:#}"));
            Exit::Failure
        }
    }
}

/// What is to be said of the queue, and whether a process can start on it.
fn queue_found(config: &Config) -> anyhow::Result<(String, bool)> {
    match config.mq.backend {
        QueueBackend::Embedded => {
            let measured = doctor::measure(&config.data_dir, Duration::from_secs(2), &SystemClock)?;
            Ok((measured.to_string(), true))
        }
        QueueBackend::Nats => {
            let found = blocking(async { Ok(doctor_nats::look(config).await) })?;
            Ok((found.to_string(), !found.is_fault()))
        }
    }
}

/// Runs a question that a command asks.
fn blocking<T>(ask: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(ask)
}

fn ask(url: &str, err: &mut dyn Write) -> Exit {
    match blocking(health::ask(url)) {
        Ok(()) => Exit::Ok,
        Err(error) => {
            say(err, &format_args!("not healthy: {error:#}"));
            Exit::Failure
        }
    }
}

fn serve(about: About, loaded: Loaded, err: &mut dyn Write) -> Exit {
    let silent = loaded.config.log.level == LogLevel::Off;
    let ended = install_logs(loaded.config.log).map_err(anyhow::Error::from).and_then(|()| run(about, loaded));
    match ended {
        Ok(exit) => exit,
        Err(error) => {
            tracing::error!("{error:#}");
            if silent {
                say(err, &format_args!("{error:#}"));
            }
            Exit::Failure
        }
    }
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
