//! Committing and releasing: a conditional write a ticket.

use super::{
    Dedupe,
    item::{self, Attributes, bytes, number, text},
    tries::{Answer, Failed},
};
use crate::{Error, Kind, Result, Retention, Row, Ticket};
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
use wh_types::{Mono, Timestamp};

impl Dedupe {
    /// A commit that is repeated finds its own token.
    pub(super) async fn commit_one(
        &self,
        ticket: &Ticket,
        retention: Retention,
        wall: Timestamp,
        deadline: Mono,
    ) -> Result<()> {
        let update =
            self.client.update_item().table_name(&self.options.table).key(item::PK, text(ticket.key().as_str()));
        let update = update
            .condition_expression("tk = :token")
            .expression_attribute_values(":token", bytes(ticket.token().0))
            .expression_attribute_values(":two", number(2));
        let update = match item::commit_ends(wall, retention) {
            Some((until, expires)) => update
                .update_expression("SET st = :two, un = :until, ex = :expires")
                .expression_attribute_values(":until", number(until))
                .expression_attribute_values(":expires", number(expires)),
            None => update.update_expression("SET st = :two REMOVE un, ex"),
        };
        let answer = self.tries(deadline, || update.clone().send()).await;
        match answer.map_err(|failed| Error::new("commit", failed.into_kind()))? {
            (Answer::Done, _) => Ok(()),
            (Answer::Refused(_), _) => Err(Error::new("commit", Kind::Lost)),
        }
    }

    pub(super) async fn release_one(&self, ticket: &Ticket, deadline: Mono) -> Result<()> {
        let delete =
            self.client.delete_item().table_name(&self.options.table).key(item::PK, text(ticket.key().as_str()));
        let delete = delete
            .condition_expression("tk = :token AND st = :one")
            .expression_attribute_values(":token", bytes(ticket.token().0))
            .expression_attribute_values(":one", number(1))
            .return_values_on_condition_check_failure(AllOld);
        let answer = self.tries(deadline, || delete.clone().send()).await;
        match answer.map_err(|failed| Error::new("release", failed.into_kind()))? {
            (Answer::Done, _) => Ok(()),
            // an attempt before it whose answer was lost did it
            (Answer::Refused(None), true) => Ok(()),
            (Answer::Refused(_), _) => Err(Error::new("release", Kind::Lost)),
        }
    }

    /// Lets a claim that was taken over lapse again.
    pub(super) async fn lapse(&self, ticket: &Ticket, wall: Timestamp, deadline: Mono) -> Result<()> {
        let update =
            self.client.update_item().table_name(&self.options.table).key(item::PK, text(ticket.key().as_str()));
        let update = update
            .update_expression("SET un = :until")
            .condition_expression("tk = :token AND st = :one")
            .expression_attribute_values(":until", number(item::millis(wall)))
            .expression_attribute_values(":token", bytes(ticket.token().0))
            .expression_attribute_values(":one", number(1));
        let answer = self.tries(deadline, || update.clone().send()).await;
        match answer.map_err(|failed| Error::new("reserve", failed.into_kind()))? {
            (Answer::Done, _) => Ok(()),
            (Answer::Refused(_), _) => Err(Error::new("reserve", Kind::Lost)),
        }
    }

    /// Reads an item: only for emulators that do not tell it with a failed condition.
    pub(super) async fn read(&self, row: &Row, deadline: Mono) -> std::result::Result<Attributes, Failed> {
        let get = self.client.get_item().table_name(&self.options.table).key(item::PK, text(row.key.as_str()));
        let read = tokio::time::timeout_at(deadline, get.consistent_read(true).send()).await;
        let unreached = Failed { kind: Kind::Unavailable, doubt: false };
        let found = read.map_err(|_| unreached.clone())?.map_err(|_| unreached.clone())?;
        // it went between the two: the call is made again
        found.item.ok_or(unreached)
    }
}
