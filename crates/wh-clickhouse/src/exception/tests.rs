//! Exceptions wherever they stand, and data that is none.

use super::*;
use proptest::prelude::*;

const TEXT: &str = "Code: 395. DB::Exception: boom: while executing 'x'. (THROW) (version 26.7.2.1)\n";

fn block(tag: &str) -> String {
    format!("\r\n__exception__\r\n{tag}\r\n{TEXT}{} {tag}\r\n__exception__\r\n", TEXT.len())
}

/// Feeds pieces of `size` bytes; gives the data that passed and how it ended.
fn scan(tag: Option<&str>, all: &[u8], size: usize, clean: bool) -> (Vec<u8>, Option<Exception>) {
    let mut scanner = Scanner::new(tag);
    let mut data = Vec::new();
    for piece in all.chunks(size.max(1)) {
        data.extend_from_slice(&scanner.pass(Bytes::copy_from_slice(piece)));
    }
    match scanner.end(clean) {
        Ok(rest) => {
            data.extend_from_slice(&rest);
            (data, None)
        }
        Err(exception) => (data, Some(exception)),
    }
}

#[test]
fn a_bad_answer_is_read_by_its_named_code_or_its_beginning() {
    let plain = b"Code: 27. DB::Exception: Cannot parse: (at row 3)\n (X) (version 26.7.2.1)\n";
    for named in [Some(27), None] {
        let found = in_bad_answer(named, plain).unwrap();
        assert_eq!(found.code, 27);
        assert!(found.text.starts_with("Code: 27.") && found.text.ends_with("26.7.2.1)"), "{found:?}");
    }
    assert_eq!(in_bad_answer(None, b"\r\nCode: 60. DB::Exception: no").unwrap().code, 60);
    assert_eq!(in_bad_answer(None, b"Code: 194, e.displayText() = DB::Exception: x").unwrap().code, 194, "20.x");
    let behind = [b"{\"a\":1}\n{\"a\":".as_slice(), TEXT.as_bytes()].concat();
    assert_eq!(in_bad_answer(Some(395), &behind).unwrap().text, TEXT.trim(), "data before it is cut");
    assert_eq!(in_bad_answer(Some(241), b"").unwrap(), Exception { code: 241, text: String::new() });
    let json = br#"{"exception": "Code: 395. DB::Exception: boom"}"#;
    assert!(in_bad_answer(Some(395), json).unwrap().text.starts_with("Code: 395"));
    for none in [&b"<html>502 Bad Gateway</html>"[..], b"", b"Code: x", b"Code: 5 of honour"] {
        assert_eq!(in_bad_answer(None, none), None);
    }
}

#[test]
fn a_tagged_block_is_found_wherever_the_pieces_break() {
    let all = format!("{{\"a\":1}}\n{}", block("abcdefghijklmnop"));
    for size in 1..all.len() + 1 {
        let (data, exception) = scan(Some("abcdefghijklmnop"), all.as_bytes(), size, false);
        assert_eq!(data, b"{\"a\":1}\n", "pieces of {size}");
        assert_eq!(exception, Some(Exception { code: 395, text: TEXT.trim().into() }));
    }
}

#[test]
fn a_block_of_another_tag_is_data_and_a_cut_block_is_still_an_exception() {
    let foreign = format!("x{}", block("zzzzzzzzzzzzzzzz"));
    assert_eq!(scan(Some("abcdefghijklmnop"), foreign.as_bytes(), 7, true), (foreign.into_bytes(), None));
    let whole = block("abcdefghijklmnop");
    let (data, exception) = scan(Some("abcdefghijklmnop"), &whole.as_bytes()[..60], 11, false);
    assert_eq!((data.len(), exception.unwrap().code), (0, 395));
    let (_, exception) = scan(Some("abcdefghijklmnop"), &whole.as_bytes()[..40], 11, false);
    assert_eq!(exception.unwrap().code, 0, "even its code was cut off");
}

#[test]
fn without_a_tag_the_text_behind_the_data_is_an_exception() {
    let all = format!("1\t2\n{TEXT}");
    for (size, clean) in [(1, true), (5, false), (4096, true)] {
        let (data, exception) = scan(None, all.as_bytes(), size, clean);
        assert!(data.is_empty(), "held back: small answers come out at their end");
        assert_eq!(exception.unwrap(), Exception { code: 395, text: TEXT.trim().into() });
    }
    let long = format!("{}{TEXT}", "0123456789\n".repeat(10_000));
    let (data, exception) = scan(None, long.as_bytes(), 1000, false);
    assert!(exception.is_some() && data.len() > 90_000);
    for stored in ["a\tCode: 5. DB::Exception: x (version 1)\n", "Code: 5. DB::Exception: x\nnext\n", "plain\n"] {
        assert_eq!(scan(None, stored.as_bytes(), 3, true), (stored.into(), None), "{stored:?}");
    }
}

#[test]
fn an_exception_has_a_bounded_text() {
    let all = format!("\r\n__exception__\r\ntag\r\nCode: 1. {}", "x".repeat(100_000));
    let (_, exception) = scan(Some("tag"), all.as_bytes(), 9_000, false);
    assert_eq!(exception.unwrap().text.len(), TEXT_LIMIT);
}

#[test]
fn the_row_is_the_last_one_named() {
    assert_eq!(row_hint("Cannot parse input: expected '\"' before: 'x': (at row 7124)\n: While"), Some(7124));
    assert_eq!(row_hint("before: '(at row 5)': (at row 12)"), Some(12), "quoted data comes first");
    assert_eq!(row_hint("Constraint `c` for table app.t (a-b) is violated at row 3. Expression: (id < 100)"), Some(3));
    assert_eq!(row_hint("(at row 0)"), None);
    assert_eq!(row_hint("(at row 99999999999999999999)"), None);
    assert_eq!(row_hint("Too many parts"), None);
}

proptest! {
    #[test]
    fn data_without_an_exception_passes_unchanged(
        data in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'_'), any::<u8>()], 0..400),
        size in 1_usize..50,
        tagged in any::<bool>(),
    ) {
        let tag = tagged.then_some("abcdefghijklmnop");
        let (passed, exception) = scan(tag, &data, size, true);
        prop_assert_eq!(exception, None);
        prop_assert_eq!(passed, data);
    }
}
