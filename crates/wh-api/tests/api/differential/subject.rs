//! One type on one engine.

use super::{engine::Bench, generate};
use crate::rig::{Rig, Setup, post};
use std::collections::{BTreeMap, BTreeSet};
use wh_api::{Mode, TenantLimits};
use wh_clickhouse::{
    Column, ColumnKind, Schema, SchemaHandle, TableSchema,
    types::{JsonKind, Type, Verdict, judge},
};
use wh_types::Timestamp;

const ALLOW: &str = "SETTINGS allow_suspicious_low_cardinality_types = 1, allow_suspicious_variant_types = 1, \
                     flatten_nested = 0, enable_time_time64_type = 1";

/// What was found of a type.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    pub(crate) ty: &'static str,
    pub(crate) values: usize,
    /// Values that were left to the engine.
    pub(crate) left: usize,
    pub(crate) faults: Vec<String>,
}

/// One value and what was said of it.
struct Case {
    value: String,
    verdict: Verdict,
    kind: JsonKind,
    /// A bare number for a `DateTime64` is somewhere in it.
    ours: bool,
}

pub(crate) async fn judged<B: Bench>(bench: &B, at: usize, text: &'static str) -> Finding {
    let (raw, ours, bad) = (format!("raw_{at}"), format!("ours_{at}"), format!("bad_{at}"));
    for table in [&raw, &ours, &bad] {
        bench.run(&format!("CREATE TABLE {table} (id UInt32, v {text}) ENGINE = Memory {ALLOW}")).await.unwrap();
    }
    let sql = format!("SELECT type FROM system.columns WHERE table = '{raw}' AND name = 'v' FORMAT TSVRaw");
    let type_text = bench.run(&sql).await.unwrap();
    let ty = Type::parse(&type_text);
    let mut finding = Finding { ty: text, ..Finding::default() };
    if matches!(ty, Type::Opaque(_)) {
        finding.faults.push(format!("{text} is not modelled"));
    }
    let cases: Vec<Case> = generate::values(text).into_iter().map(|value| case(&ty, value)).collect();
    finding.values = cases.len();
    finding.left = cases.iter().filter(|case| case.verdict == Verdict::CannotTell).count();

    let taken = by_the_engine(bench, &raw, &bad, &cases, &mut finding).await;
    let rows = by_the_api(&ty, &type_text, &cases, &mut finding).await;
    let sent: Vec<(usize, String)> =
        rows.into_iter().filter(|(id, _)| taken.contains(id) || cases[*id].ours && sure(&cases[*id])).collect();
    let texts: Vec<String> = sent.iter().map(|(_, row)| row.clone()).collect();
    if let Err(error) = bench.insert(&ours, None, &texts).await {
        // the whole is refused; find out which
        for (id, row) in &sent {
            if bench.insert(&ours, None, std::slice::from_ref(row)).await.is_err() {
                finding.faults.push(format!("{text} ← {}: taken raw, refused as {row}: {error}", cases[*id].value));
            }
        }
    }
    compare(bench, [&raw, &ours], &sent, &cases, &mut finding).await;
    finding
}

fn sure(case: &Case) -> bool {
    case.verdict == Verdict::Takes
}

fn case(ty: &Type, value: String) -> Case {
    let kind = JsonKind::of(value.as_bytes()).unwrap();
    let mut edits = Vec::new();
    let verdict = judge(ty, value.as_bytes(), 0..value.len(), kind, &mut edits);
    let ours = edits.iter().any(|(_, edit)| *edit == wh_clickhouse::types::Edit::Seconds);
    Case { value, verdict, kind, ours }
}

