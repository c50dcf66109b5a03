//! A dead letter as a message: its texts in headers, the row's own text as the body (decision D5). Pure.
//!
//! A header's value is one line. Control characters, `%`, and white space at the ends are written as `%XX`; everything else
//! stays readable.

use crate::{DeadLetter, DeadLetterId, nats::envelope::MSG_ID};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use wh_types::{Timestamp, TopicKey};

const REASON: &str = "Wh-Reason";
const CODE: &str = "Wh-Code";
const COLUMN: &str = "Wh-Column";
const ATTEMPTED: &str = "Wh-Attempted";
const RECEIVED: &str = "Wh-Received";
const RETRY_UNTIL: &str = "Wh-Retry-Until";
pub(super) const SOURCE: &str = "Wh-Source";
const EXPECTED_STREAM: &str = "Nats-Expected-Stream";

/// Most bytes of a reason, as written.
const MAX_REASON: usize = 4 * 1024;
/// Most bytes of a code or a column, as written.
const MAX_NAME: usize = 1024;
/// Most bytes of all headers: what the bounds above and the names leave, rounded up. Rows leave this much room.
pub(super) const MAX_HEADERS: usize = 8 * 1024;

/// The id under which the row's message is stored once: of the row's place, so that the same row parked by two
/// processes is one letter.
pub(super) fn message_id(id: DeadLetterId) -> String {
    let digest = Sha256::digest(id.to_string().as_bytes());
    digest[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The headers of a letter, under an id of its message.
pub(super) fn headers(letter: &DeadLetter, stream: &str, id: String) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        (REASON, written(&letter.reason, MAX_REASON)),
        (CODE, written(&letter.code, MAX_NAME)),
        (ATTEMPTED, letter.attempted.to_string()),
        (RECEIVED, letter.received.to_string()),
        (SOURCE, letter.id.to_string()),
        (MSG_ID, id),
        (EXPECTED_STREAM, stream.to_owned()),
    ];
    if let Some(column) = &letter.column {
        headers.push((COLUMN, written(column, MAX_NAME)));
    }
    if let Some(until) = letter.retry_until {
        headers.push((RETRY_UNTIL, until.to_string()));
    }
    headers
}

/// A letter whose body the server takes. A row of ours always fits; a foreign message may not, and is cut with a word
/// about it, since one that cannot be parked would hold up its unit for ever.
pub(super) fn fitted(letter: &DeadLetter, most: usize) -> (Cow<'_, DeadLetter>, Bytes) {
    let bytes = letter.body.len();
    if bytes <= most {
        return (Cow::Borrowed(letter), letter.body.clone());
    }
    let reason = format!("(the body is cut to {most} of {bytes} bytes) {}", letter.reason);
    (Cow::Owned(DeadLetter { reason, ..letter.clone() }), letter.body.slice(..most))
}

/// Reads a letter; `tail` is its subject's part after the prefix. What cannot be read of a foreign message is left
/// empty: a letter must be seen to be removed. `None` where the subject names no table or the id is missing, so that
/// nobody could name it.
pub(super) fn read<'a>(tail: &str, header: impl Fn(&str) -> Option<&'a str>, body: Bytes) -> Option<DeadLetter> {
    let key = TopicKey::parse(tail)?;
    let text = |name| header(name).map(unwritten);
    let time = |name| header(name).and_then(|text| text.parse::<Timestamp>().ok());
    Some(DeadLetter {
        id: id(&header)?,
        tenant: key.tenant().clone(),
        table: key.table().clone(),
        body,
        reason: text(REASON).unwrap_or_default(),
        code: text(CODE).unwrap_or_default(),
        column: text(COLUMN),
        attempted: time(ATTEMPTED).unwrap_or_default(),
        received: time(RECEIVED).unwrap_or_default(),
        retry_until: time(RETRY_UNTIL),
    })
}

/// The id of a stored letter.
pub(super) fn id<'a>(header: &impl Fn(&str) -> Option<&'a str>) -> Option<DeadLetterId> {
    header(SOURCE)?.parse().ok().map(DeadLetterId)
}

