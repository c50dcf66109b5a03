//! The port, method by method.

use super::{
    Change, Pending, Shared, Store, feed::LocalFeed, history::LocalHistory, letters, marks::LocalMarks, publish,
};
use crate::{
    Allowance, BrokerStatus, Budget, DeadLetter, DeadLetterId, DeadLetterPage, DeadLetterQuery, Error, Feed, From,
    History, Kind, Marks, Receipt, Result, Unit,
};
use std::{collections::BTreeSet, sync::Arc};
use tokio::sync::oneshot;
use wh_types::{Block, BlockId, Cursor, Epoch, Table, Tenant};

/// A broker in this process.
#[derive(Debug)]
pub(crate) struct Local<S: Store>(pub(crate) Arc<Shared<S>>);

impl<S: Store> Clone for Local<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store> Local<S> {
    fn open_for(&self, op: &'static str) -> Result<parking_lot::MutexGuard<'_, super::State<S::Body>>> {
        let state = self.0.lock();
        if state.closing { Err(Error::new(op, Kind::Stopping)) } else { Ok(state) }
    }
}

impl<S: Store> Local<S> {
    pub(crate) async fn publish(&self, blocks: &[Block]) -> Vec<Result<Receipt>> {
        publish::publish(&self.0, blocks).await
    }

    pub(crate) async fn stored_rows(&self, _: &Tenant, _: &Table, id: BlockId, _: Cursor) -> Result<Option<u32>> {
        let state = self.open_for("stored rows")?;
        let known = state.core.known(id).filter(|known| state.core.is_confirmed(known.sequence));
        Ok(known.map(|known| known.rows))
    }

    pub(crate) fn units(&self) -> Vec<Unit> {
        self.0.lock().core.units()
    }

    pub(crate) fn unit_of(&self, tenant: &Tenant, table: &Table) -> Unit {
        self.0.lock().core.unit_of(tenant, table)
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.0.lock().core.epoch()
    }

    pub(crate) async fn feed(&self, unit: Unit, budget: Budget) -> Result<Box<dyn Feed>> {
        Ok(Box::new(LocalFeed::take(&self.0, unit, budget)?))
    }

    pub(crate) async fn release_orphan(&self, unit: Unit) -> Result<()> {
        self.open_for("release orphan")?.core.release_orphan(unit).map_err(|kind| Error::new("release orphan", kind))
    }

    pub(crate) async fn unowned(&self) -> Result<BTreeSet<Unit>> {
        Ok(self.open_for("unowned")?.core.unowned())
    }

    pub(crate) fn marks(&self) -> Arc<dyn Marks> {
        Arc::new(LocalMarks(Arc::clone(&self.0)))
    }

    pub(crate) async fn history(&self, tenant: &Tenant, table: &Table, from: From) -> Result<Box<dyn History>> {
        Ok(Box::new(LocalHistory::open(&self.0, tenant, table, from)?))
    }

    pub(crate) async fn dead_letter(&self, all: &[DeadLetter]) -> Vec<Result<()>> {
        letters::park(&self.0, all).await
    }

    pub(crate) async fn dead_letters(&self, tenant: &Tenant, query: &DeadLetterQuery) -> Result<DeadLetterPage> {
        letters::list(&self.0, tenant, query).await
    }

    pub(crate) async fn purge_dead_letters(&self, tenant: &Tenant, ids: &[DeadLetterId]) -> Result<usize> {
        letters::purge(&self.0, tenant, ids).await
    }

    pub(crate) async fn set_allowance(&self, tenant: &Tenant, allowance: Allowance) -> Result<()> {
        let room = self.0.store.room(1_024).await.map_err(|kind| Error::new("set allowance", kind))?;
        let answer = {
            let mut guard = self.open_for("set allowance")?;
            let state = &mut *guard;
            let (reply, answer) = oneshot::channel();
            let revision = state.core.draw_sequence();
            let change = Change::Allowance { tenant: tenant.clone(), allowance, revision };
            let woken = self.0.submit(
                room,
                state,
                change,
                Pending::Allowance { tenant: tenant.clone(), allowance, revision, reply },
            );
            drop(guard);
            if let Some(woken) = woken {
                woken.wake(&self.0);
            }
            answer
        };
        answer.await.unwrap_or(Err(Error::new("set allowance", Kind::Unknown)))
    }

