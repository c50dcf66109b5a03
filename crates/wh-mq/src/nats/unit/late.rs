//! Acks that outlived their term: an owner whose connection broke for so long that its term ended has inserted blocks of
//! which the server does not know. They are sent as soon as a server is there, before anybody makes the blocks due. Which
//! blocks a next term of this process leaves out is the desk's matter.

use super::{reading::read, release::send, units::LeftOver};
use crate::nats::shared::Shared;
use std::{sync::Arc, time::Duration};
use wh_nats::{Ack, AckSubject};

/// Before what failed is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// Runs until the queue closes.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut link = shared.connection.watch();
    loop {
        let connected = link.borrow_and_update().connected;
        let waits = round(&shared, connected).await;
        tokio::select! {
            biased;
            () = shared.stop.wait() => return,
            () = shared.units.left_over.notified() => {}
            changed = link.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(RETRY), if waits => {}
        }
    }
}

/// Sends what is left over. Gives whether something has to be tried again.
async fn round(shared: &Shared, connected: bool) -> bool {
    let mut waits = false;
    for left in shared.units.all_left_over() {
        if !connected || shared.stop.given() {
            return false;
        }
        let unit = left.unit;
        match tell(shared, left).await {
            Ok(acks) => tracing::info!(%unit, acks, "acks of unit {unit} that outlived its term were sent"),
            Err(error) => {
                tracing::debug!(%unit, %error, "acks of unit {unit} that outlived its term could not be sent yet");
                waits = true;
            }
        }
    }
    waits
}

async fn tell(shared: &Shared, left: LeftOver) -> Result<usize, wh_nats::Error> {
    let LeftOver { unit, created, acks } = left;
    let Ok((partition, durable)) = shared.durable("late acks", unit) else {
        shared.units.forget(unit, &created);
        return Ok(0);
    };
    // on another durable of the name these replies would settle other blocks
    match read(&shared.connection.api(), partition.name(), &durable.name).await {
        Ok(found) if found.created == created => {}
        Err(error) if !error.is_gone() => return Err(error),
        Ok(_) | Err(_) => {
            shared.units.forget(unit, &created);
            return Ok(0);
        }
    }
    let (sequences, replies): (Vec<u64>, Vec<AckSubject>) = acks.into_iter().unzip();
    send(&shared.connection, &replies, Ack::Ack).await?;
    shared.units.heard(unit, &created, &sequences);
    Ok(sequences.len())
}
