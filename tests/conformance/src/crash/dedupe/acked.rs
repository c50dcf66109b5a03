//! What a store is doing when it is killed, what it answered, and whether that holds afterwards.

use anyhow::{Context as _, bail, ensure};
use std::{
    collections::BTreeMap,
    fmt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use wh_dedupe::{Dedupe, Retention, Row, Scope, Ticket, Under, Verdict};
use wh_types::{BlockId, Epoch, Table, Tasks, Tenant};

const WRITERS: u32 = 8;
/// Keys of one call.
const KEYS: u32 = 20;

/// One block's rows: of a round, a writer, and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    round: u32,
    writer: u32,
    n: u32,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Is {
    Claimed,
    Committed,
    Released,
}

/// An answer, in a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer(pub(crate) Call, pub(crate) Is);

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(call, is) = self;
        write!(f, "{} {} {} {}", call.round, call.writer, call.n, *is as u8)
    }
}

impl FromStr for Answer {
    type Err = anyhow::Error;
    fn from_str(line: &str) -> anyhow::Result<Self> {
        let mut words = line.split(' ').map(str::parse::<u32>);
        let mut word = || anyhow::Ok(words.next().context("a short line")??);
        let call = Call { round: word()?, writer: word()?, n: word()? };
        let is = [Is::Claimed, Is::Committed, Is::Released];
        Ok(Self(call, *is.get(word()? as usize).context("no such answer")?))
    }
}

impl Call {
    fn rows(self) -> anyhow::Result<Vec<Row>> {
        let Self { round, writer, n } = self;
        let scope = Scope::new(&Tenant::default(), &Table::new("crash")?);
        let row = |id| {
            let mut row = Row::new(scope.event(&format!("{round}-{writer}-{n}-{id}"))?);
            if id % 5 == 0 {
                row.payload = bytes::Bytes::from(format!("{n}.{id}"));
            }
            Ok(row)
        };
        (0..KEYS).map(row).collect()
    }

    fn block(self) -> BlockId {
        let mut id = [0; 16];
        for (part, word) in id.chunks_exact_mut(4).zip([self.round, self.writer, self.n, 1]) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        BlockId(id)
    }

    fn under(self) -> Under {
        Under { stream: 3, epoch: Epoch(4), block: self.block(), lease: Duration::from_secs(600) }
    }

    /// Some are released, some are never resolved, most are committed.
    fn plan(self) -> Is {
        match self.n % 6 {
            0 => Is::Released,
            1 => Is::Claimed,
            _ => Is::Committed,
        }
    }
}

/// Tells of answers as they come.
pub(crate) type Report = Arc<dyn Fn(Answer) + Send + Sync>;

/// Runs until the store fails, which it will.
pub(crate) async fn run(store: Arc<dyn Dedupe>, round: u64, report: Report) {
    let tasks = Tasks::new();
    let failed = Arc::new(AtomicBool::new(false));
    for writer in 0..WRITERS {
        let (store, report, failed) = (Arc::clone(&store), Arc::clone(&report), Arc::clone(&failed));
        drop(tasks.spawn("claim", async move {
            let mut call = Call { round: u32::try_from(round).unwrap_or(0), writer, n: 0 };
            while !failed.load(Ordering::Relaxed) && one(&*store, call, &report).await.is_ok() {
                call.n += 1;
            }
            failed.store(true, Ordering::Relaxed);
        }));
    }
    tasks.wait().await;
}

async fn one(store: &dyn Dedupe, call: Call, report: &Report) -> anyhow::Result<()> {
    let verdicts = store.reserve(&call.rows()?, &call.under()).await?;
    let tickets = verdicts.into_iter().map(ticket).collect::<anyhow::Result<Vec<Ticket>>>()?;
    report(Answer(call, Is::Claimed));
    let outcomes = match call.plan() {
        Is::Claimed => return Ok(()),
        Is::Committed => store.commit(&tickets, Retention::Forever).await,
        Is::Released => store.release(&tickets).await,
    };
    outcomes.into_iter().collect::<Result<Vec<()>, _>>()?;
    report(Answer(call, call.plan()));
    Ok(())
}

fn ticket(verdict: Verdict) -> anyhow::Result<Ticket> {
    let Verdict::New(ticket) = verdict else { bail!("{verdict:?}") };
    Ok(ticket)
}

/// Every answer so far, the last of each call.
#[derive(Debug, Default)]
pub(crate) struct Acked(BTreeMap<Call, Is>);

impl Acked {
    pub(crate) fn note(&mut self, answer: &Answer) {
        let is = self.0.entry(answer.0).or_insert(answer.1);
        *is = (*is).max(answer.1);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a store that was opened again says the same.
    pub(crate) async fn check(&self, store: &dyn Dedupe) -> anyhow::Result<()> {
        for (call, is) in &self.0 {
            let mut fresh = Vec::new();
            for (row, verdict) in standing(store, *call).await? {
                let plan = call.plan();
                match (is, verdict) {
                    (Is::Committed, Verdict::Seen { payload }) => ensure!(payload == row.payload, "{call:?}"),
                    (Is::Released, Verdict::New(ticket)) => fresh.push(ticket),
                    (Is::Claimed, Verdict::Lapsed { origin, payload, .. }) => {
                        let (block, stream) = (origin.block, origin.stream);
                        ensure!((block, stream) == (call.block(), 3) && payload == row.payload, "{call:?}: {origin:?}");
                    }
                    // resolved, and not heard of
                    (Is::Claimed, Verdict::Seen { .. }) if plan == Is::Committed => {}
                    (Is::Claimed, Verdict::New(ticket)) if plan == Is::Released => fresh.push(ticket),
                    (is, verdict) => bail!("{call:?} was {is:?}, and {} is {verdict:?}", row.key),
                }
            }
            for outcome in store.release(&fresh).await {
                outcome?;
            }
        }
        Ok(())
    }
}

/// What a call's keys are. A claim that the store copies out of an old segment just then is busy for as long.
async fn standing(store: &dyn Dedupe, call: Call) -> anyhow::Result<Vec<(Row, Verdict)>> {
    const TRIES: usize = 1_000;
    let (mut left, mut known) = (call.rows()?, Vec::new());
    for _ in 0..TRIES {
        let verdicts = store.reserve(&left, &call.under()).await?;
        let mut again = Vec::new();
        let mut wait = Duration::ZERO;
        for (row, verdict) in left.into_iter().zip(verdicts) {
            if let Verdict::Busy { retry_after, .. } = verdict
                && retry_after < Duration::from_secs(1)
            {
                wait = wait.max(retry_after);
                again.push(row);
            } else {
                known.push((row, verdict));
            }
        }
        if again.is_empty() {
            return Ok(known);
        }
        left = again;
        tokio::time::sleep(wait).await;
    }
    bail!("{call:?}: {} is busy for good", left[0].key)
}
