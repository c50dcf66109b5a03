//! Generated conditions: what ClickHouse gives equals what they mean, with three truth values.

use crate::engine::Engine;
use serde_json::{Value, json};
use wh_types::{Entropy, SeededEntropy, Timestamp};

const ROWS: u64 = 60;
const QUERIES: u64 = 400;
const TEXTS: &[&str] = &["", "a", "ab", "b%", "é", "O'Hare\n", "_", "{p0:String}", "\\", "`id`"];
const START_MS: i64 = 978_307_200_000;

#[derive(Debug)]
struct Row {
    id: u64,
    n: Option<i64>,
    s: &'static str,
    cents: i64,
    ok: bool,
    at_ms: i64,
}

fn rows() -> Vec<Row> {
    let chance = SeededEntropy::new(7);
    let pick = |most: u64| chance.next_u64() % most;
    (0..ROWS)
        .map(|id| Row {
            id,
            n: (pick(4) > 0).then(|| i64::try_from(pick(7)).unwrap() - 3),
            s: TEXTS[usize::try_from(pick(TEXTS.len() as u64)).unwrap()],
            cents: i64::try_from(pick(9)).unwrap() * 25 - 100,
            ok: pick(2) == 0,
            at_ms: START_MS + i64::try_from(pick(20)).unwrap() * 500,
        })
        .collect()
}

/// A condition as it is sent, and what it says of a row: `None` is neither true nor false.
enum Condition {
    Compare(&'static str, &'static str, Value),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
}

impl Condition {
    fn draw(chance: &SeededEntropy, depth: u32) -> Self {
        let pick = |most: u64| chance.next_u64() % most;
        let some = |chance: &SeededEntropy| (0..=pick(2)).map(|_| Self::draw(chance, depth - 1)).collect();
        match pick(if depth == 0 { 3 } else { 6 }) {
            3 => Self::And(some(chance)),
            4 => Self::Or(some(chance)),
            5 => Self::Not(Box::new(Self::draw(chance, depth - 1))),
            _ => Self::leaf(chance),
        }
    }

    fn leaf(chance: &SeededEntropy) -> Self {
        let pick = |most: u64| chance.next_u64() % most;
        let text = || TEXTS[usize::try_from(pick(TEXTS.len() as u64)).unwrap()];
        let column = ["id", "n", "s", "cents", "ok", "at"][usize::try_from(pick(6)).unwrap()];
        let value = || match column {
            "id" => json!(pick(ROWS)),
            "n" => match pick(3) {
                0 => json!(format!("{}", i64::try_from(pick(9)).unwrap() - 4)),
                1 => json!(i64::try_from(pick(9)).unwrap() - 4),
                _ => json!(f64::from(u32::try_from(pick(8)).unwrap()) - 3.5),
            },
            "s" => json!(text()),
            "cents" => json!(f64::from(i32::try_from(pick(30)).unwrap() - 12) / 8.0),
            "ok" => json!(pick(2) == 0),
            _ => {
                let at = Timestamp::from_millis(START_MS + i64::try_from(pick(20)).unwrap() * 500);
                if pick(2) == 0 { json!(at.to_string()) } else { json!(at.as_nanos() as f64 / 1e9) }
            }
        };
        if pick(8) == 0 {
            return Self::Compare(column, if pick(2) == 0 { "is_null" } else { "not_null" }, Value::Null);
        }
        match pick(8) {
            6 => Self::Compare(column, "in", (0..=pick(3)).map(|_| value()).collect()),
            7 if column == "s" => {
                let pattern = ["%", "a%", "%b%", "_", "O%", "b\\%", "%\n", "\\\\", "__"];
                Self::Compare(column, "like", json!(pattern[usize::try_from(pick(pattern.len() as u64)).unwrap()]))
            }
            at => {
                let op = ["eq", "neq", "gt", "gte", "lt", "lte"][usize::try_from(at % 6).unwrap()];
                Self::Compare(column, op, value())
            }
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Compare(column, op, Value::Null) => json!({"column": column, "op": op}),
            Self::Compare(column, op, value) => json!({"column": column, "op": op, "value": value}),
            Self::And(all) => json!({"and": all.iter().map(Self::json).collect::<Vec<_>>()}),
            Self::Or(any) => json!({"or": any.iter().map(Self::json).collect::<Vec<_>>()}),
            Self::Not(one) => json!({"not": one.json()}),
        }
    }