fn written(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most));
    let last = text.chars().count().saturating_sub(1);
    for (at, char) in text.chars().enumerate() {
        let edge = char.is_whitespace() && (at == 0 || at == last);
        let before = out.len();
        if char.is_control() || char == '%' || edge {
            let mut bytes = [0; 4];
            for byte in char.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        } else {
            out.push(char);
        }
        if out.len() > most {
            out.truncate(before);
            break;
        }
    }
    out
}

fn unwritten(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = |i: usize| bytes.get(i).and_then(|b| char::from(*b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
        match (byte, hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high * 16 + low);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use wh_types::{Cursor, Epoch, RowCursor, Table, Tenant};

    fn letter(reason: &str, column: Option<&str>) -> DeadLetter {
        let block = Cursor { epoch: Epoch(0xab), sequence: 17 };
        DeadLetter {
            id: DeadLetterId(RowCursor { block, row: 3 }),
            tenant: Tenant::new("acme").unwrap(),
            table: Table::new("a.b").unwrap(),
            body: Bytes::from_static(b"{\"a\":1}"),
            reason: reason.to_owned(),
            code: "27".to_owned(),
            column: column.map(str::to_owned),
            attempted: Timestamp::from_nanos(1_750_000_000_123_456_789),
            received: Timestamp::from_nanos(1_750_000_000_000_000_001),
            retry_until: None,
        }
    }

    fn back(letter: &DeadLetter) -> Option<DeadLetter> {
        let headers = headers(letter, "WH_DLQ", message_id(letter.id));
        for (name, value) in &headers {
            assert!(!value.contains(['\r', '\n']) && value.trim() == value, "{name}: {value:?}");
        }
        let size: usize = headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        assert!(size < MAX_HEADERS, "{size} bytes of headers");
        let map: BTreeMap<&str, &str> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        read("acme.a%2Eb", |name| map.get(name).copied(), letter.body.clone())
    }

    #[test]
    fn a_letter_is_written_and_read_back() {
        for reason in ["", " ", "  a  ", "line\r\nline", "100%", "%41", "é…\u{1F980}", "\u{0}\u{7f}\u{85}"] {
            let letter = letter(reason, Some(reason));
            assert_eq!(back(&letter), Some(letter));
        }
        assert_eq!(back(&letter("x", None)), Some(letter("x", None)));
        let held = DeadLetter { retry_until: Some(Timestamp::from_nanos(17)), ..letter("x", None) };
        assert_eq!(back(&held), Some(held));
    }

    #[test]
    fn long_texts_are_cut_and_stay_text() {
        let long = letter(&"\nü".repeat(10_000), Some(&"ü".repeat(10_000)));
        let back = back(&long).unwrap();
        assert!(back.reason.len() > 1_000 && long.reason.starts_with(&back.reason), "{}", back.reason.len());
        assert_eq!(back.column.unwrap().len(), MAX_NAME);
    }

    #[test]
    fn a_body_that_does_not_fit_is_cut_and_says_so() {
        let letter = letter("why", None);
        assert_eq!(fitted(&letter, 7), (Cow::Borrowed(&letter), letter.body.clone()));
        let (cut, body) = fitted(&letter, 3);
        assert_eq!((cut.reason.as_str(), &body[..]), ("(the body is cut to 3 of 7 bytes) why", &b"{\"a"[..]));
    }

    #[test]
    fn a_foreign_message_is_read_as_far_as_it_goes() {
        let only = |name: &str| (name == SOURCE).then_some("000000ab-17.3");
        let read = read("acme.t", only, Bytes::from_static(b"x")).unwrap();
        assert_eq!((read.id, read.reason.as_str(), read.column), (letter("", None).id, "", None));
        assert_eq!(super::read("acme.t", |_| None, Bytes::new()), None);
        assert_eq!(super::read("a.b.c.d", only, Bytes::new()), None);
    }

    #[test]
    fn ids_of_messages_follow_from_the_place_alone() {
        let (a, b) = (letter("a", None), letter("b", Some("c")));
        assert_eq!(message_id(a.id), message_id(b.id));
        // letters of other releases are known again by it
        assert_eq!(message_id(a.id), "d804c68594caadb28d2bcc7e9c841d70");
    }

    proptest! {
        #[test]
        fn every_text_survives(reason in any::<String>()) {
            prop_assert_eq!(unwritten(&written(&reason, usize::MAX)), reason);
        }
    }
}
