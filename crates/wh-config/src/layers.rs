//! The layers put over each other: defaults < file < environment. Knows which layer each value came from.

use crate::{
    environment::{Environment, service_link},
    file,
    finding::Finding,
    key::Key,
    table::KEYS,
    value::{Parsed, parse},
};
use figment::{
    Figment, Metadata, Profile, Provider,
    value::{Dict, Map, Value},
};
use std::{collections::BTreeMap, fmt};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody gave it.
    Default,
    /// The configuration file of this name.
    File(String),
    /// This environment variable.
    Variable(String),
    /// This program has it so.
    Program(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(name) | Self::Variable(name) => f.write_str(name),
            Self::Program(name) => f.write_str(name),
        }
    }
}

/// Every key's value where there is one, given or default; keys with a derived default may be absent.
pub(crate) type Values = BTreeMap<&'static str, (Parsed, Origin)>;

/// One layer.
struct Layer(&'static str, Dict);

const FILE: &str = "file";
const ENVIRONMENT: &str = "environment";

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.0)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.1.clone()))
    }
}

/// Puts a file's text (with its name) and the environment over the defaults.
pub(crate) fn merge(file: Option<(&str, &str)>, environment: &Environment) -> (Values, Vec<Finding>) {
    let (in_file, mut findings) = file.map(|(name, text)| file::keys(text, name)).unwrap_or_default();
    let (in_environment, more) = environment.keys();
    findings.extend(more);
    let merged = Figment::from(Layer(FILE, in_file)).merge(Layer(ENVIRONMENT, in_environment));
    let file_name = file.map_or("", |(name, _)| name);

    let mut values = Values::new();
    for key in KEYS {
        match given(key, &merged, file_name) {
            Ok(Some(value)) => drop(values.insert(key.path, value)),
            Ok(None) => {
                if let Some(text) = key.default.text()
                    && let Ok(value) = parse(key.kind, &Value::from(text))
                {
                    values.insert(key.path, (value, Origin::Default));
                }
            }
            Err(finding) => findings.push(finding),
        }
    }
    (values, findings)
}

fn given(key: &Key, merged: &Figment, file_name: &str) -> Result<Option<(Parsed, Origin)>, Finding> {
    let Ok(value) = merged.find_value(key.path) else { return Ok(None) };
    let by_variable = merged.get_metadata(value.tag()).is_some_and(|layer| layer.name == ENVIRONMENT);
    let (origin, subject) = if by_variable {
        (Origin::Variable(key.variable()), format!("{} ({})", key.variable(), key.path))
    } else {
        (Origin::File(file_name.to_owned()), format!("{} in {file_name}", key.path))
    };
    match parse(key.kind, &value) {
        Ok(parsed) => Ok(Some((parsed, origin))),
        Err(problem) => {
            let finding = Finding::error(subject, problem);
            let link = value.as_str().filter(|_| by_variable).and_then(|text| service_link(&key.variable(), text));
            Err(if let Some(hint) = link { finding.hint(hint) } else { finding })
        }
    }
}

/// Puts a value at its path.
pub(crate) fn insert(dict: &mut Dict, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(dict.insert(path.to_owned(), value)),
        Some((first, rest)) => {
            let below = dict.entry(first.to_owned()).or_insert_with(|| Value::from(Dict::new()));
            if let Value::Dict(_, below) = below {
                insert(below, rest, value);
            }
        }
    }
}
