//! Envelopes written, read back and refused.

use super::*;
use proptest::prelude::*;
use wh_types::{Table, Tenant};

fn block(rows: u32) -> Block {
    Block {
        id: BlockId([0xab; 16]),
        tenant: Tenant::new("acme").unwrap(),
        table: Table::new("a.b c").unwrap(),
        received: Timestamp::from_nanos(1_750_478_400_000_000_001),
        rows,
        decoded_bytes: 8 * rows,
        encoding: Encoding::Lz4,
        body: if rows == 0 { Bytes::new() } else { Bytes::from_static(b"frame") },
        chain: Some(Chain { process: Arc::from("host-a-1f"), n: 17 }),
        trace: Some(Arc::from("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")),
    }
}

fn headers(block: &Block) -> Vec<(String, String)> {
    super::headers(block).iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn read(tail: &str, headers: &[(String, String)], body: Bytes) -> Result<Block, Unreadable> {
    let fields = Fields::of(headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    decode(&topic(tail)?, &fields, body)
}

#[test]
fn a_block_is_written_and_read_back() {
    for block in [block(500), block(1), block(0), Block { chain: None, trace: None, ..block(3) }] {
        let key = TopicKey::new(block.tenant.clone(), block.table.clone()).to_string();
        assert_eq!(read(&key, &headers(&block), block.body.clone()), Ok(block));
    }
}

#[test]
fn what_is_no_block_is_refused_by_the_field_at_fault() {
    let bad = |name: &'static str, value: Option<&str>| {
        let block = block(5);
        let mut headers = headers(&block);
        headers.retain(|(kept, _)| kept != name);
        headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        read("acme.t", &headers, block.body).unwrap_err().field
    };
    for name in [WH_FORMAT, WH_ROWS, WH_BYTES, WH_RECEIVED, WH_ENCODING, MSG_ID] {
        assert_eq!(bad(name, None), name);
        assert_eq!(bad(name, Some("")), name);
        assert_eq!(bad(name, Some("\u{0}ü")), name);
    }
    for (name, value) in [
        (WH_FORMAT, "2"),
        (WH_ROWS, "501"),
        (WH_ROWS, "-1"),
        (WH_ROWS, "+1"),
        (WH_ROWS, "5 "),
        (WH_ROWS, "99999999999999999999"),
        (WH_BYTES, "67108865"),
        (WH_RECEIVED, "yesterday"),
        (WH_ENCODING, "ZSTD"),
        (MSG_ID, "abababababababababababababababa"),
        (WH_CHAIN, "17"),
        (WH_CHAIN, "p-"),
        (WH_CHAIN, "p--x"),
        (WH_CHAIN, "p-99999999999999999999"),
    ] {
        assert_eq!(bad(name, Some(value)), name, "{value}");
    }
    let headers = headers(&block(5));
    assert_eq!(read("acme.t", &headers, Bytes::new()).unwrap_err().field, "body");
    assert_eq!(read("a.b.c.d", &headers, Bytes::from_static(b"x")).unwrap_err().field, "subject");
}

#[test]
fn a_reason_is_bounded_whatever_came() {
    let mut headers = headers(&block(5));
    headers[2].1 = "9".repeat(1 << 20);
    let text = read("acme.t", &headers, Bytes::from_static(b"x")).unwrap_err().to_string();
    assert!(text.len() < 200, "{} bytes", text.len());
}

#[test]
fn a_probe_with_a_body_is_no_probe() {
    let headers = headers(&block(0));
    assert_eq!(read("acme.t", &headers, Bytes::from_static(b"x")).unwrap_err().field, "body");
}

proptest! {
    #[test]
    fn no_header_makes_the_reader_fail_otherwise(
        name in proptest::sample::select(&[WH_ROWS, WH_BYTES, WH_RECEIVED, WH_ENCODING, MSG_ID, WH_CHAIN, TRACEPARENT]),
        value in any::<String>(),
    ) {
        let mut headers = headers(&block(5));
        headers.retain(|(kept, _)| kept != name);
        headers.push((name.to_owned(), value));
        if let Err(error) = read("acme.t", &headers, Bytes::from_static(b"x")) {
            prop_assert_eq!(error.field, name);
        }
    }
}
