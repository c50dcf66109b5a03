//! Reserving: a conditional put a key, and taking back what a failed call took.

use super::{
    Dedupe, breaker,
    item::{self, Attributes, Item, bytes, number, text},
    tries::{Answer, Failed},
};
use crate::{Error, Kind, Origin, Result, Row, Ticket, Token, Under, Verdict, port::checked};
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure::AllOld};
use futures::StreamExt as _;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use wh_types::{Class, Mono, Timestamp};

const OP: &str = "reserve";
/// How often a key is looked at anew because it changed meanwhile.
const ROUNDS: u32 = 4;

/// What is the same for all keys of a call.
struct Call {
    token: Token,
    origin: Origin,
    wall: Timestamp,
    deadline: Mono,
    /// Another key failed: what was not sent yet is not sent.
    over: AtomicBool,
}

/// A key of which it is not known that it is ours, and may be.
#[derive(Clone, Debug)]
struct Missed {
    failed: Failed,
    /// What may have landed of it, to be taken back.
    may_have: Step,
}

/// What is sent for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Put,
    TakeOver,
}

impl Missed {
    fn at(step: Step) -> impl Fn(Failed) -> Self {
        move |failed| Self { may_have: if failed.doubt { step } else { Step::Nothing }, failed }
    }
}

impl Dedupe {
    pub(super) async fn claim_all(&self, rows: &[Row], under: &Under) -> Result<Vec<Verdict>> {
        let now = self.options.clock.now();
        if let Some(left) = self.breaker.open(now) {
            tracing::debug!(?left, "the dedupe table did not answer lately and is not asked");
            return Err(Error::new(OP, Kind::Unavailable));
        }
        let wall = self.options.clock.wall();
        let call = Call {
            token: Token::draw(&*self.options.entropy),
            origin: Origin::new(under, wall),
            wall,
            deadline: now + self.options.timeout,
            over: AtomicBool::new(false),
        };
        let claims = rows.iter().zip(checked::repeats(rows)).map(|(row, before)| self.claim(row, before, &call));
        let claims: Vec<_> = claims.collect();
        let outcomes: Vec<_> = futures::stream::iter(claims).buffered(self.options.concurrency).collect().await;
        let failed: Vec<Failed> = outcomes.iter().filter_map(|one| Some(one.as_ref().err()?.failed.clone())).collect();
        let Some(first) = failed.iter().find(|failed| failed.kind != SKIPPED) else {
            self.breaker.note(self.options.clock.now(), true);
            return outcomes
                .into_iter()
                .collect::<std::result::Result<_, Missed>>()
                .map_err(|missed| Error::new(OP, missed.failed.into_kind()));
        };
        // also of those that may have landed: an answer to that says nothing of one that is still under way
        let doubt = failed.iter().any(|failed| failed.doubt);
        let undone = self.take_back(rows.iter().zip(&outcomes), &call).await;
        let kind = if doubt || !undone { Kind::Unknown } else { first.kind.clone() };
        let error = Error::new(OP, kind);
        let reached = !matches!(error.class(), Class::Unavailable | Class::Unknown | Class::Exhausted { .. });
        self.breaker.note(self.options.clock.now(), reached);
        Err(error)
    }

    async fn claim(&self, row: &Row, before: Option<usize>, call: &Call) -> std::result::Result<Verdict, Missed> {
        if let Some(before) = before {
            return Ok(Verdict::Same(before));
        }
        if call.over.load(Ordering::Relaxed) {
            return Err(Missed::at(Step::Nothing)(Failed { kind: SKIPPED, doubt: false }));
        }
        let claimed = self.claim_one(row, call).await;
        if claimed.is_err() {
            call.over.store(true, Ordering::Relaxed);
        }
        claimed
    }

    async fn claim_one(&self, row: &Row, call: &Call) -> std::result::Result<Verdict, Missed> {
        let ticket = || Ticket::new(row.key.clone(), call.token);
        // an item to be judged before anything is put
        let mut found: Option<Item> = None;
        for _ in 0..ROUNDS {
            let item = match found.take() {
                Some(item) => item,
                None => match self.put(row, call).await.map_err(Missed::at(Step::Put))? {
                    None => return Ok(Verdict::New(ticket())),
                    Some(item) => item,
                },
            };
            let (until, now) = (item.until.unwrap_or(i64::MAX), item::millis(call.wall));
            let payload = item.payload.clone();
            if item.committed {
                return Ok(Verdict::Seen { payload });
            }
            if item.token == call.token {
                return Ok(Verdict::New(ticket()));
            }
            if until > now {
                let left = Duration::from_millis(u64::try_from(until.saturating_sub(now)).unwrap_or(0));
                return Ok(Verdict::Busy { retry_after: left, payload });
            }
            let Some(origin) = item.origin else { return Err(Missed::at(Step::Nothing)(corrupt(row))) };
            match self.take_over(row, &item, call).await.map_err(Missed::at(Step::TakeOver))? {
                Taken::Ours => return Ok(Verdict::Lapsed { origin, payload, ticket: ticket() }),
                Taken::Changed(item) => found = item,
            }
        }
        // it changed hands all the time: somebody is at it
        Ok(Verdict::Busy { retry_after: breaker::SPAN, payload: bytes::Bytes::new() })
    }

