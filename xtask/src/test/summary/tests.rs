//! Output as the runners print it.

use super::*;

#[test]
fn nextest_counts_every_way_to_fail_and_names_it() {
    let report = nextest(
        "        PASS [   0.253s] (1/6) wh-testkit::servers fault::a\n\
         \x20       FAIL [   0.011s] (2/6) wh-mq core::tests::b\n\
         \x20    TIMEOUT [  60.011s] (3/6) procs::procs c\n\
         \x20    SIGSEGV [   0.011s] (4/6) wh-log d\n\
         ────────────\n\
         \x20    Summary [   2.716s] 6 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 1 exec failed, 2 skipped\n\
         \x20       FAIL [   0.011s] (2/6) wh-mq core::tests::b\n\
         \x20       SKIP [         ] (─────) conformance::suite [WH_TEST_NATS_URL unset] nats::mq01_more\n\
         \x20       SKIP [         ] (─────) wh-testkit::servers others::redis\n",
    );
    assert_eq!((report.passed, report.failed), (3, 3));
    assert_eq!(report.failures, ["procs::procs c", "wh-log d", "wh-mq core::tests::b"]);
    let expected = [
        ("conformance::suite nats::mq01_more".to_owned(), "WH_TEST_NATS_URL unset".to_owned()),
        ("wh-testkit::servers others::redis".to_owned(), IGNORED.to_owned()),
    ];
    assert_eq!(report.skipped, expected);
}

#[test]
fn a_cancelled_nextest_run_counts_what_ran() {
    let report = nextest("     Summary [   0.045s] 2/40 tests run: 1 passed, 1 failed, 3 skipped\n");
    assert_eq!((report.passed, report.failed), (1, 1));
}

#[test]
fn libtest_sums_over_its_binaries() {
    let report = libtest(
        "running 3 tests\n\
         test fault::a ... ok\n\
         test fault::b ... FAILED\n\
         test slow ... ignored, takes an hour\n\
         test [WH_TEST_NATS_URL unset] nats::mq01 ... ignored\n\
         test result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.89s\n\
         running 1 test\n\
         test c ... ok\n\
         test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    );
    assert_eq!((report.passed, report.failed), (2, 1));
    assert_eq!(report.failures, ["fault::b"]);
    let expected = [("slow", "takes an hour"), ("nats::mq01", "WH_TEST_NATS_URL unset")];
    assert_eq!(report.skipped, expected.map(|(name, reason)| (name.to_owned(), reason.to_owned())));
}

#[test]
fn output_without_a_summary_counts_nothing() {
    assert_eq!(nextest("error: could not compile `a`\n"), Report::default());
    assert_eq!(libtest("error: could not compile `a`\n"), Report::default());
}
