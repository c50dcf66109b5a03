//! Opening: the checkpoint and the segments' heads become the state machine again. Reads no bodies.

use super::{
    Options, Recovery,
    cache::Cache,
    checkpoint::Content,
    error::open_failed,
    record::{self, BlockMeta, LetterMeta},
    store::{Body, Inner, Named, Parts, TELL_FAILED},
    usage::Usage,
};
use crate::{
    Allowance, Result,
    core::{Core, Known, LetterNote, Restored, TableIndex, Tick},
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use wh_log::{Detail, Opening, Place, Position, RecordRef};
use wh_types::{BlockId, Epoch, Stop, Table, Tasks, Tenant, Throttle, Timestamp};

/// A recovered queue, not running yet.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) core: Core<Body>,
    pub(super) parts: Parts,
    pub(super) recovery: Recovery,
    /// There was no queue in the folder.
    pub(super) created: bool,
    /// Letters that were found a second time: their tenants and numbers.
    pub(super) spares: Vec<(Tenant, u64)>,
}

struct FoundBlock {
    sequence: u64,
    number: u64,
    id: BlockId,
    received: Timestamp,
    stored: Timestamp,
    bytes: u32,
    rows: u32,
    place: Place,
}

/// What the segments hold, before it is put together.
#[derive(Default)]
struct Heap {
    /// With the last segment that says so.
    tables: BTreeMap<u64, (Tenant, Table, Option<u64>)>,
    blocks: Vec<FoundBlock>,
    settled: Vec<(u64, u64, u64)>,
    letters: BTreeMap<u64, (LetterMeta, Timestamp, Place)>,
    purged: HashSet<u64>,
    dropped: HashMap<Tenant, u64>,
    allowances: HashMap<Tenant, (u64, Allowance)>,
    next: u64,
    unreadable: u64,
}

impl Heap {
    fn record(&mut self, record: RecordRef<'_>) {
        if self.take(record).is_none() {
            self.unreadable += 1;
            tracing::error!(place = %record.place, "a record at {} is none of ours", record.place);
        }
    }

    fn take(&mut self, record: RecordRef<'_>) -> Option<()> {
        let RecordRef { place, head, meta, .. } = record;
        match head.kind {
            record::TABLE => {
                let (tenant, table) = record::decode_table(meta)?;
                self.tables.insert(head.stream, (tenant, table, Some(place.segment)));
            }
            record::BLOCK => {
                let BlockMeta { id, received, rows, .. } = BlockMeta::decode(meta)?;
                let (sequence, number, stored, bytes) = (head.sequence, head.stream, head.time, head.body_len);
                self.blocks.push(FoundBlock { sequence, number, id, received, stored, bytes, rows, place });
            }
            record::SETTLED => {
                let ranges = record::decode_settled(meta);
                self.settled.extend(ranges.map(|(first, last)| (head.stream, first, last)));
            }
            record::LETTER => {
                self.next = self.next.max(head.sequence + 1);
                self.letters.insert(head.sequence, (LetterMeta::decode(meta)?, head.time, place));
            }
            record::PURGE => {
                let (tenant, dropped, numbers) = record::decode_purge(meta)?;
                self.purged.extend(numbers);
                let known = self.dropped.entry(tenant).or_default();
                *known = dropped.max(*known);
            }
            record::ALLOWANCE => {
                self.next = self.next.max(head.sequence + 1);
                let (tenant, allowance) = record::decode_allowance(&mut super::codec::Reader(meta))?;
                self.allow(tenant, head.sequence, allowance);
            }
            record::SEAL => self.next = self.next.max(head.sequence + 1),
            _ => return None,
        }
        Some(())
    }

    fn allow(&mut self, tenant: Tenant, revision: u64, allowance: Allowance) {
        let known = self.allowances.entry(tenant).or_insert((revision, allowance));
        if revision > known.0 {
            *known = (revision, allowance);
        }
    }
}