    pub(crate) async fn status(&self) -> Result<BrokerStatus> {
        let now = self.0.now();
        let mut state = self.0.lock();
        self.0.sweep(&mut state, now);
        let reason = if state.closing { Some("the queue is closing".to_owned()) } else { self.0.store.trouble() };
        Ok(BrokerStatus {
            epoch: Some(state.core.epoch()),
            accepting: reason.is_none(),
            reason,
            disk_bytes: self.0.store.disk_bytes(),
            tenants: state.core.status(),
        })
    }

    pub(crate) async fn close(&self) {
        let first = {
            let mut state = self.0.lock();
            !std::mem::replace(&mut state.closing, true)
        };
        if first {
            S::close(&self.0).await;
            self.0.closed.give();
            self.0.board.close();
        }
    }
}

/// Implements the port for a struct around a [`Local`].
macro_rules! local_broker {
    ($broker:ty, $local:tt) => {
        #[async_trait::async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl $crate::Broker for $broker {
            async fn publish(&self, blocks: &[wh_types::Block]) -> Vec<$crate::Result<$crate::Receipt>> {
                self.$local.publish(blocks).await
            }
            fn publish_budget(&self) -> std::time::Duration {
                std::time::Duration::ZERO
            }
            async fn stored_rows(
                &self,
                tenant: &wh_types::Tenant,
                table: &wh_types::Table,
                id: wh_types::BlockId,
                at: wh_types::Cursor,
            ) -> $crate::Result<Option<u32>> {
                self.$local.stored_rows(tenant, table, id, at).await
            }
            fn units(&self) -> Vec<$crate::Unit> {
                self.$local.units()
            }
            async fn extra_units(&self) -> $crate::Result<std::collections::BTreeSet<$crate::Unit>> {
                // every table is routed when the queue is opened
                Ok(std::collections::BTreeSet::new())
            }
            fn unit_of(&self, tenant: &wh_types::Tenant, table: &wh_types::Table) -> $crate::Unit {
                self.$local.unit_of(tenant, table)
            }
            fn epoch_of(&self, _: &wh_types::Tenant, _: &wh_types::Table) -> Option<wh_types::Epoch> {
                Some(self.$local.epoch())
            }
            async fn feed(&self, unit: $crate::Unit, budget: $crate::Budget) -> $crate::Result<Box<dyn $crate::Feed>> {
                self.$local.feed(unit, budget).await
            }
            async fn release_orphan(&self, unit: $crate::Unit) -> $crate::Result<()> {
                self.$local.release_orphan(unit).await
            }
            async fn unowned(&self) -> $crate::Result<std::collections::BTreeSet<$crate::Unit>> {
                self.$local.unowned().await
            }
            fn marks(&self) -> std::sync::Arc<dyn $crate::Marks> {
                self.$local.marks()
            }
            async fn history(
                &self,
                tenant: &wh_types::Tenant,
                table: &wh_types::Table,
                from: $crate::From,
            ) -> $crate::Result<Box<dyn $crate::History>> {
                self.$local.history(tenant, table, from).await
            }
            async fn dead_letter(&self, letters: &[$crate::DeadLetter]) -> Vec<$crate::Result<()>> {
                self.$local.dead_letter(letters).await
            }
            async fn dead_letters(
                &self,
                tenant: &wh_types::Tenant,
                query: &$crate::DeadLetterQuery,
            ) -> $crate::Result<$crate::DeadLetterPage> {
                self.$local.dead_letters(tenant, query).await
            }
            async fn purge_dead_letters(
                &self,
                tenant: &wh_types::Tenant,
                ids: &[$crate::DeadLetterId],
            ) -> $crate::Result<usize> {
                self.$local.purge_dead_letters(tenant, ids).await
            }
            async fn set_allowance(
                &self,
                tenant: &wh_types::Tenant,
                allowance: $crate::Allowance,
            ) -> $crate::Result<()> {
                self.$local.set_allowance(tenant, allowance).await
            }
            async fn status(&self) -> $crate::Result<$crate::BrokerStatus> {
                self.$local.status().await
            }
            async fn close(&self) {
                self.$local.close().await;
            }
        }
    };
}
pub(crate) use local_broker;
