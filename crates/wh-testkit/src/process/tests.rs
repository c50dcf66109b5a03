//! The harness on small shell scripts.

use super::*;

const SOON: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Process {
    Process::launch("shell", "/bin/sh").args(["-c", script]).start().unwrap()
}

fn alive(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // the state stands after the name in brackets; a zombie is dead
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[tokio::test]
async fn output_and_exit_status_are_kept() {
    let mut process = shell("echo out; echo err >&2; exit 3");
    let status = process.wait(SOON).await.unwrap();
    assert_eq!(status.code(), Some(3));
    assert_eq!(process.log(), "out\nerr\n");
    assert!(process.tail(1).ends_with("err\n") && !process.tail(1).contains("out\n"));
}

#[tokio::test]
async fn readiness_gives_up_when_the_process_ends_first() {
    let mut process = shell("echo cannot bind; exit 1");
    let error = process.ready(SOON, "it answers", || async { false }).await.unwrap_err().to_string();
    assert!(error.contains("before: it answers") && error.contains("cannot bind"), "{error}");
}

#[tokio::test]
async fn a_dropped_process_is_dead() {
    let process = shell("exec sleep 600");
    let id = process.id();
    assert!(alive(id));
    drop(process);
    assert!(!alive(id));
}

#[tokio::test]
async fn signals_arrive_and_an_ended_process_refuses_them() {
    let mut process = shell("trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done");
    let log = process.log_file().to_owned();
    let up = || async { read_lossy(&log).contains("up") };
    process.ready(SOON, "the trap is set", up).await.unwrap();
    process.pause().unwrap();
    process.resume().unwrap();
    assert_eq!(process.stop(SOON).await.unwrap().code(), Some(7));
    assert!(process.pause().unwrap_err().to_string().contains("has ended"));
}

#[tokio::test]
async fn a_process_that_ignores_the_order_to_stop_is_killed() {
    let mut process = shell("trap '' TERM; echo up; while :; do sleep 0.01; done");
    let log = process.log_file().to_owned();
    process.ready(SOON, "the trap is set", || async { read_lossy(&log).contains("up") }).await.unwrap();
    assert!(process.stop(Duration::from_millis(50)).await.is_err());
    assert!(!alive(process.id()));
}

#[tokio::test]
async fn a_process_outlives_the_thread_that_asked_for_it() {
    let mut process = std::thread::spawn(|| shell("exec sleep 600")).join().unwrap();
    // the death signal would have come before this round trip through the kernel
    assert!(process.ended().unwrap().is_none());
    let mut other = shell("exit 0");
    other.wait(SOON).await.unwrap();
    assert!(process.ended().unwrap().is_none() && alive(process.id()));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_kernel_is_told_to_kill_orphans() {
    let mut process = Process::launch("python", "python3")
        .args(["-c", "import ctypes; s = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(s)); print(s.value)"])
        .start()
        .unwrap();
    process.wait(SOON).await.unwrap();
    assert_eq!(process.log().trim(), "9");
}

#[tokio::test]
async fn our_own_variables_are_given_not_inherited() {
    let mut process = Process::launch("env", "/usr/bin/env").env("WH_GIVEN", "1").start().unwrap();
    process.wait(SOON).await.unwrap();
    let ours: Vec<String> = process.log().lines().filter(|l| l.starts_with("WH_")).map(str::to_owned).collect();
    assert_eq!(ours, ["WH_GIVEN=1"]);
}
