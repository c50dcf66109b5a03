//! What every case needs: an opened queue, blocks to publish, feeds to empty, waits for conditions.

use crate::{Arm, Ending, Setup, Stand};
use anyhow::{Context as _, bail, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use wh_mq::{
    AckToken, Allowance, Broker, Budget, DeadLetter, DeadLetterId, Delivery, Feed, From, Happening, History, Receipt,
    Settle, Unit, Verdict,
};
use wh_types::{Block, BlockId, Class, Cursor, Encoding, RowCursor, Table, Tenant, Timestamp};

/// How long anything may take that must come.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// How long it must stay quiet where nothing may come.
pub const QUIET: Duration = Duration::from_millis(250);
/// A budget nothing reaches.
pub const WIDE: Budget = Budget { rows: 1_000_000, bytes: 1 << 30 };

/// An opened queue.
#[derive(Debug)]
pub struct Stage {
    stand: Box<dyn Stand>,
    ids: AtomicU64,
    salt: u64,
    whole_history: bool,
}

/// What most cases want.
#[must_use]
pub fn setup() -> Setup {
    let mb = 1024 * 1024;
    Setup {
        shards: 4,
        ack_wait: Duration::from_secs(30),
        duplicate_window: Duration::from_secs(120),
        allowance: Allowance { bytes: 256 * mb, table_bytes: 256 * mb, history: Duration::from_secs(300) },
        tenants: vec![tenant("acme"), tenant("globex")],
    }
}

tokio::task_local! {
    /// What a case's tenants end with where its queue is not its own.
    static SALT: String;
}

/// Runs a case under tenants that no other case has, or had: for a queue that other cases used.
pub async fn salted<F: Future>(case: F) -> F::Output {
    let mut salt = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8).to_string();
    salt.truncate(12);
    SALT.scope(salt, case).await
}

/// A tenant. Falls back to the default one, which no case wants: a bad name shows in the case.
#[must_use]
pub fn tenant(name: &str) -> Tenant {
    let salted = SALT.try_with(|salt| Tenant::new(&format!("{name}-{salt}")));
    salted.unwrap_or_else(|_| Tenant::new(name)).unwrap_or_default()
}

/// A table.
///
/// # Panics
/// Never: the names are the cases' own.
#[must_use]
pub fn table(name: &str) -> Table {
    #[expect(clippy::expect_used, reason = "the names are the cases' own")]
    Table::new(name).expect("a table name")
}

