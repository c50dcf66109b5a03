//! A mark as a message: JSON, so that an operator can read along. The table is in the subject.

use crate::{MOST_PARKED, ParkedRow, Progress};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use wh_types::{Epoch, TopicKey};

/// Longest message that is looked at.
const MAX_BYTES: usize = 256 * 1024;
/// Longest code.
const MAX_CODE: usize = 128;

#[derive(Serialize, Deserialize)]
struct Mark<'a> {
    epoch: Cow<'a, str>,
    committed: u64,
    inserting: u64,
    #[serde(default)]
    named_after: u64,
    #[serde(default)]
    parked: Vec<Row<'a>>,
    /// In hex: not every reader of JSON has whole numbers of 64 bits.
    owner: Cow<'a, str>,
    n: u64,
}

#[derive(Serialize, Deserialize)]
struct Row<'a> {
    seq: u64,
    row: u32,
    code: Cow<'a, str>,
}

pub(super) fn write(mark: &Progress) -> Bytes {
    let row = |row: &ParkedRow| Row { seq: row.sequence, row: row.row, code: row.code.to_string().into() };
    let mark = Mark {
        epoch: mark.epoch.to_string().into(),
        committed: mark.committed,
        inserting: mark.inserting,
        named_after: mark.named_after,
        parked: mark.parked.iter().take(MOST_PARKED).map(row).collect(),
        owner: format!("{:016x}", mark.owner).into(),
        n: mark.number,
    };
    serde_json::to_vec(&mark).unwrap_or_default().into()
}

pub(super) fn read(key: &TopicKey, body: &[u8]) -> Result<Progress, &'static str> {
    if body.len() > MAX_BYTES {
        return Err("it is too long");
    }
    let mark: Mark<'_> = serde_json::from_slice(body).map_err(|_| "it is no mark")?;
    let hex = |text: &str| u64::from_str_radix(text, 16).map_err(|_| "a number in hex is none");
    if mark.parked.len() > MOST_PARKED || mark.parked.iter().any(|row| row.code.len() > MAX_CODE) {
        return Err("it names too many rows");
    }
    let row = |row: Row<'_>| ParkedRow { sequence: row.seq, row: row.row, code: row.code.into() };
    Ok(Progress {
        tenant: key.tenant().clone(),
        table: key.table().clone(),
        epoch: Epoch(u32::try_from(hex(&mark.epoch)?).map_err(|_| "its epoch is too long")?),
        committed: mark.committed,
        inserting: mark.inserting.max(mark.committed),
        parked: mark.parked.into_iter().map(row).collect(),
        named_after: mark.named_after,
        owner: hex(&mark.owner)?,
        number: mark.n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{Table, Tenant};

    #[test]
    fn a_mark_comes_back_as_it_was_and_what_is_none_is_refused() {
        let key = TopicKey::new(Tenant::default(), Table::new("a.b").unwrap());
        let mark = Progress {
            tenant: key.tenant().clone(),
            table: key.table().clone(),
            epoch: Epoch(0xfeed_0001),
            committed: 7,
            inserting: 9,
            parked: vec![ParkedRow { sequence: 5, row: 3, code: "27".into() }],
            named_after: 2,
            owner: u64::MAX,
            number: 11,
        };
        let text = write(&mark);
        assert_eq!(
            text,
            r#"{"epoch":"feed0001","committed":7,"inserting":9,"named_after":2,"parked":[{"seq":5,"row":3,"code":"27"}],"owner":"ffffffffffffffff","n":11}"#
        );
        assert_eq!(read(&key, &text), Ok(mark.clone()));
        let text = String::from_utf8(text.to_vec()).unwrap();
        for (from, to) in
            [("feed0001", "x"), ("feed0001", "fffffffff"), ("\"n\":11", "\"n\":-1"), ("{\"epoch", "[{\"epoch")]
        {
            assert!(read(&key, text.replace(from, to).as_bytes()).is_err(), "{from} to {to}");
        }
        let many = Progress { parked: vec![mark.parked[0].clone(); MOST_PARKED + 5], ..mark };
        assert_eq!(read(&key, &write(&many)).unwrap().parked.len(), MOST_PARKED);
        assert!(read(&key, &vec![b' '; MAX_BYTES + 1]).is_err());
    }
}
