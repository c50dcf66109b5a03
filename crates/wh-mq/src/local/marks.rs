//! Progress in one process: who says it and who hears it share a board.

use super::{Shared, Store};
use crate::{Error, Floor, Kind, Marks, Progress, Reader, Result};
use async_trait::async_trait;
use std::sync::Arc;
use wh_types::{Table, Tenant};

#[derive(Debug)]
pub(super) struct LocalMarks<S: Store>(pub(super) Arc<Shared<S>>);

impl<S: Store> LocalMarks<S> {
    fn open_for(&self, op: &'static str) -> Result<()> {
        if self.0.lock().closing { Err(Error::new(op, Kind::Stopping)) } else { Ok(()) }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Store> Marks for LocalMarks<S> {
    async fn announce(&self, marks: &[Progress]) -> Result<()> {
        self.open_for("announce progress")?;
        marks.iter().for_each(|mark| self.0.board.post(mark.clone()));
        Ok(())
    }

    fn watch(&self, tenant: &Tenant, table: &Table) -> Result<Reader> {
        self.open_for("watch progress")?;
        self.0.board.watch(tenant, table)
    }

    async fn hear(&self) -> Result<()> {
        self.open_for("hear progress")
    }

    async fn floor(&self, tenant: &Tenant, table: &Table) -> Result<Floor> {
        self.open_for("progress floor")?;
        let floor = self.0.lock().core.floor(tenant, table);
        self.0.board.post_floor(tenant, table, floor);
        Ok(floor)
    }
}