impl Stage {
    /// Opens a queue as most cases want it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn open(arm: &dyn Arm) -> anyhow::Result<Self> {
        Self::with(arm, setup()).await
    }

    /// Opens a queue.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn with(arm: &dyn Arm, setup: Setup) -> anyhow::Result<Self> {
        let stand = arm.open(setup).await.with_context(|| format!("opening {}", arm.name()))?;
        // ids of other cases may still be known
        let salt = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
        Ok(Self { stand, ids: AtomicU64::new(1), salt, whole_history: arm.profile().whole_history })
    }

    /// The queue.
    #[must_use]
    pub fn broker(&self) -> Arc<dyn Broker> {
        self.stand.broker()
    }

    /// Ends the queue and opens what it left.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn reopen(&mut self, ending: Ending) -> anyhow::Result<()> {
        self.stand.reopen(ending).await
    }

    /// A block of `acme` with rows of their own.
    pub fn block(&self, table_name: &str, rows: u32) -> Block {
        self.block_of("acme", table_name, rows)
    }

    /// A block of any tenant.
    pub fn block_of(&self, tenant_name: &str, table_name: &str, rows: u32) -> Block {
        let n = self.ids.fetch_add(1, Ordering::Relaxed);
        let text: String = (0..rows).map(|row| format!("{{\"block\":{n},\"row\":{row}}}\n")).collect();
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.salt.wrapping_add(n).to_le_bytes());
        id[8..].copy_from_slice(&n.to_le_bytes());
        Block {
            id: BlockId(id),
            tenant: tenant(tenant_name),
            table: table(table_name),
            received: Timestamp::from_millis(1_750_000_000_000 + i64::try_from(n).unwrap_or(0)),
            rows,
            decoded_bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
            encoding: Encoding::Zstd,
            body: if rows == 0 { Bytes::new() } else { packed(text.as_bytes()) },
            chain: None,
            trace: None,
        }
    }

    /// Publishes blocks that must be stored; gives their cursors.
    ///
    /// # Errors
    /// One was not.
    pub async fn publish(&self, blocks: &[Block]) -> anyhow::Result<Vec<Cursor>> {
        let outcomes = self.broker().publish(blocks).await;
        ensure!(outcomes.len() == blocks.len(), "{} outcomes for {} blocks", outcomes.len(), blocks.len());
        let mut cursors = Vec::new();
        for outcome in outcomes {
            match outcome? {
                Receipt::Stored(cursor) => cursors.push(cursor),
                Receipt::Duplicate(cursor) => bail!("a new block was answered Duplicate({cursor})"),
            }
        }
        Ok(cursors)
    }

    /// Publishes one block that must be stored.
    ///
    /// # Errors
    /// It was not.
    pub async fn store(&self, block: &Block) -> anyhow::Result<Cursor> {
        self.publish(std::slice::from_ref(block)).await?.pop().context("no outcome")
    }

    /// Publishes one block, whatever comes.
    ///
    /// # Errors
    /// There was no outcome at all.
    pub async fn offer(&self, block: &Block) -> anyhow::Result<wh_mq::Result<Receipt>> {
        self.broker().publish(std::slice::from_ref(block)).await.pop().context("no outcome")
    }

    /// The unit of a table of `acme`.
    #[must_use]
    pub fn unit(&self, table_name: &str) -> Unit {
        self.broker().unit_of(&tenant("acme"), &table(table_name))
    }

    /// Takes the unit of a table of `acme`.
    ///
    /// # Errors
    /// It cannot be taken.
    pub async fn feed(&self, table_name: &str, budget: Budget) -> anyhow::Result<Box<dyn Feed>> {
        Ok(self.broker().feed(self.unit(table_name), budget).await?)
    }

    /// Takes and settles what is unsettled of all units: these blocks, and whatever else there is.
    ///
    /// # Errors
    /// One of them did not come, or a delivery or a settle failed.
    pub async fn drain_all(&self, blocks: &[Block]) -> anyhow::Result<Vec<Delivery>> {
        let mut all = Vec::new();
        for unit in self.broker().units() {
            let mut feed = self.broker().feed(unit, WIDE).await?;
            all.extend(drain(&mut *feed, self.in_unit(unit, blocks)).await?);
        }
        Ok(all)
    }

    /// How many of these blocks are of a unit.
    #[must_use]
    pub fn in_unit(&self, unit: Unit, blocks: &[Block]) -> usize {
        blocks.iter().filter(|block| self.broker().unit_of(&block.tenant, &block.table) == unit).count()
    }

    /// Two tables of `acme` in different units.
    ///
    /// # Errors
    /// All names fall into one unit.
    pub fn apart(&self) -> anyhow::Result<(&'static str, &'static str)> {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let other = names.into_iter().find(|name| self.unit(name) != self.unit("a"));
        Ok(("a", other.context("all tables are in one unit")?))
    }

    /// Follows a table of `acme` from before its first block.
    ///
    /// # Errors
    /// It cannot be followed.
    pub async fn follow_all(&self, table_name: &str, from: From) -> anyhow::Result<Box<dyn History>> {
        Ok(self.whole(self.follow(table_name, from).await?))
    }

    /// A history from before its first block, without the gap that it begins with where it is older than the case.
    #[must_use]
    pub fn whole(&self, history: Box<dyn History>) -> Box<dyn History> {
        if self.whole_history { history } else { Box::new(Older { inner: history, began: false }) }
    }

    /// Follows a table of `acme`.
    ///
    /// # Errors
    /// It cannot be followed.
    pub async fn follow(&self, table_name: &str, from: From) -> anyhow::Result<Box<dyn History>> {
        Ok(self.broker().history(&tenant("acme"), &table(table_name), from).await?)
    }
}

/// A history that may begin with a gap, since it began before the case.
#[derive(Debug)]
struct Older {
    inner: Box<dyn History>,
    began: bool,
}

#[async_trait]
impl History for Older {
    fn seam(&self) -> Option<Cursor> {
        self.inner.seam()
    }

    async fn next(&mut self) -> wh_mq::Result<Option<Happening>> {
        let mut next = self.inner.next().await?;
        if !self.began && matches!(next, Some(Happening::Gap(_))) {
            next = self.inner.next().await?;
        }
        self.began = true;
        Ok(next)
    }
}

/// A body that decodes. Small texts only.
fn packed(text: &[u8]) -> Bytes {
    wh_types::frame::encode(Encoding::Zstd, text).unwrap_or_default()
}

/// The next delivery, which must come.
///
/// # Errors
/// It did not.
pub async fn next(feed: &mut dyn Feed) -> anyhow::Result<Delivery> {
    let next = tokio::time::timeout(PATIENCE, feed.next()).await.context("no delivery came")?;
    next?.context("the feed ended")
}

/// So many deliveries, which must come.
///
/// # Errors
/// They did not.
pub async fn take(feed: &mut dyn Feed, count: usize) -> anyhow::Result<Vec<Delivery>> {
    let mut all = Vec::with_capacity(count);
    for n in 0..count {
        all.push(next(feed).await.with_context(|| format!("after {n} of {count}"))?);
    }
    Ok(all)
}

