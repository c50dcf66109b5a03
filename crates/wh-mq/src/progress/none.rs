//! Marks of a queue that has none: what is said is lost, and nothing can be heard.

use super::{Floor, Marks, Progress, Reader};
use crate::{Error, Kind, Result};
use async_trait::async_trait;
use wh_types::{Table, Tenant};

/// The default of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoMarks;

fn unsupported(op: &'static str) -> Error {
    Error::new(op, Kind::Unsupported("tell how far its tables are"))
}

#[async_trait]
impl Marks for NoMarks {
    async fn announce(&self, _: &[Progress]) -> Result<()> {
        Ok(())
    }

    fn watch(&self, _: &Tenant, _: &Table) -> Result<Reader> {
        Err(unsupported("watch progress"))
    }

    async fn hear(&self) -> Result<()> {
        Err(unsupported("hear progress"))
    }

    async fn floor(&self, _: &Tenant, _: &Table) -> Result<Floor> {
        Err(unsupported("progress floor"))
    }
}
