//! The flags.

use super::Failed;
use crate::counted::Counted;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json, value::RawValue};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Dlq {
    #[command(subcommand)]
    pub(super) command: DlqCommand,
    #[command(flatten)]
    pub(super) to: To,
}

#[derive(Debug, Args)]
pub(super) struct To {
    /// The server [default: where the configuration says it is]
    #[arg(long, global = true, value_name = "URL")]
    pub(super) url: Option<String>,
    /// The file with the operator key
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help = "The file with the operator key [default: auth.operator_key_file of the configuration]"
    )]
    pub(super) operator_key_file: Option<PathBuf>,
    /// Whose dead letters [default: 0; counts: everybody's]
    #[arg(long, global = true, value_name = "TENANT")]
    pub(super) tenant: Option<String>,
    /// Print the server's answers as JSON, one a line
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum DlqCommand {
    /// List dead letters, oldest first
    List {
        #[command(flatten)]
        filter: Filter,
        /// At most so many
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Where the list before said to go on
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
    },
    /// Show one whole
    Show {
        /// Its id, as a list shows it
        #[arg(value_parser = letter_id)]
        id: String,
    },
    /// Count them by tenant, table and code
    Counts {
        /// Only this table's
        #[arg(long)]
        table: Option<String>,
    },
    /// Say what a replay would do, and change nothing: exit code 1 when a row would be refused or an id is not found
    Check {
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        edit: Edit,
    },
    /// Put rows back into the queue and remove their dead letters: exit code 1 when a row was refused or not attempted or an id is not found
    Replay {
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        edit: Edit,
        /// Leave the dead letters where they are
        #[arg(long)]
        keep: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Remove dead letters for good: exit code 1 when an id is not found
    Purge {
        #[command(flatten)]
        chosen: Chosen,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// What cannot be an id is told here, and not looked for.
fn letter_id(text: &str) -> Result<String, String> {
    match text.parse::<wh_mq::DeadLetterId>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("an id is like 0000000e-22.0, as `dlq list` shows it".to_owned()),
    }
}

#[derive(Clone, Debug, Default, Args)]
pub(super) struct Filter {
    /// Only this table's
    #[arg(long)]
    pub(super) table: Option<String>,
    /// Only those with this code
    #[arg(long)]
    pub(super) code: Option<String>,
    /// Only those whose reason contains this, in upper or lower case
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// Only those attempted at this time or later, like 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(super) from: Option<String>,
    /// Only those attempted before this time
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<String>,
    /// Only those that are held: replayed by themselves when their column is back
    #[arg(long)]
    pub(super) held: bool,
}

impl Filter {
    fn members(&self) -> Vec<(&'static str, String)> {
        let texts = [
            ("table", &self.table),
            ("code", &self.code),
            ("reason", &self.reason),
            ("from", &self.from),
            ("until", &self.until),
        ];
        texts.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))).collect()
    }

    pub(super) fn query(
        &self,
        tenant: Option<&str>,
        limit: Option<usize>,
        cursor: Option<&str>,
    ) -> Vec<(&'static str, String)> {
        let mut query = self.members();
        if self.held {
            query.push(("held", "true".to_owned()));
        }
        query.extend(tenant.map(|tenant| ("tenant", tenant.to_owned())));
        query.extend(limit.map(|limit| ("limit", limit.to_string())));
        query.extend(cursor.map(|cursor| ("cursor", cursor.to_owned())));
        query
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct Chosen {
    /// These, by their ids
    #[arg(conflicts_with = "all")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: Filter,
    /// All of the tenant's
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<usize>,
    /// Where an answer before said to go on
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl Chosen {
    /// The request's body.
    pub(super) fn body(&self, edit: Vec<Box<RawValue>>) -> Result<Body, Failed> {
        let mut filter: Map<String, Value> =
            self.filter.members().into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
        if self.filter.held {
            filter.insert("held".to_owned(), true.into());
        }
        let given = [!self.ids.is_empty(), !filter.is_empty(), self.all];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(Failed::Usage("name ids, or filter flags, or --all; and only one of them".to_owned()));
        }
        if self.limit == Some(0) {
            return Err(Failed::Usage("--limit 0 asks for nothing".to_owned()));
        }
        let mut body = Map::new();
        if !self.ids.is_empty() {
            body.insert("ids".to_owned(), json!(self.ids));
        } else if self.all {
            body.insert("all".to_owned(), true.into());
        } else {
            body.insert("filter".to_owned(), filter.into());
        }
        if let Some(cursor) = &self.cursor {
            body.insert("cursor".to_owned(), cursor.as_str().into());
        }
        Ok(Body { rest: body, edit })
    }

    /// What is meant, in words.
    pub(super) fn described(&self) -> String {
        let mut words: Vec<String> =
            self.filter.members().iter().map(|(name, text)| format!("{name} {text:?}")).collect();
        if self.filter.held {
            words.push("held".to_owned());
        }
        match (self.all, self.ids.len()) {
            (true, _) => "all dead letters of the tenant".to_owned(),
            (false, 0) => format!("the dead letters with {}", words.join(", ")),
            (false, count) => Counted(count as u64, "dead letter").to_string(),
        }
    }
}

/// Steps, done in the order of these flags: renames first, then texts, values, removals, and last those of --edit.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Edit {
    /// Rename a column
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<String>,
    /// Make a column's value a string with the same text
    #[arg(long, value_name = "COLUMN")]
    to_string: Vec<String>,
    /// Give a column a value, in JSON
    #[arg(long, value_name = "COLUMN=JSON")]
    set: Vec<String>,
    /// Leave a column out
    #[arg(long, value_name = "COLUMN")]
    remove: Vec<String>,
    /// Steps as the HTTP API takes them: a JSON array
    #[arg(long, value_name = "JSON")]
    edit: Option<String>,
}

