//! Loading: which file, all layers, all findings; and the effective configuration for people.

use crate::{
    Config, Environment, Finding, Findings, Level, Origin, Program, QueueBackend,
    amount::{parse_size, show_size},
    cache,
    environment::CONFIG,
    file,
    key::{Default, Kind},
    layers::{Values, merge},
    nats,
    resolve::{Take, config},
    table::KEYS,
};
use std::path::{Path, PathBuf};

/// The file that is read when none is named. It may be missing.
pub const DEFAULT_FILE: &str = "config.yaml";

/// A configuration that can be used, with what should be known of it.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Warnings.
    pub warnings: Vec<Finding>,
    /// Every key as it is in effect, in the order of the reference. Secrets are masked.
    pub effective: Vec<Effective>,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

/// One key as it is in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Where it stands in the file.
    pub path: &'static str,
    /// Its value, for people; `***` for a secret.
    pub value: String,
    /// Of a size: how many bytes that is.
    pub bytes: Option<u64>,
    /// Where the value came from.
    pub origin: Origin,
}

/// Reads the configuration: the file named by `file` (a flag), else by `WH_CONFIG`, else `config.yaml` where there is
/// one; over it the environment. Secret files are read once, to see that they can be.
///
/// # Errors
/// [`Findings`], all of them, when at least one stops the boot.
pub fn load(file: Option<&Path>, environment: &Environment) -> Result<Loaded, Findings> {
    load_for(None, file, environment)
}

/// The same for a program that has fixed roles: `roles` need not be given, and may not say anything else.
///
/// # Errors
/// As [`load`].
pub fn load_for(program: Option<Program>, file: Option<&Path>, environment: &Environment) -> Result<Loaded, Findings> {
    let named = file.map(Path::to_path_buf).or_else(|| environment.get(CONFIG).map(PathBuf::from));
    let mut findings = Vec::new();
    let path = match named {
        Some(path) if path.as_os_str().is_empty() => {
            findings.push(Finding::error(CONFIG, "is empty: name a file, or do not set it"));
            None
        }
        Some(path) => Some(path),
        None => Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.symlink_metadata().is_ok()),
    };
    let text = path.as_deref().and_then(|path| file::read(path).map_err(|finding| findings.push(finding)).ok());
    let name = path.as_deref().map(|path| path.display().to_string()).unwrap_or_default();

    let (mut values, more) = merge(text.as_deref().map(|text| (name.as_str(), text)), environment);
    findings.extend(more);
    if let Some(program) = program {
        findings.extend(program.fix(&mut values));
    }
    let mut take = Take::new(&values);
    let config = config(&mut take);
    findings.extend(take.findings);
    findings.extend(unreadable_secrets(&config));
    if config.mq.backend == QueueBackend::Nats {
        findings.extend(nats::unreadable(&config.mq.nats));
    }
    findings.extend(cache::unreadable(&config.cache));
    findings.sort_by_key(|finding| finding.level);
    if findings.iter().any(|finding| finding.level == Level::Error) {
        return Err(Findings(findings));
    }
    Ok(Loaded { warnings: findings, effective: effective(&values, &config), config, file: path })
}

fn unreadable_secrets(config: &Config) -> Vec<Finding> {
    let secrets = [
        ("auth.operator_key_file", &config.auth.operator_key),
        ("tenant_defaults.clickhouse.password_file", &config.tenant_defaults.clickhouse.password),
    ];
    let check = |(path, source): (&'static str, &crate::SecretSource)| match source.read() {
        Err(error) => Some(Finding::error(path, format!("cannot be read: {error}"))),
        Ok(None) if source.file().is_some() => {
            Some(Finding::warning(path, "the file is empty: it counts as no secret"))
        }
        Ok(_) => None,
    };
    secrets.into_iter().filter_map(check).collect()
}

fn effective(values: &Values, config: &Config) -> Vec<Effective> {
    let derived = |path: &str, words: &str| match path {
        "tenant_defaults.clickhouse.url" => format!("{:?}", config.tenant_defaults.clickhouse.url),
        "dedupe.backend" => format!("{:?}", config.dedupe.backend.name()),
        "ingest.held_rows" => config.ingest.held_rows.to_string(),
        "ingest.batch_max_rows" => config.ingest.batch_max_rows.to_string(),
        "ingest.batch_max_bytes" => show_size(config.ingest.batch_max_bytes),
        "ingest.tenant_body_budget" => show_size(config.ingest.tenant_body_budget as u64),
        "mq.nats.history_stream" => format!("{:?}", config.mq.nats.topology.names().history),
        "mq.nats.dlq_stream" => format!("{:?}", config.mq.nats.topology.names().dead_letters),
        "mq.nats.inbox_prefix" => format!("{:?}", config.mq.nats.topology.names().inbox),
        "coord.nats.bucket" => format!("{:?}", config.mq.nats.topology.names().bucket),
        _ => format!("({words})"),
    };
    let bytes = |kind, value: &str| parse_size(value).ok().filter(|_| matches!(kind, Kind::Size(..)));
    let show = |key: &crate::key::Key| match (values.get(key.path), key.default) {
        (Some((value, origin)), _) => {
            let value = if key.hidden() && !value.is_empty() { "***".to_owned() } else { value.show(key.kind) };
            Effective { path: key.path, bytes: bytes(key.kind, &value), value, origin: origin.clone() }
        }
        (None, default) => {
            let words = match default {
                Default::From(words) => words.to_owned(),
                plain @ (Default::Is(_) | Default::Number(_) | Default::Span(_)) => plain.text().unwrap_or_default(),
            };
            let value = derived(key.path, &words);
            Effective { path: key.path, bytes: bytes(key.kind, &value), value, origin: Origin::Default }
        }
    };
    KEYS.iter().map(show).collect()
}