/// Opens the log and builds the state. Blocking.
pub(super) fn recover(options: &Options, detail: Detail) -> Result<Found> {
    let opening = Opening::begin(options.log()).map_err(open_failed)?;
    if let Some(error) = opening.list_lost() {
        tracing::error!(%error, "the list of the queue's segments is damaged: whether one is missing is not known");
    }
    if let Some(error) = opening.checkpoint_lost() {
        tracing::error!(%error, "the queue's checkpoint is damaged: settled blocks may be delivered again");
    }
    let checkpoint = opening.checkpoint().cloned();
    let content = checkpoint.as_ref().and_then(|checkpoint| Content::decode(&checkpoint.content));
    if checkpoint.is_some() && content.is_none() {
        tracing::error!("the queue's checkpoint cannot be read: settled blocks may be delivered again");
    }
    let content = content.unwrap_or_default();
    let checkpoint_bytes = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.content.len() as u64);
    let stands = checkpoint.map_or(Position::START, |checkpoint| checkpoint.position);
    #[expect(clippy::cast_possible_truncation, reason = "any 32 of the id's random bits do")]
    let epoch = Epoch(opening.id() as u32);
    let (created, listed) = (opening.created(), opening.listed());
    // a sequence that was given is not given again, whatever became of its block
    let next = content.snapshot.next_sequence.max(opening.last_sequence().saturating_add(1));
    let mut heap = Heap { next, ..Heap::default() };
    let (log, recovered) =
        opening.replay(Position::START, detail, |record| heap.record(record)).map_err(open_failed)?;
    let mut core = Core::new(options.settings(), epoch);
    let wall = options.clock.wall();
    let mut inner = Inner {
        tables: Vec::new(),
        names: HashMap::new(),
        next_number: 1,
        usage: Usage::default(),
        cache: Cache::new(options.cache_bytes),
        jobs: None,
        failed: Throttle::new(TELL_FAILED),
        kept_ids: content.ids.clone(),
        checkpoint_bytes,
    };
    let numbers = restore_tables(&mut core, &mut inner, &content, &heap);
    let holes = holes(&log, &recovered);
    restore_blocks(&mut core, &mut inner, &content, &mut heap, &numbers, &holes, wall);
    for kept in &content.ids {
        let stored = Tick(0).before(wall.since(kept.stored));
        core.restore_id(kept.id, Known { sequence: kept.sequence, rows: kept.rows }, stored, Tick(0));
    }
    let (dead_letters, spares) = restore_letters(&mut core, &mut inner, &content, heap.letters, &heap.purged, stands);
    for (tenant, dropped) in heap.dropped {
        core.letters(&tenant).restore_dropped(dropped);
    }
    for tenant in &content.snapshot.tenants {
        core.letters(&tenant.tenant).restore_dropped(tenant.letters_dropped);
        if let Some((revision, allowance)) = tenant.allowance {
            core.set_allowance(&tenant.tenant, allowance, revision);
        }
    }
    for (tenant, (revision, allowance)) in heap.allowances {
        core.set_allowance(&tenant, allowance, revision);
    }
    core.restore_next(heap.next);
    core.restored();
    // what is settled and old is gone, as it was before
    core.sweep(Tick(0), usize::MAX);
    for place in core.take_freed() {
        inner.usage.remove(place);
    }
    let recovery = Recovery {
        blocks: core.status().values().map(|tenant| tenant.unsettled_blocks).sum(),
        dead_letters,
        took: std::time::Duration::ZERO,
        damage_count: recovered.damage_count + heap.unreadable,
        damages: recovered.damages,
        torn: recovered.torn,
        missing: recovered.missing,
        listed,
    };
    let parts = Parts {
        log,
        inner: Mutex::new(inner),
        max_body: options.max_body(),
        segment_bytes: options.segment_bytes,
        freeing: Mutex::new(()),
        duplicate_window: options.duplicate_window,
        tasks: Tasks::new(),
        stop: Stop::new(),
    };
    Ok(Found { core, parts, recovery, created, spares })
}

/// Every table that has a number, by it.
fn restore_tables(
    core: &mut Core<Body>,
    inner: &mut Inner,
    content: &Content,
    heap: &Heap,
) -> HashMap<u64, TableIndex> {
    let mut tables = heap.tables.clone();
    for (number, table) in content.numbers.iter().zip(&content.snapshot.tables) {
        tables.entry(*number).or_insert((table.tenant.clone(), table.table.clone(), None));
    }
    // a block whose table's name is lost to damage must not give its number to another table
    let highest = heap.blocks.iter().map(|block| block.number).chain(tables.keys().copied()).max();
    inner.next_number = highest.unwrap_or(0) + 1;
    let mut numbers = HashMap::new();
    for (number, (tenant, table, segment)) in tables {
        let at = core.table(&tenant, &table);
        inner.names.insert(number, (tenant, table));
        // should one table have two numbers after damage, the first is used from now on and both are read
        if inner.tables.len() == at.0 as usize {
            inner.tables.push(Named { number, segment });
        }
        numbers.insert(number, at);
    }
    numbers
}

/// Up to which sequences blocks may be missing, of whichever tables.
fn holes(log: &wh_log::Log, recovered: &wh_log::Recovered) -> Vec<u64> {
    let mut holes: Vec<u64> = recovered.missing.iter().map(|missing| missing.last_sequence).collect();
    let damaged: HashSet<u64> =
        recovered.damages.iter().filter(|damage| damage.head.is_none()).map(|damage| damage.place.segment).collect();
    let segments = log.segments().into_iter().filter(|segment| damaged.contains(&segment.number));
    holes.extend(segments.map(|segment| segment.last_sequence));
    holes.sort_unstable();
    holes.dedup();
    holes.retain(|sequence| *sequence > 0);
    holes
}

