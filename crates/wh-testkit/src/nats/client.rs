//! A NATS client of one request at a time, and nothing more.

use super::PASSWORD;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::time::Duration;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// With this text, which may be empty.
    Text(String),
    /// With a status, such as 503 for no responders.
    Status(u16),
    /// The server refused it for want of a right.
    Refused(String),
}

impl Reply {
    /// The JSON of an answer that is no refusal.
    ///
    /// # Errors
    /// It is a status, a refusal, no JSON, or an error of JetStream.
    pub fn json(self) -> Result<Value> {
        let Self::Text(text) = self else { bail!("no answer: {self:?}") };
        let value: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
        match value.get("error") {
            Some(error) => bail!("{error}"),
            None => Ok(value),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
    inbox: String,
    next: u64,
    /// The server's INFO, as it came.
    pub info: String,
}

impl Client {
    /// Connects to 127.0.0.1, as a user with [`PASSWORD`] where one is given, with inboxes below `inbox`.
    ///
    /// # Errors
    /// The server does not take it, or refuses the inbox.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn connect(port: u16, user: Option<&str>, inbox: &str) -> Result<Self> {
        let stream = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?);
        let mut client = Self { stream, inbox: inbox.to_owned(), next: 0, info: String::new() };
        let info = client.line().await?;
        client.info = info.strip_prefix("INFO ").context("no INFO")?.to_owned();
        let login = user.map(|user| format!(r#","user":"{user}","pass":"{PASSWORD}""#)).unwrap_or_default();
        let connect = format!(r#"CONNECT {{"verbose":false,"headers":true,"no_responders":true{login}}}"#);
        client.send(&format!("{connect}\r\nSUB {inbox}.> 1\r\n")).await?;
        client.refused_subscription().await?.map_or(Ok(client), |refused| bail!("{refused}"))
    }

    /// Asks, and waits for the answer or the refusal.
    ///
    /// # Errors
    /// Neither comes within 10 seconds, or the connection ends.
    ///
    /// # Cancel safety
    /// Must finish: the answer would be taken for that of the next request. Drop the client too.
    pub async fn request(&mut self, subject: &str, body: &str) -> Result<Reply> {
        self.next += 1;
        let reply = format!("{}.{}", self.inbox, self.next);
        self.send(&format!("PUB {subject} {reply} {}\r\n{body}\r\n", body.len())).await?;
        let answer = async {
            loop {
                let line = self.line().await?;
                if let Some(refused) = violation(&line, "Publish") {
                    return Ok(Reply::Refused(refused));
                }
                if let Some((to, message)) = self.message(&line).await?
                    && to == reply
                {
                    return Ok(message);
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), answer)
            .await
            .with_context(|| format!("no answer to {subject}"))?
    }

    /// Publishes without asking for an answer.
    ///
    /// # Errors
    /// The connection ends.
    ///
    /// # Cancel safety
    /// Must finish: drop the client too.
    pub async fn publish(&mut self, subject: &str, body: &str) -> Result<()> {
        self.send(&format!("PUB {subject} {}\r\n{body}\r\n", body.len())).await
    }

    /// Subscribes; the refusal, where there is one.
    ///
    /// # Errors
    /// The connection ends.
    ///
    /// # Cancel safety
    /// Must finish: drop the client too.
    pub async fn subscribe(&mut self, subject: &str) -> Result<Option<String>> {
        self.send(&format!("SUB {subject} 2\r\n")).await?;
        self.refused_subscription().await
    }

    async fn refused_subscription(&mut self) -> Result<Option<String>> {
        self.send("PING\r\n").await?;
        let mut refused = None;
        loop {
            let line = self.line().await?;
            match violation(&line, "Subscription") {
                Some(subject) => refused = Some(subject),
                None if line == "PONG" => return Ok(refused),
                None if line.starts_with("-ERR") => bail!("{line}"),
                None => drop(self.message(&line).await?),
            }
        }
    }

    /// The message that a line announces.
    async fn message(&mut self, line: &str) -> Result<Option<(String, Reply)>> {
        let words: Vec<_> = line.split(' ').collect();
        let (subject, length) = match words[..] {
            ["MSG" | "HMSG", subject, .., length] => (subject.to_owned(), length.parse::<usize>()?),
            ["PING"] => return self.send("PONG\r\n").await.map(|()| None),
            ["-ERR", ..] => bail!("{line}"),
            _ => return Ok(None),
        };
        let mut body = vec![0; length + 2];
        self.stream.read_exact(&mut body).await?;
        let text = String::from_utf8(body[..length].to_vec())?;
        let headers = if words[0] == "HMSG" { words[words.len() - 2].parse()? } else { 0 };
        let status =
            text[..headers].lines().next().and_then(|line| line.strip_prefix("NATS/1.0 ")?.get(..3)?.parse().ok());
        Ok(Some((subject, status.map_or_else(|| Reply::Text(text[headers..].to_owned()), Reply::Status))))
    }

    async fn send(&mut self, text: &str) -> Result<()> {
        Ok(self.stream.write_all(text.as_bytes()).await?)
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(60), self.stream.read_line(&mut line)).await;
        anyhow::ensure!(read.context("the server is silent")?? > 0, "the server hung up");
        Ok(line.trim_end().to_owned())
    }
}

/// The subject of a refusal.
fn violation(line: &str, verb: &str) -> Option<String> {
    let after = line.split_once(&format!("Permissions Violation for {verb} to \""))?.1;
    Some(after.split_once('"')?.0.to_owned())
}
