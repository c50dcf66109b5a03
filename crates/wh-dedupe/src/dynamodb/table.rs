//! Whether the table is what it must be; and making one on an emulator.

use super::{
    Dedupe,
    error::{self, Outcome},
    item,
};
use crate::{Error, Kind, Result};
use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
    types::{
        AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableDescription,
        TableStatus, TimeToLiveSpecification, TimeToLiveStatus,
    },
};
use std::{error::Error as StdError, time::Duration};

const OP: &str = "check table";

/// What the table's time to live is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeToLive {
    /// On the right attribute: what is over is deleted.
    On,
    /// Off, or on another attribute: what is over stays, and costs.
    Off,
    /// It may not be looked up.
    NotKnown,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The table's time to live.
    pub time_to_live: TimeToLive,
}

impl Dedupe {
    /// Makes the table where that is asked for, and checks it.
    pub(super) async fn prepare(&self) -> Result<()> {
        if self.options.create_table {
            self.create().await?;
        }
        if self.check().await?.time_to_live != TimeToLive::On {
            let table = &self.options.table;
            tracing::warn!(%table, "time to live of the dedupe table {table} is not on for the attribute ex");
        }
        Ok(())
    }

    /// Checks that the table is there, active, and has `pk`, a string, as its only key.
    ///
    /// # Errors
    /// `NotFound`, `Unsupported` (its key is another), Denied, Unavailable.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn check(&self) -> Result<Checked> {
        let describe = self.client.describe_table().table_name(&self.options.table).send();
        let found = self.within(describe).await.map_err(|error| self.named(error))?;
        let table = found.table.ok_or_else(|| Error::new(OP, Kind::Unavailable))?;
        self.judge(&table)?;
        let describe = self.client.describe_time_to_live().table_name(&self.options.table).send();
        let time_to_live = match self.within(describe).await {
            Ok(found) => {
                let on = found.time_to_live_description.is_some_and(|ttl| {
                    let status = ttl.time_to_live_status();
                    let on =
                        status.is_some_and(|s| matches!(s, TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling));
                    on && ttl.attribute_name() == Some(item::EXPIRES)
                });
                if on { TimeToLive::On } else { TimeToLive::Off }
            }
            Err(_) => TimeToLive::NotKnown,
        };
        Ok(Checked { time_to_live })
    }

    /// Which table it is that does not exist.
    fn named(&self, error: Error) -> Error {
        if !matches!(error.kind(), Kind::NotFound(_)) {
            return error;
        }
        let what = format!("the dedupe table {}", self.options.table);
        Error::new(OP, Kind::NotFound(what.into())).with_source(error)
    }

    fn judge(&self, table: &TableDescription) -> Result<()> {
        let name = &self.options.table;
        let keys = table.key_schema();
        let text = |definition: &&AttributeDefinition| {
            definition.attribute_name() == item::PK && *definition.attribute_type() == ScalarAttributeType::S
        };
        let hash = keys.len() == 1 && keys[0].attribute_name() == item::PK && *keys[0].key_type() == KeyType::Hash;
        if !hash || table.attribute_definitions().iter().find(text).is_none() {
            let why = format!("the table {name} must have the string pk as its only key");
            return Err(Error::new(OP, Kind::Unsupported(why.into())));
        }
        match table.table_status() {
            Some(TableStatus::Active | TableStatus::Updating) => Ok(()),
            _ => Err(Error::new(OP, Kind::Unavailable)),
        }
    }

    async fn create(&self) -> Result<()> {
        let name = &self.options.table;
        let bug = |e: aws_sdk_dynamodb::error::BuildError| Error::new(OP, Kind::Bug(e.to_string().into()));
        let key = KeySchemaElement::builder().attribute_name(item::PK).key_type(KeyType::Hash).build().map_err(bug)?;
        let pk = AttributeDefinition::builder().attribute_name(item::PK).attribute_type(ScalarAttributeType::S);
        let create = self.client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
        let create = create.key_schema(key).attribute_definitions(pk.build().map_err(bug)?);
        let time = self.options.timeout * 10;
        match tokio::time::timeout(time, create.send()).await {
            Ok(Err(error)) if error.code() == Some("ResourceInUseException") => return Ok(()),
            created => told(created)?,
        };
        let patience = self.options.clock.now() + time;
        while self.check().await.is_err_and(|error| *error.kind() == Kind::Unavailable) {
            if self.options.clock.now() >= patience {
                return Err(Error::new(OP, Kind::Unavailable));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let ttl =
            TimeToLiveSpecification::builder().enabled(true).attribute_name(item::EXPIRES).build().map_err(bug)?;
        let update = self.client.update_time_to_live().table_name(name).time_to_live_specification(ttl).send();
        if let Err(error) = self.within(update).await {
            // an emulator without it; nothing is deleted there
            tracing::debug!(%error, "time to live of the dedupe table {name} could not be set");
        }
        Ok(())
    }

    /// A request about the table: ten times what a call has.
    async fn within<T, E>(
        &self,
        request: impl Future<Output = std::result::Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<T>
    where
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
    {
        told(tokio::time::timeout(self.options.timeout * 10, request).await)
    }
}

fn told<T, E, L>(answer: std::result::Result<std::result::Result<T, SdkError<E, HttpResponse>>, L>) -> Result<T>
where
    E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
{
    let Ok(answer) = answer else { return Err(Error::new(OP, Kind::Unavailable)) };
    answer.map_err(|error| {
        let kind = match error::of(&error) {
            Outcome::Nothing(kind) | Outcome::Final(kind) => kind,
            Outcome::Doubt => Kind::Unavailable,
        };
        Error::new(OP, kind).with_source(error)
    })
}