fn restore_blocks(
    core: &mut Core<Body>,
    inner: &mut Inner,
    content: &Content,
    heap: &mut Heap,
    numbers: &HashMap<u64, TableIndex>,
    holes: &[u64],
    wall: Timestamp,
) {
    let mut removed: Vec<(u64, TableIndex, Timestamp)> = Vec::new();
    for (number, table) in content.numbers.iter().zip(&content.snapshot.tables) {
        let Some(at) = numbers.get(number) else { continue };
        core.restore_floor(*at, table.floor.0, table.floor.1);
        removed.extend(table.removed.iter().map(|(sequence, received)| (*sequence, *at, *received)));
    }
    // whose they were is lost with them: a reader of any table is told of a gap
    let tables: HashSet<TableIndex> = numbers.values().copied().collect();
    for sequence in holes {
        removed.extend(tables.iter().map(|at| (*sequence, *at, wall)));
    }
    removed.sort_unstable_by_key(|(sequence, ..)| *sequence);
    let mut removed = removed.into_iter().peekable();
    heap.blocks.sort_by_key(|block| block.sequence);
    make_room(core, &heap.blocks, numbers, wall);
    // blocks of one table and segment come in runs: what was looked up last is mostly what is wanted next
    let (mut last, mut counted) = (None, Counted::default());
    for block in std::mem::take(&mut heap.blocks) {
        while let Some((sequence, at, received)) = removed.next_if(|(sequence, ..)| *sequence < block.sequence) {
            core.restore_removed(at, sequence, received);
        }
        let table = match last {
            Some((number, table)) if number == block.number => Some(table),
            _ => numbers.get(&block.number).copied(),
        };
        let FoundBlock { sequence, id, received, stored, bytes, rows, place, number } = block;
        let Some(table) = table else {
            tracing::error!(%place, "the table of the block at {place} is not known");
            continue;
        };
        last = Some((number, table));
        let stored_at = Tick(0).before(wall.since(stored));
        let restored = Restored { table, sequence, id, received, stored: stored_at, bytes, rows, body: place };
        let kept = core.restore(restored, Tick(0)).is_ok();
        counted.block(&mut inner.usage, place, stored, kept);
    }
    counted.flush(&mut inner.usage);
    for (sequence, at, received) in removed {
        core.restore_removed(at, sequence, received);
    }
    for (number, table) in content.numbers.iter().zip(&content.snapshot.tables) {
        for (first, last) in &table.settled {
            if let Some(at) = numbers.get(number) {
                core.restore_settled(*at, *first, *last);
            }
        }
    }
    for (number, first, last) in std::mem::take(&mut heap.settled) {
        if let Some(at) = numbers.get(&number) {
            core.restore_settled(*at, first, last);
        }
    }
}

/// Blocks of one segment that are not counted yet.
#[derive(Default)]
struct Counted {
    segment: u64,
    bytes: u64,
    records: u64,
    newest: Timestamp,
}

impl Counted {
    fn block(&mut self, usage: &mut Usage, place: Place, stored: Timestamp, kept: bool) {
        if place.segment != self.segment {
            self.flush(usage);
            self.segment = place.segment;
        }
        self.newest = self.newest.max(stored);
        if kept {
            self.bytes += u64::from(place.len);
            self.records += 1;
        }
    }

    fn flush(&mut self, usage: &mut Usage) {
        let Self { segment, bytes, records, newest } = std::mem::take(self);
        usage.add_many(segment, bytes, records, newest);
    }
}

/// Makes room for all blocks at once: growing step by step would move each of them several times.
fn make_room(core: &mut Core<Body>, blocks: &[FoundBlock], numbers: &HashMap<u64, TableIndex>, wall: Timestamp) {
    let (mut tables, mut ids) = (HashMap::<u64, usize>::new(), BTreeMap::<i64, (Tick, usize)>::new());
    let (mut run, mut length) = (0, 0);
    for block in blocks {
        if block.number != run {
            *tables.entry(run).or_default() += length;
            (run, length) = (block.number, 0);
        }
        length += 1;
        let stored = Tick(0).before(wall.since(block.stored));
        if let Some(bucket) = core.bucket(stored, Tick(0)) {
            ids.entry(bucket).or_insert((stored, 0)).1 += 1;
        }
    }
    *tables.entry(run).or_default() += length;
    for (number, blocks) in tables {
        if let Some(at) = numbers.get(&number) {
            core.expect(*at, blocks);
        }
    }
    for (stored, count) in ids.into_values() {
        core.expect_ids(stored, count);
    }
}

/// A letter from before the checkpoint is kept if the checkpoint says so, a later one if nothing says it is gone.
fn restore_letters(
    core: &mut Core<Body>,
    inner: &mut Inner,
    content: &Content,
    letters: BTreeMap<u64, (LetterMeta, Timestamp, Place)>,
    purged: &HashSet<u64>,
    stands: Position,
) -> (u64, Vec<(Tenant, u64)>) {
    let live: HashSet<u64> =
        content.snapshot.tenants.iter().flat_map(|tenant| tenant.letters.iter().copied()).collect();
    let (mut kept, mut spares) = (0, Vec::new());
    for (number, (meta, attempted, place)) in letters {
        let known = place.position() >= stands || live.contains(&number);
        if !known || purged.contains(&number) {
            continue;
        }
        let LetterMeta { tenant, table, id, charge, retry_until, code } = meta;
        let note = LetterNote { id, table, bytes: charge, attempted, retry_until, code };
        let parked = core.letters(&tenant).park(number, note, place);
        if parked.is_ok() {
            inner.usage.add(place);
            kept += 1;
        } else {
            spares.push((tenant, number));
        }
    }
    (kept, spares)
}
