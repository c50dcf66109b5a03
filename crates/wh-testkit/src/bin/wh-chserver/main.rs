//! Runs the ClickHouse engine in `libchdb.so` as a server, for tests.
//!
//! usage: `wh-chserver /path/to/libchdb.so --path=DATA --http_port=PORT [more clickhouse-local options]`
//!
//! It is clickhouse-local, told to listen for HTTP and then to read its standard input as a table: it lives until that
//! closes. SIGTERM and SIGKILL are safe; SIGINT makes the engine hang.

mod engine;

use std::{ffi::CString, os::unix::ffi::OsStringExt, path::Path};

/// What keeps the engine alive and listening.
const SERVE: [&str; 8] = [
    "--output-format",
    "TabSeparated",
    "--structure",
    "line String",
    "--input-format",
    "LineAsString",
    "--query",
    "SYSTEM START LISTEN HTTP; SELECT count() FROM table FORMAT Null",
];

fn main() {
    let outcome = serve();
    if let Err(error) = &outcome {
        report(&format!("wh-chserver: {error:#}"));
    }
    engine::exit(i32::from(outcome.is_err()))
}

fn serve() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let Some(library) = args.next() else { anyhow::bail!("usage: wh-chserver LIBRARY [OPTION]...") };
    let mut all = vec![CString::new("clickhouse")?];
    for arg in args {
        all.push(CString::new(arg.into_vec())?);
    }
    for arg in SERVE {
        all.push(CString::new(arg)?);
    }
    engine::run(Path::new(&library), &all)?;
    // The engine reports what keeps it from starting on stderr only, and returns as if all were well. It should have
    // returned because its input ended.
    anyhow::ensure!(input_ended()?, "the engine returned while its input was open");
    Ok(())
}

fn input_ended() -> anyhow::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let input = std::io::stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    if poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? == 0 {
        return Ok(false);
    }
    let hung_up = fds[0].revents().contains(PollFlags::HUP);
    Ok(hung_up || rustix::io::read(&input, &mut [0_u8; 1])? == 0)
}

#[expect(clippy::print_stderr, reason = "a program's own message")]
fn report(message: &str) {
    eprintln!("{message}");
}
