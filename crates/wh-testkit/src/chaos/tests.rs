//! The proxy in front of an echo.

use super::*;
use crate::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wh_types::{Clock, SystemClock};

const SOON: Duration = Duration::from_secs(60);

/// A server that says everything back, and how many connections it has.
struct Echo {
    port: u16,
    open: Arc<AtomicU64>,
    stop: Stop,
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.give();
    }
}

async fn echo() -> Echo {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (open, stop, tasks) = (Arc::new(AtomicU64::new(0)), Stop::new(), Tasks::new());
    let serving = {
        let (open, stop, tasks) = (open.clone(), stop.clone(), tasks.clone());
        async move {
            loop {
                let accepted = tokio::select! {
                    () = stop.wait() => return,
                    accepted = listener.accept() => accepted,
                };
                let (mut stream, _) = accepted.unwrap();
                open.fetch_add(1, Ordering::Relaxed);
                let (open, stop) = (open.clone(), stop.clone());
                drop(tasks.spawn("echo", async move {
                    let (mut from, mut to) = stream.split();
                    tokio::select! {
                        () = stop.wait() => {}
                        _ = tokio::io::copy(&mut from, &mut to) => {}
                    }
                    open.fetch_sub(1, Ordering::Relaxed);
                }));
            }
        }
    };
    drop(tasks.spawn("echo server", serving));
    Echo { port, open, stop }
}

async fn both() -> (Echo, Tcp, TcpStream) {
    let echo = echo().await;
    let proxy = Tcp::start(echo.port).await.unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    assert_eq!(say(&mut client, "hello").await, "hello");
    (echo, proxy, client)
}

async fn say(client: &mut TcpStream, text: &str) -> String {
    client.write_all(text.as_bytes()).await.unwrap();
    hear(client, text.len()).await
}

async fn hear(client: &mut TcpStream, len: usize) -> String {
    let mut heard = vec![0; len];
    tokio::time::timeout(SOON, client.read_exact(&mut heard)).await.expect("an answer").unwrap();
    String::from_utf8(heard).unwrap()
}

async fn ends(client: &mut TcpStream) {
    let read = tokio::time::timeout(SOON, client.read(&mut [0; 8])).await.expect("the connection ends");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

/// Nothing comes in a tenth of a second.
async fn is_silent(client: &mut TcpStream) {
    let read = tokio::time::timeout(Duration::from_millis(100), client.read(&mut [0; 8])).await;
    assert!(read.is_err(), "{read:?}");
}

#[tokio::test]
async fn untold_it_is_invisible_and_counts() {
    let (_echo, proxy, client) = both().await;
    let counts = proxy.counts();
    assert_eq!((counts.accepted, counts.open, counts.to_server, counts.to_client), (1, 1, 5, 5));
    drop(client);
    until(SOON, "the connection is gone", || async { proxy.counts().open == 0 }).await.unwrap();
}

#[tokio::test]
async fn a_cut_ends_the_connections_there_are_and_takes_new_ones() {
    let (echo, proxy, mut client) = both().await;
    proxy.cut();
    ends(&mut client).await;
    until(SOON, "the server notices", || async { echo.open.load(Ordering::Relaxed) == 0 }).await.unwrap();
    let mut again = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    assert_eq!(say(&mut again, "again").await, "again");
}

#[tokio::test]
async fn a_port_that_is_down_refuses_until_it_is_up() {
    let (_echo, proxy, mut client) = both().await;
    proxy.down().await;
    ends(&mut client).await;
    assert!(TcpStream::connect(("127.0.0.1", proxy.port())).await.is_err());
    proxy.up().await.unwrap();
    let mut again = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    assert_eq!(say(&mut again, "again").await, "again");
}

#[tokio::test]
async fn a_black_hole_holds_back_each_way_and_delivers_when_healed() {
    for way in [Way::ToServer, Way::ToClient, Way::Both] {
        let (_echo, proxy, mut client) = both().await;
        proxy.black_hole(way);
        client.write_all(b"lost?").await.unwrap();
        if way == Way::ToClient {
            until(SOON, "the server got it", || async { proxy.counts().to_server == 10 }).await.unwrap();
        }
        is_silent(&mut client).await;
        let expected = if way == Way::ToClient { (10, 5) } else { (5, 5) };
        assert_eq!((proxy.counts().to_server, proxy.counts().to_client), expected, "{way:?}");

        // a new connection is taken, and as deaf
        let mut other = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        other.write_all(b"me").await.unwrap();
        is_silent(&mut other).await;

        proxy.heal();
        assert_eq!(hear(&mut client, 5).await, "lost?");
        assert_eq!(hear(&mut other, 2).await, "me");
    }
}

#[tokio::test]
async fn a_delay_is_latency_and_not_a_rate() {
    let (_echo, proxy, mut client) = both().await;
    let delay = Duration::from_millis(500);
    proxy.slow(Way::ToClient, Pace { delay, bytes_per_second: None });
    let start = SystemClock.now();
    for _ in 0..20 {
        client.write_all(b"x").await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(hear(&mut client, 20).await.len(), 20);
    let took = SystemClock.now() - start;
    assert!(took >= delay && took < 20 * delay, "one after another: {took:?}");
}

#[tokio::test]
async fn a_rate_bounds_the_bytes_of_a_second() {
    let (_echo, proxy, mut client) = both().await;
    proxy.slow(Way::ToServer, Pace { delay: Duration::ZERO, bytes_per_second: Some(10_000) });
    let start = SystemClock.now();
    let text = "x".repeat(5_000);
    assert_eq!(say(&mut client, &text).await, text);
    let took = SystemClock.now() - start;
    assert!(took >= Duration::from_millis(400), "{took:?}");
}

#[tokio::test]
async fn a_half_open_connection_is_left_at_one_end_only() {
    for left in [End::Client, End::Server] {
        let (echo, proxy, mut client) = both().await;
        proxy.half_open(left);
        if left == End::Client {
            until(SOON, "the server's end is closed", || async { echo.open.load(Ordering::Relaxed) == 0 })
                .await
                .unwrap();
            client.write_all(b"anybody?").await.unwrap();
            is_silent(&mut client).await;
        } else {
            ends(&mut client).await;
            assert_eq!(echo.open.load(Ordering::Relaxed), 1);
        }
        assert_eq!(proxy.counts().open, 1);
        let mut again = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(say(&mut again, "again").await, "again");
        proxy.cut();
        until(SOON, "both are gone", || async { proxy.counts().open == 0 }).await.unwrap();
    }
}
