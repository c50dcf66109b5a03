//! One HTTP/1.1 connection that finds the end of an answer and no more. Knows content-length and chunked.

use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub(crate) struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
    body: std::ops::Range<usize>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, buffer: Vec::with_capacity(4_096), body: 0..0 })
    }

    /// Sends one request and reads its whole answer. Gives the status.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<u16> {
        self.socket.write_all(request).await?;
        self.answer().await
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.socket.write_all(bytes).await?)
    }

    pub(crate) async fn answer(&mut self) -> Result<u16> {
        self.buffer.clear();
        let head = loop {
            self.more().await?;
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
        };
        let text = std::str::from_utf8(&self.buffer[..head])?.to_ascii_lowercase();
        let status = text.get(9..12).and_then(|s| s.parse().ok()).with_context(|| format!("no status in {text:?}"))?;
        if let Some(at) = text.find("\r\ncontent-length:") {
            let value = text[at + 17..].lines().next().unwrap_or_default().trim();
            let end = head + value.parse::<usize>().context("content-length")?;
            while self.buffer.len() < end {
                self.more().await?;
            }
            self.body = head..end;
        } else if text.contains("transfer-encoding: chunked") {
            while !self.buffer.ends_with(b"0\r\n\r\n") {
                self.more().await?;
            }
            self.body = head..self.buffer.len();
        } else {
            bail!("an answer without a length: {text:?}");
        }
        Ok(status)
    }

    pub(crate) fn last_body(&self) -> String {
        String::from_utf8_lossy(&self.buffer[self.body.clone()]).chars().take(500).collect()
    }

    /// Whether the last answer's body has this text in it.
    pub(crate) fn says(&self, text: &[u8]) -> bool {
        find(&self.buffer[self.body.clone()], text).is_some()
    }

    async fn more(&mut self) -> Result<()> {
        if self.socket.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
