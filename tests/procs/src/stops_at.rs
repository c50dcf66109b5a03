//! A proxy that lets a client say everything up to a text, and nothing from there on.

use anyhow::Result;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use wh_testkit::{free_port, until_equal};
use wh_types::{Stop, Tasks};

/// A running proxy. Dropping it ends its connections.
#[derive(Debug)]
pub struct StopsAt {
    port: u16,
    met: watch::Receiver<bool>,
    stop: Stop,
}

impl Drop for StopsAt {
    fn drop(&mut self) {
        self.stop.give();
    }
}

impl StopsAt {
    /// In front of a port on 127.0.0.1. On each connection the server hears nothing from `text` on; what it says reaches
    /// the client.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start(upstream: u16, text: &'static str) -> Result<Self> {
        let port = free_port()?;
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let ((meet, met), stop, tasks) = (watch::channel(false), Stop::new(), Tasks::new());
        let (stopped, own) = (stop.clone(), tasks.clone());
        drop(tasks.spawn("stopping proxy", async move {
            loop {
                let client = tokio::select! {
                    () = stopped.wait() => return,
                    accepted = listener.accept() => accepted,
                };
                let Ok((client, _)) = client else { continue };
                let (stopped, meet) = (stopped.clone(), meet.clone());
                drop(own.spawn("stopping connection", async move {
                    tokio::select! {
                        () = stopped.wait() => {}
                        // how a connection ends is for its ends to say
                        _ = pass(client, upstream, text.as_bytes(), &meet) => {}
                    }
                }));
            }
        }));
        Ok(Self { port, met, stop })
    }

    /// `scheme://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Waits until a client said the text.
    ///
    /// # Errors
    /// It did not in time.
    pub async fn met(&self, within: Duration) -> Result<()> {
        until_equal(within, "the text that ends the proxy", true, || async { *self.met.borrow() }).await?;
        Ok(())
    }
}

async fn pass(client: TcpStream, upstream: u16, text: &[u8], meet: &watch::Sender<bool>) -> std::io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", upstream)).await?;
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let up = async {
        // what was said last, in case the text comes in two parts
        let (mut said, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
        loop {
            let read = from_client.read(&mut buffer).await?;
            if read == 0 {
                return to_server.shutdown().await;
            }
            let before = said.len();
            said.extend_from_slice(&buffer[..read]);
            if let Some(at) = said.windows(text.len()).position(|part| part == text) {
                to_server.write_all(&said[before..at.max(before)]).await?;
                meet.send_replace(true);
                return std::future::pending().await;
            }
            to_server.write_all(&said[before..]).await?;
            said.drain(..said.len().saturating_sub(text.len() - 1));
        }
    };
    let down = async {
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::try_join!(up, down).map(drop)
}
