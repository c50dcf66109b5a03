//! A change of a row's text, column by column, before it is judged again. What is not changed keeps its own text. Pure.

use super::select::invalid;
use crate::{
    error::ApiError,
    ingest::Refusal,
    json::{Scanner, object, push_compact, unescape},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;
use wh_clickhouse::types::JsonKind;

/// Most steps of one edit, and most bytes of a column's name and of a value in it.
const STEPS: usize = 100;
const MAX_NAME: usize = 1_024;
const MAX_VALUE: usize = 64 * 1024;

/// One step, for every row that is meant. A step about a column that a row does not have does nothing, but `set`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepText {
    op: String,
    column: String,
    #[serde(default, deserialize_with = "given")]
    value: Option<Box<RawValue>>,
    to: Option<String>,
}

/// `null` is a value, not the absence of one.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

impl StepText {
    fn read(self) -> Result<Step, String> {
        let Self { op, column, value, to } = self;
        if column.len() > MAX_NAME || to.as_ref().is_some_and(|to| to.len() > MAX_NAME) {
            return Err(format!("a column's name has at most {MAX_NAME} bytes"));
        }
        let what = match (op.as_str(), value, to) {
            ("set", Some(value), None) => {
                let text = value.get();
                if text.len() > MAX_VALUE {
                    return Err(format!("the value has more than {MAX_VALUE} bytes"));
                }
                let mut compact = Vec::new();
                push_compact(&mut compact, text.as_bytes(), 0..text.len(), &[]);
                What::Set(compact)
            }
            ("remove", None, None) => What::Remove,
            ("rename", None, Some(to)) => What::Rename(quoted(&to)),
            ("to_string", None, None) => What::ToString,
            _ => {
                let known = "set (column, value), remove (column), rename (column, to) or to_string (column)";
                return Err(format!("it is one of {known}"));
            }
        };
        Ok(Step { column, what })
    }
}

/// Steps, in order.
#[derive(Debug, Default)]
pub(super) struct Edit(Vec<Step>);

#[derive(Debug)]
struct Step {
    column: String,
    what: What,
}

#[derive(Debug)]
enum What {
    Set(Vec<u8>),
    Remove,
    /// The new key, in quotes.
    Rename(Vec<u8>),
    ToString,
}

/// A member of a row.
struct Member {
    name: Vec<u8>,
    /// With its quotes.
    key: Vec<u8>,
    value: Vec<u8>,
    kind: JsonKind,
}

impl Edit {
    /// Reads the steps.
    pub(super) fn read(steps: &[Box<RawValue>]) -> Result<Self, ApiError> {
        if steps.len() > STEPS {
            return Err(invalid(format!("\"edit\" has {} steps, at most {STEPS} are allowed", steps.len())));
        }
        let step = |(at, text): (usize, &str)| {
            let wrong = |why: String| invalid(format!("\"edit\", step {at}: {why}"));
            let step: StepText = object(text.as_bytes()).map_err(|why| wrong(why.to_string()))?;
            step.read().map_err(wrong)
        };
        steps.iter().map(|text| text.get()).enumerate().map(step).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The row with its changes.
    ///
    /// # Errors
    /// It is no JSON object.
    pub(super) fn apply(&self, row: &[u8]) -> Result<Vec<u8>, Refusal> {
        let mut members = members(row)?;
        for step in &self.0 {
            step.apply(&mut members);
        }
        let mut out = Vec::with_capacity(row.len() + 64);
        out.push(b'{');
        for (at, member) in members.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&member.key);
            out.push(b':');
            out.extend_from_slice(&member.value);
        }
        out.push(b'}');
        Ok(out)
    }
}

impl Step {
    fn apply(&self, members: &mut Vec<Member>) {
        let column = self.column.as_bytes();
        match &self.what {
            What::Remove => members.retain(|member| member.name != column),
            What::Set(value) => {
                let mut found = false;
                for member in members.iter_mut().filter(|member| member.name == column) {
                    member.set(value);
                    found = true;
                }
                if !found {
                    let (name, key) = (column.to_vec(), quoted(&self.column));
                    let mut member = Member { name, key, value: Vec::new(), kind: JsonKind::Null };
                    member.set(value);
                    members.push(member);
                }
            }
            What::Rename(key) => {
                for member in members.iter_mut().filter(|member| member.name == column) {
                    member.name = serde_json::from_slice::<String>(key).unwrap_or_default().into_bytes();
                    member.key.clone_from(key);
                }
            }
            What::ToString => {
                for member in members.iter_mut().filter(|member| member.name == column) {
                    if !matches!(member.kind, JsonKind::String | JsonKind::Null) {
                        let text = quoted(&String::from_utf8_lossy(&member.value));
                        member.value = text;
                        member.kind = JsonKind::String;
                    }
                }
            }
        }
    }
}

