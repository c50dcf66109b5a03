//! `cargo xtask conformance`: the suite that judges every backend of a port, on all arms or on one, here or against a
//! server that the user names.

use super::{
    ledger::{Ledger, Outcome},
    runner,
};
use crate::tell::Teller;
use std::{process::ExitCode, time::Instant};

/// Which arms.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this backend, by its name in tests/conformance/matrix.toml
    #[arg(long)]
    backend: Option<String>,
    /// The server of that backend
    #[arg(long, requires = "backend")]
    url: Option<String>,
    /// Only cases whose name holds this, such as a clause's id
    case: Option<String>,
}

/// Runs them and says how it ended.
#[expect(clippy::disallowed_methods, reason = "a tool measures with the machine's clock")]
pub(crate) fn run(args: &Args) -> ExitCode {
    let (filter, env) = choose(args);
    let mut command = vec!["test", "--package", "conformance", "--tests", "--no-fail-fast", "--"];
    command.extend(filter.as_deref());
    let began = Instant::now();
    let outcome = runner::libtest(&command, &env).unwrap_or_else(|error| Outcome::failure(format!("{error:#}")));
    let mut ledger = Ledger::default();
    ledger.add("conformance".into(), true, began.elapsed(), outcome);
    let mut teller = Teller::new();
    teller.say(&format!("\n{}", ledger.table()));
    teller.say(&ledger.line());
    if ledger.good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The filter on the trials' names, `backend::case`, and the variable that tells the arm its server.
fn choose(args: &Args) -> (Option<String>, Vec<(String, String)>) {
    let filter = match (&args.backend, &args.case) {
        (None, case) => case.clone(),
        (Some(backend), case) => Some(format!("{backend}::{}", case.as_deref().unwrap_or(""))),
    };
    let variable = |backend: &String| format!("WH_TEST_{}_URL", backend.to_uppercase().replace('-', "_"));
    let env = args.backend.as_ref().zip(args.url.clone()).map(|(backend, url)| (variable(backend), url));
    (filter, env.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_and_a_url_become_a_filter_and_a_variable() {
        let chosen = |backend: Option<&str>, url: Option<&str>, case: Option<&str>| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            choose(&Args { backend: own(backend), url: own(url), case: own(case) })
        };
        assert_eq!(chosen(None, None, Some("mq22")), (Some("mq22".into()), vec![]));
        assert_eq!(chosen(Some("sim"), None, None), (Some("sim::".into()), vec![]));
        let nats = (Some("nats::mq01".into()), vec![("WH_TEST_NATS_URL".into(), "nats://h:1".into())]);
        assert_eq!(chosen(Some("nats"), Some("nats://h:1"), Some("mq01")), nats);
    }
}
