//! The blocks a feed holds, in the order they fall due again. A slab with a linked list through it: taking, settling
//! and keeping alive are O(1) and leave nothing behind, however long one block stays.

use super::{table::TableIndex, tick::Tick};

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Holding {
    pub(super) table: TableIndex,
    pub(super) sequence: u64,
    pub(super) rows: u32,
    pub(super) bytes: u32,
    pub(super) deadline: Tick,
}

#[derive(Debug)]
struct Node {
    holding: Holding,
    before: u32,
    after: u32,
}

#[derive(Debug)]
pub(super) struct Held {
    nodes: Vec<Node>,
    free: Vec<u32>,
    first: u32,
    last: u32,
    rows: usize,
    bytes: usize,
}

impl Default for Held {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), first: NIL, last: NIL, rows: 0, bytes: 0 }
    }
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.first == NIL
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn first(&self) -> Option<&Holding> {
        self.nodes.get(self.first as usize).map(|node| &node.holding)
    }

    /// Adds at the end: `ack_wait` is the same for all, so the latest taken is the last due.
    pub(super) fn push(&mut self, holding: Holding) -> u32 {
        self.rows += holding.rows as usize;
        self.bytes += holding.bytes as usize;
        let node = Node { holding, before: NIL, after: NIL };
        let slot = if let Some(slot) = self.free.pop() {
            self.nodes[slot as usize] = node;
            slot
        } else {
            self.nodes.push(node);
            u32::try_from(self.nodes.len() - 1).unwrap_or(NIL)
        };
        self.link_last(slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let holding = self.nodes[slot as usize].holding;
        self.rows -= holding.rows as usize;
        self.bytes -= holding.bytes as usize;
        self.unlink(slot);
        self.free.push(slot);
    }

    /// Takes out the first if it is due.
    pub(super) fn pop_due(&mut self, now: Tick) -> Option<Holding> {
        let holding = self.first().filter(|holding| holding.deadline <= now).copied()?;
        self.remove(self.first);
        Some(holding)
    }

    /// Begins a holding's time anew.
    pub(super) fn renew(&mut self, slot: u32, deadline: Tick) {
        self.unlink(slot);
        self.nodes[slot as usize].holding.deadline = deadline;
        self.link_last(slot);
    }

    fn link_last(&mut self, slot: u32) {
        self.nodes[slot as usize].before = self.last;
        self.nodes[slot as usize].after = NIL;
        match self.nodes.get_mut(self.last as usize) {
            Some(last) if self.last != NIL => last.after = slot,
            _ => self.first = slot,
        }
        self.last = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Node { before, after, .. } = self.nodes[slot as usize];
        if before == NIL {
            self.first = after;
        } else {
            self.nodes[before as usize].after = after;
        }
        if after == NIL {
            self.last = before;
        } else {
            self.nodes[after as usize].before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(sequence: u64) -> Holding {
        let deadline = Tick(i64::try_from(sequence).unwrap());
        Holding { table: TableIndex(0), sequence, rows: 2, bytes: 10, deadline }
    }

    #[test]
    fn the_order_of_falling_due_survives_removals_and_renewals() {
        let mut held = Held::default();
        let slots: Vec<u32> = (0..5).map(|n| held.push(holding(n))).collect();
        held.remove(slots[0]);
        held.remove(slots[2]);
        held.renew(slots[1], Tick(9));
        assert_eq!((held.rows(), held.bytes()), (6, 30));
        let reused = held.push(holding(10));
        assert!(reused == slots[0] || reused == slots[2]);
        let order: Vec<u64> = std::iter::from_fn(|| held.pop_due(Tick(100)).map(|h| h.sequence)).collect();
        assert_eq!(order, [3, 4, 1, 10]);
        assert!(held.is_empty() && held.pop_due(Tick(100)).is_none());
        assert_eq!((held.rows(), held.bytes()), (0, 0));
    }
}
