//! Runs the suite: every case on every arm, in parallel, each on a runtime and a queue of its own.

use conformance::{Arm, Case, Counts, Ledger, Planned, Verdict, all, arms, cache, crash, dedupe, leases, stage};
use libtest_mimic::{Arguments, Failed, Trial};
use std::{io::Write as _, process::ExitCode, sync::Arc, time::Duration};

/// No case may take longer: a hang is a failure with a name. A machine that does many things at once is given its time.
const AT_MOST: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    if let Some(code) = crash::writer() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // cases wait more than they compute
    arguments.test_threads.get_or_insert(8);
    let ledger = match Ledger::read(include_str!("../matrix.toml"), include_str!("../expected.toml")) {
        Ok(ledger) => Arc::new(ledger),
        Err(error) => {
            let read = Trial::test("the_ledger_can_be_read", move || Err(Failed::from(format!("{error:#}"))));
            return libtest_mimic::run(&arguments, vec![read]).exit_code();
        }
    };
    let arms: Vec<Arc<dyn Arm>> = match arms::all() {
        Ok(arms) => arms.into_iter().map(Arc::from).collect(),
        Err(error) => {
            let read = Trial::test("the_surroundings_can_be_used", move || Err(Failed::from(format!("{error:#}"))));
            return libtest_mimic::run(&arguments, vec![read]).exit_code();
        }
    };
    if arms.iter().any(|arm| arm.shared()) {
        // they take turns, and none may wait for its turn longer than it may run
        arguments.test_threads = Some(1);
    }
    let mut trials = Vec::new();
    for line in ledger.lines() {
        let arm = arms.iter().find(|arm| arm.name() == line.name);
        let mut counts = Counts::default();
        for case in all() {
            let name = format!("{}::{}", line.name, case.name);
            let verdict = Ledger::verdict(line, &case, arm.map(|arm| &**arm));
            match (verdict, arm) {
                (Verdict::Run, Some(arm)) => {
                    counts.cases += 1;
                    trials.push(trial(name, case, Arc::clone(arm), case.run));
                }
                (Verdict::Twin, Some(arm)) => {
                    counts.twins += 1;
                    let twin = case.twin.unwrap_or(case.run);
                    trials.push(trial(name, case, Arc::clone(arm), twin).with_kind("twin"));
                }
                (Verdict::Skip(why), _) => {
                    counts.skipped += 1;
                    trials.push(Trial::test(name, || Ok(())).with_kind(why).with_ignored_flag(true));
                }
                (Verdict::Run | Verdict::Twin, None) => unreachable!("a case without an arm is skipped"),
            }
        }
        let (ledger, line) = (Arc::clone(&ledger), line.clone());
        let name = format!("{}::the_ledger_has_every_case", line.name);
        trials.push(Trial::test(name, move || Ok(ledger.check(&line, counts)?)));
    }
    for (of, plan) in [("leases", leases::plan()), ("dedupe_stores", dedupe::plan()), ("caches", cache::plan())] {
        match plan {
            Ok((planned, checks)) => {
                trials.extend(planned.into_iter().map(planned_trial));
                trials.extend(checks.into_iter().map(|(name, check)| Trial::test(name, move || Ok(check?))));
            }
            Err(error) => {
                let name = format!("the_{of}_can_be_read");
                trials.push(Trial::test(name, move || Err(Failed::from(format!("{error:#}")))));
            }
        }
    }
    trials.extend(crash::trials());
    let ran = libtest_mimic::run(&arguments, trials).exit_code();
    let finish = async || futures::future::try_join_all(arms.iter().map(|arm| arm.finish())).await.map(drop);
    match within("cleaning up", finish()) {
        Ok(()) => ran,
        Err(error) => {
            _ = writeln!(std::io::stderr(), "{}", error.message().unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

fn trial(name: String, case: Case, arm: Arc<dyn Arm>, run: conformance::Run) -> Trial {
    Trial::test(name, move || {
        if arm.shared() { within(case.name, stage::salted(run(&*arm))) } else { within(case.name, run(&*arm)) }
    })
}

fn planned_trial(planned: Planned) -> Trial {
    let name = planned.name.clone();
    match planned.run {
        Ok(start) => {
            let trial = Trial::test(name, move || within(&planned.name, start()));
            if planned.twin { trial.with_kind("twin") } else { trial }
        }
        Err(why) => Trial::test(name, || Ok(())).with_kind(why).with_ignored_flag(true),
    }
}

/// Runs a case on a runtime of its own.
fn within(name: &str, case: impl Future<Output = anyhow::Result<()>>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async { tokio::time::timeout(AT_MOST, case).await });
    runtime.shutdown_background();
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failed::from(format!("{name}: {error:#}"))),
        Err(_) => Err(Failed::from(format!("{name} took more than {AT_MOST:?}"))),
    }
}
