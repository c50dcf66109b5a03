//! What `wavehouse queue inspect` and `verify` print: a queue's folder, for people or as JSON.

use crate::counted::Counted;
use serde_json::{Value, json};
use std::fmt::{self, Display};
use wh_mq::embedded::inspect::{Damage, Missing, Report, TableReport};

/// A report, as text.
#[derive(Debug)]
pub(crate) struct Text<'a>(pub(crate) &'a Report);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { dir, epoch, next_sequence, tenants, segments, torn, .. } = self.0;
        let epoch = epoch.map(|epoch| epoch.to_string()).unwrap_or_default();
        writeln!(f, "queue {}: epoch {epoch}, next block {next_sequence}", dir.display())?;
        let (bytes, live): (u64, u64) =
            segments.iter().fold((0, 0), |(bytes, live), one| (bytes + one.bytes, live + one.live_bytes));
        let count = Counted(segments.len() as u64, "segment");
        writeln!(f, "{count}: {} written, {} needed", mib(bytes), mib(live))?;
        for (tenant, held) in tenants {
            match held.budget_bytes {
                Some(budget) => writeln!(f, "tenant {tenant}: {} of {}", mib(held.bytes), mib(budget))?,
                None => writeln!(f, "tenant {tenant}: {} (its budget is in the configuration)", mib(held.bytes))?,
            }
            if held.dead_letters_dropped > 0 {
                let count = Counted(held.dead_letters_dropped, "dead letter");
                writeln!(f, "  {count} dropped for want of room")?;
            }
            for (table, held) in &held.tables {
                let TableReport { blocks, rows, unsettled_blocks, unsettled_rows, dead_letters, .. } = held;
                writeln!(
                    f,
                    "  {table}: {} in {}, {unsettled_rows} in {unsettled_blocks} not inserted, {}, {}",
                    Counted(*rows, "row"),
                    Counted(*blocks, "block"),
                    Counted(*dead_letters, "dead letter"),
                    range(held)
                )?;
            }
        }
        if *torn {
            writeln!(f, "a write that was never answered was cut short by a crash; nothing is missing")?;
        }
        f.write_str(&verdict(self.0))
    }
}

fn verdict(report: &Report) -> String {
    let mut text = String::new();
    if !report.listed {
        text += "which segments there should be is not known: a missing one would not be noticed\n";
    }
    for Missing { place, whole, noticed, .. } in &report.missing {
        let (from, to) = (place.offset, place.offset.saturating_add(place.len));
        let what = if *whole { "is gone" } else { "was cut short" };
        let line = format!("segment {} {what}: bytes {from} to {to} are lost, noticed {noticed}\n", place.segment);
        text += &line;
    }
    if report.damage_count > 0 {
        let places: String = report.damages.iter().map(|damage| format!("\n  {}", damage.place)).collect();
        text += &format!("{} cannot be read:{places}", Counted(report.damage_count, "place"));
    } else if report.missing.is_empty() {
        text += "everything that was looked at can be read";
    } else {
        text += "the rest can be read";
    }
    text
}

fn range(held: &TableReport) -> String {
    match (held.first, held.last) {
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => "no blocks".to_owned(),
    }
}

fn mib(bytes: u64) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes >> 10) & 1023) * 10 / 1024)
}

fn missing(missing: &Missing) -> Value {
    json!({
        "segment": missing.place.segment,
        "from": missing.place.offset,
        "to": missing.place.offset.saturating_add(missing.place.len),
        "whole": missing.whole,
        "noticed": missing.noticed.to_string(),
    })
}

/// A report, as JSON.
pub(crate) fn json(report: &Report) -> Value {
    let text = |value: &dyn Display| value.to_string();
    let tables = |tables: &std::collections::BTreeMap<wh_types::Table, TableReport>| -> Value {
        let one = |held: &TableReport| {
            json!({
                "blocks": held.blocks,
                "rows": held.rows,
                "unsettled_blocks": held.unsettled_blocks,
                "unsettled_rows": held.unsettled_rows,
                "dead_letters": held.dead_letters,
                "first": held.first.map(|cursor| text(&cursor)),
                "last": held.last.map(|cursor| text(&cursor)),
            })
        };
        tables.iter().map(|(table, held)| (text(table), one(held))).collect::<serde_json::Map<_, _>>().into()
    };
    let tenants: serde_json::Map<_, _> = report
        .tenants
        .iter()
        .map(|(tenant, held)| {
            let held = json!({
                "bytes": held.bytes,
                "budget_bytes": held.budget_bytes,
                "dead_letters_dropped": held.dead_letters_dropped,
                "tables": tables(&held.tables),
            });
            (text(tenant), held)
        })
        .collect();
    let segments: Vec<Value> = report
        .segments
        .iter()
        .map(|one| {
            json!({
                "number": one.number,
                "bytes": one.bytes,
                "live_bytes": one.live_bytes,
                "sealed": one.sealed,
                "damaged": one.damaged,
            })
        })
        .collect();
    json!({
        "dir": report.dir,
        "epoch": report.epoch.map(|epoch| text(&epoch)),
        "next_sequence": report.next_sequence,
        "tenants": tenants,
        "segments": segments,
        "torn": report.torn,
        "sound": report.is_sound(),
        "listed": report.listed,
        "missing": report.missing.iter().map(missing).collect::<Vec<_>>(),
        "damage_count": report.damage_count,
        "damages": report.damages.iter().map(|damage: &Damage| text(&damage.place)).collect::<Vec<_>>(),
    })
}
