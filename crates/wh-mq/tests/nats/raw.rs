//! The protocol of NATS by hand: messages that no client library sends, and what no client library hides.

use crate::stand::Stand;
use anyhow::{Result, bail, ensure};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};
use wh_testkit::nats::PASSWORD;
use wh_topology::Role;

/// A client that parses nothing: whoever has our rights and no library.
pub(crate) struct Raw(BufReader<TcpStream>);

impl Raw {
    pub(crate) async fn connect(stand: &Stand) -> Result<Self> {
        Self::connect_as(stand, Role::Both.user()).await
    }

    pub(crate) async fn connect_as(stand: &Stand, user: &str) -> Result<Self> {
        let mut raw = Self(BufReader::new(TcpStream::connect(("127.0.0.1", stand.server.port())).await?));
        let connect = format!(
            r#"CONNECT {{"verbose":false,"pedantic":false,"headers":true,"user":"{user}","pass":"{PASSWORD}"}}"#
        );
        raw.send(format!("{connect}\r\n").as_bytes()).await?;
        raw.passed().await?;
        Ok(raw)
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.0.get_mut().write_all(bytes).await?)
    }

    pub(crate) async fn line(&mut self) -> Result<String> {
        let mut line = Vec::new();
        ensure!(self.0.read_until(b'\n', &mut line).await? > 0, "the server ends the connection");
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    /// The body that a line announced.
    pub(crate) async fn body(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut body = vec![0; length + 2];
        self.0.read_exact(&mut body).await?;
        body.truncate(length);
        Ok(body)
    }

    /// Returns once the server took everything.
    pub(crate) async fn passed(&mut self) -> Result<()> {
        self.send(b"PING\r\n").await?;
        loop {
            match self.line().await?.as_str() {
                "PONG" => return Ok(()),
                line if line.starts_with("-ERR") => bail!("{line}"),
                _ => {}
            }
        }
    }

    pub(crate) async fn publish(&mut self, subject: &str, headers: &[u8], body: &[u8]) -> Result<()> {
        let total = headers.len() + body.len();
        let mut bytes = format!("HPUB {subject} {} {total}\r\n", headers.len()).into_bytes();
        bytes.extend(headers.iter().chain(body).chain(b"\r\n"));
        self.send(&bytes).await?;
        self.passed().await
    }

    /// Takes one message of a durable and acks it, whatever it is. False where nothing comes.
    pub(crate) async fn take(&mut self, stream: &str, durable: &str) -> Result<bool> {
        let body = r#"{"batch":1,"expires":500000000,"group":"wavehouse"}"#;
        let pull =
            format!("PUB $JS.API.CONSUMER.MSG.NEXT.{stream}.{durable} _INBOX_wh.raw {}\r\n{body}\r\n", body.len());
        self.send(format!("SUB _INBOX_wh.raw 1\r\n{pull}").as_bytes()).await?;
        loop {
            let line = self.line().await?;
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["HMSG" | "MSG", _, _, ack, .., length] if ack.starts_with("$JS.ACK.") => {
                    self.body(length.parse()?).await?;
                    self.send(format!("PUB {ack} 4\r\n+ACK\r\nUNSUB 1\r\n").as_bytes()).await?;
                    self.passed().await?;
                    return Ok(true);
                }
                ["HMSG", ..] => {
                    self.send(b"UNSUB 1\r\n").await?;
                    self.passed().await?;
                    return Ok(false);
                }
                _ => {}
            }
        }
    }
}
