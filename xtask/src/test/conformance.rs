//! `cargo xtask conformance`: the suite that judges every backend of a port, on all arms or on one, here or against a
//! server that the user names.

use super::{
    ledger::{Ledger, Outcome},
    runner,
};
use crate::tell::Teller;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Which arms.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Only this backend, by its name in tests/conformance/matrix.toml
    #[arg(long)]
    backend: Option<String>,
    /// The server of that backend; several of one cluster with commas between
    #[arg(long, requires = "backend")]
    url: Option<String>,
    /// Who the backend is there: a `.creds` file, or a file with the one line user:password
    #[arg(long, requires = "url", value_name = "FILE")]
    creds: Option<PathBuf>,
    /// Who may create and delete a topology there, in the same forms; without it one that exists and is empty is used
    #[arg(long, requires = "url", value_name = "FILE")]
    operator_creds: Option<PathBuf>,
    /// The topology's prefix [default: whconf with --operator-creds, else wh]
    #[arg(long, requires = "url", value_name = "NAME")]
    prefix: Option<String>,
    /// The JetStream domain that clients address
    #[arg(long, requires = "url", value_name = "NAME")]
    domain: Option<String>,
    /// PEM file of the authorities that may have signed the server's certificate
    #[arg(long, requires = "url", value_name = "FILE")]
    ca: Option<PathBuf>,
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
    let Some(backend) = &args.backend else { return (filter, Vec::new()) };
    let variable = |name: &str| format!("WH_TEST_{}_{name}", backend.to_uppercase().replace('-', "_"));
    // the suite does not run in this folder
    let path = |path: &Option<PathBuf>| path.as_deref().map(|path| absolute(path).display().to_string());
    let given = [
        ("URL", args.url.clone()),
        ("CREDS", path(&args.creds)),
        ("OPERATOR_CREDS", path(&args.operator_creds)),
        ("PREFIX", args.prefix.clone()),
        ("DOMAIN", args.domain.clone()),
        ("CA", path(&args.ca)),
    ];
    let env = given.into_iter().filter_map(|(name, value)| Some((variable(name), value?)));
    (filter, env.collect())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_and_a_url_become_a_filter_and_a_variable() {
        let chosen = |backend: Option<&str>, url: Option<&str>, case: Option<&str>| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            choose(&Args { backend: own(backend), url: own(url), case: own(case), ..Args::default() })
        };
        assert_eq!(chosen(None, None, Some("mq22")), (Some("mq22".into()), vec![]));
        assert_eq!(chosen(Some("sim"), None, None), (Some("sim::".into()), vec![]));
        let nats = (Some("nats::mq01".into()), vec![("WH_TEST_NATS_URL".into(), "nats://h:1".into())]);
        assert_eq!(chosen(Some("nats"), Some("nats://h:1"), Some("mq01")), nats);
    }

    #[test]
    fn identities_and_names_become_variables_too() {
        let own = |text: &str| Some(text.to_owned());
        let (_, env) = choose(&Args {
            backend: own("nats"),
            url: own("nats://h:1"),
            creds: Some("/u.creds".into()),
            operator_creds: Some("o.creds".into()),
            prefix: own("whconf"),
            ..Args::default()
        });
        let value = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        assert_eq!(value("WH_TEST_NATS_CREDS"), Some("/u.creds"));
        assert!(value("WH_TEST_NATS_OPERATOR_CREDS").unwrap().ends_with("/o.creds"));
        assert!(Path::new(value("WH_TEST_NATS_OPERATOR_CREDS").unwrap()).is_absolute());
        assert_eq!((value("WH_TEST_NATS_PREFIX"), value("WH_TEST_NATS_DOMAIN")), (Some("whconf"), None));
    }
}
