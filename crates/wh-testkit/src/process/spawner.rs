//! Children are started from one thread that lasts as long as this process.
//!
//! The kernel's parent-death signal follows the thread that forked, not the process. A test's own thread ends with its
//! test, and tokio's blocking threads end when idle; a server shared by tests would die with them.

use std::{
    io,
    process::{Child, Command},
    sync::{OnceLock, mpsc},
    thread,
};

type Job = (Command, mpsc::SyncSender<io::Result<Child>>);

/// Starts the command.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    static JOBS: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for (mut command, reply) in jobs {
                // the one who asked waits for the reply, so it is always taken
                drop(reply.send(command.spawn()));
            }
        });
        sender
    });
    let gone = |_| io::Error::other("the thread that starts processes has ended");
    let (reply, answer) = mpsc::sync_channel(1);
    jobs.send((command, reply)).map_err(|_| gone(mpsc::RecvError))?;
    answer.recv().map_err(gone)?
}
