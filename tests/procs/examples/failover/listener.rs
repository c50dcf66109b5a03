//! Counts the messages of some subjects on a server, as the operator.

use anyhow::{Context, Result, bail};
use std::{collections::BTreeMap, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};
use wh_testkit::nats::{OPERATOR, PASSWORD, Server};
use wh_types::{Clock, SystemClock};

/// How many messages each subscription got within a time, by the order of the subscriptions.
pub(crate) async fn count(server: &Server, subscriptions: &[&str], within: Duration) -> Result<Vec<u64>> {
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", server.port())).await?);
    let login = format!(r#"CONNECT {{"verbose":false,"headers":true,"user":"{OPERATOR}","pass":"{PASSWORD}"}}"#);
    let mut hello = login + "\r\n";
    for (sid, subject) in subscriptions.iter().enumerate() {
        hello += &format!("SUB {subject} {sid}\r\n");
    }
    stream.write_all(hello.as_bytes()).await?;
    let (mut counts, until) = (BTreeMap::<usize, u64>::new(), SystemClock.now() + within);
    loop {
        let mut line = String::new();
        let Ok(read) = tokio::time::timeout_at(until, stream.read_line(&mut line)).await else { break };
        anyhow::ensure!(read? > 0, "the server hung up");
        let words: Vec<_> = line.trim_end().split(' ').collect();
        match words[..] {
            ["MSG" | "HMSG", _, sid, .., length] => {
                *counts.entry(sid.parse()?).or_default() += 1;
                let mut body = vec![0; length.parse::<usize>().context("a length")? + 2];
                stream.read_exact(&mut body).await?;
            }
            ["PING"] => stream.write_all(b"PONG\r\n").await?,
            ["-ERR", ..] => bail!("{line}"),
            _ => {}
        }
    }
    Ok((0..subscriptions.len()).map(|sid| counts.get(&sid).copied().unwrap_or(0)).collect())
}
