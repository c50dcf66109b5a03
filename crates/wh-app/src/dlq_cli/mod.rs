//! `wavehouse dlq`: what was parked, looked at, tried again and removed through `/v1/ops/dead-letters` of a running
//! server. Decides nothing itself: the server does, and says where to go on.

mod args;
mod client;
mod print;
#[cfg(test)]
mod tests;

use crate::{Exit, health, place::Place};
pub(crate) use args::Dlq;
use args::{Body, Chosen, DlqCommand};
use client::Client;
use serde_json::Value;
use std::io::{self, BufRead, IsTerminal, Write};

/// Why a command could not do its work.
enum Failed {
    /// The command line asks for what cannot be: exit code 2.
    Usage(String),
    /// The configuration cannot be: exit code 64.
    Config(String),
    /// Anything else: exit code 1.
    Work(String),
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self::Work(format!("{error:#}"))
    }
}

/// Runs a command: 0 as asked, 1 it failed or a row was refused, not attempted or not found, 2 a command line that cannot be or that
/// nobody confirmed, 64 a configuration that cannot be.
pub(crate) fn run(command: Dlq, at: &Place<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let (text, exit) = match act(&command, at, out, err) {
        Ok(exit) => return exit,
        Err(Failed::Usage(text)) => (text, Exit::Usage),
        Err(Failed::Config(text)) => (text, Exit::Config),
        Err(Failed::Work(text)) => (text, Exit::Failure),
    };
    say(err, &text);
    exit
}

fn say(to: &mut dyn Write, what: &dyn std::fmt::Display) {
    drop(writeln!(to, "{what}"));
}

fn act(command: &Dlq, at: &Place<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Failed> {
    let Dlq { command, to } = command;
    // before anything is asked of anybody
    let ask = match command {
        DlqCommand::Check { chosen, edit } => Some(("check", chosen, chosen.body(edit.steps()?)?)),
        DlqCommand::Replay { chosen, edit, keep, .. } => {
            let mut body = chosen.body(edit.steps()?)?;
            if *keep {
                body.rest.insert("keep".to_owned(), Value::Bool(true));
            }
            Some(("replay", chosen, body))
        }
        DlqCommand::Purge { chosen, .. } => Some(("purge", chosen, chosen.body(Vec::new())?)),
        DlqCommand::List { .. } | DlqCommand::Show { .. } | DlqCommand::Counts { .. } => None,
    };
    let client = client(to, at)?;
    let tenant = to.tenant.as_deref();
    match command {
        DlqCommand::List { filter, limit, cursor } => {
            let page = client.get("", &filter.query(tenant, *limit, cursor.as_deref()))?;
            print::show(to.json, &page, print::list, out);
            Ok(Exit::Ok)
        }
        DlqCommand::Show { id } => {
            let letter = client.get(&format!("/{id}"), &args::Filter::default().query(tenant, None, None))?;
            print::show(to.json, &letter, print::letter, out);
            Ok(Exit::Ok)
        }
        DlqCommand::Counts { table } => {
            let filter = args::Filter { table: table.clone(), ..args::Filter::default() };
            let counts = client.get("/counts", &filter.query(tenant, None, None))?;
            print::show(to.json, &counts, print::counts, out);
            Ok(Exit::Ok)
        }
        DlqCommand::Check { .. } | DlqCommand::Replay { .. } | DlqCommand::Purge { .. } => {
            let Some((what, chosen, body)) = ask else { return Ok(Exit::Usage) };
            let yes = matches!(command, DlqCommand::Replay { yes: true, .. } | DlqCommand::Purge { yes: true, .. });
            if what != "check" && !yes {
                confirmed(what, chosen, err)?;
            }
            walk(&client, tenant, what, chosen, body, to.json, out)
        }
    }
}

fn client(to: &args::To, at: &Place<'_>) -> Result<Client, Failed> {
    let loaded = if to.url.is_some() && to.operator_key_file.is_some() {
        None
    } else {
        Some(at.load().map_err(|findings| Failed::Config(findings.to_string()))?.config)
    };
    let key = match (&to.operator_key_file, &loaded) {
        (Some(file), _) => Some(wh_types::Secret::read(file).map_err(|error| Failed::Work(error.to_string()))?),
        (None, Some(config)) => config.auth.operator_key.read().map_err(|error| Failed::Work(error.to_string()))?,
        (None, None) => None,
    };
    let key = key.filter(|key| !key.is_empty()).ok_or_else(|| {
        Failed::Config("no operator key: name its file with --operator-key-file or auth.operator_key_file".to_owned())
    })?;
    let url = match (&to.url, &loaded) {
        (Some(url), _) => url.clone(),
        (None, Some(config)) => health::url(&config.server).trim_end_matches("/livez").to_owned(),
        (None, None) => return Err(Failed::Usage("no --url".to_owned())),
    };
    Client::new(&url, key).map_err(Failed::Usage)
}

/// Goes on until there is nothing more, the limit is reached, or the server stops.
fn walk(
    client: &Client,
    tenant: Option<&str>,
    what: &str,
    chosen: &Chosen,
    mut body: Body,
    json: bool,
    out: &mut dyn Write,
) -> Result<Exit, Failed> {
    let query = args::Filter::default().query(tenant, None, None);
    let (mut total, mut left) = (print::Totals::default(), chosen.limit);
    loop {
        if let Some(left) = left {
            body.rest.insert("limit".to_owned(), left.min(1_000).into());
        }
        let report = client.post(&format!("/{what}"), &query, &body)?;
        if json {
            say(out, &report);
        } else {
            print::results(&report, out);
        }
        total.add(&report);
        let done = ["matched", "not_found"].iter().filter_map(|name| report[*name].as_u64()).sum::<u64>();
        left = left.map(|left| left.saturating_sub(usize::try_from(done).unwrap_or(usize::MAX)));
        let next = report["next"].as_str().filter(|_| report.get("stopped").is_none() && left != Some(0));
        match next {
            Some(next) => body.rest.insert("cursor".to_owned(), next.into()),
            None => {
                if !json {
                    total.print(what, &report, out);
                }
                return Ok(if total.is_good(&report) { Exit::Ok } else { Exit::Failure });
            }
        };
    }
}

/// Asks a person at a terminal.
fn confirmed(what: &str, chosen: &Chosen, err: &mut dyn Write) -> Result<(), Failed> {
    let refuse = || Failed::Usage(format!("dlq {what} changes what is stored: confirm it with --yes"));
    let mut input = io::stdin().lock();
    if !io::stdin().is_terminal() {
        return Err(refuse());
    }
    drop(write!(err, "{what} {}? Type yes: ", chosen.described()));
    drop(err.flush());
    let mut line = String::new();
    input.read_line(&mut line).map_err(|_| refuse())?;
    if line.trim() == "yes" { Ok(()) } else { Err(refuse()) }
}