impl Member {
    fn set(&mut self, value: &[u8]) {
        self.kind = Scanner::new(value, 0).value(1).map_or(JsonKind::Null, |value| value.kind);
        self.value = value.to_vec();
    }
}

fn members(row: &[u8]) -> Result<Vec<Member>, Refusal> {
    let mut json = Scanner::new(row, 0);
    let mut members = Vec::new();
    if !json.take(b'{') {
        return Err(json.expected("'{'").into());
    }
    while let Some(key) = json.key(members.is_empty())? {
        let value = json.value(1)?;
        let compact = |span: Range<usize>| {
            let mut out = Vec::with_capacity(span.len());
            push_compact(&mut out, row, span, &[]);
            out
        };
        members.push(Member {
            name: unescape(&row[key.span.clone()], key.escaped).into_owned(),
            key: row[key.span.start - 1..=key.span.end].to_vec(),
            value: compact(value.span),
            kind: value.kind,
        });
    }
    Ok(members)
}

/// A text as a JSON string.
fn quoted(text: &str) -> Vec<u8> {
    serde_json::to_vec(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;

    fn edit(steps: &str) -> Result<Edit, ApiError> {
        let steps: Vec<Box<RawValue>> = serde_json::from_str(steps).unwrap();
        Edit::read(&steps)
    }

    fn edited(steps: &str, row: &str) -> String {
        String::from_utf8(edit(steps).unwrap().apply(row.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn steps_change_what_they_name_and_nothing_else() {
        let row = r#" {"a" : 1.50, "\u0062":"x\ty", "c":{"d": [1, 2]}, "e":null} "#;
        for (steps, expected) in [
            ("[]", r#"{"a":1.50,"\u0062":"x\ty","c":{"d":[1,2]},"e":null}"#),
            (r#"[{"op":"set","column":"a","value": [ 1 ]}]"#, r#"{"a":[1],"\u0062":"x\ty","c":{"d":[1,2]},"e":null}"#),
            (r#"[{"op":"remove","column":"b"}]"#, r#"{"a":1.50,"c":{"d":[1,2]},"e":null}"#),
            (r#"[{"op":"rename","column":"b","to":"é\""}]"#, r#"{"a":1.50,"é\"":"x\ty","c":{"d":[1,2]},"e":null}"#),
            (
                r#"[{"op":"to_string","column":"a"},{"op":"to_string","column":"b"},{"op":"to_string","column":"c"},{"op":"to_string","column":"e"}]"#,
                r#"{"a":"1.50","\u0062":"x\ty","c":"{\"d\":[1,2]}","e":null}"#,
            ),
            (
                r#"[{"op":"rename","column":"a","to":"z"},{"op":"set","column":"a","value":7},{"op":"remove","column":"c"},{"op":"remove","column":"none"}]"#,
                r#"{"z":1.50,"\u0062":"x\ty","e":null,"a":7}"#,
            ),
        ] {
            assert_eq!(edited(steps, row), expected, "{steps}");
        }
        assert_eq!(edited(r#"[{"op":"set","column":"a","value":null}]"#, "{}"), r#"{"a":null}"#);
    }

    #[test]
    fn what_is_no_object_is_refused_and_so_is_a_step_nobody_knows() {
        for row in ["", "[]", "{\"a\":1", "x", "{\"a\" 1}"] {
            assert!(Edit::default().apply(row.as_bytes()).is_err(), "{row}");
        }
        for steps in [
            r#"[{"op":"drop","column":"a"}]"#,
            r#"[{"op":"set","column":"a"}]"#,
            r#"[{"op":"remove","column":"a","to":"b"}]"#,
            r#"["remove"]"#,
        ] {
            let error = edit(steps).unwrap_err();
            assert_eq!(error.code(), &codes::REQUEST_INVALID, "{steps}");
            assert!(error.message().contains("step 0"), "{}", error.message());
        }
    }
}
