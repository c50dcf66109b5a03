//! The queue in memory.

use crate::{Arm, Ending, Profile, Setup, Stand};
use async_trait::async_trait;
use std::sync::Arc;
use wh_mq::{Broker, sim};
use wh_types::{Epoch, SystemClock};

/// The arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sim;

#[derive(Debug)]
struct SimStand(sim::Broker);

#[async_trait]
impl Arm for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn profile(&self) -> Profile {
        Profile {
            allowances: true,
            purge: true,
            tables_take_turns: true,
            whole_history: true,
            ack_wait: true,
            max_body: 8 * 1024 * 1024,
        }
    }

    async fn open(&self, setup: Setup) -> anyhow::Result<Box<dyn Stand>> {
        Ok(Box::new(SimStand(sim::Broker::new(sim::Options {
            epoch: Epoch(0x51b0_0001),
            shards: setup.shards,
            ack_wait: setup.ack_wait,
            duplicate_window: setup.duplicate_window,
            default_allowance: setup.allowance,
            dead_letter_share: 10,
            clock: Arc::new(SystemClock),
        }))))
    }
}

#[async_trait]
impl Stand for SimStand {
    fn broker(&self) -> Arc<dyn Broker> {
        Arc::new(self.0.clone())
    }

    async fn reopen(&mut self, ending: Ending) -> anyhow::Result<()> {
        match ending {
            Ending::Clean => self.0.close().await,
            Ending::Crash => {}
        }
        self.0 = self.0.reopen();
        Ok(())
    }
}
