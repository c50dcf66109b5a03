//! What each kind, code and status means.

use super::*;

const INSERT: Purpose = Purpose { op: "insert", effect: true };
const READ: Purpose = Purpose { op: "query", effect: false };

fn exception(purpose: Purpose, code: i32, text: &str) -> Error {
    Error::exception(purpose, 500, Exception { code, text: text.into() })
}

fn status(purpose: Purpose, status: u16) -> Error {
    Error::new(Kind::Status, purpose, "").status_was(status)
}

#[test]
fn a_code_has_one_class_whatever_its_wording() {
    for text in [
        "Code: 241. DB::Exception: Memory limit (total) exceeded: would use 1.00 GiB. (MEMORY_LIMIT_EXCEEDED) (version 24.3.1)",
        "Code: 241. DB::Exception: (total) memory limit exceeded: would use 6 GiB. (MEMORY_LIMIT_EXCEEDED) (version 25.9.1)",
        "Code: 241. DB::Exception: Query memory limit exceeded: OvercommitTracker decision (version 26.4.1)",
        "",
    ] {
        let error = exception(INSERT, 241, text);
        assert_eq!(
            (error.class(), error.failure(), error.splittable(), error.table_scoped()),
            (Class::Unavailable, Failure::Unavailable, true, false),
            "{text}"
        );
    }
}

#[test]
fn only_a_block_of_too_many_partitions_is_halved() {
    let partitions = exception(
        INSERT,
        252,
        "Too many partitions for single INSERT block (more than 100). The limit is controlled by a setting",
    );
    assert!(partitions.splittable() && partitions.table_scoped());
    for pressure in [
        "Too many parts (300). Merges are processing significantly slower than inserts",
        "Too many parts (1 with average size of 325.00 B) in table 'app.m'. Merges are processing significantly slower",
        "Too many inactive parts (2000) in table 'x'. Parts cleaning are processing significantly slower than inserts",
        "Too many parts (100000) in all partitions in total in table 'x'.",
        "",
    ] {
        let error = exception(INSERT, 252, pressure);
        assert!(!error.splittable() && error.table_scoped(), "{pressure}");
        assert_eq!(error.failure(), Failure::Unavailable);
    }
}

#[test]
fn what_may_have_happened_is_unknown_and_what_cannot_have_is_not() {
    for kind in [Kind::Lost, Kind::Timeout, Kind::Malformed, Kind::TooLarge] {
        let (write, read) = (Error::new(kind, INSERT, ""), Error::new(kind, READ, ""));
        assert_eq!((write.class(), write.in_doubt()), (Class::Unknown, true), "{kind:?}");
        assert_eq!(write.failure(), Failure::Unknown);
        assert!(!read.in_doubt());
        assert_ne!(read.class(), Class::Unknown, "a read changes nothing");
    }
    for kind in [Kind::Connect, Kind::Busy] {
        let write = Error::new(kind, INSERT, "");
        assert_eq!((write.class(), write.failure()), (Class::Unavailable, Failure::Unavailable));
    }
    for (code, class, doubt) in [
        (502, Class::Unknown, true),
        (504, Class::Unknown, true),
        (500, Class::Unknown, true),
        (503, Class::Unavailable, false),
        (429, Class::Unavailable, false),
        (413, Class::Invalid, false),
        (403, Class::Denied, false),
        (404, Class::Denied, false),
    ] {
        let write = status(INSERT, code);
        assert_eq!((write.class(), write.in_doubt()), (class, doubt), "{code}");
    }
    assert!(exception(INSERT, 319, "").in_doubt(), "ClickHouse says itself that it does not know");
    assert_eq!(exception(INSERT, 210, "").class(), Class::Unavailable, "any other exception is an answer");
}

#[test]
fn exceptions_have_the_class_of_their_code() {
    for (code, class, failure) in [
        (27, Class::Invalid, Failure::Rejected),
        (0, Class::Invalid, Failure::Rejected),
        (60, Class::NotFound, Failure::Rejected),
        (81, Class::NotFound, Failure::Rejected),
        (164, Class::Unavailable, Failure::Unavailable),
        (497, Class::Denied, Failure::Denied),
        (516, Class::Denied, Failure::Denied),
        (999, Class::Unavailable, Failure::Unavailable),
    ] {
        let error = exception(INSERT, code, "");
        assert_eq!((error.class(), error.failure()), (class, failure), "{code}");
    }
    assert!(exception(INSERT, 60, "").unknown_table() && !exception(INSERT, 16, "").unknown_table());
    assert!([8, 16, 47, 117].iter().all(|code| exception(INSERT, *code, "").unknown_column()));
}

#[test]
fn queries_fail_as_the_reference_maps_them() {
    use QueryFailure::{AccessDenied, Limit, Misconfigured, Rejected, TooLarge, Unavailable, Unknown};
    let (none, time, memory) =
        (RoleCaps::default(), RoleCaps { time: true, memory: false }, RoleCaps { time: false, memory: true });
    for (code, caps, expected) in [
        (62, none, Rejected),
        (158, none, Limit),
        (396, none, Limit),
        (159, none, Unavailable),
        (159, time, Limit),
        (160, time, Limit),
        (241, none, Unavailable),
        (241, memory, Limit),
        (241, time, Unavailable),
        (497, none, AccessDenied),
        (516, none, Misconfigured),
        (164, none, Misconfigured),
        (60, none, Rejected),
        (202, none, Unavailable),
    ] {
        assert_eq!(exception(READ, code, "").query_failure(caps), expected, "{code} {caps:?}");
    }
    for (code, expected) in [
        (302, Misconfigured),
        (404, Misconfigured),
        (401, Misconfigured),
        (413, Rejected),
        (429, Unavailable),
        (500, Unknown),
        (503, Unavailable),
    ] {
        assert_eq!(status(READ, code).query_failure(none), expected, "{code}");
    }
    for (kind, expected) in [
        (Kind::Connect, Unavailable),
        (Kind::Lost, Unavailable),
        (Kind::Timeout, Unavailable),
        (Kind::TooLarge, TooLarge),
        (Kind::Malformed, Unknown),
    ] {
        assert_eq!(Error::new(kind, READ, "").query_failure(none), expected, "{kind:?}");
    }
}

#[test]
fn a_message_is_bounded_at_a_character_and_keeps_its_row() {
    let error = exception(INSERT, 27, &format!("{}: (at row 9)", "é".repeat(5000)));
    assert_eq!((error.message().len(), error.row_hint()), (MESSAGE_LIMIT, Some(9)));
    assert!(format!("{error}").starts_with("insert: é"));
}
