//! Parking: one message a row, under an id that follows from the row's place.

use super::letter;
use crate::{
    DeadLetter, Error, Kind, Result, metrics,
    nats::{
        publish::{self, Message, Place},
        shared::Shared,
    },
};
use std::time::Duration;
use wh_nats::DirectGet;

const OP: &str = "park";
/// A letter may have been parked and purged so often within the stream's duplicate window.
const LIVES: usize = 16;
/// A replica that answers a direct get may lag behind the leader that acked: what it does not have is asked for again.
const LOOKS: usize = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Parks rows, one outcome each, in the order given.
pub(crate) async fn park(shared: &Shared, letters: &[DeadLetter]) -> Vec<Result<()>> {
    if let Err(error) = shared.running(OP) {
        return letters.iter().map(|_| Err(Error::new(OP, error.kind().clone()))).collect();
    }
    let messages = letters.iter().map(|letter| message(shared, letter, letter::message_id(letter.id))).collect();
    let places = publish::drive(shared, OP, &shared.names().dead_letters, messages).await;
    let mut outcomes = Vec::with_capacity(letters.len());
    for (letter, place) in letters.iter().zip(places) {
        outcomes.push(match place {
            Ok(place) => keep(shared, letter, place).await,
            Err(error) => Err(error),
        });
    }
    outcomes
}

/// The stream knows the ids of letters that were purged, too: one that is answered as a duplicate and is gone is parked
/// again under an id that follows from the place it had.
async fn keep(shared: &Shared, letter: &DeadLetter, mut place: Place) -> Result<()> {
    for _ in 0..LIVES {
        if !place.duplicate || is_kept(shared, letter, place.sequence).await? {
            shared.letters.index.put(letter.id, place.sequence);
            if !place.duplicate {
                metrics::letter(metrics::PARKED, &letter.tenant, &letter.table, &letter.code);
            }
            return Ok(());
        }
        let id = format!("{}.{}", letter::message_id(letter.id), place.sequence);
        let again = vec![message(shared, letter, id)];
        place = match publish::drive(shared, OP, &shared.names().dead_letters, again).await.pop() {
            Some(place) => place?,
            None => return Err(Error::new(OP, Kind::Bug("a letter has no outcome".into()))),
        };
    }
    Err(Error::new(OP, Kind::Unavailable))
}

async fn is_kept(shared: &Shared, letter: &DeadLetter, sequence: u64) -> Result<bool> {
    for look in 0..LOOKS {
        if look > 0 {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        let stored =
            shared.connection.api().direct_get(&shared.names().dead_letters, DirectGet::Sequence(sequence)).await;
        // unknown, not unavailable: it was stored once
        let stored = stored.map_err(|error| Error::new(OP, Kind::Unknown).with_source(error))?;
        if let Some(stored) = stored {
            return Ok(letter::id(&|name: &str| stored.header_first(name)) == Some(letter.id));
        }
    }
    Ok(false)
}

fn message(shared: &Shared, letter: &DeadLetter, id: String) -> Message {
    let most = shared.connection.max_payload().saturating_sub(letter::MAX_HEADERS);
    let (letter, body) = letter::fitted(letter, most);
    Message {
        subject: shared.names().dead_letter_subject(&Shared::key(&letter.tenant, &letter.table)),
        headers: letter::headers(&letter, &shared.names().dead_letters, id),
        body,
    }
}