    /// Puts a claim where there is none; gives what is there otherwise.
    async fn put(&self, row: &Row, call: &Call) -> std::result::Result<Option<Item>, Failed> {
        let (until, expires) = item::claim_ends(call.wall, call.origin.lease);
        let mut attributes = Attributes::from([
            (item::PK.to_owned(), text(row.key.as_str())),
            (item::STATE.to_owned(), number(1)),
            (item::UNTIL.to_owned(), number(until)),
            (item::EXPIRES.to_owned(), number(expires)),
            (item::TOKEN.to_owned(), bytes(call.token.0)),
            (item::ORIGIN.to_owned(), item::origin(&call.origin)),
        ]);
        if !row.payload.is_empty() {
            attributes.insert(item::PAYLOAD.to_owned(), bytes(&row.payload[..]));
        }
        let put = self.client.put_item().table_name(&self.options.table).set_item(Some(attributes));
        let put = put
            .condition_expression("attribute_not_exists(pk) OR (st = :two AND un <= :now)")
            .expression_attribute_values(":two", number(2))
            .expression_attribute_values(":now", number(item::millis(call.wall)))
            .return_values_on_condition_check_failure(AllOld);
        match self.tries(call.deadline, || put.clone().send()).await? {
            (Answer::Done, _) => Ok(None),
            (Answer::Refused(there), _) => self.there(row, there, call.deadline).await.map(Some),
        }
    }

    /// Takes a lapsed claim over; it stays what it was, under another token.
    async fn take_over(&self, row: &Row, item: &Item, call: &Call) -> std::result::Result<Taken, Failed> {
        let (until, expires) = item::claim_ends(call.wall, call.origin.lease);
        let update = self.client.update_item().table_name(&self.options.table).key(item::PK, text(row.key.as_str()));
        let update = update
            .update_expression("SET tk = :token, un = :until, ex = :expires")
            .condition_expression("tk = :before AND st = :one")
            .expression_attribute_values(":token", bytes(call.token.0))
            .expression_attribute_values(":until", number(until))
            .expression_attribute_values(":expires", number(expires))
            .expression_attribute_values(":before", bytes(item.token.0))
            .expression_attribute_values(":one", number(1))
            .return_values(ReturnValue::None)
            .return_values_on_condition_check_failure(AllOld);
        match self.tries(call.deadline, || update.clone().send()).await? {
            (Answer::Done, _) => Ok(Taken::Ours),
            (Answer::Refused(None), false) => Ok(Taken::Changed(None)),
            (Answer::Refused(there), _) => {
                let now = self.there(row, there, call.deadline).await?;
                Ok(if now.token == call.token { Taken::Ours } else { Taken::Changed(Some(now)) })
            }
        }
    }

    /// The item that a condition failed on; asked for where it was not told.
    async fn there(&self, row: &Row, told: Option<Attributes>, deadline: Mono) -> std::result::Result<Item, Failed> {
        let told = match told {
            Some(told) => told,
            None => self.read(row, deadline).await?,
        };
        Item::read(&told).ok_or_else(|| corrupt(row))
    }

    /// Frees what was new, and lets what was taken over lapse again, by the call's token; gives whether all of it that
    /// is known to have been taken is. What may have been taken is tried too: its keys are free sooner then.
    async fn take_back<'a>(
        &self,
        of: impl Iterator<Item = (&'a Row, &'a std::result::Result<Verdict, Missed>)>,
        call: &Call,
    ) -> bool {
        let deadline = self.options.clock.now() + self.options.timeout;
        let step = |outcome: &std::result::Result<Verdict, Missed>| match outcome {
            Ok(Verdict::New(_)) => (Step::Put, true),
            Ok(Verdict::Lapsed { .. }) => (Step::TakeOver, true),
            Ok(Verdict::Busy { .. } | Verdict::Seen { .. } | Verdict::Same(_)) => (Step::Nothing, false),
            Err(missed) => (missed.may_have, false),
        };
        let back = of.map(async |(row, outcome)| {
            let (step, sure) = step(outcome);
            let ticket = Ticket::new(row.key.clone(), call.token);
            let back = match step {
                Step::Nothing => Ok(()),
                Step::Put => self.release_one(&ticket, deadline).await,
                Step::TakeOver => self.lapse(&ticket, call.wall, deadline).await,
            };
            back.is_ok() || !sure
        });
        let back: Vec<_> = back.collect();
        let back = futures::stream::iter(back).buffer_unordered(self.options.concurrency);
        back.fold(true, async |all, one| all && one).await
    }
}

/// What stands for a key that was not sent because another failed.
const SKIPPED: Kind = Kind::Stopping;

enum Taken {
    Ours,
    Changed(Option<Item>),
}

fn corrupt(row: &Row) -> Failed {
    let why = format!("the item of {} is none of ours", row.key);
    Failed { kind: Kind::Corrupt(why.into()), doubt: false }
}