impl Edit {
    /// The steps, each as the JSON it is sent as: a value keeps its own text.
    pub(super) fn steps(&self) -> Result<Vec<Box<RawValue>>, Failed> {
        let pair = |flag: &str, text: &str| match text.split_once('=') {
            Some((column, rest)) => Ok((json!(column), rest.to_owned())),
            None => Err(Failed::Usage(format!("--{flag} {text}: there is no = in it"))),
        };
        let mut steps = Vec::new();
        for text in &self.rename {
            let (column, to) = pair("rename", text)?;
            steps.push(format!(r#"{{"op":"rename","column":{column},"to":{}}}"#, json!(to)));
        }
        steps.extend(self.to_string.iter().map(|column| format!(r#"{{"op":"to_string","column":{}}}"#, json!(column))));
        for text in &self.set {
            let (column, value) = pair("set", text)?;
            steps.push(format!(r#"{{"op":"set","column":{column},"value":{value}}}"#));
        }
        steps.extend(self.remove.iter().map(|column| format!(r#"{{"op":"remove","column":{}}}"#, json!(column))));
        let read = |text: String| {
            RawValue::from_string(text.clone()).map_err(|why| Failed::Usage(format!("{text} is no JSON: {why}")))
        };
        let mut steps = steps.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        if let Some(text) = &self.edit {
            let more: Vec<Box<RawValue>> = serde_json::from_str(text)
                .map_err(|why| Failed::Usage(format!("--edit: no JSON array of steps: {why}")))?;
            steps.extend(more);
        }
        Ok(steps)
    }
}

/// A request's body. The steps stand behind the rest as they are.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) rest: Map<String, Value>,
    pub(super) edit: Vec<Box<RawValue>>,
}

impl Body {
    /// As it is sent.
    pub(super) fn text(&self) -> String {
        let mut text = Value::Object(self.rest.clone()).to_string();
        if !self.edit.is_empty() {
            let steps: Vec<&str> = self.edit.iter().map(|step| step.get()).collect();
            let comma = if self.rest.is_empty() { "" } else { "," };
            text.truncate(text.len() - 1);
            text.push_str(&format!(r#"{comma}"edit":[{}]}}"#, steps.join(",")));
        }
        text
    }
}
