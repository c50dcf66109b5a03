//! One pipe: a statement with places for values, who may run it, and its bounds; and what it becomes with the values of a
//! call. Pure.

use super::{given::AllGiven, kind::Known, parameter::Parameter, refused::Refused};
use crate::{codes, error::shown};
use std::{fmt::Write, time::Duration};

/// Who may do everything (reference 5.2).
pub(super) const ADMIN: &str = "admin";

/// A pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(super) name: String,
    pub(super) description: String,
    /// As the file has it.
    pub(super) sql: String,
    pub(super) pieces: Vec<Piece>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) allowed_roles: Vec<String>,
    pub(super) limits: PipeLimits,
    /// How long an answer may be kept. `None`: as long as that of any query.
    pub(super) ttl: Option<Duration>,
    /// What it is to ClickHouse.
    pub(super) known: Known,
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// The place of a parameter whose type follows from its value, or that is declared: by its number.
    Slot(usize),
}

/// What a pipe may use, where that is less than its tenant's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PipeLimits {
    pub(super) max_rows: Option<u64>,
    pub(super) max_execution_time: Option<Duration>,
    /// Bytes.
    pub(super) max_memory_usage: Option<u64>,
    pub(super) max_rows_to_read: Option<u64>,
}

/// A statement of one call, and its parameters in their wire form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) sql: String,
    pub(super) params: Vec<(String, String)>,
}

impl Pipe {
    /// Whether a role may run it. No list names nobody but the admin.
    pub(super) fn allows(&self, role: &str) -> bool {
        role == ADMIN || self.allowed_roles.iter().any(|allowed| allowed == role)
    }

    /// The statement with the values of a call. `zone`: the server's.
    ///
    /// # Errors
    /// A value is missing, not the pipe's, or does not fit its type.
    pub(super) fn bind(&self, given: &AllGiven, zone: &str) -> Result<Bound, Refused> {
        let known = |name: &String| self.parameters.iter().any(|parameter| parameter.name == *name);
        if let Some(name) = given.keys().find(|name| !known(name)) {
            let names: Vec<_> = self.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
            let there = if names.is_empty() {
                "this pipe has none".to_owned()
            } else {
                format!("there are {}", names.join(", "))
            };
            let text = format!("unknown parameter: {}; {there}", shown(name.as_bytes()));
            return Err(Refused { code: &codes::PIPE_PARAMETER_UNKNOWN, text });
        }
        let (mut types, mut params) = (Vec::with_capacity(self.parameters.len()), Vec::new());
        for parameter in &self.parameters {
            let name = &parameter.name;
            let value = match parameter.value(given.get(name), zone) {
                Some(value) => value,
                // nothing asks for it
                None if !parameter.required && !parameter.used => {
                    types.push(String::new());
                    continue;
                }
                None => {
                    let text = format!("missing required parameter: {name}");
                    return Err(Refused { code: &codes::PIPE_PARAMETER_MISSING, text });
                }
            };
            let (ty, wire) = value.map_err(|why| Refused {
                code: &codes::PIPE_PARAMETER_INVALID,
                text: format!("the parameter {name:?} ({}) {why}", parameter.type_text()),
            })?;
            types.push(ty);
            if parameter.used {
                params.push((name.clone(), wire));
            }
        }
        let mut sql = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => sql.push_str(text),
                // writing to a string does not fail
                Piece::Slot(at) => write!(sql, "{{{}:{}}}", self.parameters[*at].name, types[*at]).unwrap_or_default(),
            }
        }
        Ok(Bound { sql, params })
    }
}
