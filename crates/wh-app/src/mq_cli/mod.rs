//! `wavehouse mq`: what the operator creates on a NATS cluster, printed, permitted, verified and planned.
//!
//! Files are read and written here; everything else is `wh-topology`'s. Only `verify` asks a server, and changes nothing.

mod args;
mod files;
mod live;
mod output;

#[cfg(test)]
mod tests;

use crate::{Exit, place::Place};
pub(crate) use args::MqCommand;
use args::{Common, Report, RightsFormatArg};
use output::Output;
use std::{fmt, io::Write};
use wh_mq::nats::boot::Report as Found;
use wh_topology::{File, Plan, Rights, Role, Severity, Spec, Topology, render::NatsCli, renderer, verify};

/// Why a command could not do its work.
enum Failed {
    /// The command line asks for what cannot be: exit code 2.
    Usage(String),
    /// The configuration cannot be: exit code 64.
    Config(String),
    /// Anything else: exit code 1.
    Work(String),
}

/// Why `verify --live` has nobody to ask.
const NO_URLS: &str = "mq.nats.urls is empty: --live asks the servers that the configuration names there; \
    name them, or ask others with --url";

/// What the flags choose. A value outside of its bounds is a mistake of the command line like one of no type.
fn chosen(args: &impl Common) -> Result<Spec, Failed> {
    Spec::new(args.choices()).map_err(|problems| Failed::Usage(problems.to_string()))
}

/// What follows from good choices may still not fit: that is a generation that failed.
fn laid_out(args: &impl Common) -> Result<Topology, Failed> {
    Topology::new(chosen(args)?).map_err(|problems| Failed::Work(problems.to_string()))
}

/// Runs a command: 0 as asked, 1 it failed or found something required, 2 a command line that cannot be, 64 a
/// configuration that cannot be.
pub(crate) fn run(command: MqCommand, at: &Place<'_>, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let mut output = Output::new(out);
    let ended = match command {
        MqCommand::Manifests(args) => manifests(&args, &mut output),
        MqCommand::Permissions(args) => permissions(&args, &mut output),
        MqCommand::Verify(args) => verified(&args, at, &mut output),
        MqCommand::Plan(args) => planned(&args, &mut output),
    };
    let ended =
        output.end().map_err(|error| Failed::Work(format!("what is printed cannot be written: {error}"))).and(ended);
    match ended {
        Ok(exit) => exit,
        Err(Failed::Usage(text)) => {
            say(err, &text);
            Exit::Usage
        }
        Err(Failed::Config(text)) => {
            say(err, &text);
            Exit::Config
        }
        Err(Failed::Work(text)) => {
            say(err, &text);
            Exit::Failure
        }
    }
}

/// What cannot be written is noticed by [`Output`].
fn say(to: &mut dyn Write, what: &dyn fmt::Display) {
    drop(writeln!(to, "{what}"));
}

fn manifests(args: &args::Manifests, out: &mut dyn Write) -> Result<Exit, Failed> {
    let topology = laid_out(args)?;
    let format = args.format.name();
    let renderer = renderer(format).ok_or_else(|| Failed::Usage(format!("unknown format {format}")))?;
    let files = renderer.render(&topology).map_err(|refused| Failed::Work(refused.to_string()))?;
    match (&args.output, &files[..]) {
        (Some(folder), files) => {
            let (paths, old) = files::write_set(folder, &format!("manifests-{format}"), files).map_err(Failed::Work)?;
            paths.iter().for_each(|path| say(out, &path.display()));
            old.iter().for_each(|path| say(out, &format_args!("removed {}", path.display())));
            Ok(Exit::Ok)
        }
        (None, [one]) => {
            say(out, &one.text.trim_end());
            Ok(Exit::Ok)
        }
        (None, several) => {
            Err(Failed::Usage(format!("{format} has {} files: name a folder with --output DIR", several.len())))
        }
    }
}

fn permissions(args: &args::Permissions, out: &mut dyn Write) -> Result<Exit, Failed> {
    let role = args.role.role();
    let text = Rights::new(&chosen(args)?, role).print(args.format.format());
    let Some(folder) = &args.output else {
        say(out, &text.trim_end());
        return Ok(Exit::Ok);
    };
    let extension = if args.format == RightsFormatArg::Nats { "conf" } else { "yaml" };
    let file = File { name: format!("{role}.{extension}"), text, executable: false };
    let paths = files::write(folder, &[file]).map_err(Failed::Work)?;
    paths.iter().for_each(|path| say(out, &path.display()));
    Ok(Exit::Ok)
}

fn verified(args: &args::Verify, at: &Place<'_>, out: &mut dyn Write) -> Result<Exit, Failed> {
    let role = args.role.map_or(Role::Both, args::RoleArg::role);
    let (spec, found) = if args.live {
        let config = at.load().map_err(|findings| Failed::Config(findings.to_string()))?.config;
        let (nats, roles) = (config.mq.nats, config.roles);
        if nats.urls.is_empty() {
            return Err(Failed::Config(NO_URLS.to_owned()));
        }
        let own = match (roles.api, roles.ingest) {
            (true, false) => Role::Api,
            (false, true) => Role::Ingest,
            _ => Role::Both,
        };
        let found = live::check(&nats, args.role.map_or(own, args::RoleArg::role))?;
        (nats.topology, found)
    } else if args.url.is_empty() {
        let spec = chosen(args)?;
        let seen = files::captured(&args.from, &spec, role).map_err(Failed::Work)?;
        let found = Found { findings: verify(&spec, role, &seen), complete: seen.is_complete() };
        (spec, found)
    } else {
        let nats = args.access.queue(&args.url, chosen(args)?)?;
        let found = live::check(&nats, role)?;
        (nats.topology, found)
    };
    Ok(told(&spec, &found, args.format, out))
}

/// Prints what was found, the same wherever it was seen.
fn told(spec: &Spec, found: &Found, report: Report, out: &mut dyn Write) -> Exit {
    let Found { findings, complete } = found;
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (required, recommended) = (count(Severity::Required), count(Severity::Recommended));
    match report {
        Report::Json => {
            let report = serde_json::json!({
                "required": required, "recommended": recommended, "complete": complete, "findings": findings,
            });
            say(out, &format_args!("{report:#}"));
        }
        Report::Text => {
            findings.iter().for_each(|finding| say(out, finding));
            if findings.iter().any(|finding| finding.fix.contains(" --config ")) {
                say(out, &format_args!("the files that fixes name are printed by: {}", NatsCli::command_line(spec)));
            }
            let unread = if *complete { "" } else { "; not everything could be read" };
            say(out, &format_args!("{required} required, {recommended} recommended{unread}"));
        }
    }
    if found.is_sound() { Exit::Ok } else { Exit::Failure }
}

fn planned(args: &args::Planned, out: &mut dyn Write) -> Result<Exit, Failed> {
    let topology = laid_out(args)?;
    let seen = files::captured(&args.from, &topology.spec, Role::Both).map_err(Failed::Work)?;
    let plan = Plan::new(&topology, &seen);
    match args.format {
        Report::Json => {
            let json = serde_json::to_string_pretty(&plan).map_err(|error| Failed::Work(error.to_string()))?;
            say(out, &json);
        }
        Report::Text => say(out, &plan.to_string().trim_end()),
    }
    Ok(Exit::Ok)
}

impl args::RoleArg {
    fn role(self) -> Role {
        match self {
            Self::Api => Role::Api,
            Self::Ingest => Role::Ingest,
            Self::Both => Role::Both,
        }
    }
}
