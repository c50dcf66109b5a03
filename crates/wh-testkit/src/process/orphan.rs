//! The kernel kills a child whose parent died. One of the two modules that may use `unsafe`: see
//! `docs/adr/2026-11-29-children-die-with-the-test.md`.
#![allow(unsafe_code, reason = "Command::pre_exec is unsafe; ADR 2026-11-29-children-die-with-the-test")]

use std::process::Command;

/// Makes the command's process get SIGKILL when the **thread** that starts it ends. Elsewhere than on Linux it does
/// nothing.
pub(super) fn never(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
        use std::os::unix::process::CommandExt;

        let parent = getpid();
        let die_with_parent = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // the parent may have died before the signal was asked for
            if getppid() == Some(parent) { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
        };
        // SAFETY: between fork and exec only async-signal-safe calls are allowed. These are two plain system calls
        // that neither allocate nor lock.
        unsafe { command.pre_exec(die_with_parent) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}