fn record(id: usize, value: &str) -> String {
    format!(r#"{{"id":{id},"v":{value}}}"#)
}

/// Which values the engine takes raw; holds the verdicts against it.
async fn by_the_engine<B: Bench>(
    bench: &B,
    raw: &str,
    bad: &str,
    cases: &[Case],
    finding: &mut Finding,
) -> BTreeSet<usize> {
    let ty = finding.ty;
    let mut taken = BTreeSet::new();
    // those that should be taken go at once
    let good: Vec<usize> = (0..cases.len()).filter(|id| sure(&cases[*id]) && !cases[*id].ours).collect();
    let records: Vec<String> = good.iter().map(|id| record(*id, &cases[*id].value)).collect();
    let whole = bench.raw(raw, &records).await.is_ok();
    if whole {
        taken.extend(&good);
    }
    // what the engine takes of those that are altered is mostly all of it
    let altered = |id: &usize| matches!(cases[*id].verdict, Verdict::Alters(_)) && !cases[*id].ours;
    let mut parts = vec![(0..cases.len()).filter(altered).collect::<Vec<_>>()];
    while let Some(mut part) = parts.pop() {
        let records: Vec<String> = part.iter().map(|id| record(*id, &cases[*id].value)).collect();
        if part.is_empty() || bench.raw(raw, &records).await.is_ok() {
            taken.extend(part);
        } else if part.len() > 1 {
            parts.push(part.split_off(part.len() / 2));
            parts.push(part);
        }
    }
    // kinds have a test of their own
    let mut kinds: BTreeMap<JsonKind, u32> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, u32> = BTreeMap::new();
    for (id, case) in cases.iter().enumerate() {
        let wrong_kind = matches!(case.verdict, Verdict::WrongKind(_));
        if wrong_kind {
            *kinds.entry(case.kind).or_default() += 1;
        }
        if let Verdict::Refuses(why) = &case.verdict {
            let count = reasons.entry(why).or_default();
            *count += 1;
            if *count > bench.most_refused() {
                continue;
            }
        }
        if case.ours || altered(&id) || whole && sure(case) || wrong_kind && kinds[&case.kind] > 3 {
            continue;
        }
        let refused = wrong_kind || matches!(case.verdict, Verdict::Refuses(_));
        let table = if refused { bad } else { raw };
        let answer = bench.raw(table, &[record(id, &case.value)]).await;
        match answer {
            Err(error) if sure(case) => {
                finding.faults.push(format!("{ty} ← {}: taken by us, refused by the engine: {error}", case.value));
            }
            Ok(()) if refused => {
                // a null may be stored so that nothing can be read any more
                if bench.run(&format!("SELECT v FROM {bad} WHERE id = {id} FORMAT TSV")).await.is_ok() {
                    finding.faults.push(format!("{ty} ← {}: taken by the engine, {:?}", case.value, case.verdict));
                }
                bench.run(&format!("TRUNCATE TABLE {bad}")).await.unwrap();
            }
            Ok(()) => {
                taken.insert(id);
            }
            Err(_) => {}
        }
    }
    taken
}

/// The rows that the API makes of the values in lenient mode, by id; holds its answers against the verdicts.
async fn by_the_api(ty: &Type, type_text: &str, cases: &[Case], finding: &mut Finding) -> Vec<(usize, String)> {
    let body: String = cases.iter().enumerate().map(|(id, case)| record(id, &case.value) + "\n").collect();
    let mut rows = Vec::new();
    for mode in [Mode::Strict, Mode::Lenient] {
        let limits = TenantLimits { table_modes: [("t".into(), mode)].into(), ..TenantLimits::default() };
        let rig = Rig::with(Setup { limits, schema: SchemaHandle::fixed(schema(ty, type_text)), ..Setup::default() });
        let request = post("/v1/ingest?table=t&results=all", "application/x-ndjson", body.clone());
        for (id, status, code) in rig.send(request).await.results() {
            let case = &cases[id as usize];
            let expected = match &case.verdict {
                Verdict::WrongKind(_) => "column.type",
                _ if mode == Mode::Strict && case.kind == JsonKind::Null && !ty.nullable() => "column.required",
                Verdict::Alters(_) if mode == Mode::Strict => "column.range",
                Verdict::Refuses(_) => "column.value",
                Verdict::Takes | Verdict::CannotTell | Verdict::Alters(_) => "",
            };
            let null = mode == Mode::Strict && case.kind == JsonKind::Null;
            let wanted = if expected.is_empty() { "accepted" } else { "rejected" };
            if status != wanted || code != expected && !null {
                finding.faults.push(format!("{type_text} ← {} {mode:?}: {status} {code}, not {expected}", case.value));
            }
        }
        rows = rig.rows().await;
    }
    let id = |row: &String| row[6..].split(',').next().unwrap().parse::<usize>().unwrap();
    rows.into_iter().map(|row| (id(&row), row)).collect()
}

fn schema(ty: &Type, type_text: &str) -> Schema {
    let column = |name: &str, ty: &Type, type_text: &str, position| Column {
        name: name.into(),
        type_text: type_text.into(),
        ty: ty.clone(),
        kind: ColumnKind::Ordinary,
        default_expression: String::new(),
        position,
    };
    let columns = vec![column("id", &Type::parse("UInt32"), "UInt32", 1), column("v", ty, type_text, 2)];
    Schema {
        version: "26.7".into(),
        timezone: "UTC".into(),
        settings: std::sync::Arc::default(),
        tables: [("t".to_owned(), std::sync::Arc::new(TableSchema::new("t", "Memory", columns)))].into(),
        taken_at: Timestamp::default(),
    }
}

/// What is stored through our path against what is stored for the raw record, and both against what the value says.
async fn compare<B: Bench>(
    bench: &B,
    tables: [&str; 2],
    sent: &[(usize, String)],
    cases: &[Case],
    finding: &mut Finding,
) {
    let ty = finding.ty;
    let [raw, ours] = [read(bench, tables[0]).await, read(bench, tables[1]).await];
    for (id, row) in sent {
        let case = &cases[*id];
        if case.ours {
            continue;
        }
        // in a Dynamic a large number depends on its neighbours, see the page; and was put alone
        let spoilt = ty == "Dynamic" && matches!(case.verdict, Verdict::Alters(_));
        if raw.get(id) != ours.get(id) && !spoilt {
            let (raw, ours) = (raw.get(id), ours.get(id));
            finding.faults.push(format!("{ty} ← {}: raw {raw:?}, ours {ours:?} as {row}", case.value));
        }
    }
    for (id, stored) in &raw {
        let case = &cases[*id];
        let fault = match (&case.verdict, faithful(ty, &case.value, stored)) {
            (Verdict::Takes, Some(false)) => "taken, and stored otherwise",
            (Verdict::Alters(_), Some(true)) => "refused in strict mode, and stored as it is",
            _ => continue,
        };
        // 26.9 has more days than 26.7: refused on both
        if ty != "Date32" {
            finding.faults.push(format!("{ty} ← {}: {fault}: {stored}", case.value));
        }
    }
}

async fn read<B: Bench>(bench: &B, table: &str) -> BTreeMap<usize, String> {
    let sql =
        format!("SELECT id, v FROM {table} ORDER BY id SETTINGS date_time_output_format = 'unix_timestamp' FORMAT TSV");
    let text = bench.run(&sql).await.unwrap();
    let line = |line: &str| {
        let (id, value) = line.split_once('\t').unwrap();
        (id.parse().unwrap(), value.to_owned())
    };
    text.lines().map(line).collect()
}

/// Whether what is stored is what the value says; `None` where that cannot be told from its text.
fn faithful(ty: &str, value: &str, stored: &str) -> Option<bool> {
    let (inside, ty) = (value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value), Type::parse(ty));
    if value == "null" {
        return None;
    }
    if matches!(ty, Type::Int { .. }) {
        return Some(match inside {
            "true" => stored == "1",
            "false" => stored == "0",
            _ => {
                let digits = inside.strip_prefix(['+', '-']).unwrap_or(inside).trim_start_matches('0');
                let sign = if inside.starts_with('-') && !digits.is_empty() { "-" } else { "" };
                let digits = if digits.is_empty() && !inside.is_empty() { "0" } else { digits };
                stored == format!("{sign}{digits}")
            }
        });
    }
    let (quoted, plain) = (value.starts_with('"'), !value.contains('\\'));
    let same = matches!(ty, Type::Date | Type::Date32) && quoted && inside.len() == 10
        || matches!(ty, Type::Enum { .. }) && quoted && plain;
    if same {
        return Some(stored == inside);
    }
    matches!(ty, Type::Uuid).then(|| stored.replace('-', "") == inside.replace('-', "").to_lowercase())
}
