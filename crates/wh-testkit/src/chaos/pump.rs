//! One connection of the proxy: two lanes, and what breaks them.

use super::{End, Lane, Mode, Shared};
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::{mpsc, watch},
    time::{Duration, sleep, sleep_until},
};
use wh_types::{Clock, Mono, SystemClock};

const CHUNK: usize = 16 * 1024;
/// Chunks on their way on one lane.
const UNDERWAY: usize = 64;

/// Passes bytes until an end closes or the connection is broken.
pub(super) async fn run(client: TcpStream, server: TcpStream, shared: &Shared, mut mode: watch::Receiver<Mode>) {
    for end in [&client, &server] {
        drop(end.set_nodelay(true));
    }
    let (cuts, halves) = (mode.borrow().cuts, mode.borrow().halves);
    let left = {
        let (mut from_client, mut to_client) = tokio::io::split(client);
        let (mut from_server, mut to_server) = tokio::io::split(server);
        let up = lane(&mut from_client, &mut to_server, &shared.tally.to_server, mode.clone(), |m| m.to_server);
        let down = lane(&mut from_server, &mut to_client, &shared.tally.to_client, mode.clone(), |m| m.to_client);
        let both = async {
            tokio::join!(up, down);
        };
        // what breaks a connection comes first: a heal right after a cut must not let through what was swallowed
        tokio::select! {
            biased;
            seen = mode.wait_for(|mode| mode.cuts != cuts || mode.halves != halves) => {
                seen.ok().filter(|mode| mode.cuts == cuts).and_then(|mode| mode.left)
            }
            () = both => None,
        }
        .map(|left| match left {
            End::Client => from_client.unsplit(to_client),
            End::Server => from_server.unsplit(to_server),
        })
    };
    if let Some(kept) = left {
        tokio::select! {
            () = drain(kept) => {}
            _ = mode.wait_for(|mode| mode.cuts != cuts) => {}
        }
    }
}

/// Reads and drops until that end gives up.
async fn drain(mut kept: TcpStream) {
    let mut buffer = vec![0; CHUNK];
    while kept.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}

/// One way of a connection. Ends when its source has ended and everything is through, or when an end breaks.
async fn lane(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    passed: &AtomicU64,
    mut mode: watch::Receiver<Mode>,
    of: fn(&Mode) -> Lane,
) {
    let (sender, mut underway) = mpsc::channel::<(Mono, Bytes)>(UNDERWAY);
    let reading = async move {
        let mut buffer = vec![0; CHUNK];
        while let Ok(read) = from.read(&mut buffer).await
            && read > 0
        {
            let chunk = Bytes::copy_from_slice(&buffer[..read]);
            if sender.send((SystemClock.now(), chunk)).await.is_err() {
                return;
            }
        }
    };
    let writing = async {
        while let Some((read_at, chunk)) = underway.recv().await {
            let delay = of(&mode.borrow()).pace.delay;
            sleep_until(read_at + delay).await;
            let mut rest = &chunk[..];
            while !rest.is_empty() {
                if mode.wait_for(|mode| !of(mode).hole).await.is_err() {
                    return;
                }
                let take = portion(of(&mode.borrow()), rest.len());
                if to.write_all(&rest[..take]).await.is_err() {
                    return;
                }
                passed.fetch_add(take as u64, Ordering::Relaxed);
                rest = &rest[take..];
                let rate = of(&mode.borrow()).pace.bytes_per_second;
                if let Some(rate) = rate {
                    sleep(Duration::from_secs_f64(take as f64 / rate.max(1) as f64)).await;
                }
            }
        }
        drop(to.shutdown().await);
    };
    // the reader's end closes the channel; the writer then has everything
    tokio::pin!(writing);
    tokio::select! {
        () = &mut writing => return,
        () = reading => {}
    }
    writing.await;
}

/// A twentieth of a second's bytes at once, so that a slow lane drips.
fn portion(lane: Lane, len: usize) -> usize {
    let most = lane.pace.bytes_per_second.map_or(usize::MAX, |rate| usize::try_from(rate / 20).unwrap_or(usize::MAX));
    len.min(most.max(1))
}