    fn holds(&self, row: &Row) -> Option<bool> {
        match self {
            Self::Compare(column, op, value) => compare(row, column, op, value),
            Self::And(all) => {
                let each: Vec<_> = all.iter().map(|one| one.holds(row)).collect();
                if each.contains(&Some(false)) {
                    Some(false)
                } else {
                    each.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
                }
            }
            Self::Or(any) => {
                let each: Vec<_> = any.iter().map(|one| one.holds(row)).collect();
                if each.contains(&Some(true)) {
                    Some(true)
                } else {
                    each.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
                }
            }
            Self::Not(one) => one.holds(row).map(|holds| !holds),
        }
    }
}

fn compare(row: &Row, column: &str, op: &str, value: &Value) -> Option<bool> {
    if op == "is_null" || op == "not_null" {
        return Some((column == "n" && row.n.is_none()) == (op == "is_null"));
    }
    if op == "in" {
        if column == "n" && row.n.is_none() {
            return None;
        }
        return Some(value.as_array().unwrap().iter().any(|one| compare(row, column, "eq", one) == Some(true)));
    }
    if op == "like" {
        let pattern: Vec<char> = value.as_str().unwrap().chars().collect();
        return Some(like(&row.s.chars().collect::<Vec<_>>(), &pattern));
    }
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok())).unwrap();
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let order = match column {
        "id" => (row.id as f64).total_cmp(&number(value)),
        "n" => (row.n? as f64).total_cmp(&number(value)),
        "cents" => (row.cents as f64 / 100.0).total_cmp(&number(value)),
        "s" => row.s.as_bytes().cmp(value.as_str().unwrap().as_bytes()),
        "ok" => row.ok.cmp(&value.as_bool().unwrap()),
        _ => {
            let given = match value.as_str() {
                Some(text) => text.parse::<Timestamp>().unwrap(),
                #[expect(clippy::cast_possible_truncation, reason = "milliseconds of this century")]
                None => Timestamp::from_millis((number(value) * 1e3).round() as i64),
            };
            Timestamp::from_millis(row.at_ms).cmp(&given)
        }
    };
    Some(match op {
        "eq" => order.is_eq(),
        "neq" => order.is_ne(),
        "gt" => order.is_gt(),
        "gte" => order.is_ge(),
        "lt" => order.is_lt(),
        _ => order.is_le(),
    })
}

fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|at| like(&text[at..], rest)),
        ['\\', literal, rest @ ..] => text.first() == Some(literal) && like(&text[1..], rest),
        ['_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        [literal, rest @ ..] => text.first() == Some(literal) && like(&text[1..], rest),
    }
}

#[tokio::test]
async fn a_condition_means_to_clickhouse_what_it_says() {
    let rows = rows();
    let values = rows.iter().map(|row| {
        let n = row.n.map_or("NULL".to_owned(), |n| n.to_string());
        let s = row.s.replace('\\', "\\\\").replace('\'', "\\'");
        let at = Timestamp::from_millis(row.at_ms).as_nanos() / 1_000_000;
        format!("({}, {n}, '{s}', {}, {}, fromUnixTimestamp64Milli({at}))", row.id, row.cents as f64 / 100.0, row.ok)
    });
    let fill = format!(
        "INSERT INTO t SELECT * FROM values('id UInt64, n Nullable(Int32), s String, cents Decimal(9, 2), ok Bool, at DateTime64(3)', {})",
        values.collect::<Vec<_>>().join(", ")
    );
    let engine = Engine::new(&[
        "CREATE TABLE t (id UInt64, n Nullable(Int32), s LowCardinality(String), cents Decimal(9, 2), ok Bool, \
         at DateTime64(3, 'Asia/Tokyo')) ENGINE = MergeTree ORDER BY id",
        &fill,
    ])
    .await;
    let mut some = 0;
    for seed in 0..QUERIES {
        let chance = SeededEntropy::new(seed);
        let filters: Vec<_> = (0..=seed % 2).map(|_| Condition::draw(&chance, 3)).collect();
        let json: Vec<_> = filters.iter().map(Condition::json).collect();
        let expected = rows.iter().filter(|row| filters.iter().all(|filter| filter.holds(row) == Some(true)));
        let expected: Vec<u64> = expected.map(|row| row.id).collect();
        let query = json!({"columns": "id", "filters": json, "order_by": [{"column": "id"}]});
        let reply = engine.query(query).await;
        assert_eq!(reply.status, 200, "seed {seed}: {json:?}: {}", reply.text());
        let got: Vec<u64> = reply.value().as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect();
        assert_eq!(got, expected, "seed {seed}: {}", json!(json));
        some += u64::from(!expected.is_empty() && expected.len() < rows.len());
    }
    assert!(some > QUERIES / 3, "only {some} conditions part the rows");
}
