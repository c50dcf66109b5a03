//! Records in the making, on their way to the log.

use bytes::Bytes;
use std::ops::Range;
use wh_log::Record;
use wh_types::Timestamp;

/// Records in the making: their metas and heads are kept together, the bodies are borrowed.
#[derive(Debug, Default)]
pub(super) struct Batch {
    arena: Vec<u8>,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    kind: u8,
    stream: u64,
    sequence: u64,
    time: Timestamp,
    meta: Range<usize>,
    head: Range<usize>,
    body: Bytes,
}

impl Batch {
    pub(super) fn push(
        &mut self,
        kind: u8,
        stream: u64,
        sequence: u64,
        time: Timestamp,
        meta: impl FnOnce(&mut Vec<u8>),
    ) {
        let from = self.arena.len();
        meta(&mut self.arena);
        let to = self.arena.len();
        let body = Bytes::new();
        self.lines.push(Line { kind, stream, sequence, time, meta: from..to, head: to..to, body });
    }

    /// Gives the last record a body: an encoded head, then bytes as they are.
    pub(super) fn body(&mut self, head: impl FnOnce(&mut Vec<u8>), body: &Bytes) {
        let from = self.arena.len();
        head(&mut self.arena);
        let to = self.arena.len();
        if let Some(line) = self.lines.last_mut() {
            line.head = from..to;
            line.body = body.clone();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Bytes they take in the log, or a little more.
    pub(super) fn bytes(&self) -> usize {
        self.lines.iter().map(|line| 48 + line.meta.len() + line.head.len() + line.body.len()).sum()
    }

    pub(super) fn with<T>(&self, run: impl FnOnce(&[Record<'_>]) -> T) -> T {
        let mut bodies: Vec<[&[u8]; 2]> = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            bodies.push([&self.arena[line.head.clone()], &line.body]);
        }
        let mut records = Vec::with_capacity(self.lines.len());
        for (line, body) in self.lines.iter().zip(&bodies) {
            let Line { kind, stream, sequence, time, .. } = *line;
            records.push(Record { kind, stream, sequence, time, meta: &self.arena[line.meta.clone()], body });
        }
        run(&records)
    }
}
