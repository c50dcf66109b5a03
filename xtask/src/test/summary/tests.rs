//! Output as the runners print it.

use super::*;

fn names(report: &Report) -> Vec<&str> {
    report.failures.iter().map(|failure| failure.name.as_str()).collect()
}

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
    assert_eq!(names(&report), ["procs::procs c", "wh-log d", "wh-mq core::tests::b"]);
    let expected = [
        ("conformance::suite nats::mq01_more".to_owned(), "WH_TEST_NATS_URL unset".to_owned()),
        ("wh-testkit::servers others::redis".to_owned(), IGNORED.to_owned()),
    ];
    assert_eq!(report.skipped, expected);
}

#[test]
fn what_a_failed_test_printed_is_kept_and_no_more() {
    let flood: String = (0..100).map(|n| format!("    line {n}\n")).collect();
    let report = nextest(&format!(
        "        FAIL [   0.011s] (1/3) wh-mq a\n\
         \x20 stdout ───\n\n\
         {flood}\
         \x20   FAIL it says, and Summary, too\n\n\
         \x20       PASS [   0.253s] (2/3) wh-mq b\n\
         not of a test\n\
         \x20       FAIL [   0.011s] (3/3) wh-mq c\n\
         \x20 stderr ───\n\
         \x20   panicked\n\
         ────────────\n\
         \x20    Summary [   2.716s] 3 tests run: 1 passed, 2 failed, 0 skipped\n\
         \x20       FAIL [   0.011s] (1/3) wh-mq a\n\
         \x20       FAIL [   0.011s] (3/3) wh-mq c\n\
         error: test run failed\n",
    ));
    assert_eq!((report.passed, report.failed), (1, 2));
    assert_eq!(names(&report), ["wh-mq a", "wh-mq c"]);
    let [a, c] = &report.failures[..] else { panic!("{report:?}") };
    assert_eq!(a.output.len(), LINES[1]);
    assert_eq!(a.output.last().unwrap(), "    FAIL it says, and Summary, too");
    assert_eq!(c.output, ["  stderr ───", "    panicked"]);

    // the panic is not lost behind a server's log
    let panic =
        "    panicked at src/a.rs:1:2:\n    why\n    stack backtrace:\n       0: a::b\n                 at ./a.rs:1\n";
    let report = nextest(&format!("        FAIL [   0.011s] (1/1) wh-mq a\n    first\n{panic}{flood}"));
    let output = &report.failures[0].output;
    assert_eq!(output.len(), LINES[0] + LINES[1]);
    assert_eq!(output[..4], ["    panicked at src/a.rs:1:2:", "    why", "    stack backtrace:", "    line 0"]);
    assert_eq!(output.last().unwrap(), "    line 99");

    let report = libtest(
        "test fault::b ... FAILED\n\
         test fault::c ... ok\n\n\
         failures:\n\n\
         ---- fault::b stdout ----\n\
         panicked\n\n\
         failures:\n    fault::b\n\n\
         test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.89s\n",
    );
    assert_eq!(report.failures, [Failure { name: "fault::b".into(), output: vec!["panicked".into()] }]);
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
    assert_eq!(names(&report), ["fault::b"]);
    let expected = [("slow", "takes an hour"), ("nats::mq01", "WH_TEST_NATS_URL unset")];
    assert_eq!(report.skipped, expected.map(|(name, reason)| (name.to_owned(), reason.to_owned())));
}

#[test]
fn output_without_a_summary_counts_nothing() {
    assert_eq!(nextest("error: could not compile `a`\n"), Report::default());
    assert_eq!(libtest("error: could not compile `a`\n"), Report::default());
}