/// Nothing may be delivered for a while.
///
/// # Errors
/// Something was.
pub async fn quiet(feed: &mut dyn Feed) -> anyhow::Result<()> {
    match tokio::time::timeout(QUIET, feed.next()).await {
        Err(_) => Ok(()),
        Ok(next) => bail!("{next:?} came, and nothing may come"),
    }
}

/// Settles deliveries, each of which must go well.
///
/// # Errors
/// One did not.
pub async fn settle(by: &dyn Settle, deliveries: &[Delivery], verdict: Verdict) -> anyhow::Result<()> {
    let tokens: Vec<AckToken> = deliveries.iter().map(|delivery| delivery.token).collect();
    let outcomes = by.settle(&tokens, verdict).await;
    ensure!(outcomes.len() == tokens.len(), "{} outcomes for {} tokens", outcomes.len(), tokens.len());
    outcomes.into_iter().try_for_each(|outcome| outcome.map_err(anyhow::Error::from))
}

/// Takes and settles so many deliveries of a unit, which must come, and whatever comes after them until it is quiet; gives
/// all of it in order.
///
/// # Errors
/// Fewer came, or a delivery or a settle failed.
pub async fn drain(feed: &mut dyn Feed, count: usize) -> anyhow::Result<Vec<Delivery>> {
    let mut all = Vec::with_capacity(count);
    loop {
        let missing = all.len() < count;
        let delivery = match tokio::time::timeout(if missing { PATIENCE } else { QUIET }, feed.next()).await {
            Ok(next) => next?.context("the feed ended")?,
            Err(_) if missing => bail!("nothing came after {} of {count}", all.len()),
            Err(_) => return Ok(all),
        };
        settle(&*feed.settle(), std::slice::from_ref(&delivery), Verdict::Ack).await?;
        all.push(delivery);
    }
}

/// What a history shows next, which must come.
///
/// # Errors
/// It did not.
pub async fn shown(history: &mut dyn History) -> anyhow::Result<Happening> {
    let next = tokio::time::timeout(PATIENCE, history.next()).await.context("nothing was shown")?;
    next?.context("the history ended")
}

/// A block that a history must show next.
///
/// # Errors
/// Something else was shown.
pub async fn shown_block(history: &mut dyn History) -> anyhow::Result<(Cursor, Block)> {
    match shown(history).await? {
        Happening::Block(cursor, block) => Ok((cursor, block)),
        other @ (Happening::Live | Happening::Gap(_)) => bail!("{other:?} was shown where a block must be"),
    }
}

/// That a history says `Live` next.
///
/// # Errors
/// It shows something else.
pub async fn shown_live(history: &mut dyn History) -> anyhow::Result<()> {
    let next = shown(history).await?;
    ensure!(next == Happening::Live, "{next:?} was shown where Live must be");
    Ok(())
}

/// Nothing may be shown for a while.
///
/// # Errors
/// Something was.
pub async fn shown_nothing(history: &mut dyn History) -> anyhow::Result<()> {
    match tokio::time::timeout(QUIET, history.next()).await {
        Err(_) => Ok(()),
        Ok(next) => bail!("{next:?} was shown, and nothing may be"),
    }
}

/// Waits for a condition, looking every few milliseconds.
///
/// # Errors
/// It did not come true in time.
pub async fn until<F>(what: &str, mut check: impl FnMut() -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<bool>>,
{
    let wait = async {
        while !check().await? {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, wait).await.with_context(|| format!("waiting until {what}"))?
}

/// The class an outcome must have failed with.
///
/// # Errors
/// It went well, or failed otherwise.
pub fn failed<T: std::fmt::Debug>(outcome: wh_mq::Result<T>, class: Class) -> anyhow::Result<()> {
    match outcome {
        Err(error) if error.class() == class => Ok(()),
        other => bail!("{other:?} where {class:?} must be"),
    }
}

/// The ids of deliveries, in order.
#[must_use]
pub fn ids(deliveries: &[Delivery]) -> Vec<BlockId> {
    deliveries.iter().map(|delivery| delivery.block.id).collect()
}

/// A dead letter of `acme` with every field filled.
#[must_use]
pub fn letter(table_name: &str, cursor: Cursor, row: u32) -> DeadLetter {
    DeadLetter {
        id: DeadLetterId(RowCursor { block: cursor, row }),
        tenant: tenant("acme"),
        table: table(table_name),
        body: Bytes::from(format!("{{\"bad\":{row}}}")),
        reason: format!("row {row}: Cannot parse input: expected 'ü' before: \"x\\n\""),
        code: "27".to_owned(),
        column: row.is_multiple_of(2).then(|| "c öl".to_owned()),
        attempted: Timestamp::from_nanos(1_750_000_000_123_456_789),
        received: Timestamp::from_nanos(1_750_000_000_000_000_001),
        retry_until: None,
    }
}
